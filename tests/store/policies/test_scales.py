"""Policies review the Scale of a write to the scale subresource, as in kube-apiserver 1.37."""

from typing import Any

import pytest

from kschedd.service.operations.serving import serve
from kschedd.service.request import PatchBody, Request
from kschedd.store.errors import PolicyDenied
from kschedd.store.store import Store
from tests.actors.clusters import deployment
from tests.store.manifests import Clock
from tests.store.policies.made import API, binding, policy

SCALES = {
    "apiGroups": ["apps"],
    "apiVersions": ["v1"],
    "operations": ["UPDATE"],
    "resources": ["deployments/scale"],
}


def scaled(store: Store, replicas: int) -> Any:
    body = PatchBody("merge", {"spec": {"replicas": replicas}})
    name = deployment()["metadata"]["name"]
    return serve(store, Request("patch", "Deployment", "default", name, "scale", body)).object


def test_a_policy_judges_the_scale() -> None:
    store = Store(now=Clock())
    store.create(deployment())
    expressions = (
        "object.kind == 'Scale' && object.apiVersion == 'autoscaling/v1' && request.kind.kind == 'Scale'",
        "request.resource.resource == 'deployments' && request.subResource == 'scale'",
        "object.spec.replicas <= oldObject.spec.replicas + 2",
    )
    constraints = {"resourceRules": [SCALES]}
    validations = [{"expression": text} for text in expressions]
    store.create(policy(matchConstraints=constraints, validations=validations))
    store.create(binding())
    assert scaled(store, 3).spec["replicas"] == 3
    with pytest.raises(PolicyDenied, match=r"failed expression: object\.spec\.replicas <= "):
        scaled(store, 9)


def test_a_mutating_policy_changes_the_scale() -> None:
    store = Store(now=Clock())
    store.create(deployment())
    spec = {
        "matchConstraints": {"resourceRules": [SCALES]},
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "mutations": [
            {
                "patchType": "JSONPatch",
                "jsonPatch": {"expression": "[JSONPatch{op: 'replace', path: '/spec/replicas', value: 2}]"},
            }
        ],
    }
    store.create({"apiVersion": API, "kind": "MutatingAdmissionPolicy", "metadata": {"name": "m"}, "spec": spec})
    of = {"policyName": "m"}
    store.create({"apiVersion": API, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": "m"}, "spec": of})
    assert scaled(store, 9).spec["replicas"] == 2
