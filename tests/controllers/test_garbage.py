from typing import Any

import pytest

from kschedd.controllers.garbage import GarbageCollector
from kschedd.controllers.runner import ControllerRunner
from kschedd.store.store import Store
from kschedd.values import run_steps
from tests.store.definitions import definition
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


_ABSENT = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "gone"}


def foundling(*references: dict[str, Any], **meta: Any) -> dict[str, Any]:
    raw = config_map("foundling")
    raw["metadata"] |= {"ownerReferences": list(references)} | meta
    return raw


def test_an_object_whose_owner_never_existed_is_deleted(store: Store, family: ControllerRunner) -> None:
    store.create(foundling(_ABSENT))
    family.run_until_idle()
    assert "foundling" not in names(store)


@pytest.mark.parametrize("field", ["name", "uid"])
def test_an_owner_is_absent_unless_name_and_uid_are_its_own(store: Store, family: ControllerRunner, field: str) -> None:
    uid = store.get("ConfigMap", "default", "mother").uid
    mother = {"apiVersion": "v1", "kind": "ConfigMap", "name": "mother", "uid": uid}
    store.create(foundling(mother))
    family.run_until_idle()
    assert "foundling" in names(store)
    store.create(foundling(mother | {field: "other"}, name="stray"))
    family.run_until_idle()
    assert "stray" not in names(store)


def test_an_absent_owner_is_removed_from_an_object_that_has_another(store: Store, family: ControllerRunner) -> None:
    uid = store.get("ConfigMap", "default", "mother").uid
    store.create(foundling(_ABSENT, {"apiVersion": "v1", "kind": "ConfigMap", "name": "mother", "uid": uid}))
    family.run_until_idle()
    assert [r["name"] for r in store.get("ConfigMap", "default", "foundling").metadata["ownerReferences"]] == ["mother"]


def test_an_object_that_gets_an_absent_owner_later_is_deleted(store: Store, family: ControllerRunner) -> None:
    store.create(foundling())
    family.run_until_idle()
    store.merge_patch("ConfigMap", "default", "foundling", {"metadata": {"ownerReferences": [_ABSENT]}})
    family.run_until_idle()
    assert "foundling" not in names(store)


def test_an_object_created_after_its_owner_was_deleted_is_deleted(store: Store, family: ControllerRunner) -> None:
    uid = store.get("ConfigMap", "default", "child").uid
    store.delete("ConfigMap", "default", "child")
    family.run_until_idle()
    store.create(foundling({"apiVersion": "v1", "kind": "ConfigMap", "name": "child", "uid": uid}))
    family.run_until_idle()
    assert "foundling" not in names(store)


@pytest.mark.parametrize(
    "reference",
    [
        pytest.param({"apiVersion": "example.com/v1", "kind": "Thing"}, id="a-kind-that-nobody-defined"),
        pytest.param({"apiVersion": "v2", "kind": "ConfigMap"}, id="a-version-that-is-not-served"),
    ],
)
def test_an_owner_of_a_kind_that_is_not_served_may_exist(
    store: Store, family: ControllerRunner, reference: dict[str, Any]
) -> None:
    store.create(foundling(_ABSENT | reference))
    family.run_until_idle()
    assert "foundling" in names(store)


def test_a_cluster_scoped_object_with_a_namespaced_owner_stays(store: Store, family: ControllerRunner) -> None:
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "ownerReferences": [_ABSENT]}})
    family.run_until_idle()
    assert not store.get("Namespace", "", "team").deleting


def test_an_owner_may_be_of_a_defined_kind_without_namespaces(store: Store, family: ControllerRunner) -> None:
    store.create(definition("Gadget", scope="Cluster"))
    family.run_until_idle()
    made = store.create({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}})
    reference = {"apiVersion": "example.com/v1", "kind": "Gadget", "name": "g", "uid": made.uid}
    store.create(foundling(reference))
    store.create(foundling(reference | {"uid": "gone"}, name="stray"))
    family.run_until_idle()
    assert "foundling" in names(store)
    assert "stray" not in names(store)


def test_an_object_of_a_dump_keeps_an_owner_that_is_missing(store: Store, family: ControllerRunner) -> None:
    store.create(foundling(_ABSENT, uid="u-1"), restore=True)
    taken = store.fork()
    run_steps(store.take_in([taken.create(foundling(_ABSENT, name="taken", uid="u-2"), restore=True)]))
    family.run_until_idle()
    assert {"foundling", "taken"} <= set(names(store))


def test_an_object_of_a_dump_that_was_applied_on_a_fork_keeps_its_owner(store: Store, family: ControllerRunner) -> None:
    fork = store.fork()
    since = fork.version
    fork.create(foundling(_ABSENT, uid="u-1"), restore=True)
    fork.create(foundling(_ABSENT, name="stray"))
    run_steps(store.adopt(fork.changes_since(since)))
    family.run_until_idle()
    assert "foundling" in names(store)
    assert "stray" not in names(store)


def test_what_was_there_before_the_collector_keeps_an_owner_that_is_missing(store: Store) -> None:
    store.create(foundling(_ABSENT))
    ControllerRunner(store, [GarbageCollector()]).run_until_idle()
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
