"""Tests of fields behind feature gates, which are dropped while the gate is off."""

from typing import Any

import pytest

from kschedd.api.schemas.decoding import decode
from kschedd.config.versions.kube_versions import V1_34, V1_36
from kschedd.store.errors import StrictDecodingError
from kschedd.store.field_validation import known_fields
from kschedd.store.store import Store

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"schedulingGroup": {"podGroupName": "g"}, "containers": [{"name": "c", "image": "i"}]},
}
NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"declaredFeatures": ["x"]},
}
CASES = [
    pytest.param(POD, "GenericWorkload", ("spec", "schedulingGroup"), id="scheduling-group"),
    pytest.param(NODE, "NodeDeclaredFeatures", ("status", "declaredFeatures"), id="declared-features"),
]


@pytest.mark.parametrize(("raw", "gate", "path"), CASES)
def test_a_field_behind_a_gate_that_is_off_is_dropped(raw: dict[str, Any], gate: str, path: tuple[str, str]) -> None:
    store = Store(now=lambda: 0.0, rules=V1_36.rules.under({gate: False}))
    kept, warnings = known_fields(raw, "Strict", store)
    assert warnings == ()
    assert path[1] not in kept[path[0]]
    assert path[1] not in store.create(kept).raw[path[0]]


@pytest.mark.parametrize(("raw", "gate", "path"), CASES)
def test_it_is_kept_while_the_gate_is_on(raw: dict[str, Any], gate: str, path: tuple[str, str]) -> None:
    decoded = decode(raw, V1_36.rules.under({gate: True}).features)
    assert decoded.faults == ()
    assert path[1] in decoded.raw[path[0]]


@pytest.mark.parametrize(("raw", "gate", "path"), CASES)
def test_it_is_unknown_to_a_version_without_the_gate(raw: dict[str, Any], gate: str, path: tuple[str, str]) -> None:
    store = Store(now=lambda: 0.0, rules=V1_34.rules.under({gate: False}))
    with pytest.raises(StrictDecodingError, match="unknown field"):
        known_fields(raw, "Strict", store)
