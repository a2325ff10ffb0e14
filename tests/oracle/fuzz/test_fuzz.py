"""Generated inputs and the minimizer, without an oracle."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from kschedd.conformance.records import read_records
from tests.oracle.fuzz.cases import FAMILIES, case
from tests.oracle.fuzz.groups import group_trace
from tests.oracle.fuzz.judge import kind_of
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
    """Return what is created, without groups that are created again after they were deleted."""
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
    """Return the answer for one input; one whose field is missing does not differ."""
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
