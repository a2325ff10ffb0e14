"""Tests of the type checking of policies, with the warnings of kube-controller-manager 1.37.2.

In the messages of kube-controller-manager, a number follows the kind in the name of an object's type.
"""

from typing import Any

import pytest

from kschedd.controllers.policy_types import expression_warnings
from kschedd.store.store import Store
from kschedd.values import run_steps

Raw = dict[str, Any]
DEPLOYMENTS = ("apps", "v1", "deployments")
WIDGETS = ("example.com", "v1", "widgets")
_SPEC = {
    "size": {"type": "integer"},
    "parts": {"type": "object", "additionalProperties": {"type": "object", "properties": {"name": {"type": "string"}}}},
    "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
DEFINITION: Raw = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": _SPEC}},
                    }
                },
            }
        ],
    },
}


def policy(*expressions: str, rules: tuple[tuple[str, str, str], ...] = (DEPLOYMENTS,), **spec: Any) -> Raw:
    matched = [
        {"apiGroups": [group], "apiVersions": [version], "operations": ["CREATE"], "resources": [resource]}
        for group, version, resource in rules
    ]
    validations = [{"expression": each} for each in expressions]
    return {"spec": {"matchConstraints": {"resourceRules": matched}, "validations": validations, **spec}}


def warnings(checked: Raw, *objects: Raw) -> list[dict[str, str]]:
    store = Store()
    for each in objects:
        store.create(each)
    return run_steps(expression_warnings(checked, store))


def reasons(checked: Raw, *objects: Raw) -> list[str]:
    """Return the first line of each message, without the position."""
    texts = "".join(each["warning"] for each in warnings(checked, *objects)).splitlines()
    return [line.partition(": ERROR: <input>:")[2].partition(": ")[2] for line in texts if ": ERROR: " in line]


def test_a_warning_names_field_type_and_position() -> None:
    both = (DEPLOYMENTS, ("apps", "v1", "replicasets"))
    assert warnings(policy("object.spec.replicas < 5", "object.spec.strategy.type == 'a'", rules=both)) == [
        {
            "fieldRef": "spec.validations[1].expression",
            "warning": "apps/v1, Kind=ReplicaSet: ERROR: <input>:1:12: undefined field 'strategy'\n"
            " | object.spec.strategy.type == 'a'\n | ...........^\n",
        }
    ]


def test_the_messages_about_several_types_are_joined() -> None:
    found = warnings(policy("object.foo == 1", rules=(DEPLOYMENTS, ("", "v1", "pods"))))
    shown = "ERROR: <input>:1:7: undefined field 'foo'\n | object.foo == 1\n | ......^\n"
    assert [each["warning"] for each in found] == [f"/v1, Kind=Pod: {shown}\napps/v1, Kind=Deployment: {shown}"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("object.spec.replicas == 3", [], id="int"),
        pytest.param(
            "object.spec.replicas > '3'", ["found no matching overload for '_>_' applied to '(int, string)'"], id="text"
        ),
        pytest.param(
            "object.metadata.creationTimestamp == 'x'",
            ["found no matching overload for '_==_' applied to '(timestamp, string)'"],
            id="time",
        ),
        pytest.param("object.spec.strategy.rollingUpdate.maxSurge == 1", [], id="int-or-string-has-any-type"),
        pytest.param(
            "has(object.spec.template.spec.containers[0].resources.limits.cpu)",
            ["undefined field 'limits'"],
            id="quantities-have-no-type",
        ),
        pytest.param(
            "object.metadata.managedFields[0].fieldsV1.x == 1", ["undefined field 'x'"], id="object-without-fields"
        ),
        pytest.param(
            "object.spec.selector == 1",
            ["found no matching overload for '_==_' applied to '(Deployment.spec.selector, int)'"],
            id="name-of-a-struct",
        ),
        pytest.param("variables.spec.foo == 1", [], id="structs-in-variables-have-any-type"),
        pytest.param("variables.replicas.foo == 1", ["type 'int' does not support field selection"], id="variable"),
        pytest.param(
            "authorizer.requestResource.check('get').allowed()",
            ["unexpected failed resolution of 'kubernetes.authorization.Authorizer'"],
            id="request-resource-is-not-declared",
        ),
        pytest.param("authorizer.group('').resource('pods').check('get').allowed()", [], id="authorizer"),
    ],
)
def test_expressions_are_checked_against_the_fields(expression: str, expected: list[str]) -> None:
    variables = [
        {"name": "spec", "expression": "object.spec"},
        {"name": "replicas", "expression": "object.spec.replicas"},
    ]
    assert reasons(policy(expression, variables=variables)) == expected


