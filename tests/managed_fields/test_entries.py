"""Tests of entries of managedFields: fields of client-side apply that become a server-side applier's."""

from typing import Any

import pytest

from kschedd.managed_fields.entries import LAST_APPLIED, migrated

Raw = dict[str, Any]
ANNOTATION: Raw = {"f:metadata": {"f:annotations": {".": {}, f"f:{LAST_APPLIED}": {}}}}


def entry(manager: str, operation: str, fields: Raw, **more: str) -> Raw:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        "time": "2025-01-01T00:00:00Z",
        **more,
    }


def by_manager(entries: list[Raw] | None) -> dict[tuple[str, str], Raw]:
    assert entries is not None
    return {(each["manager"], each["operation"]): each["fieldsV1"] for each in entries}


DATA: Raw = {"f:data": {"f:a": {}}}


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param(None, id="none"),
        pytest.param([entry("me", "Update", DATA)], id="who-updates-without-the-annotation"),
        pytest.param([entry("kubectl", "Apply", {**ANNOTATION, **DATA})], id="who-applies-by-the-server"),
        pytest.param(
            [entry("kubectl-client-side-apply", "Update", ANNOTATION, subresource="status")], id="of-a-subresource"
        ),
    ],
)
def test_where_nobody_applied_by_the_client_nothing_changes(entries: list[Raw] | None) -> None:
    assert migrated(entries, "kubectl") is None


def test_what_client_side_apply_brought_is_then_applied_but_for_its_annotation() -> None:
    entries = [
        entry("kubectl-client-side-apply", "Update", {**ANNOTATION, **DATA}),
        entry("other", "Update", {"f:data": {"f:b": {}}}),
    ]
    assert by_manager(migrated(entries, "kubectl")) == {
        ("kubectl", "Apply"): DATA,
        ("other", "Update"): {"f:data": {"f:b": {}}},
    }


def test_it_comes_to_what_the_manager_applies_already() -> None:
    entries = [
        entry("kubectl", "Apply", {"f:data": {"f:b": {}}}, time="2025-01-02T00:00:00Z"),
        entry("kubectl-client-side-apply", "Update", {**ANNOTATION, **DATA}),
        entry("old", "Update", {**ANNOTATION, "f:data": {"f:c": {}}}),
    ]
    made = migrated(entries, "kubectl")
    assert by_manager(made) == {("kubectl", "Apply"): {"f:data": {"f:a": {}, "f:b": {}, "f:c": {}}}}
    assert made is not None
    assert made[0]["time"] == "2025-01-02T00:00:00Z"
