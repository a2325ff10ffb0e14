"""Tests of generated inputs and the minimizer, without an oracle."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from kschedd.config.versions.kube_versions import V1_37
from kschedd.conformance.records import read_records
from tests.oracle.fuzz.cases import FAMILIES, case
from tests.oracle.fuzz.extenders import VERBS
from tests.oracle.fuzz.groups import group_trace
from tests.oracle.fuzz.judge import is_drawn, kind_of
from tests.oracle.fuzz.prebind import NothingToBind, decided, prebind, with_steps
from tests.oracle.fuzz.resizes import resize_trace
from tests.oracle.fuzz.shrink import shrunk, without
from tests.oracle.fuzz.traces import trace


@pytest.mark.parametrize("minor", [34, 36])
def test_one_seed_makes_the_same_inputs_again(minor: int) -> None:
    for make in (case, trace, group_trace, resize_trace):
        assert [make(7, number, minor) for number in range(13)] == [make(7, number, minor) for number in range(13)]
        assert make(7, 0, minor) != make(8, 0, minor)


def test_every_family_has_its_turn() -> None:
    assert {case(1, number, 36)["family"] for number in range(len(FAMILIES))} == set(FAMILIES)


def test_no_two_objects_of_an_input_share_a_name() -> None:
    for number in range(2 * len(FAMILIES)):
        for objects in (
            case(3, number, 36)["objects"],
            _created(trace(3, number, 36)),
            _once(group_trace(3, number, 37)),
            _created(resize_trace(3, number, 37)),
            _created(resize_trace(3, number, 37)),
        ):
            names = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in objects]
            assert len(set(names)) == len(names)


def _once(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the created objects, without groups that are created again after a deletion."""
    deleted = {one["name"] for one in record["ops"] if one["op"] == "delete" and one["kind"] == "PodGroup"}
    return [one for one in _created(record) if one["metadata"]["name"] not in deleted]


