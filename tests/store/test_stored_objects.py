"""Tests that the fast paths for pods in StoredObjects equal `commit`, and that undone writes have no effect."""

from typing import Any

import attrs
import pytest

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.store.binding import bound
from kschedd.store.deletion import marked, marked_pod
from kschedd.store.errors import NotFound
from kschedd.store.objects.log import ADDED, DELETED, MODIFIED, EventLog
from kschedd.store.objects.stored import StoredObjects, retyped, typed
from kschedd.values import run_steps
from tests.store.manifests import config_map, node, pod

AT = "2026-01-01T00:00:00Z"


def stored() -> StoredObjects:
    return StoredObjects(EventLog(), lambda old, new: None)


def new(raw: dict[str, Any], version: int, **meta: Any) -> Object:
    name = raw["metadata"]["name"]
    meta = {**raw["metadata"], "uid": f"uid-{name}", "resourceVersion": str(version), **meta}
    return typed(raw["kind"], {**raw, "metadata": meta})


def new_pod(name: str, version: int, **meta: Any) -> Pod:
    made = new(pod(name), version, **meta)
    assert isinstance(made, Pod)
    return made


def state(objects: StoredObjects) -> dict[str, Any]:
    """All that can be read."""
    return {
        "pods": dict(objects.space("Pod", "default")),
        "others": [*objects.in_namespace("default"), *objects.space("Node", "").values()],
        "counts": {kind: objects.count(kind) for kind in objects.kinds()},
        "on n": objects.pods_on("n"),
        "owned": objects.owned_by("uid-owner"),
        "uids": [objects.has_uid(f"uid-{name}") for name in ("a", "b", "c", "n", "owner")],
        "log": [(event.type, event.old, event.new, event.version) for event in objects.log.written_after(0)],
    }


@pytest.mark.parametrize("uids_are_known", [False, True])
def test_a_copy_and_a_binding_are_committed_as_anything_else_is(uids_are_known: bool) -> None:
    short, whole = stored(), stored()
    owner = [{"uid": "uid-owner"}]
    first, copy = new_pod("a", 1, ownerReferences=owner), new_pod("b", 2, ownerReferences=owner)
    on_node = bound(first, "n", 3, AT)
    for objects in (short, whole):
        assert not (uids_are_known and objects.has_uid("uid-a"))
        objects.commit(ADDED, None, first)
    short.commit_copy(copy, indexed=True)
    short.commit_binding(first, on_node)
    whole.commit(ADDED, None, copy)
    whole.commit(MODIFIED, first, on_node)
    assert state(short) == state(whole)
    assert (short.pods_on("n"), short.owned_by("uid-owner")) == ([on_node], [on_node, copy])


@pytest.mark.parametrize("uids_are_known", [False, True])
@pytest.mark.parametrize("assigned", [False, True])
def test_the_end_of_a_pod_is_committed_as_its_mark_and_its_deletion_are(uids_are_known: bool, assigned: bool) -> None:
    short, whole = stored(), stored()
    there = new_pod("a", 1, ownerReferences=[{"uid": "uid-owner"}], generation=1)
    if assigned:
        there = bound(there, "n", 1, AT)
    for objects in (short, whole):
        assert not (uids_are_known and objects.has_uid("uid-a"))
        objects.commit(ADDED, None, there)
    going = marked_pod(there, 1e9, 2)
    gone = going.at_version(3)
    short.commit_end(there, going, gone)
    whole.commit(MODIFIED, there, going)
    whole.commit(DELETED, going, gone)
    assert state(short) == state(whole)
    assert short.count("Pod") == 0


@pytest.mark.parametrize("assigned", [False, True])
def test_a_pod_is_marked_as_anything_else_is(assigned: bool) -> None:
    there = new_pod("a", 1, generation=1)
    if assigned:
        there = bound(there, "n", 1, AT)
    raw = marked(there, 1e9)
    going = retyped(there, {**raw, "metadata": {**raw["metadata"], "resourceVersion": "2"}})
    at_once = marked_pod(there, 1e9, 2)
    assert attrs.asdict(at_once, recurse=False) == attrs.asdict(going, recurse=False)
    assert (at_once.deleting, at_once.metadata["generation"]) == (True, 2)


def test_what_is_rolled_back_was_never_there() -> None:
    objects = stored()
    first, other = new_pod("a", 1), new(config_map("c"), 2)
    objects.commit(ADDED, None, first)
    objects.commit(ADDED, None, other)
    before = state(objects)
    objects.log.show(2)
    objects.commit(ADDED, None, new(node("n"), 3))
    objects.commit_binding(first, bound(first, "n", 4, AT))
    objects.commit(DELETED, other, other.at_version(5))
    assert state(objects) != before
    objects.roll_back(2)
    assert state(objects) == before