def test_recursive_types_have_fields_at_any_depth() -> None:
    schema = "object.spec.versions[0].schema.openAPIV3Schema"
    texts = [f"{schema}.properties['a'].properties['b'].title == 1", f"{schema}.default == 1", f"{schema}.foo == 1"]
    assert reasons(policy(*texts, rules=(("apiextensions.k8s.io", "v1", "customresourcedefinitions"),))) == [
        "found no matching overload for '_==_' applied to '(string, int)'",
        "undefined field 'default'",
        "undefined field 'foo'",
    ]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("object.spec.size < 3 && object.metadata.labels['a'] == 'b'", [], id="as-defined"),
        pytest.param("object.spec.foo == 1", ["undefined field 'foo'"], id="not-defined"),
        pytest.param("object.spec.parts['a'].foo == 'b'", ["undefined field 'foo'"], id="in-a-map"),
        pytest.param("object.spec.open.x == 1", ["undefined field 'x'"], id="unknown-fields"),
        pytest.param(
            "params.spec.size == 'a'",
            ["found no matching overload for '_==_' applied to '(int, string)'"],
            id="parameters",
        ),
    ],
)
def test_custom_resources_have_the_fields_of_their_definition(expression: str, expected: list[str]) -> None:
    kind = {"apiVersion": "example.com/v1", "kind": "Widget"}
    assert reasons(policy(expression, rules=(WIDGETS,), paramKind=kind), DEFINITION) == expected


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(("*", "v1", "pods"), id="any-group"),
        pytest.param(("apps", "*", "deployments"), id="any-version"),
        pytest.param(("apps", "v1", "*"), id="any-resource"),
        pytest.param(("apps", "v1", "deployments/scale"), id="subresource"),
        pytest.param(("example.com", "v1", "widgets"), id="unknown-resource"),
    ],
)
def test_other_rules_are_not_checked(rule: tuple[str, str, str]) -> None:
    assert warnings(policy("object.foo == 1", rules=(rule,))) == []


def wrong(characters: int) -> str:
    """Return an expression of this length with a field that a Deployment does not have."""
    return "object.spec.nothing == 1".rjust(characters)


def test_long_expressions_are_not_checked() -> None:
    checked = policy(wrong(8_000), wrong(8_001), wrong(24))
    assert [each["fieldRef"] for each in warnings(checked)] == [
        "spec.validations[0].expression",
        "spec.validations[2].expression",
    ]


def test_the_check_of_a_policy_ends_after_many_characters() -> None:
    assert len(warnings(policy(*[wrong(7_000)] * 20))) == 14
    others = (DEPLOYMENTS, ("apps", "v1", "statefulsets"))
    assert len(warnings(policy(*[wrong(7_000)] * 20, rules=others))) == 7


def test_a_long_variable_has_any_type() -> None:
    count = "object.spec.replicas"
    variables = [{"name": "long", "expression": count.rjust(8_001)}, {"name": "short", "expression": count}]
    checked = policy("variables.long == 'a'", "variables.short == 'a'", variables=variables)
    assert [each["fieldRef"] for each in warnings(checked)] == ["spec.validations[1].expression"]
