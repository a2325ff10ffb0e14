"""Tests of the verbs explain, queue, events and similar ones."""

import json
import shlex

import pytest
import yaml

from kschedd.printing.reports.scheduling import status_text
from kschedd.printing.terminal.style import TerminalStyle


def test_explain_says_where_why_and_by_which_points(typed) -> None:
    assert typed("explain web-1") == 0
    assert typed.out.startswith("pod/web-1: 0 of 1 pod scheduled, 1 pending.\nCause: it fits (on node-b)")
    assert "\ndefault/web-1 would be scheduled to node-b, with 60 points, the only node that fits\n" in typed.out
    assert "node-a   NodeResourcesFit   Unschedulable   Insufficient cpu" in typed.out
    assert "node-b   60 (60)" in typed.out
    assert "0 for each of these nodes: ImageLocality" in typed.out


def test_explain_one_node(typed) -> None:
    typed("explain web-1 --node node-a")
    assert "node-a has no score: it did not pass the filters." in typed.out
    assert typed("explain web-1 --node node-z") == 2
    assert 'there is no node "node-z"' in typed.err


def test_explain_a_manifest(typed, daemon) -> None:
    typed.input = b"apiVersion: v1\nkind: Pod\nmetadata: {name: tried}\nspec: {containers: []}\n"
    assert typed("explain -f -") == 0
    assert daemon.calls[-1][1]["pod"]["metadata"]["namespace"] == "default"


def test_explain_what_a_workload_would_make(typed, daemon) -> None:
    typed.input = (
        b"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: shop, namespace: team}\nspec:\n  template:\n"
        b"    metadata: {labels: {app: shop}}\n    spec: {containers: [{name: a, image: b}]}\n---\n"
        b"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: nightly}\nspec: {jobTemplate: {spec: {template: "
        b"{spec: {containers: []}}}}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"
    )
    assert typed("explain -f -") == 0
    first, second = (named["pod"] for method, named in daemon.calls if method == "scheduler.explain")
    assert first["metadata"] == {"labels": {"app": "shop"}, "generateName": "shop-", "namespace": "team"}
    assert first["spec"]["containers"][0]["name"] == "a"
    assert second["metadata"] == {"generateName": "nightly-", "namespace": "default"}
    assert typed.out.count("the only node that fits") == 2


def test_explain_a_file_in_which_nothing_makes_pods(typed) -> None:
    typed.input = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"
    assert typed("explain -f -") == 2
    assert "-f FILE contains no pods or workloads" in typed.err


def test_explain_leaves_out_the_data_of_large_objects(typed, daemon) -> None:
    pod = b"apiVersion: v1\nkind: Pod\nmetadata: {name: tried}\nspec: {containers: []}\n"
    large = b"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: large%d}\ndata: {text: %s}\n"
    typed.input = pod + b"".join(large % (number, b"a" * 900_000) for number in range(6))
    assert typed("explain -f -") == 0
    sent = next(named["manifests"] for method, named in daemon.calls if method == "causes.explain")
    assert [sorted(raw) for raw in sent[1:]] == [["apiVersion", "kind", "metadata"]] * 6


@pytest.mark.parametrize(
    ("pods", "note", "why"),
    [
        (51, "a", "-f contains 51 pods and workloads, and explain takes at most 50: name fewer files, or group all"),
        (5, "a" * 700_000, "and a request has at most 3,145,728: name fewer files, or group all pending pods by cause"),
    ],
)
def test_explain_of_very_large_files_says_what_to_do(typed, daemon, pods: int, note: str, why: str) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p%d, annotations: {note: %s}}\nspec: {containers: []}\n"
    typed.input = "---\n".join(pod % (number, note) for number in range(pods)).encode()
    assert typed("explain -f -") == 2
    assert why in typed.err
    assert "`kschedd fork run trial apply -f -`" in typed.err
    assert not [method for method, _ in daemon.calls if method == "causes.explain"]


def test_explain_as_json_is_the_answer_itself(typed) -> None:
    typed("explain pod web-1 -o json")
    assert json.loads(typed.out)["totals"] == {"node-b": 60}