def _created(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [*record["objects"], *(one["object"] for one in record["ops"] if one["op"] == "create")]


def test_inputs_have_the_form_of_records(tmp_path: Any) -> None:
    inputs = [case(5, number, 36) | {"want": {}} for number in range(len(FAMILIES))]
    made = trace(5, 0, 36)
    inputs.append(made | {"want": {"steps": [{}] * len(made["ops"])}})
    file = tmp_path / "inputs.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in inputs), encoding="utf-8")
    assert [one.id for one in read_records(file)] == [one["id"] for one in inputs]


def test_the_minimizer_keeps_what_the_difference_needs() -> None:
    record = case(1, tuple(FAMILIES).index("taints"), 36)
    needed = record["objects"][5]["metadata"]["name"]
    tried = 0

    def differ(inputs: Sequence[dict[str, Any]]) -> list[bool]:
        nonlocal tried
        tried += 1
        return [
            any(obj["metadata"]["name"] == needed for obj in one["objects"]) and bool(one["pod"]["spec"]["tolerations"])
            for one in inputs
        ]

    found = shrunk(record | {"want": {}}, lambda inputs: [_safe(differ, one) for one in inputs])
    assert [one["metadata"]["name"] for one in found["objects"]] == [needed]
    assert len(found["pod"]["spec"]["tolerations"]) == 1
    assert "want" not in found
    assert tried > 0


def _safe(differ: Any, one: dict[str, Any]) -> bool:
    """Return the answer for one input; an input without the field has no difference."""
    return "tolerations" in one["pod"]["spec"] and bool(differ([one])[0])


def test_removals_do_not_move_each_other() -> None:
    record = {"objects": [{"a": 1}, {"b": 2}, {"c": [1, 2, 3]}], "config": {"x": 1}}
    assert without(record, [("objects", 0), ("objects", 2, "c", 1), ("objects", 2, "c", 0), ("config",)]) == {
        "objects": [{"b": 2}, {"c": [3]}],
        "config": None,
    }
    assert without(record, [("objects", 2), ("objects", 2, "c")])["objects"] == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize(
    ("difference", "kind"),
    [
        ("filter.node-007.reasons[0]: want 'a', got 'b'", "filter.*.reasons*"),
        ("steps[12].queues.active: want [], got ['default/p1']", "steps*.queues.active"),
        ("kschedd broke down: KeyError: 'x'", "kschedd broke down: KeyError: 'x'"),
    ],
)
def test_differences_at_one_place_are_of_one_kind(difference: str, kind: str) -> None:
    assert kind_of(difference) == kind


def test_an_extender_judges_each_node_once_and_the_same_way_again() -> None:
    names = [f"node-{number:03}" for number in range(40)]
    body = {"Pod": {"metadata": {"name": "p001"}}, "Nodes": None, "NodeNames": names}
    answers = [VERBS["first/filter"](body) for _ in range(2)]
    assert answers[0] == answers[1]
    judged = [*answers[0]["NodeNames"], *answers[0]["FailedNodes"], *answers[0]["FailedAndUnresolvableNodes"]]
    assert sorted(judged) == names
    whole = {**body, "NodeNames": None, "Nodes": {"items": [{"metadata": {"name": name}} for name in names]}}
    passed = [one["metadata"]["name"] for one in VERBS["first/filter"](whole)["Nodes"]["items"]]
    assert passed == answers[0]["NodeNames"]
    assert {one["Host"] for one in VERBS["second/prioritize"](body)} == set(names)


@pytest.mark.parametrize(
    ("differences", "drawn"),
    [
        (["steps[3].attempts[0].best: want ['node-002'], got ['node-001', 'node-002']"], True),
        (["steps[3].attempts[0].best: want ['node-002'], got ['node-001']"], False),
        (["steps[3].attempts[0].node: want 'node-002', got 'node-001'"], False),
    ],
)
def test_one_of_several_equal_nodes_is_no_difference(differences: list[str], drawn: bool) -> None:
    assert is_drawn(differences) is drawn


def test_traces_ask_for_what_records_leave_out() -> None:
    made = [trace(9, number, 37) for number in range(60)]
    operations = [operation for one in made for operation in one["ops"]]
    assert {"fail", "run"} <= {one["op"] for one in operations}
    assert any(one.get("hold") for one in operations)
    assert any(one.get("during") for one in operations)
    assert any("extenders" in (one["config"] or {}) for one in made)
    assert any(one["feature_gates"] for one in made)
    assert any("extenders" in (case(9, number, 37)["config"] or {}) for number in range(len(FAMILIES)))
    assert {"ResourceClaim", "ResourceSlice"} <= {obj["kind"] for one in made for obj in _created(one)}
    assert any(sum(obj["kind"] == "Node" for obj in one["objects"]) >= 20 for one in made)


def test_a_gate_is_turned_off_or_on() -> None:
    gates = {gate: on for number in range(400) for gate, on in trace(9, number, 37)["feature_gates"].items()}
    assert gates["SchedulerAsyncAPICalls"] is True
    assert gates["OpportunisticBatching"] is False


def test_nothing_happens_during_the_cycle_of_a_group() -> None:
    operations = [operation for number in range(20) for operation in group_trace(9, number, 37)["ops"]]
    runs = [one for one in operations if one["op"] == "run"]
    assert runs
    assert not any("during" in one or "hold" in one for one in runs)


def test_volumes_are_bound_step_by_step() -> None:
    ended = set()
    for number in range(40):
        record = prebind(9, number, 37)
        assert record == prebind(9, number, 37)
        try:
            writes = decided(record, V1_37)["writes"]
        except NothingToBind:
            continue
        full = with_steps(record, writes)
        assert full == with_steps(record, writes)
        checks = decided(full, V1_37)["checks"]
        assert checks[:-1] == ["waits"] * (len(checks) - 1)
        assert len(checks) == len(full["steps"]) or checks[-1] != "waits"
        ended |= {" ".join(checks[-1].split()[:2])}
    assert {"bound", "waits", "provisioning failed"} <= ended
