"""Tests of explanations of extenders: rejected nodes and reasons, scores, and failed extenders."""

import threading
from typing import Any

from kschedd.answers import plain
from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.config.loading.load import config_from_raw
from kschedd.explain.explain import explain
from kschedd.scheduling.machine import SchedulingMachine
from tests.actors.clusters import node, pod
from tests.extenders.servers import nobody_there, serving

Raw = dict[str, Any]


def explained(*extenders: Raw, nodes: int = 4) -> Raw:
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [{"nodeCacheCapable": True, "httpTimeout": "60s", **extender} for extender in extenders],
    }
    machine = SchedulingMachine(config_from_raw(raw))
    for number in range(nodes):
        machine.cluster.put(parse(node(f"n{number}")))
    web = parse({**pod("web"), "metadata": {"name": "web", "namespace": "default", "uid": "u"}})
    assert isinstance(web, Pod)
    return plain(explain(machine, web, {}))


def test_verdicts_and_scores_of_extenders_stand_among_those_of_plugins() -> None:
    verbs = {
        "filter": lambda args: {
            "NodeNames": ["n2", "n3"],
            "FailedNodes": {"n0": "no card"},
            "FailedAndUnresolvableNodes": {"n1": "no slot"},
        },
        "score": lambda args: [{"Host": "n3", "Score": 7}],
    }
    with serving(verbs) as extender:
        answer = explained({"urlPrefix": extender.url, "filterVerb": "filter", "prioritizeVerb": "score", "weight": 3})
        assert [verb for verb, _ in extender.requests] == ["filter", "score"]  # each is asked once
        url = extender.url
    by_node = {one["node"]: (one["plugin"], one["code"], one["reasons"]) for one in answer["verdicts"]}
    assert by_node == {
        "n0": (url, "Unschedulable", ["no card"]),
        "n1": (url, "UnschedulableAndUnresolvable", ["no slot"]),
        "n2": (None, "Success", []),
        "n3": (None, "Success", []),
    }
    assert answer["scores"][url] == {
        "n2": {"raw": 0, "normalized": 0, "weighted": 0},
        "n3": {"raw": 7, "normalized": 70, "weighted": 210},
    }
    assert answer["weights"][url] == 3
    assert answer["totals"]["n3"] - answer["totals"]["n2"] == 210
    assert (answer["chosen"], answer["ties"]) == ("n3", ["n3"])


def test_what_each_of_several_rejects_is_its_own() -> None:
    first: Raw = {"filter": lambda args: {"NodeNames": ["n1", "n2"], "FailedNodes": {"n0": "first"}}}
    second: Raw = {"filter": lambda args: {"NodeNames": ["n2"]}}
    with serving(first) as one, serving(second) as other:
        answer = explained(*({"urlPrefix": each.url, "filterVerb": "filter"} for each in (one, other)), nodes=3)
        assert other.of("filter")[0]["NodeNames"] == ["n1", "n2"]
        expected = [
            (one.url, ["first"]),
            (other.url, ["the extender did not answer with this node"]),
            (None, []),
        ]
    assert [(verdict["plugin"], verdict["reasons"]) for verdict in answer["verdicts"]] == expected
    assert answer["chosen"] == "n2"


def test_one_that_fails_is_a_note_and_the_message_unless_it_may_be_ignored() -> None:
    with nobody_there() as url:
        ignored = explained({"urlPrefix": url, "filterVerb": "filter", "ignorable": True}, nodes=1)
        needed = explained({"urlPrefix": url, "filterVerb": "filter"}, nodes=1)
    [note] = [note for note in ignored["notes"] if url in note]
    assert note.startswith(f'extender {url}, filter: Post "{url}/filter": dial tcp ')
    assert note.endswith("; it is left out")
    assert ignored["chosen"] == "n0"
    assert needed["message"].startswith(f'Post "{url}/filter": dial tcp ')
    assert needed["chosen"] is None


def test_whole_nodes_are_scored_without_their_pods_which_is_said() -> None:
    with serving({"filter": lambda args: {"Nodes": args["Nodes"]}}) as extender:
        answer = explained({"urlPrefix": extender.url, "filterVerb": "filter", "nodeCacheCapable": False})
    assert any("kubernetes#141781" in note for note in answer["notes"])


def test_extenders_are_called_for_scores_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=60)

    def score(args: Raw) -> Raw:
        both.wait()  # broken if the other is called only when this one has answered
        return [{"Host": "n1", "Score": 2}]

    with serving({"score": score}) as one, serving({"score": score}) as other:
        answer = explained(*({"urlPrefix": each.url, "prioritizeVerb": "score", "weight": 1} for each in (one, other)))
        urls = {one.url, other.url}
    assert {url for url in urls if answer["scores"][url]["n1"]["raw"] == 2} == urls
    assert not both.broken


def test_without_score_plugins_each_node_has_one_point() -> None:
    plugins = {"score": {"disabled": [{"name": "*"}]}}
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}],
    }
    machine = SchedulingMachine(config_from_raw(raw))
    for number in range(2):
        machine.cluster.put(parse(node(f"n{number}")))
    web = parse({**pod("web"), "metadata": {"name": "web", "namespace": "default", "uid": "u"}})
    assert isinstance(web, Pod)
    assert plain(explain(machine, web, {}))["totals"] == {"n0": 1, "n1": 1}
