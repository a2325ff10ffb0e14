"""Tests of structural schemas: which are rejected, and how the others prune and default objects."""

from typing import Any

import pytest

from kschedd.store.custom_resources.structural_schema import defaulted, pruned, structural_faults, value_faults
from kschedd.store.errors import Invalid
from kschedd.store.store import Store
from tests.store.definitions import definition, widget
from tests.store.manifests import Clock

TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        pytest.param({"type": "object"}, "", id="least"),
        pytest.param({}, "s.type: Required value: must not be empty at the root", id="no-type-at-the-root"),
        pytest.param({"type": "string"}, "must be object at the root", id="a-root-that-is-no-object"),
        pytest.param(
            {"type": "object", "properties": {"a": {}}},
            "s.properties[a].type: Required value: must not be empty for specified object fields",
            id="no-type-of-a-field",
        ),
        pytest.param(
            {"type": "object", "properties": {"a": {"type": "array", "items": {}}}},
            "s.properties[a].items.type: Required value: must not be empty for specified array items",
            id="no-type-of-items",
        ),
        pytest.param(
            {"type": "object", "properties": {"a": {"type": "array"}}}, "s.properties[a].items: Required", id="no-items"
        ),
        pytest.param(
            {"type": "object", "properties": {"a": {**TEXT, "anyOf": [{"type": "string"}]}}},
            "s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural",
            id="a-type-within-any-of",
        ),
        pytest.param(
            {"type": "object", "properties": {"a": {"x-kubernetes-int-or-string": True, "type": "integer"}}},
            "must be empty if x-kubernetes-int-or-string is true",
            id="int-or-string-with-a-type",
        ),
        pytest.param(
            {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
            "must be true or undefined",
            id="preserve",
        ),
        pytest.param(
            {"type": "object", "properties": {"a": {**TEXT, "pattern": "("}}}, "must be a valid regular", id="pattern"
        ),
        pytest.param(
            {"type": "object", "properties": {"a": {"type": "array", "items": [TEXT]}}},
            "s.properties[a].items: Forbidden: items must be a schema object and not an array",
            id="items-that-are-a-list",
        ),
        pytest.param({"type": "object", "properties": {"a": {"type": "int"}}}, 'Unsupported value: "int"', id="type"),
    ],
)
def test_what_is_structural(schema: dict[str, Any], fault: str) -> None:
    found = [str(each) for each in structural_faults(schema, "s")]
    assert fault in "\n".join(found)
    assert bool(found) is bool(fault)


@pytest.mark.parametrize(
    ("schema", "value", "fault"),
    [
        pytest.param(
            {"type": "integer"}, "x", 's: Invalid value: "string": s in body must be of type integer: "string"', id="t"
        ),
        pytest.param({"type": "integer"}, True, 'must be of type integer: "boolean"', id="a-boolean-is-no-integer"),
        pytest.param({"type": "integer"}, 3.0, "", id="a-whole-number"),
        pytest.param(TEXT, None, 'must be of type string: "null"', id="null"),
        pytest.param({**TEXT, "nullable": True}, None, "", id="nullable"),
        pytest.param({"x-kubernetes-int-or-string": True}, "50%", "", id="int-or-string"),
        pytest.param({"x-kubernetes-int-or-string": True}, [], "must be of type integer,string", id="neither"),
        pytest.param({**TEXT, "enum": ["a", "b"]}, "c", '"c": supported values: "a", "b"', id="enum"),
        pytest.param({**TEXT, "pattern": "^a$"}, "b", "s in body should match '^a$'", id="pattern"),
        pytest.param({**TEXT, "minLength": 2}, "a", "should be at least 2 chars long", id="short"),
        pytest.param({**TEXT, "maxLength": 1}, "ab", "s: Too long: may not be more than 1 bytes", id="long"),
        pytest.param({"type": "integer", "minimum": 1}, 0, "should be greater than or equal to 1", id="minimum"),
        pytest.param(
            {"type": "integer", "maximum": 1, "exclusiveMaximum": True}, 1, "should be less than 1", id="exclusive"
        ),
        pytest.param({"type": "integer", "multipleOf": 3}, 4, "should be a multiple of 3", id="multiple"),
        pytest.param({"type": "array", "items": TEXT, "maxItems": 1}, ["a", "b"], "Too many: 2", id="items"),
        pytest.param({"type": "array", "items": TEXT}, ["a", 1], "s[1]: Invalid value", id="an-item"),
        pytest.param(
            {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
            ["a", "a"],
            's[1]: Duplicate value: "a"',
            id="set",
        ),
        pytest.param(
            {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"},
            [*range(100_000), 7],
            "s[100000]: Duplicate value: 7",
            id="large-set",
        ),
        pytest.param(
            {
                "type": "array",
                "items": {"type": "object"},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["a", "b"],
            },
            [{"a": 1, "b": 2}, {"b": 1, "a": 2}, {"b": 2, "a": 1, "c": 3}],
            's[2]: Duplicate value: {"a":1,"b":2}',
            id="map-of-two-keys",
        ),
        pytest.param({"type": "object", "required": ["a"]}, {}, "s.a: Required value", id="required"),
        pytest.param({"type": "object", "additionalProperties": TEXT}, {"k": 1}, "s.k: Invalid value", id="map"),
        pytest.param(
            {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {},
            '"s" must validate one and only one schema (oneOf). Found none valid',
            id="one-of",
        ),
        pytest.param({"type": "integer", "not": {"minimum": 5}}, 7, "must not validate the schema (not)", id="not"),
    ],
)
def test_what_a_value_must_be(schema: dict[str, Any], value: Any, fault: str) -> None:
    found = [str(each) for each in value_faults(schema, value, "s")]
    assert fault in "\n".join(found)
    assert bool(found) is bool(fault)


def test_unknown_fields_go_but_where_they_are_kept() -> None:
    open_ended = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec = {"type": "object", "properties": {"a": TEXT, "open": open_ended}}
    schema = {"type": "object", "properties": {"spec": spec}}
    value = {"kind": "W", "metadata": {"name": "n"}, "extra": 1, "spec": {"a": "x", "b": 1, "open": {"c": {"d": 1}}}}
    assert pruned(schema, value) == {
        "kind": "W",
        "metadata": {"name": "n"},
        "spec": {"a": "x", "open": {"c": {"d": 1}}},
    }


def test_unknown_fields_are_told_by_their_paths() -> None:
    item = {"type": "object", "properties": {"k": TEXT}}
    more = {"type": "object", "additionalProperties": item}
    spec = {"type": "object", "properties": {"items": {"type": "array", "items": item}, "map": more}}
    value = {"extra": 1, "spec": {"items": [{"k": "x"}, {"z": 1}], "map": {"a": {"y": {"b": 1}}}, "metadata": {}}}
    unknown: list[str] = []
    pruned({"type": "object", "properties": {"spec": spec}}, value, unknown)
    assert unknown == ["extra", "spec.items[1].z", "spec.map.a.y", "spec.metadata"]


def test_defaults_fill_what_is_absent_and_what_may_not_be_null() -> None:
    inner = {"type": "object", "default": {}, "properties": {"n": {"type": "integer", "default": 3}}}
    schema = {"type": "object", "properties": {"a": inner, "b": {"type": "string", "nullable": True, "default": "x"}}}
    assert defaulted(schema, {"b": None}) == {"a": {"n": 3}, "b": None}
    assert defaulted(schema, {"a": {"n": None}}) == {"a": {"n": 3}, "b": "x"}


SCHEMA = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1, "default": 1}}},
        "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
    },
}


