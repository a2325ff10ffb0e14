from typing import Any

import pytest

from kschedd.controllers.garbage import GarbageCollector
from kschedd.controllers.runner import ControllerRunner
from kschedd.store.store import Store
from tests.store.manifests import Clock, config_map, pod


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
def family(store: Store) -> ControllerRunner:
    cluster = ControllerRunner(store, [GarbageCollector()])
    store.create(config_map("grandmother"))
    owned(store, "mother", "grandmother")
    owned(store, "child", "mother")
    cluster.run_until_idle()
    return cluster


def test_what_belonged_to_the_deleted_goes_with_it(store: Store, family: ControllerRunner) -> None:
    store.delete("ConfigMap", "default", "grandmother")
    family.run_until_idle()
    assert names(store) == []


def test_another_owner_keeps_it(store: Store, family: ControllerRunner) -> None:
    store.create(config_map("aunt"))
    owned(store, "niece", "mother", "aunt")
    store.delete("ConfigMap", "default", "mother")
    family.run_until_idle()
    assert names(store) == ["aunt", "grandmother", "niece"]
    assert [r["name"] for r in store.get("ConfigMap", "default", "niece").metadata["ownerReferences"]] == ["aunt"]


def test_orphaned_dependents_stay_without_an_owner(store: Store, family: ControllerRunner) -> None:
    store.delete("ConfigMap", "default", "grandmother", propagation="Orphan")
    family.run_until_idle()
    assert names(store) == ["child", "mother"]
    assert "ownerReferences" not in store.get("ConfigMap", "default", "mother").metadata


def test_in_the_foreground_the_owner_goes_last(store: Store, family: ControllerRunner) -> None:
    held = store.merge_patch("ConfigMap", "default", "child", {"metadata": {"finalizers": ["example.com/hold"]}})
    store.delete("ConfigMap", "default", "grandmother", propagation="Foreground")
    family.run_until_idle()
    assert names(store) == ["child", "grandmother", "mother"]
    store.merge_patch("ConfigMap", "default", held.name, {"metadata": {"finalizers": None}})
    family.run_until_idle()
    assert names(store) == []


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("together", [False, True])
def test_objects_that_own_each_other_go(store: Store, propagation: Any, size: int, together: bool) -> None:
    cluster = ControllerRunner(store, [GarbageCollector()])
    members = [f"m{number}" for number in range(size)]
    for name in members:
        store.create(config_map(name))
    for name, owner in zip(members, [*members[1:], members[0]], strict=True):
        uid = store.get("ConfigMap", "default", owner).uid
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid, "blockOwnerDeletion": True}
        store.merge_patch("ConfigMap", "default", name, {"metadata": {"ownerReferences": [reference]}})
    cluster.run_until_idle()
    for name in members if together else members[:1]:
        store.delete("ConfigMap", "default", name, propagation=propagation)
    cluster.run_until_idle()
    assert names(store) == []


def test_in_the_foreground_what_has_another_owner_stays(store: Store, family: ControllerRunner) -> None:
    store.create(config_map("aunt"))
    owned(store, "niece", "mother", "aunt")
    store.delete("ConfigMap", "default", "mother", propagation="Foreground")
    family.run_until_idle()
    assert names(store) == ["aunt", "grandmother", "niece"]
    assert [r["name"] for r in store.get("ConfigMap", "default", "niece").metadata["ownerReferences"]] == ["aunt"]


def test_an_object_whose_owner_was_never_there_is_left_alone(store: Store, family: ControllerRunner) -> None:
    raw = config_map("foundling")
    raw["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "gone"}]
    store.create(raw)
    family.run_until_idle()
    assert "foundling" in names(store)


def test_a_namespace_is_emptied_and_then_goes(store: Store) -> None:
    cluster = ControllerRunner(store, [GarbageCollector()])
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    store.create(config_map("settings", namespace="team"))
    store.create(pod(namespace="team"))
    store.bind("team", "web", "node-1")
    store.delete("Namespace", "", "team")
    cluster.run_until_idle()
    assert [obj.kind for obj in store.in_namespace("team")] == ["Pod"]
    store.delete("Pod", "team", "web", grace_period_s=0)
    cluster.run_until_idle()
    assert store.find("Namespace", "", "team") is None
