"""Tests that `concerns` returns False only for events after which a controller would not write."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.controllers.embedded import embedded_controllers
from kschedd.controllers.running.turns import is_concerned
from kschedd.store.objects.log import WatchEvent
from kschedd.store.store import Store

Change = Callable[[Store], Any]


def pod(name: str, **more: Any) -> dict[str, Any]:
    meta = {"name": name, "labels": {"app": "a"}, **more.pop("metadata", {})}
    spec = {"containers": [{"name": "c", "image": "i"}], **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def owned(kind: str) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "w", "uid": "u", "controller": True}
    return {"metadata": {"ownerReferences": [owner]}}


def created(raw: dict[str, Any]) -> tuple[dict[str, Any], Change | None]:
    return raw, None


def then(raw: dict[str, Any], change: Change) -> tuple[dict[str, Any], Change | None]:
    return raw, change


def bound(store: Store) -> Object:
    return store.bind("default", "p", "n1")


def running(store: Store) -> Object:
    return store.merge_patch("Pod", "default", "p", {"status": {"phase": "Running"}}, subresource="status")


def failed(store: Store) -> Object:
    return store.merge_patch("Pod", "default", "p", {"status": {"phase": "Failed"}}, subresource="status")


def relabelled(store: Store) -> Object:
    return store.merge_patch("Pod", "default", "p", {"metadata": {"labels": {"app": "b"}}})


def deleted(store: Store) -> Object:
    return store.delete("Pod", "default", "p", grace_period_s=0)


_SCRATCH = {
    "volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}
}
_WORKLOADS = {"daemonsets", "statefulsets", "replicasets"}


@pytest.mark.parametrize(
    ("case", "woken"),
    [
        pytest.param(created(pod("p")), _WORKLOADS, id="a-pod-that-nobody-has-may-be-adopted"),
        pytest.param(then(pod("p"), bound), set(), id="its-binding"),
        pytest.param(then(pod("p"), running), set(), id="its-running"),
        pytest.param(then(pod("p"), failed), {"deployments"}, id="its-failing"),
        pytest.param(then(pod("p"), relabelled), _WORKLOADS, id="its-new-labels"),
        pytest.param(
            then(pod("p"), deleted),
            _WORKLOADS | {"garbage", "deployments", "storage-protection"},
            id="its-end",
        ),
        pytest.param(
            then(pod("p", **owned("ReplicaSet")), running), {"replicasets"}, id="the-running-of-one-with-an-owner"
        ),
        pytest.param(
            created(pod("p", volumes=[{"name": "v", "ephemeral": _SCRATCH}])),
            _WORKLOADS | {"ephemeral-volumes"},
            id="a-pod-with-a-volume-to-be-made",
        ),
        pytest.param(
            created(pod("p", resourceClaims=[{"name": "r", "resourceClaimName": "c"}])),
            _WORKLOADS | {"resource-claims"},
            id="a-pod-with-a-claim",
        ),
    ],
)
def test_a_controller_is_woken_for_what_may_concern_it(
    case: tuple[dict[str, Any], Change | None], woken: Sequence[str]
) -> None:
    raw, change = case
    store = Store()
    store.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    store.create(raw)
    if change is not None:
        change(store)
    event: WatchEvent = store.written_after(store.version - 1)[0]
    looked_at = {"garbage", "deployments", "storage-protection", "ephemeral-volumes", "resource-claims", *_WORKLOADS}
    controllers = [each for each in embedded_controllers() if each.name in looked_at]
    assert {each.name for each in controllers} == looked_at
    assert {each.name for each in controllers if is_concerned(each, event)} == set(woken)
    for each in controllers:
        if not is_concerned(each, event):
            assert each.reconcile([event], store, store.now) == []
