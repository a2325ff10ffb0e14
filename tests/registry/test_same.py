"""Tests that values which Go treats as equal are equal here."""

from typing import Any

import pytest

from kschedd.api.schemas.schema import type_named
from kschedd.registry.same import same

CONTAINER = {"name": "c"}


@pytest.mark.parametrize(
    ("sort", "one", "other", "equal"),
    [
        ("Container", CONTAINER, {**CONTAINER, "resources": {"limits": {}}, "args": []}, True),
        ("Container", CONTAINER, {**CONTAINER, "resources": {"limits": {"cpu": "0"}}}, False),
        ("Container", CONTAINER, {**CONTAINER, "securityContext": {}}, False),  # a pointer
        ("Container", {**CONTAINER, "tty": False}, CONTAINER, True),
        ("ResourceRequirements", {"limits": {"cpu": "1024"}}, {"limits": {"cpu": "1Ki"}}, True),
        ("ResourceRequirements", {"limits": {"cpu": "1"}}, {"limits": {"memory": "1"}}, False),
        ("PodSpec", {"priority": 0}, {}, False),  # a pointer
        ("PodSpec", {"nodeSelector": {"a": ""}}, {"nodeSelector": {}}, False),
        ("PodSpec", {"tolerations": [{}]}, {"tolerations": [{"key": ""}]}, True),
        ("PodSpec", {"tolerations": [{}]}, {"tolerations": [{}, {}]}, False),
        ("resource.v1.ResourceSliceSpec", {"pool": {"generation": 0}}, {"pool": {}}, True),
        ("resource.v1.DeviceCapacity", {"value": "0"}, {}, True),
        ("policy.v1.PodDisruptionBudgetSpec", {"selector": {"matchLabels": {}}}, {"selector": {}}, True),
        ("policy.v1.PodDisruptionBudgetSpec", {"selector": {}}, {}, False),
    ],
)
def test_same(sort: str, one: Any, other: Any, equal: bool) -> None:
    assert same(one, other, type_named(sort)) is equal
    assert same(other, one, type_named(sort)) is equal
