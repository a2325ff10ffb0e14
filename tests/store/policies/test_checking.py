"""Expressions of policies and webhooks are compiled when they are written, with kube-apiserver's errors."""

from typing import Any

import pytest

from kschedd.config.versions.kube_versions import KUBE_VERSIONS
from kschedd.store.errors import Invalid
from kschedd.store.policies.checking import policy_faults
from kschedd.store.store import Store
from tests.store.manifests import Clock
from tests.store.policies.made import policy

FEATURES = KUBE_VERSIONS["1.37"].default_rules.features
PARAMS = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}


def faults(**spec: Any) -> list[str]:
    return list(map(str, policy_faults(policy(**spec), FEATURES)))


@pytest.mark.parametrize(
    "text",
    [
        "object.spec.replicas <= params.maxReplicas",
        "!has(object.metadata.labels) || object.metadata.labels['env'] in ['a', 'b']",
        "object.data.all(k, v, k != v) && object.items.transformList(i, v, i > 0 ? v : '').size() > 0",
        "authorizer.group('').resource('pods').namespace('default').check('create').allowed()",
        "authorizer.requestResource.check('update').reason() == ''",
        "sets.contains(object.spec.a, ['b']) && quantity(object.spec.q).isGreaterThan(quantity('1Mi'))",
        "url('http://a').getHost() == 'a' && format.dns1123Label().validate(object.a).hasValue()",
        "timestamp(object.s) < timestamp(object.t) && duration('1s') < duration('2s')",
        "object.?spec.?replicas.orValue(1) > 0 && object[?'a'].hasValue()",
        "namespaceObject.metadata.labels['a'] == 'b' && request.userInfo.groups.exists(g, g == 'dev')",
        "[3, 1, 2].sort() == [1, 2, 3]",
    ],
)
def test_compiles(text: str) -> None:
    assert faults(validations=[{"expression": text}], **PARAMS) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x.y", "compilation failed: ERROR: <input>:1:1: undeclared reference to 'x' (in container '')\n | x.y\n | ^"),
        ("object.a.all(x, x > 1) && x", "<input>:1:27: undeclared reference to 'x'"),
        ("cel.bind(x, 1, x) == 1", "undeclared reference to 'cel'"),
        ("object.", "compilation failed: ERROR: <input>:1:8: Syntax error: "),
        ("1", "must evaluate to bool but got int"),
        ("object.spec.on", "must evaluate to bool but got dyn"),
        ("request.nope == ''", "undefined field 'nope'"),
        ("int('x') == 1", "program instantiation failed: type conversion error from 'string' to 'int'"),
        ("[1, 'a'].size() > 0", "expected type 'int' but found 'string'"),
        ("'%d'.format(['a']) == ''", "decimal clause can only be used on integers, was given string"),
        ("'a' + 1 == 'b'", "found no matching overload for '_+_' applied to '(string, int)'"),
    ],
)
def test_does_not_compile(text: str, why: str) -> None:
    (fault,) = faults(validations=[{"expression": text}])
    assert why in fault


@pytest.mark.parametrize(
    ("spec", "faulty"),
    [
        ({"validations": [{"expression": "params == null"}]}, ["spec.validations[0].expression"]),
        ({"validations": [{"expression": "params == null"}], **PARAMS}, []),
        ({"validations": [{"expression": "variables.a"}]}, ["spec.validations[0].expression"]),
        ({"validations": [{"expression": "variables.a"}], "variables": [{"name": "a", "expression": "true"}]}, []),
        (
            {
                "variables": [
                    {"name": "a", "expression": "variables.b"},
                    {"name": "b", "expression": "variables.a + c"},
                ]
            },
            ["spec.variables[0].expression", "spec.variables[1].expression"],
        ),
        ({"variables": [{"name": "a-b", "expression": "1"}]}, ["spec.variables[0].name"]),
        ({"matchConditions": [{"name": "a", "expression": "nobody"}]}, ["spec.matchConditions[0].expression"]),
        (
            {"validations": [{"expression": "true", "messageExpression": "string(authorizer)"}]},
            ["spec.validations[0].messageExpression"],
        ),
        ({"validations": [{"expression": "true", "messageExpression": "'a' + object.b"}]}, []),
        ({"auditAnnotations": [{"key": "a", "valueExpression": "1"}]}, ["spec.auditAnnotations[0].valueExpression"]),
        ({"auditAnnotations": [{"key": "a", "valueExpression": "'x'"}]}, []),
    ],
)
def test_where_names_are_declared(spec: dict[str, Any], faulty: list[str]) -> None:
    assert [fault.partition(": ")[0] for fault in faults(**spec)] == faulty


def test_the_list_library_came_with_1_35() -> None:
    features = KUBE_VERSIONS["1.34"].default_rules.features
    (fault,) = policy_faults(policy(validations=[{"expression": "[1].sort() == [1]"}]), features)
    assert "undeclared reference to 'sort'" in str(fault)


def test_created_and_changed_objects_are_checked() -> None:
    store = Store(now=Clock())
    why = r'spec\.validations\[0\]\.expression: Invalid value: "x": compilation failed'
    with pytest.raises(Invalid, match=why):
        store.create(policy(validations=[{"expression": "x"}]))
    store.create(policy())
    with pytest.raises(Invalid, match=why):
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
