"""Tests of the status of ValidatingAdmissionPolicies."""

from typing import Any

from kschedd.controllers.policy_status import PolicyStatus
from kschedd.controllers.runner import ControllerRunner
from kschedd.store.store import Store

Raw = dict[str, Any]


def policy(expression: str) -> Raw:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}]},
    }


def status(store: Store) -> Raw:
    return dict(store.get("ValidatingAdmissionPolicy", "", "p").status)


def test_each_generation_is_checked_once() -> None:
    store = Store()
    runner = ControllerRunner(store, [PolicyStatus()])
    store.create(policy("object.spec.foo == 1"))
    runner.run_until_idle()
    (warning,) = status(store)["typeChecking"]["expressionWarnings"]
    assert (status(store)["observedGeneration"], warning["fieldRef"]) == (1, "spec.validations[0].expression")
    version = store.version
    store.merge_patch("ValidatingAdmissionPolicy", "", "p", {"metadata": {"labels": {"a": "b"}}})
    runner.run_until_idle()
    assert store.version == version + 1, "a label does not change the generation"
    store.merge_patch("ValidatingAdmissionPolicy", "", "p", {"spec": policy("object.spec.hostNetwork == true")["spec"]})
    runner.run_until_idle()
    assert status(store) == {"observedGeneration": 2, "typeChecking": {}}
