"""Tests of values with a schema: upstream's error messages, merging of lists, comparison."""

from typing import Any

import pytest

from kschedd.api.schemas.schema import ANY, MapOf, schema_of, type_named
from kschedd.managed_fields.comparing import compare
from kschedd.managed_fields.field_set import fields_v1, path_text
from kschedd.managed_fields.merging import merge, without
from kschedd.managed_fields.structural import structural_schema
from kschedd.managed_fields.typed import ABSENT, TypedErrors, field_set_of, validate

_POD = schema_of("v1", "Pod")
_SPEC = type_named("PodSpec")


def _fault(value: Any, schema: Any) -> str:
    with pytest.raises(TypedErrors) as raised:
        validate(value, schema)
    return str(raised.value)


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        pytest.param({"foo": 1}, ".spec.foo: field not declared in schema", id="unknown-field"),
        pytest.param({"containers": "x"}, ".spec.containers: expected list, got &{x}", id="text-for-a-list"),
        pytest.param(
            {"nodeName": 5},
            ".spec.nodeName: expected string, got &value.valueUnstructured{Value:5}",
            id="number-for-text",
        ),
        pytest.param(
            {"priority": "high"}, ".spec.priority: expected numeric (int or float), got string", id="text-for-a-number"
        ),
        pytest.param({"hostIPC": "no"}, ".spec.hostIPC: expected boolean, got &{no}", id="text-for-a-boolean"),
        pytest.param({"securityContext": [1]}, ".spec.securityContext: expected map, got &{[1]}", id="list-for-a-map"),
        pytest.param(
            {"overhead": {"cpu": {"a": 1}}}, ".spec.overhead.cpu: expected any scalar, got &{map[a:1]}", id="quantity"
        ),
        pytest.param(
            {"containers": [{"name": "a"}, {"name": "a"}]},
            '.spec.containers: duplicate entries for key [name="a"]',
            id="item-twice",
        ),
        pytest.param(
            {"containers": [None]},
            ".spec.containers: element 0: associative list with keys may not have a null element",
            id="null-item",
        ),
        pytest.param(
            {"tolerations": 1, "containers": 2},
            "errors:\n  .spec.tolerations: expected list, got &{1}\n  .spec.containers: expected list, got &{2}",
            id="several",
        ),
    ],
)
def test_faults_are_told_as_upstream_tells_them(spec: Any, fault: str) -> None:
    assert _fault({"apiVersion": "v1", "kind": "Pod", "spec": spec}, _POD) == fault


def test_a_key_that_is_left_out_has_its_default() -> None:
    ports = type_named("Container")["ports"]
    assert list(fields_v1(field_set_of([{"containerPort": 80}], ports))) == ['k:{"containerPort":80,"protocol":"TCP"}']
    secrets = _SPEC["imagePullSecrets"]
    assert list(fields_v1(field_set_of([{}], secrets))) == ['k:{"name":""}']
    containers = _SPEC["containers"]
    assert list(fields_v1(field_set_of([{"image": "x"}], containers))) == ['k:{"name":""}']


@pytest.mark.parametrize(
    ("live", "config", "merged"),
    [
        pytest.param("abc", "", "abc", id="nothing-stated-keeps-all"),
        pytest.param("", "ba", "ba", id="all-new-in-stated-order"),
        pytest.param("abc", "c", "abc", id="one-stated-stays-where-it-is"),
        pytest.param("abc", "ca", "bca", id="shared-items-in-stated-order-others-stay-before-what-they-precede"),
        pytest.param("abc", "xb", "axbc", id="new-item-before-the-shared-one-it-precedes"),
        pytest.param("abcd", "dxa", "bcdxa", id="new-item-between-shared-ones"),
        pytest.param("ab", "xy", "abxy", id="nothing-shared"),
    ],
)
def test_items_have_the_order_that_upstream_gives_them(live: str, config: str, merged: str) -> None:
    finalizers = type_named("meta.ObjectMeta")["finalizers"]
    found = merge(list(live), list(config), finalizers)
    assert "".join(found) == merged


