"""Tests of ratcheting: an update may keep a wrong value of a custom resource. Answers as of kube-apiserver 1.37."""

from typing import Any

import pytest

from kschedd.store.admission_plugins.attributes import UserInfo
from kschedd.store.errors import Invalid
from kschedd.store.store import Store
from tests.store.definitions import definition, widget

LIST = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "size": {"type": "integer", "maximum": 5}},
    },
}
SPEC = {
    "type": "object",
    "properties": {
        "small": {"type": "integer", "maximum": 5},
        "even": {"type": "integer", "x-kubernetes-validations": [{"rule": "self % 2 == 0", "message": "odd"}]},
        "same": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > oldSelf", "message": "not more"}]},
        "other": {"type": "string"},
        "parts": LIST,
        "plain": {"type": "array", "items": {"type": "integer", "maximum": 5}},
    },
}


def loose(schema: Any) -> Any:
    """Return the schema without its limits."""
    if isinstance(schema, list):
        return [loose(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: loose(part) for name, part in schema.items() if name not in ("maximum", "x-kubernetes-validations")}


def defined(spec: Any) -> dict[str, Any]:
    made = definition()
    for version in made["spec"]["versions"]:
        version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return made


def updated(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Write an object before its schema gets limits, then update it. Return the warnings. Raises Invalid."""
    store = Store()
    store.create(defined(loose(SPEC)))
    store.create({**widget("w"), "spec": before})
    store.apply(defined(SPEC))
    with store.on_behalf_of(UserInfo("ann")) as remarks:
        store.update({**widget("w"), "spec": after})
    return remarks.warnings


@pytest.mark.parametrize(
    ("before", "after", "warnings"),
    [
        pytest.param({"small": 9}, {"small": 9, "other": "x"}, [], id="a-field"),
        pytest.param({"even": 3}, {"even": 3, "other": "x"}, ["spec.even: Invalid value: 3: odd"], id="a-rule-warns"),
        pytest.param(
            {"parts": [{"name": "a", "size": 9}, {"name": "b", "size": 1}]},
            {"parts": [{"name": "b", "size": 2}, {"name": "a", "size": 9}]},
            [],
            id="an-item-of-a-list-with-keys",
        ),
        pytest.param({"plain": [9]}, {"plain": [9], "other": "x"}, [], id="a-whole-list"),
    ],
)
def test_a_wrong_value_may_stay(before: dict[str, Any], after: dict[str, Any], warnings: list[str]) -> None:
    assert updated(before, after) == warnings


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        pytest.param({"small": 9}, {"small": 8}, r"spec\.small in body should be less than", id="another-wrong-value"),
        pytest.param({"even": 3}, {"even": 5}, "spec.even: Invalid value: 5: odd", id="another-value-for-a-rule"),
        pytest.param({"same": 3}, {"same": 3, "other": "x"}, "not more", id="a-transition-rule"),
        pytest.param({"plain": [9]}, {"plain": [9, 1]}, r"plain\[0\] in body should be less", id="a-list-without-keys"),
        pytest.param(
            {"parts": [{"name": "a", "size": 9}]},
            {"parts": [{"name": "a", "size": 8}]},
            r"parts\[0\]\.size",
            id="an-item-that-changes",
        ),
    ],
)
def test_a_wrong_value_that_changes_is_rejected(before: dict[str, Any], after: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        updated(before, after)


def test_true_is_not_the_old_one() -> None:
    with pytest.raises(Invalid, match="must be of type integer"):
        updated({"small": 1}, {"small": True})


def test_a_value_of_a_wrong_type_prevents_the_rules() -> None:
    with pytest.raises(Invalid) as refused:
        updated({"even": 2}, {"even": 3, "small": "x"})
    assert refused.value.faults[1].why.startswith("Invalid value: null: some validation rules were not checked")


def test_other_violations_of_the_schema_are_reported_with_those_of_rules() -> None:
    with pytest.raises(Invalid) as refused:
        updated({"even": 2}, {"even": 3, "small": 9})
    assert [fault.path for fault in refused.value.faults] == ["spec.small", "spec.even"]