def store_with(schema: dict[str, Any], **version: Any) -> Store:
    store = Store(now=Clock())
    raw = definition()
    for each in raw["spec"]["versions"]:
        each |= {"schema": {"openAPIV3Schema": schema}, **version}
    store.create(raw)
    return store


def test_objects_are_pruned_defaulted_and_validated_when_made_and_when_changed() -> None:
    store = store_with(SCHEMA)
    made = store.create({**widget("w"), "spec": {}, "extra": 1})
    assert made.raw["spec"] == {"size": 1}
    assert "extra" not in made.raw
    with pytest.raises(Invalid, match=r"spec\.size in body should be greater than or equal to 1"):
        store.merge_patch("Widget", "default", "w", {"spec": {"size": 0}})
    with pytest.raises(Invalid, match=r'Widget.example.com "v" is invalid: spec: Required value'):
        store.create(widget("v"))


def test_a_status_of_its_own_is_changed_by_itself_only() -> None:
    store = store_with(SCHEMA, subresources={"status": {}})
    made = store.create({**widget("w"), "spec": {}, "status": {"ready": True}})
    assert "status" not in made.raw
    store.merge_patch("Widget", "default", "w", {"status": {"ready": True}}, subresource="status")
    changed = store.merge_patch("Widget", "default", "w", {"spec": {"size": 2}, "status": {"ready": False}})
    assert (changed.raw["spec"], changed.raw["status"]) == ({"size": 2}, {"ready": True})
    with pytest.raises(Invalid, match=r"status\.ready in body must be of type boolean"):
        store.merge_patch("Widget", "default", "w", {"status": {"ready": "x"}}, subresource="status")


def test_a_definition_whose_schema_is_not_structural_is_refused() -> None:
    with pytest.raises(Invalid, match=r"spec.validation.openAPIV3Schema.properties\[a\].type: Required value"):
        store_with({"type": "object", "properties": {"a": {}}})


class Unread(dict[str, Any]):
    """A schema that must not be read."""

    def get(self, key: str, default: Any = None) -> Any:
        raise AssertionError(f"{key} was looked at")


def test_any_of_looks_no_further_than_the_first_schema_that_holds() -> None:
    schema: dict[str, Any] = {"type": "integer", "anyOf": [{"minimum": 5}, Unread()]}
    assert value_faults(schema, 7) == []


def test_a_schema_within_any_of_fails_by_its_first_fault() -> None:
    schema: dict[str, Any] = {"type": "integer", "anyOf": [{"minimum": 5, "allOf": [Unread()]}, {"maximum": 2}]}
    assert value_faults(schema, 1) == []