def test_an_object_at_fault_is_in_no_index() -> None:
    objects = stored()
    with pytest.raises(AttributeError):
        objects.place_whole(new_pod("a", 1, ownerReferences=["not a reference"]))
    assert state(objects) == state(stored()) | {"pods": {}}
    assert objects.find("Pod", "default", "a") is None


def test_a_copy_holds_the_same_objects_and_goes_its_own_way() -> None:
    objects, twin = stored(), stored()
    first = new_pod("a", 1)
    objects.commit(ADDED, None, first)
    run_steps(twin.copying(objects))
    assert twin.find("Pod", "default", "a") is first
    objects.commit_binding(first, bound(first, "n", 2, AT))
    assert (twin.find("Pod", "default", "a"), twin.pods_on("n")) == (first, [])


def test_a_copy_has_the_indexes() -> None:
    objects, twin = stored(), stored()
    first = new_pod("a", 1, ownerReferences=[{"uid": "uid-owner"}])
    objects.commit(ADDED, None, bound(first, "n", 1, AT))
    run_steps(twin.copying(objects))
    assert state(twin) == state(objects) | {"log": []}
    assert twin.pods_on("n") == twin.owned_by("uid-owner") != []


def test_spaces_are_those_of_the_namespace_that_is_asked_for() -> None:
    objects = stored()
    for number, namespace in enumerate(("b", "a"), 1):
        objects.commit(ADDED, None, new(config_map("c"), number, namespace=namespace))
    assert [list(space.values()) for space in objects.spaces("ConfigMap", "b")] == [objects.in_namespace("b")]
    assert [[obj.namespace for obj in space.values()] for space in objects.spaces("ConfigMap", None)] == [["a"], ["b"]]
    assert (objects.count("ConfigMap"), objects.count("Secret"), objects.spaces("Secret", None)) == (2, 0, [])


def test_only_what_is_loaded_is_an_event_of_something_loaded() -> None:
    objects = stored()
    objects.commit(ADDED, None, new(config_map("c"), 1))
    objects.commit(ADDED, None, new(config_map("d"), 2), loaded=True)
    assert [event.loaded for event in objects.log.written_after(0)] == [False, True]


def test_nothing_is_committed_while_writes_are_refused() -> None:
    objects = stored()
    first = new_pod("a", 1)
    objects.commit(ADDED, None, first)
    before, objects.refusal = state(objects), NotFound("Pod", "x")
    going = marked_pod(first, 1.0, 2)
    for write in (
        lambda: objects.commit(ADDED, None, new(config_map("c"), 2)),
        lambda: objects.commit_copy(new_pod("b", 2), indexed=False),
        lambda: objects.commit_binding(first, bound(first, "n", 2, AT)),
        lambda: objects.commit_end(first, going, going.at_version(3)),
    ):
        with pytest.raises(NotFound):
            write()
    assert state(objects) == before


def test_a_kind_of_another_group_keeps_its_name_in_the_store() -> None:
    raw = {"apiVersion": "example.com/v1", "kind": "Pod", "metadata": {"name": "a", "resourceVersion": "1"}}
    made = typed("Pod.example.com", raw)
    assert (made.kind, made.raw["kind"], made.name) == ("Pod.example.com", "Pod", "a")
    assert retyped(made, {**raw, "spec": {}}).kind == "Pod.example.com"


def test_changes_of_all_but_pods_are_told() -> None:
    reported: list[str] = []
    objects = StoredObjects(EventLog(), lambda old, new: reported.append((new or old).kind))  # type: ignore[union-attr]
    one = new(config_map("c"), 2)
    objects.commit(ADDED, None, new_pod("a", 1))
    objects.commit(ADDED, None, one)
    objects.commit(DELETED, one, one.at_version(3))
    objects.log.show(1)
    objects.roll_back(1)
    assert reported == ["ConfigMap"] * 4


def test_a_pod_is_found_by_its_node_from_its_first_write_and_by_the_owners_that_it_has_now() -> None:
    objects = stored()
    first = bound(new_pod("a", 1), "n", 1, AT)
    objects.commit(ADDED, None, first)
    assert objects.pods_on("n") == [first]
    owned = bound(new_pod("a", 2, ownerReferences=[{"uid": "uid-owner"}]), "n", 2, AT)
    objects.commit(MODIFIED, first, owned)
    assert (objects.pods_on("n"), objects.owned_by("uid-owner")) == ([owned], [owned])
    free = bound(new_pod("a", 3), "n", 3, AT)
    objects.commit(MODIFIED, owned, free)
    assert (objects.pods_on("n"), objects.owned_by("uid-owner")) == ([free], [])
