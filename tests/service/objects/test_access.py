"""Tests of the method `access.review`."""

from typing import Any

import pytest

from kschedd.clusters.virtual import VirtualCluster, VirtualDaemon
from kschedd.methods import daemon_methods

_RBAC = "rbac.authorization.k8s.io"
BINDING = {
    "apiVersion": f"{_RBAC}/v1",
    "kind": "RoleBinding",
    "metadata": {"name": "readers", "namespace": "default"},
    "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "view"},
    "subjects": [
        {"apiGroup": _RBAC, "kind": "User", "name": "bob"},
        {"apiGroup": _RBAC, "kind": "Group", "name": "system:serviceaccounts:shop"},
    ],
}
_PODS = {"verb": "list", "resource": "pods", "namespace": "default"}


@pytest.fixture(scope="module")
def daemon() -> VirtualDaemon:
    daemon = VirtualDaemon(VirtualCluster(seed=1), daemon_methods)
    daemon.call("objects.apply", manifests=[BINDING])
    return daemon


@pytest.mark.parametrize(
    ("request_", "allowed"),
    [
        pytest.param({**_PODS, "user": "bob"}, True, id="bound"),
        pytest.param({**_PODS, "user": "ann"}, False, id="not-bound"),
        pytest.param({**_PODS, "user": "bob", "verb": "delete"}, False, id="another-verb"),
        pytest.param({**_PODS, "user": "bob", "namespace": "kube-system"}, False, id="another-namespace"),
        pytest.param({**_PODS, "user": "system:serviceaccount:shop:web"}, True, id="groups-of-an-account"),
        pytest.param({**_PODS, "user": "ann", "groups": ["system:masters"]}, True, id="given-group"),
        pytest.param({"verb": "get", "path": "/healthz", "user": "ann"}, True, id="a-path-for-authenticated-users"),
        pytest.param({"verb": "delete", "resource": "nodes"}, True, id="the-caller-has-full-access"),
    ],
)
def test_roles_and_bindings_decide(daemon: VirtualDaemon, request_: dict[str, Any], allowed: bool) -> None:
    assert daemon.call("access.review", **request_)["allowed"] is allowed


def test_the_reason_names_the_binding(daemon: VirtualDaemon) -> None:
    reason = 'RBAC: allowed by RoleBinding "readers/default" of ClusterRole "view" to User "bob"'
    assert daemon.call("access.review", **_PODS, user="bob")["reason"] == reason
