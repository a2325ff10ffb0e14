"""Tests of NodeRestriction: permitted writes of a kubelet, and the messages for all others."""

from collections.abc import Callable
from typing import Any

import pytest

from kschedd.store.admission.chain import Admission
from kschedd.store.admission_plugins.attributes import UserInfo
from kschedd.store.errors import Forbidden
from kschedd.store.store import Store
from tests.store.manifests import Clock

N1 = UserInfo("system:node:n1", ("system:nodes", "system:authenticated"))
ADMIN = UserInfo("admin", ("system:masters",))
Do = Callable[[Store], Any]


def node(name: str = "n1", labels: dict[str, str] | None = None) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels or {}}}


def pod(name: str, on: str, *, owner: Any = None, **spec: Any) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "namespace": "default", "annotations": {"kubernetes.io/config.mirror": "x"}}
    if owner is not None:
        meta["ownerReferences"] = [owner]
    body = {"containers": [{"name": "c", "image": "x"}], "nodeName": on, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body}


def mirror(store: Store, **spec: Any) -> dict[str, Any]:
    uid = store.get("Node", "", "n1").uid
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid, "controller": True}
    return pod("mirror", "n1", owner=owner, **spec)


def lease(namespace: str, name: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace}
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}


def label(key: str) -> Do:
    return lambda store: store.merge_patch("Node", "", "n1", {"metadata": {"labels": {key: "x"}}})


SECRET = {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}
CLAIM = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "s"}}]}
MAP = {"containers": [{"name": "c", "image": "x", "envFrom": [{"configMapRef": {"name": "m"}}]}]}


@pytest.mark.parametrize(
    ("do", "refused"),
    [
        pytest.param(lambda s: s.create(node("n3")), 'is not allowed to modify node "n3"', id="another-node"),
        pytest.param(label("example.com/x"), "", id="any-label-of-others"),
        pytest.param(label("topology.kubernetes.io/zone"), "", id="kubelet-label"),
        pytest.param(label("x.node.kubernetes.io/a"), "", id="label-below-a-kubelet-domain"),
        pytest.param(label("foo.k8s.io/a"), "not allowed to modify labels: foo.k8s.io/a", id="k8s-label"),
        pytest.param(
            label("node-restriction.kubernetes.io/a"), "labels: node-restriction.kubernetes.io/a", id="restricted-label"
        ),
        pytest.param(
            lambda s: s.merge_patch("Node", "", "n1", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}),
            'node "n1" is not allowed to modify taints',
            id="taints",
        ),
        pytest.param(lambda s: s.create(mirror(s)), "", id="mirror-pod"),
        pytest.param(lambda s: s.create(pod("p", "n1")), "with an owner reference set to itself", id="unowned"),
        pytest.param(lambda s: s.create(mirror(s, **SECRET)), "reference secrets", id="secret"),
        pytest.param(lambda s: s.create(mirror(s, **CLAIM)), "reference persistentvolumeclaims", id="claim"),
        pytest.param(lambda s: s.create(mirror(s, **MAP)), "reference configmaps", id="config-map"),
        pytest.param(lambda s: s.delete("Pod", "default", "mine"), "", id="own-pod"),
        pytest.param(
            lambda s: s.delete("Pod", "default", "theirs"), "only delete pods with spec.nodeName", id="others-pod"
        ),
        pytest.param(lambda s: s.evict("default", "theirs"), "node n1 can only evict pods", id="eviction"),
        pytest.param(lambda s: s.bind("default", "loose", "n1"), 'unexpected pod subresource "binding"', id="binding"),
        pytest.param(
            lambda s: s.merge_patch("Pod", "default", "mine", {"metadata": {"labels": {"a": "b"}}}),
            "can only create and delete mirror pods",
            id="update-of-a-pod",
        ),
        pytest.param(lambda s: s.patch_status("Pod", "default", "mine", {"phase": "Running"}), "", id="own-status"),
        pytest.param(
            lambda s: s.patch_status("Pod", "default", "theirs", {"phase": "Running"}),
            "can only update pod status for pods with spec.nodeName set to itself",
            id="others-status",
        ),
        pytest.param(lambda s: s.create(lease("kube-node-lease", "n1")), "", id="own-lease"),
        pytest.param(lambda s: s.create(lease("kube-node-lease", "n2")), "with the same name", id="others-lease"),
        pytest.param(lambda s: s.create(lease("default", "n1")), '"kube-node-lease" system', id="lease-space"),
    ],
)
def test_a_kubelet(do: Do, refused: str) -> None:
    store = Store(now=Clock(), admission=Admission({"NodeRestriction": True}))
    store.create(node())
    store.create(node("n2"))
    for name, on in (("mine", "n1"), ("theirs", "n2"), ("loose", "")):
        made = pod(name, on)
        del made["metadata"]["annotations"]
        store.create(made)
    with store.on_behalf_of(N1):
        if not refused:
            do(store)
        else:
            with pytest.raises(Forbidden) as refusal:
                do(store)
            assert refused in str(refusal.value)
    with store.on_behalf_of(ADMIN):  # a user without restrictions
        if refused:
            do(store)


def test_it_is_off_by_default() -> None:
    store = Store(now=Clock())
    with store.on_behalf_of(N1):
        assert store.create(node("other")).name == "other"
