"""Tests of cases in which an attempt does not visit every node, although the records contain all of them."""

from pathlib import Path
from typing import Any

import pytest

from kschedd.conformance.cases import run_case
from kschedd.conformance.records import read_records
from tests.conformance.golden_records import ONE_NODE_FITS, case, node, pod, write_records
from tests.extenders.servers import serving

CONFIG = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
NO_SCORES = {"plugins": {"score": {"disabled": [{"name": "*"}]}}}
NO_AFFINITY_FILTER = {"plugins": {"filter": {"disabled": [{"name": "NodeAffinity"}]}}}
LEFT_OUT = "node(s) didn't satisfy plugin(s) [NodeAffinity]"


def outcome(folder: Path, profile: dict[str, Any], nodes: list[Any], wishing: Any) -> dict[str, Any]:
    config = {**CONFIG, "profiles": [profile]}
    raw = case(want=ONE_NODE_FITS, config=config, objects=nodes, pod=wishing)
    (record,) = read_records(write_records(folder / "small.jsonl", raw))
    return run_case(record)


def only(name: str) -> dict[str, Any]:
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]}]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def reasons(answer: dict[str, Any]) -> dict[str, list[str] | None]:
    return {name: None if status is None else status["reasons"] for name, status in answer["filter"].items()}


@pytest.fixture
def cordoned() -> Any:
    return {**node("c"), "spec": {"unschedulable": True}}


def test_without_score_plugins_the_nodes_behind_the_first_that_fits_are_told_too(tmp_path: Path, cordoned: Any) -> None:
    answer = outcome(tmp_path, NO_SCORES, [node("a"), node("b", cpu="0"), cordoned], pod("p"))
    assert reasons(answer) == {"a": None, "b": ["Insufficient cpu"], "c": ["node(s) were unschedulable"]}
    assert (answer["feasible"], answer["best"]) == (["a"], ["a"])
    assert answer["unschedulable_plugins"] == ["NodeResourcesFit", "NodeUnschedulable"]


def test_a_nominated_node_may_fit_although_prefilter_left_it_out(tmp_path: Path, cordoned: Any) -> None:
    wishing = {**pod("p", affinity=only("c")), "status": {"nominatedNodeName": "a"}}
    answer = outcome(tmp_path, NO_AFFINITY_FILTER, [node("a"), node("b"), cordoned], wishing)
    assert reasons(answer) == {"a": [LEFT_OUT], "b": [LEFT_OUT], "c": ["node(s) were unschedulable"]}
    assert answer["nominated_shortcut"]
    assert (answer["feasible"], answer["best"]) == (["a"], ["a"])


def test_what_is_said_of_a_nominated_node_that_was_left_out_is_told_too(tmp_path: Path) -> None:
    wishing = {**pod("p", affinity=only("b")), "status": {"nominatedNodeName": "a"}}
    answer = outcome(tmp_path, {}, [node("a"), node("b", cpu="0")], wishing)
    assert reasons(answer) == {"a": ["node(s) didn't match Pod's node affinity/selector"], "b": ["Insufficient cpu"]}
    expected = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector."
    assert answer["message"].startswith(expected)


def test_a_gated_pod_that_is_nominated_does_not_count_on_its_node(tmp_path: Path) -> None:
    gated = pod("gated", cpu="2", priority=100, schedulingGates=[{"name": "example.com/wait"}])
    gated["status"] = {"phase": "Pending", "nominatedNodeName": "n1"}
    answer = outcome(tmp_path, {}, [node("n1"), gated], pod("w"))
    assert answer["feasible"] == ["n1"]
    nominated = {**gated, "spec": {**gated["spec"], "schedulingGates": []}}
    assert outcome(tmp_path, {}, [node("n1"), nominated], pod("w"))["feasible"] == []


def test_extenders_reject_nodes_and_add_to_totals(tmp_path: Path) -> None:
    verbs = {
        "filter": lambda body: {"NodeNames": ["a", "b"], "FailedNodes": {"c": "it is full"}},
        "prioritize": lambda body: [{"Host": "b", "Score": 10}],
    }
    with serving(verbs) as extender:
        requests = {"urlPrefix": extender.url, "nodeCacheCapable": True, "filterVerb": "filter"}
        config = {**CONFIG, "extenders": [requests | {"prioritizeVerb": "prioritize", "weight": 2}]}
        raw = case(want=ONE_NODE_FITS, config=config, objects=[node("a"), node("b"), node("c")], pod=pod("p"))
        (record,) = read_records(write_records(tmp_path / "small.jsonl", raw))
        answer = run_case(record)
    assert reasons(answer) == {"a": None, "b": None, "c": ["it is full"]}
    assert (answer["feasible"], answer["best"], answer["unschedulable_plugins"]) == (["a", "b"], ["b"], ["Extender"])
    # at most 10 in a Policy, but at most 100 with plugins
    assert answer["total"]["b"] - answer["total"]["a"] == 10 * 2 * 10
