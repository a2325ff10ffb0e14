"""Policies, bindings and objects for tests of admission."""

from typing import Any

API = "admissionregistration.k8s.io/v1"
CONFIG_MAPS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
ONLY_GOOD = {"expression": "object == null || !has(object.data.bad)", "message": "no bad data"}


def policy(name: str = "p", **spec: Any) -> dict[str, Any]:
    spec = {"matchConstraints": {"resourceRules": [CONFIG_MAPS]}, "validations": [ONLY_GOOD], **spec}
    return {"apiVersion": API, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}


def binding(name: str = "b", of: str = "p", **spec: Any) -> dict[str, Any]:
    spec = {"policyName": of, "validationActions": ["Deny"], **spec}
    return {"apiVersion": API, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": spec}


def config_map(name: str = "c", namespace: str = "default", **parts: Any) -> dict[str, Any]:
    labels = parts.pop("labels", {})
    meta = {"name": name, "namespace": namespace, **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, **parts}


BAD = {"data": {"bad": "1"}}