def test_items_merge_by_their_keys_and_atomic_lists_are_replaced() -> None:
    live = {"containers": [{"name": "a", "image": "x", "args": ["1"]}], "tolerations": [{"key": "k"}]}
    config = {"containers": [{"name": "a", "args": ["2"]}], "tolerations": [{"key": "z"}]}
    assert merge(live, config, _SPEC) == {
        "containers": [{"name": "a", "image": "x", "args": ["2"]}],
        "tolerations": [{"key": "z"}],
    }


def test_a_selector_is_one_whole() -> None:
    selector = type_named("meta.LabelSelector")
    assert merge({"matchLabels": {"a": "1"}}, {"matchLabels": {"b": "2"}}, selector) == {"matchLabels": {"b": "2"}}
    assert fields_v1(field_set_of({"selector": {"matchLabels": {"a": "1"}}}, type_named("apps.v1.DeploymentSpec"))) == {
        "f:selector": {}
    }


def test_comparing_tells_added_modified_and_removed_fields() -> None:
    old = {"containers": [{"name": "a", "image": "x", "stdin": True}], "hostname": "h"}
    new = {"containers": [{"name": "a", "image": "y"}, {"name": "b"}], "hostname": "h"}
    found = compare(old, new, _SPEC)
    assert [path_text(path) for path in found.removed.paths()] == ['.containers[name="a"].stdin']
    assert [path_text(path) for path in found.modified.paths()] == ['.containers[name="a"].image']
    assert [path_text(path) for path in found.added.paths()] == ['.containers[name="b"]', '.containers[name="b"].name']


def test_an_item_that_comes_twice_is_compared_as_a_whole() -> None:
    env = type_named("Container")["env"]
    twice = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    assert compare(twice, twice[:], env).taken == compare([], [], env).taken
    once = compare(twice, twice[:1], env)
    assert [path_text(path) for path in once.removed.paths()] == ['[name="A"]']
    assert '[name="A"].value' in [path_text(path) for path in once.added.paths()]


def test_fields_and_items_are_taken_out() -> None:
    value = {"containers": [{"name": "a", "image": "x"}, {"name": "b"}], "hostname": "h"}
    gone = compare(ABSENT, {"containers": [{"name": "b"}], "hostname": "h"}, _SPEC).added
    assert without(value, gone.at("f:hostname"), _SPEC) == value
    fields = type(gone)(False, {step: below for step, below in gone.children.items() if step == "f:hostname"})
    assert without(value, fields, _SPEC) == {"containers": value["containers"]}


def test_a_place_of_any_type_is_a_map_of_such_places_or_a_leaf() -> None:
    assert fields_v1(field_set_of({"a": {"b": 1, "c": [1]}}, MapOf(ANY))) == {"f:a": {".": {}, "f:b": {}, "f:c": {}}}
    assert merge({"a": {"b": 1}}, {"a": {"c": 2}}, MapOf(ANY)) == {"a": {"b": 1, "c": 2}}
    changed = compare({"a": {"b": 1}}, {"a": 5}, MapOf(ANY))
    assert [path_text(path) for path in changed.modified.paths()] == [".a"]


def test_a_definition_says_how_the_lists_of_its_kind_merge() -> None:
    item = {"type": "object", "properties": {"id": {"type": "string", "default": "0"}, "n": {"type": "integer"}}}
    spec = {
        "type": "object",
        "properties": {
            "members": {
                "type": "array",
                "items": item,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["id"],
            },
            "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "rest": {"type": "array", "items": item},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
            "port": {"x-kubernetes-int-or-string": True},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    schema = structural_schema({"type": "object", "properties": {"spec": spec}})
    stated = {
        "members": [{"n": 1}],
        "tags": ["b"],
        "rest": [{"id": "x"}],
        "whole": {"a": "b"},
        "port": "http",
        "free": {"any": {"thing": 1}},
    }
    assert fields_v1(field_set_of({"spec": stated}, schema))["f:spec"] == {
        "f:members": {'k:{"id":"0"}': {".": {}, "f:n": {}}},
        "f:tags": {'v:"b"': {}},
        "f:rest": {},
        "f:whole": {},
        "f:port": {},
        "f:free": {"f:any": {".": {}, "f:thing": {}}},
    }
    assert _fault({"spec": {"other": 1}}, schema) == ".spec.other: field not declared in schema"
    assert fields_v1(field_set_of({"other": {"a": 1}}, structural_schema(None))) == {"f:other": {".": {}, "f:a": {}}}
