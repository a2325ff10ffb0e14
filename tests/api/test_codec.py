"""Tests of objects in decoded form, and in the form that the API server prints."""

from typing import Any

import pytest

from kschedd.api.schemas.check import schema_for
from kschedd.api.schemas.codec import decoded, decoded_object, encoded, encoded_object
from kschedd.api.schemas.schema import type_named
from tests.store.recorded import bare, differences, records


@pytest.mark.parametrize(
    ("type_name", "given", "held"),
    [
        pytest.param("PodSpec", {"hostNetwork": False, "hostname": ""}, {}, id="a-zero-is-none"),
        pytest.param("PodSpec", {"hostUsers": False}, {"hostUsers": False}, id="but-of-a-pointer"),
        pytest.param("PodSpec", {"priority": None}, {}, id="nor-is-a-null"),
        pytest.param("Container", {"args": ["a", None]}, {"args": ["a", ""]}, id="a-null-in-a-list-is-a-zero"),
        pytest.param("ResourceRequirements", {"limits": {"cpu": 0.5}}, {"limits": {"cpu": "500m"}}, id="quantities"),
        pytest.param("ResourceRequirements", {"limits": {"cpu": "3e0"}}, {"limits": {"cpu": "3e0"}}, id="as-written"),
        pytest.param(
            "PodStatus", {"startTime": "2025-01-01T02:00:00+02:00"}, {"startTime": "2025-01-01T00:00:00Z"}, id="times"
        ),
    ],
)
def test_decoded(type_name: str, given: Any, held: Any) -> None:
    assert decoded(given, type_named(type_name)) == held


def test_what_is_always_there_is_printed_and_what_is_empty_is_not() -> None:
    done = encoded({"containers": [{"name": "c", "args": []}], "volumes": []}, type_named("PodSpec"))
    assert done == {"containers": [{"name": "c", "resources": {}}]}
    condition = encoded({"type": "Ready", "status": "True"}, type_named("PodCondition"))
    assert condition == {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}


def test_what_stays_the_same_is_not_copied() -> None:
    spec = {"containers": [{"name": "c", "resources": {}}]}
    assert decoded(spec, type_named("PodSpec")) is spec
    assert encoded(spec, type_named("PodSpec")) is spec


def test_recorded_objects_come_out_as_they_went_in() -> None:
    """An object printed by an API server is unchanged after decoding and encoding."""
    seen = 0
    wrong: list[str] = []
    for family in ("create", "update", "patch"):
        for record in records(family):
            printed = record["want"].get("object")
            if printed is None or schema_for(printed) is None:
                continue
            seen += 1
            printed = _without_placeholders(printed)
            again = encoded_object(decoded_object(printed))
            wrong += [f"{record['id']}{text}" for text in differences(bare(printed), bare(again))]
    assert seen > 1000
    assert not wrong, "\n".join(wrong)


def _without_placeholders(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_placeholders(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_placeholders(item) for item in value]
    return (
        {"<time>": "2025-01-01T00:00:00Z", "<nodePort>": 30000}.get(value, value) if isinstance(value, str) else value
    )


def test_a_null_among_bytes_is_none_of_them() -> None:
    raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "binaryData": {"a": None, "b": "AA=="}}
    assert decoded_object(raw)["binaryData"] == {"a": "", "b": "AA=="}
