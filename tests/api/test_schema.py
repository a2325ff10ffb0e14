"""Tests that the schema contains every built-in kind, and accepts all objects that kube-apiserver accepted."""

import re
from typing import Any

import pytest

from kschedd.api.schemas.check import check_schema, check_status_schema, without_nulls
from kschedd.api.schemas.decoding import decode
from kschedd.api.schemas.kinds import BY_NAME, KINDS
from kschedd.api.schemas.schema import Fields, ListOf, PatchStrategy, schema_of, type_named
from tests.store.recorded import records

_PLACEHOLDERS = {"<time>": "2025-01-01T00:00:00Z", "<nodePort>": 30000}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_version_of_every_kind_has_its_fields(kind: Any) -> None:
    for api_version in kind.api_versions:
        fields = schema_of(api_version, kind.name)
        assert fields is not None
        assert {"apiVersion", "kind", "metadata"} <= set(fields)


@pytest.mark.parametrize(
    ("of", "field", "strategy"),
    [
        pytest.param("PodSpec", "containers", PatchStrategy(merge=True, merge_key="name"), id="list-by-name"),
        pytest.param("Container", "ports", PatchStrategy(merge=True, merge_key="containerPort"), id="list-by-port"),
        pytest.param("meta.ObjectMeta", "finalizers", PatchStrategy(merge=True), id="list-of-plain-values"),
        pytest.param(
            "PodSpec", "volumes", PatchStrategy(merge=True, merge_key="name", retain_keys=True), id="retaining-keys"
        ),
        pytest.param("apps.v1.DeploymentSpec", "strategy", PatchStrategy(retain_keys=True), id="map-retaining-keys"),
        pytest.param("policy.v1.PodDisruptionBudgetSpec", "selector", PatchStrategy(replace=True), id="replaced"),
    ],
)
def test_patch_strategies_are_upstreams(of: str, field: str, strategy: PatchStrategy) -> None:
    assert type_named(of).strategies[field] == strategy


def test_types_may_hold_themselves() -> None:
    schema = type_named("apiextensions.JSONSchemaProps")
    assert schema["not"] is schema
    assert isinstance(schema["allOf"], ListOf)
    assert isinstance(type_named("PodSpec")["affinity"], Fields)


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        pytest.param({"kind": "Secret", "apiVersion": "v1", "data": {"a": "???"}}, "data.a", id="no-base64"),
        pytest.param(
            {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "spec": {"renewTime": "2025-01-01T00:00:00Z"}},
            "spec.renewTime",
            id="no-micro-time",
        ),
        pytest.param(
            {"kind": "CronJob", "apiVersion": "batch/v1", "spec": {"jobTemplate": {"spec": {"suspend": "no"}}}},
            "spec.jobTemplate.spec.suspend",
            id="deep-in-a-template",
        ),
    ],
)
def test_a_field_of_another_type_is_found_wherever_it_is(raw: dict[str, Any], path: str) -> None:
    assert [fault.path for fault in check_schema(raw)] == [path]


def test_a_status_is_checked_by_itself() -> None:
    faults = check_status_schema("Deployment", {"conditions": ["x"], "collisionCount": "x"})
    assert [fault.path for fault in faults] == ["status.conditions[0]", "status.collisionCount"]


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _filled(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_filled(item) for item in value]
    return _PLACEHOLDERS.get(value, value) if isinstance(value, str) else value


@pytest.mark.parametrize("family", ["create", "update", "patch"])
def test_nothing_that_a_real_api_server_stored_is_refused(family: str) -> None:
    seen = 0
    for record in records(family):
        stored = record["want"].get("object")
        if stored is None or stored.get("kind") == "Status":
            continue
        seen += 1
        raw = {"kind": record["kind"], "apiVersion": BY_NAME[record["kind"]].api_version, **_filled(stored)}
        assert not decode(raw).faults, record["id"]
        assert not check_schema(without_nulls(raw)), record["id"]
    assert seen > 200


@pytest.mark.parametrize("family", ["create", "update"])
def test_unknown_fields_are_found_where_and_in_the_order_in_which_a_real_api_server_finds_them(family: str) -> None:
    seen = 0
    for record in records(family):
        body = record.get("manifest") or record.get("new")
        reported = re.search(r"strict decoding error: (.*)", record["want"].get("status", {}).get("message", ""))
        want = [text for text in record["want"].get("warnings", ()) if text.startswith("unknown field")]
        if reported:
            want = reported[1].split(", ")
        if not isinstance(body, dict) or not want:
            continue
        seen += 1
        raw = {"kind": record["kind"], "apiVersion": BY_NAME[record["kind"]].api_version, **body}
        assert [fault.text for fault in decode(raw).faults] == want, record["id"]
    assert seen >= 20


def test_values_that_a_real_api_server_cannot_decode_are_of_the_wrong_type() -> None:
    seen = 0
    for record in records("create"):
        message = record["want"].get("status", {}).get("message", "")
        body = record["manifest"]
        if "cannot be handled as" not in message or "strict" in message or not isinstance(body, dict):
            continue
        if "is registered for version" in message or "unknown conversion" in message:
            continue
        seen += 1
        raw = {"kind": record["kind"], "apiVersion": BY_NAME[record["kind"]].api_version, **body}
        assert check_schema(without_nulls(raw)), record["id"]
    assert seen > 100
