"""Tests of decoding objects with unknown fields."""

from typing import Any

import pytest

from kschedd.api.schemas.decoding import decode, strict_message


def pod(**container: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "a", "image": "x", **container}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def test_what_a_kind_has_is_taken_as_it_is() -> None:
    raw = pod(resources={"requests": {"cpu": "1", "example.com/gpu": "1"}})
    assert decode(raw).raw is raw


def test_an_unknown_field_is_left_out_and_named() -> None:
    raw = pod(resources={"request": {"cpu": "1"}})
    decoded = decode(raw)
    assert decoded.raw == pod(resources={})
    assert raw == pod(resources={"request": {"cpu": "1"}}), "what was handed in stays as it was"
    assert [str(fault) for fault in decoded.faults] == [
        'unknown field "spec.containers[0].resources.request"; did you mean "requests"?'
    ]


def test_the_api_servers_sentence_names_all_of_them() -> None:
    raw = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "foo": 1, "zzz": {}}
    assert strict_message(raw, decode(raw).faults) == (
        'Deployment in version "v1" cannot be handled as a Deployment: '
        'strict decoding error: unknown field "foo", unknown field "zzz"'
    )


def test_no_more_than_a_hundred_are_named() -> None:
    raw = {**pod(), **{f"field-{number}": 1 for number in range(200)}}
    assert len(decode(raw).faults) == 100
    assert decode(raw).raw == pod()


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param({"apiVersion": "example.com/v1", "kind": "Widget", "anything": 1}, id="custom-resource"),
        pytest.param({"apiVersion": "example.com/v1", "kind": "Pod", "anything": 1}, id="another-groups-pod"),
        pytest.param(pod(resources="none"), id="wrong-types-are-for-others"),
    ],
)
def test_what_it_has_no_schema_for_it_leaves_alone(raw: dict[str, Any]) -> None:
    assert decode(raw).raw is raw
    assert not decode(raw).faults
