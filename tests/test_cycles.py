"""Tests that requests form no reference cycles, which only a garbage collection would free."""

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from kschedd.actors.mailbox import OwnerQuery, Reply
from kschedd.service.objects.applying import Applier, Wanted
from kschedd.store.cluster_api import perform_each
from kschedd.store.errors import ApiError
from kschedd.store.store import Store
from kschedd.store.writes import Create
from tests.actors.clusters import node, pod


@pytest.fixture(autouse=True)
def _uncollected() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


async def test_the_refusal_of_a_query_is_freed_when_its_asker_is_done_with_it() -> None:
    store = Store(now=lambda: 0.0)

    async def ask() -> "weakref.ref[ApiError]":
        reply: Reply[Any] = Reply()
        OwnerQuery(lambda owned: owned.get("Node", "", "none"), reply).evaluate(store)
        reply.publish()
        try:
            await reply.value()
        except ApiError as refused:  # instead of pytest.raises, which would keep the exception
            return weakref.ref(refused)
        raise AssertionError("there is no such node")

    refusal = await ask()
    assert refusal() is None


def test_the_refusal_of_one_of_several_writes_is_freed() -> None:
    _, refused = perform_each(Store(now=lambda: 0.0), [Create(node("n1")), Create(node("n1"))])
    assert isinstance(refused, ApiError)
    refusal = weakref.ref(refused)
    del refused
    assert refusal() is None


def test_the_refusal_of_a_manifest_is_freed() -> None:
    broken = {**node("n2"), "kind": "Pod", "spec": {"nonsense": 1}}
    outcome = Applier().each([Wanted(broken, "here")], Store(now=lambda: 0.0))
    refusal = weakref.ref(outcome.refused[0][1])
    del outcome
    assert refusal() is None


def test_what_was_admitted_with_node_affinity_is_freed_with_what_was_without() -> None:
    store = Store(now=lambda: 0.0)
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    manifest = pod("a")
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    manifest["spec"]["affinity"] = {"nodeAffinity": required}
    store.create(manifest)
    strategy = store._pod_strategy
    kept = [
        weakref.ref(value)
        for cache in (strategy.remembered, strategy.remembered_with_node_affinity)
        for value in values(cache)
    ]
    assert (len(kept), store.admitted_used, store.node_affinities_used) == (2, (1, 1), (1, 1))
    strategy.forget()
    assert [ref() for ref in kept] == [None, None]


def values(cache: Any) -> list[Any]:
    return [*cache._younger.values(), *cache._older.values()]


def test_no_more_node_affinities_are_kept_than_may_be() -> None:
    store = Store(now=lambda: 0.0)
    store.keep_admitted(8, 4)
    for number in range(20):
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"n{number}"]}]}
        manifest = pod(f"p{number}")
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        manifest["spec"]["affinity"] = {"nodeAffinity": required}
        store.create(manifest)
    assert (store.admitted_used, store.node_affinities_used) == ((1, 1), (4, 4))
