from typing import Any

import pytest

from kschedd.controllers.garbage import GarbageCollector
from kschedd.controllers.settle import Settling
from kschedd.store.store import Store
from tests.store.manifests import Clock, config_map, node, pod


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> Store:
    return Store(now=clock)


def owned(store: Store, name: str, *owners: str, blocking: bool = True) -> None:
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": store.get("ConfigMap", "default", owner).uid}
        | {"blockOwnerDeletion": blocking}
        for owner in owners
    ]
    raw: dict[str, Any] = config_map(name)
    raw["metadata"]["ownerReferences"] = references
    store.create(raw)


def names(store: Store) -> list[str]:
    return [obj.name for obj in store.list("ConfigMap")]


@pytest.fixture
def family(store: Store) -> Settling:
    cluster = Settling(store, [GarbageCollector()])
    store.create(config_map("grandmother"))
    owned(store, "mother", "grandmother")
    owned(store, "child", "mother")
    cluster.settle()
    return cluster


def test_what_belonged_to_the_deleted_goes_with_it(store: Store, family: Settling) -> None:
    store.delete("ConfigMap", "default", "grandmother")
    family.settle()
    assert names(store) == []


def test_another_owner_keeps_it(store: Store, family: Settling) -> None:
    store.create(config_map("aunt"))
    owned(store, "niece", "mother", "aunt")
    store.delete("ConfigMap", "default", "mother")
    family.settle()
    assert names(store) == ["aunt", "grandmother", "niece"]
    assert [r["name"] for r in store.get("ConfigMap", "default", "niece").metadata["ownerReferences"]] == ["aunt"]


def test_orphaned_dependents_stay_without_an_owner(store: Store, family: Settling) -> None:
    store.delete("ConfigMap", "default", "grandmother", propagation="Orphan")
    family.settle()
    assert names(store) == ["child", "mother"]
    assert "ownerReferences" not in store.get("ConfigMap", "default", "mother").metadata


def test_in_the_foreground_the_owner_goes_last(store: Store, family: Settling) -> None:
    held = store.merge_patch("ConfigMap", "default", "child", {"metadata": {"finalizers": ["example.com/hold"]}})
    store.delete("ConfigMap", "default", "grandmother", propagation="Foreground")
    family.settle()
    assert names(store) == ["child", "grandmother", "mother"]
    store.merge_patch("ConfigMap", "default", held.name, {"metadata": {"finalizers": None}})
    family.settle()
    assert names(store) == []


def test_an_object_whose_owner_was_never_there_is_left_alone(store: Store, family: Settling) -> None:
    raw = config_map("foundling")
    raw["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "gone"}]
    store.create(raw)
    family.settle()
    assert "foundling" in names(store)


def test_a_namespace_is_emptied_and_then_goes(store: Store) -> None:
    cluster = Settling(store, [GarbageCollector()])
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    store.create(config_map("settings", namespace="team"))
    store.create(pod(namespace="team"))
    store.bind("team", "web", "node-1")
    store.delete("Namespace", "", "team")
    cluster.settle()
    assert [obj.kind for obj in store.in_namespace("team")] == ["Pod"]
    store.delete("Pod", "team", "web", grace_period_s=0)
    cluster.settle()
    assert store.find("Namespace", "", "team") is None


def test_pods_of_a_node_that_is_gone_go_after_a_while(store: Store, clock: Clock) -> None:
    cluster = Settling(store, [GarbageCollector()])
    for name in ("node-1", "node-2"):
        store.create(node(name))
        store.create(pod(f"on-{name}"))
        store.bind("default", f"on-{name}", name)
        store.delete("Node", "", name)
    store.create(node("node-2"))
    cluster.settle()
    clock.now += 39
    cluster.settle()
    assert len(store.list("Pod")) == 2
    clock.now += 1
    cluster.settle()
    assert [p.name for p in store.list("Pod")] == ["on-node-2"]
