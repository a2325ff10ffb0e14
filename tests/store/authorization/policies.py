"""Manifests of roles and bindings."""

from collections.abc import Mapping, Sequence
from typing import Any

API = {"apiVersion": "rbac.authorization.k8s.io/v1"}


def role(name: str, rules: Sequence[Mapping[str, Any]], namespace: str = "") -> dict[str, Any]:
    """Return a Role, or a ClusterRole without a namespace."""
    meta = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {**API, "kind": "Role" if namespace else "ClusterRole", "metadata": meta, "rules": list(rules)}


def binding(name: str, role_ref: str, subjects: Sequence[Mapping[str, str]], namespace: str = "") -> dict[str, Any]:
    """Return a RoleBinding, or a ClusterRoleBinding without a namespace; `role_ref` is KIND/NAME."""
    kind, _, of = role_ref.partition("/")
    meta = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {
        **API,
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": meta,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": of},
        "subjects": list(subjects),
    }
