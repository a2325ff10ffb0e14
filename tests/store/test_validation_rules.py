"""Tests of CEL validation rules of custom resources."""

from typing import Any

import pytest

from kschedd.store.custom_resources.validation_rules import definition_rule_faults, rule_faults
from kschedd.store.errors import Invalid
from kschedd.store.store import Store
from tests.store.manifests import Clock


def schema(rule: str, of: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    inner = {**(of or {"type": "integer"}), "x-kubernetes-validations": [{"rule": rule, **more}]}
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": inner}}}}


def reported(rules: dict[str, Any], x: Any, *old: Any) -> list[str]:
    before = ({"spec": {"x": old[0]}},) if old else ()
    return [str(fault) for fault in rule_faults(rules, {"spec": {"x": x}}, *before)]


_NAMED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "size": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "grows"}]},
        },
    },
}
_TEXT = {"type": "string"}
_OBJECT = {
    "type": "object",
    "properties": {"a": {"type": "number"}, "b-c": {"type": "string"}, "in": {"type": "string"}},
}


@pytest.mark.parametrize(
    ("rules", "x", "why"),
    [
        pytest.param(schema("self > 1"), 2, [], id="holds"),
        pytest.param(
            schema("self > 1"), 1, ["spec.x: Invalid value: 1: failed rule: self > 1"], id="does-not-hold"
        ),
        pytest.param(
            schema("self > 1", message="be more"), 1, ["spec.x: Invalid value: 1: be more"], id="message"
        ),
        pytest.param(
            schema("self > 1", message="no", reason="FieldValueForbidden"), 1, ["spec.x: Forbidden: no"], id="reason"
        ),
        pytest.param(
            schema("has(self.a)", _OBJECT, message="set it", reason="FieldValueRequired", fieldPath=".a"),
            {},
            ["spec.x.a: Required value: set it"],
            id="path-of-a-field",
        ),
        pytest.param(
            schema("self.a > 1.0", _OBJECT),
            {},
            ['spec.x: Invalid value: "object": no such key: a evaluating rule: self.a > 1.0'],
            id="an-error",
        ),
        pytest.param(schema("self.a == 2.0", _OBJECT), {"a": 2}, [], id="numbers-are-doubles"),
        pytest.param(
            schema("self.b__dash__c == 'x' && self.__in__ == 'y'", _OBJECT), {"b-c": "x", "in": "y"}, [], id="escaped"
        ),
        pytest.param(schema("self.all(k, k.startsWith('a'))", {"type": "object", "additionalProperties": True}),
            {"ab": 1}, [], id="keys-of-a-map"),
        pytest.param(schema("self == oldSelf", message="fixed"), 1, [], id="a-change-needs-something-before"),
    ],
)  # fmt: skip
def test_a_rule(rules: dict[str, Any], x: Any, why: list[str]) -> None:
    assert reported(rules, x) == why


def test_a_rule_of_changes() -> None:
    rules = schema("self == oldSelf", message="fixed")
    assert reported(rules, 1, 1) == []
    assert reported(rules, 2, 1) == ["spec.x: Invalid value: 2: fixed"]


def test_an_optional_old_value() -> None:
    rules = schema(
        "oldSelf.hasValue() ? self >= oldSelf.value() : self == 5",
        optionalOldSelf=True,
        messageExpression="'was ' + string(oldSelf.orValue(0))",
    )
    assert reported(rules, 5) == []
    assert reported(rules, 4) == ["spec.x: Invalid value: 4: was 0"]
    assert reported(rules, 6, 5) == []
    assert reported(rules, 4, 5) == ["spec.x: Invalid value: 4: was 5"]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param("'got ' + string(self)", "got 1", id="computed"),
        pytest.param("string(1 / (self - 1))", "stated", id="a-failure"),
        pytest.param("'  '", "stated", id="empty"),
        pytest.param("'a\\nb'", "stated", id="two-lines"),
    ],
)
def test_a_message_expression(expression: str, message: str) -> None:
    rules = schema("self > 1", message="stated", messageExpression=expression)
    assert reported(rules, 1) == [f"spec.x: Invalid value: 1: {message}"]


def test_texts_have_the_type_of_their_format() -> None:
    times = {"type": "object", "properties": {"d": {"type": "string", "format": "duration"}}}
    rules = schema("self.d < duration('1h')", times, message="shorter")
    assert reported(rules, {"d": "1m"}) == []
    assert reported(rules, {"d": "2h"}) == ["spec.x: Invalid value: shorter"]


def test_types_instead_of_values_before_1_35() -> None:
    faults = rule_faults(schema("self > 1", message="more"), {"spec": {"x": 1}}, shows_values=False)
    assert list(map(str, faults)) == ['spec.x: Invalid value: "integer": more']


def test_the_cost_limit_of_an_object() -> None:
    names = {"type": "array", "items": {"type": "string"}}
    faults = reported(schema("self.all(a, self.all(b, self.all(c, a == c)))", names), ["x"] * 250)
    assert len(faults) == 1
    assert "no further validation rules will be run" in faults[0]


def test_items_are_found_again_by_their_keys() -> None:
    rules = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": _NAMED}}}}
    before = [{"name": "a", "size": 2}, {"name": "b", "size": 5}]
    assert reported(rules, [{"name": "b", "size": 5}, {"name": "new", "size": 0}], before) == []
    assert reported(rules, [{"name": "b", "size": 4}], before) == ["spec.x[0].size: Invalid value: 4: grows"]


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        pytest.param(schema("self > 1"), "", id="compiles"),
        pytest.param(schema(" "), ".rule: Required value: rule is not specified", id="none"),
        pytest.param(schema("self >"), "compilation failed: ERROR: <input>:1:7: Syntax error", id="syntax"),
        pytest.param(schema("self + 1"), "cel expression must evaluate to a bool", id="no-condition"),
        pytest.param(schema("self.y > 1", _OBJECT), "undefined field 'y'", id="unknown-field"),
        pytest.param(
            schema("self > 1", messageExpression="foo"),
            'Invalid value: {"Rule":"self \\u003e 1","Message":"","MessageExpression":"foo","Reason":null,'
            '"FieldPath":"","OptionalOldSelf":null}: messageExpression compilation failed: ERROR: <input>:1:1: ',
            id="message-expression",
        ),
        pytest.param(
            schema("self > 1", messageExpression="self"), "messageExpression must evaluate to a string", id="no-text"
        ),
        pytest.param(schema("isURL(self)"), "found no matching overload for 'isURL'", id="a-wrong-type"),
        pytest.param(
            schema("true", optionalOldSelf=True),
            "optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule",
            id="optional",
        ),
    ],
)
def test_a_definition(rules: dict[str, Any], why: str) -> None:
    faults = list(map(str, definition_rule_faults(rules, "s")))
    assert len(faults) == bool(why)
    for fault in faults:
        assert why in fault
        assert fault.startswith("s.properties[spec].properties[x].x-kubernetes-validations[0]")


def test_the_store_evaluates_them() -> None:
    store = Store(now=Clock())
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema("self >= oldSelf", message="only grows")},
                }
            ],
        },
    }
    store.create(definition)
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"x": 2}}
    store.create(thing)
    with pytest.raises(Invalid) as refusal:
        store.update({**thing, "spec": {"x": 1}})
    assert str(refusal.value) == 'Thing.example.com "t" is invalid: spec.x: Invalid value: 1: only grows'
    store.update({**thing, "spec": {"x": 3}})