def test_explain_of_nobody(typed) -> None:
    assert typed("explain web-3") == 1
    assert 'did you mean "web-' in typed.err
    assert typed("explain") == 2


def test_the_queue(typed) -> None:
    assert typed("queue") == 0
    counts, _, head, row = typed.out.splitlines()
    assert counts == "1 pod: active 0 - backoff 0 - unschedulable 1 - gated 0 - in flight 0 - 1 at Permit"
    assert head.split() == ["POD", "PLACE", "PRIORITY", "ATTEMPTS", "SINCE", "PLUGINS", "MESSAGE"]
    assert row.split() == ["default/web-1", "unschedulable", "0", "2", "95s", "NodeResourcesFit"]


def test_one_place_of_the_queue(typed, daemon) -> None:
    assert typed("queue active") == 0
    assert ("queue.list", {"limit": 100, "place": "active"}) in daemon.calls
    assert typed("queue actve") == 2
    assert 'did you mean "active"' in typed.err


def test_the_way_of_a_pod_through_the_queue(typed) -> None:
    assert typed("queue pod web-1") == 0
    assert "First tried 2025-01-01T00:00:10Z. Held: active 0s, in flight 0s, unschedulable 95s.\n" in typed.out
    assert typed.out.splitlines()[-1].split() == ["0.250s", "active", "in_flight", "Pop", "<none>"]


def test_events_and_logs(typed) -> None:
    typed("events")
    assert typed.out.splitlines()[1].startswith("30s (x3)    Warning   FailedScheduling   pod/web-1   0/2 nodes")
    typed("logs web-1")
    assert "no logs" in typed.err
    assert "FailedScheduling" in typed.out
    typed("events node/node-a")
    assert typed.err == "No events found of node/node-a.\n"


def test_events_of_a_type(typed) -> None:
    typed("events --types Normal")
    assert "FailedScheduling" not in typed.out
    assert typed("events --types Bad") == 2


def test_status_weights_decisions_waiting(typed) -> None:
    typed("status")
    assert "Journal:    off (in memory)\n" in typed.out
    assert "On the way: 1 at Permit\n" in typed.out
    assert "Scheduled:  4 pods since the start\n" in typed.out
    assert "Queue:      1 pod: active 0 - backoff 0 - unschedulable 1 - gated 0 - in flight 0\n" in typed.out
    typed("weights")
    assert typed.out.splitlines()[2].split() == ["default-scheduler", "TaintToleration", "3"]
    typed("decisions")
    placed, failed, rejected = typed.out.splitlines()[1:]
    assert placed.split() == ["5s", "default/web-0", "1", "node-a", "2/2", "300", "1"]
    assert failed.split()[4] == "0/2"
    assert rejected.split()[4] == "<none>"
    typed("waiting")
    assert typed.out.splitlines()[1].split() == ["default/gang-0", "node-a", "Gang", "12s"]


def test_every_verb_has_help_and_no_two_share_a_name(typed) -> None:
    from kschedd.verbs.table import BY_NAME, VERBS

    assert len(BY_NAME) == sum(1 + len(verb.aliases) for verb in VERBS)
    for name in BY_NAME:
        assert typed(f"{name} --help") == 0
        assert "usage: " in typed.out


def test_examples_are_what_a_shell_takes() -> None:
    from kschedd.verbs.table import VERBS

    examples = [(verb, example) for verb in VERBS for example in verb.examples]
    assert len(examples) > 100
    for verb, example in examples:
        words = shlex.split(example)
        assert example.startswith((verb.name, *verb.aliases, f"plan {verb.name}")), example
        for word in words:
            if word.startswith(("{", "[")):
                assert yaml.safe_load(word), f"{example}: unquoted"
    for verb in VERBS:
        for shown in verb.shown_examples("kschedd "):
            _, first, *_ = shlex.split(shown)
            assert first in (verb.name, *verb.aliases, "plan", (verb.whole or verb.name).split()[0]), shown


