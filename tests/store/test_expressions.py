"""Expressions of admission policies and webhooks: those that upstream refuses for syntax, names and plain types."""

from typing import Any

import pytest

from kschedd.store.creating.expressions import expression_fault, policy_faults
from kschedd.store.errors import Invalid
from kschedd.store.store import Store
from tests.store.manifests import Clock

NAMES = ("object", "oldObject", "request", "namespaceObject", "authorizer", "params", "variables")
GOOD = [
    "object.spec.replicas <= params.maxReplicas",
    "!has(object.metadata.labels) || !('env' in object.metadata.labels) || object.metadata.labels['env'] in ['a', 'b']",
    "object.spec.containers.all(c, c.image.startsWith('example.com/') && c.name != oldObject.metadata.name)",
    "object.spec.containers.map(c, c.image.split(':')[0]).exists_one(i, i == request.name)",
    "object.data.all(k, v, k != v) && object.items.transformList(i, v, i > 0 ? v : '').size() > 0",
    "cel.bind(x, object.spec.x, x.y == x.z)",
    "authorizer.group('').resource('pods').namespace('default').check('create').allowed()",
    "sets.contains(object.spec.a, ['b']) && math.greatest(1, 2) == 2 && base64.encode(b'a') == 'YQ=='",
    "quantity(object.spec.q).isGreaterThan(quantity('1Mi')) || ip.isCanonical('1.2.3.4')",
    "url('http://a').getHost() == 'a' && format.dns1123Label().validate(object.a).hasValue()",
    "type(object.x) == string && timestamp(object.s) < timestamp(object.t) && duration('1s') < duration('2s')",
    "object.?spec.?replicas.orValue(1) > 0 && object[?'a'].hasValue() && optional.of(1).hasValue()",
    "variables.foo == dyn(1) && google.protobuf.Timestamp != null",
    r"object.metadata.name.matches('^a\\d+$') && r'\d' != \"\"",
]


@pytest.mark.parametrize("text", GOOD)
def test_what_upstream_compiles_is_not_refused(text: str) -> None:
    assert expression_fault(text.replace('\\"', '"'), NAMES, "bool") == ""


@pytest.mark.parametrize(
    ("text", "wanted", "why"),
    [
        (
            "x.y",
            "bool",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'x' (in container '')\n | x.y\n | ^",
        ),
        ("object.a == [b, {'c': d}]", "bool", "undeclared reference to 'b'"),
        ("object.a == [b, {'c': d}]", "bool", "undeclared reference to 'd'"),
        ("object.a.all(x, x > 1) && x", "bool", "<input>:1:27: undeclared reference to 'x'"),
        ("object.a.map(x, y, 1) == []", "bool", "undeclared reference to 'y'"),
        ("cel.bind(x, x, x)", "bool", "<input>:1:13: undeclared reference to 'x'"),
        ("size(z) > 0", "bool", "undeclared reference to 'z'"),
        ("object.", "bool", "compilation failed: ERROR: <input>:1:8: Syntax error: "),
        ("1", "bool", "must evaluate to bool but got int"),
        ("'a'", "bool", "must evaluate to bool but got string"),
        ("null", "string", "must evaluate to string but got null_type"),
        ("object.a < 3", "string", "must evaluate to string but got bool"),
        ("has(object.a) && true", "string", "must evaluate to string but got bool"),
        ("!object.a", "string", "must evaluate to string but got bool"),
    ],
)
def test_what_is_refused_and_why(text: str, wanted: str, why: str) -> None:
    assert why in expression_fault(text, NAMES, wanted)


def test_a_value_of_any_type_is_right_where_none_is_wanted() -> None:
    assert expression_fault("1", NAMES, "") == ""
    assert expression_fault("'a'", NAMES, "string") == ""


def policy(**spec: Any) -> dict[str, Any]:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "true"}], **spec},
    }


@pytest.mark.parametrize(
    ("spec", "faulty"),
    [
        ({"validations": [{"expression": "params.a"}]}, ["spec.validations[0].expression"]),
        ({"validations": [{"expression": "params.a"}], "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}, []),
        ({"validations": [{"expression": "variables.a"}]}, ["spec.validations[0].expression"]),
        ({"validations": [{"expression": "variables.a"}], "variables": [{"name": "a", "expression": "1"}]}, []),
        (
            {
                "variables": [
                    {"name": "a", "expression": "variables.b"},
                    {"name": "b", "expression": "variables.a + c"},
                ]
            },
            ["spec.variables[0].expression", "spec.variables[1].expression"],
        ),
        ({"matchConditions": [{"name": "a", "expression": "nobody"}]}, ["spec.matchConditions[0].expression"]),
        (
            {"validations": [{"expression": "authorizer != null", "messageExpression": "string(authorizer)"}]},
            ["spec.validations[0].messageExpression"],
        ),
        ({"validations": [{"expression": "true", "messageExpression": "'a' + object.b"}]}, []),
    ],
)
def test_where_which_names_are_declared(spec: dict[str, Any], faulty: list[str]) -> None:
    assert [str(fault).partition(": ")[0] for fault in policy_faults(policy(**spec))] == faulty


def test_policies_and_webhooks_are_refused_as_they_are_created_and_changed() -> None:
    store = Store(now=Clock())
    with pytest.raises(Invalid, match=r'spec\.validations\[0\]\.expression: Invalid value: "x": compilation failed'):
        store.create(policy(validations=[{"expression": "x"}]))
    store.create(policy())
    with pytest.raises(Invalid, match=r'spec\.validations\[0\]\.expression: Invalid value: "x": compilation failed'):
        store.merge_patch("ValidatingAdmissionPolicy", "", "p", {"spec": {"validations": [{"expression": "x"}]}})
    hook = {
        "name": "a.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "https://example.com"},
        "matchConditions": [{"name": "a", "expression": "object.a && x"}],
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "w"},
        "webhooks": [hook],
    }
    with pytest.raises(Invalid, match=r"webhooks\[0\]\.matchConditions\[0\]\.expression: Invalid value: "):
        store.create(configuration)
