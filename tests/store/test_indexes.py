"""Tests that the indexes of pods by node and of dependents by owner match the stored objects after any writes."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.store.objects.indexes import Indexes
from kschedd.store.objects.stored import typed
from kschedd.values import run_steps
from tests.store.manifests import config_map, pod

NODES, OWNERS = ("", "n1", "n2"), ("u1", "u2", "")


def made(name: str, on: str | None, owners: tuple[str, ...] | None) -> Object:
    """Return a pod on that node, or a ConfigMap if `on` is None; the owner "" is a reference without a uid."""
    raw = config_map(name) if on is None else pod(name)
    meta = dict(raw["metadata"])
    if owners is not None:
        meta["ownerReferences"] = [{"uid": uid} if uid else {} for uid in owners]
    spec: dict[str, Any] = {} if on is None else {"spec": {**raw["spec"], **({"nodeName": on} if on else {})}}
    return typed(raw["kind"], {**raw, **spec, "metadata": meta})


def indexes_of(objects: list[Object]) -> Indexes:
    indexes = Indexes()
    for each in objects:
        indexes.move(None, each)
    return indexes


def contents(indexes: Indexes) -> Any:
    """Return all entries of the indexes, including those that a deleted object left."""
    return (
        {node: set(keys) for node, keys in indexes._on_node.items()},
        {uid: set(keys) for uid, keys in indexes._dependents.items()},
    )


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.none() | st.sampled_from(NODES),
            st.none() | st.lists(st.sampled_from(OWNERS), max_size=3).map(tuple),
            st.booleans(),
        ),
        max_size=12,
    )
)
def test_they_are_those_of_the_objects_that_are_there(
    writes: list[tuple[str, str | None, tuple[str, ...] | None, bool]],
) -> None:
    indexes, there = Indexes(), dict[tuple[str, str], Object]()
    for name, on, owners, stays in writes:
        new = made(name, on, owners)
        old = there.pop((new.kind, name), None)
        if stays:
            there[new.kind, name] = new
            indexes.move(old, new)
        elif old is not None:
            indexes.move(old, None)
        assert contents(indexes) == contents(indexes_of([*there.values()]))
        assert contents(run_steps(indexes.copying())) == contents(indexes)


def test_a_pod_that_got_a_node_is_on_it() -> None:
    waiting, bound = made("a", "", None), made("a", "n1", None)
    assert isinstance(bound, Pod)
    indexes = indexes_of([waiting, made("b", "n1", None)])
    indexes.got_node(bound)
    assert list(indexes.on_node("n1")) == [("default", "b"), ("default", "a")]
    alone = indexes_of([waiting])
    alone.got_node(bound)
    assert list(alone.on_node("n1")) == [("default", "a")]
    assert list(alone.on_node("n2")) == []


def test_a_copy_of_many_entries_is_made_in_steps() -> None:
    indexes = indexes_of([made(f"p{number}", f"n{number}", (f"u{number}",)) for number in range(1001)])
    assert sum(1 for _ in indexes.copying()) == 6, "of each index the first, the 501st and the 1001st entry"


def test_dependents_are_found_by_the_uid_of_their_owner() -> None:
    indexes = indexes_of([made("a", None, ("u1", "u2")), made("b", "", ("u1", ""))])
    assert list(indexes.dependents("u1")) == [("ConfigMap", "default", "a"), ("Pod", "default", "b")]
    assert list(indexes.dependents("")) == [("Pod", "default", "b")]
    assert list(indexes.dependents("u3")) == []