def test_status_says_how_a_recording_is_doing(daemon) -> None:
    recording = {"file": "/tmp/r.rec", "bytes": 12345, "notes": 678, "since_s": 0.0, "failure": ""}
    info = daemon.daemon_info()
    assert "Recording:  /tmp/r.rec, 678 notes, 12,345 bytes\n" in status_text(
        {**info, "recording": recording}, {}, TerminalStyle()
    )
    ended = {**recording, "failure": "No space left on device"}
    assert "Recording:  ENDED: No space left on device (/tmp/r.rec has 678 notes)\n" in status_text(
        {**info, "recording": ended}, {}, TerminalStyle()
    )


def test_status_says_of_which_cluster_it_is_a_mirror(daemon) -> None:
    mirror = {"server": "https://there", "context": "prod", "unheard_s": 3.0, "unreachable": None}
    reported = status_text({**daemon.daemon_info(), "mirror": mirror}, {}, TerminalStyle())
    assert "Mirror:     of https://there (prod), last contact 3s ago\n" in reported
    assert "Journal" not in reported
    lost = {**mirror, "unreachable": "no answer"}
    reported = status_text({**daemon.daemon_info(), "mirror": lost}, {}, TerminalStyle())
    assert "last contact 3s ago; unreachable now: no answer\n" in reported


@pytest.mark.parametrize(
    ("leader", "answer"),
    [
        pytest.param({"leads": True, "lease": "", "leader": ""}, "this daemon, without election", id="alone"),
        pytest.param({"leads": True, "lease": "a/b", "leader": "x"}, "this daemon, by the lease a/b", id="leads"),
        pytest.param(
            {"leads": False, "lease": "a/b", "leader": "x"},
            "x, by the lease a/b; this daemon is on standby",
            id="waits",
        ),
        pytest.param(
            {"leads": False, "lease": "a/b", "leader": ""},
            "none yet, by the lease a/b; this daemon is on standby",
            id="nobody",
        ),
    ],
)
def test_status_says_who_schedules_a_real_cluster(daemon, leader, answer) -> None:
    reported = status_text({**daemon.daemon_info(), "leader": leader}, {}, TerminalStyle())
    assert f"Leader:     {answer}\n" in reported


PAUSED = {
    **dict.fromkeys(("breakpoint", "point", "plugin", "outcome", "node")),
    **{"why": "paused", "since": "2025-01-01T00:00:00Z", "pod": "default/web-1"},
}


@pytest.mark.parametrize(
    "line", ["get pods", "describe pod web-1", "explain web-1", "queue", "queue pod web-1", "waiting"]
)
def test_verbs_that_show_the_effects_of_a_pause_say_so(line: str, typed, daemon) -> None:
    assert typed(line) == 0
    assert "paused" not in typed.err
    daemon.paused = PAUSED
    assert typed(line) == 0
    assert "Scheduling is paused before the attempt of default/web-1; `kschedd resume` continues it.\n" in typed.err


@pytest.mark.parametrize("line", ["get nodes", "get pods -o json", "get pod web-0", "queue -o json", "waiting -o json"])
def test_others_do_not(line: str, typed, daemon) -> None:
    daemon.paused = PAUSED
    assert typed(line) == 0
    assert typed.err == ""


def test_the_place_of_a_breakpoint_follows_at(typed, daemon) -> None:
    daemon.paused = {**PAUSED, "pod": "default/web-1", "point": "filter", "plugin": "NodeName"}
    assert typed("queue") == 0
    assert typed.err.startswith("Scheduling is paused at default/web-1 before filter NodeName; `kschedd resume`")


@pytest.mark.parametrize("entry", [{"attempts": 0}, {"attempts": 1, "place": "in_flight"}])
def test_explain_says_of_a_pod_without_an_attempt_that_it_has_none(entry, typed, daemon) -> None:
    requests = daemon.queue_pod
    daemon.queue_pod = lambda pod: {**requests(pod), **entry}
    assert typed("explain web-1") == 0
    assert typed.out.startswith("default/web-1 has not been attempted yet; this is the result of an attempt now.\n\n")
    assert "default/web-1 would be scheduled to node-b, with 60 points" in typed.out
    explained = daemon.scheduler_explain
    daemon.scheduler_explain = lambda **named: {**explained(**named), "chosen": None}  # equally good nodes, or none
    assert typed("explain web-1") == 0
    assert typed.out.startswith("default/web-1 has not been attempted yet; ")
