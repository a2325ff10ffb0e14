"""Tests that an admission result is cached while it is used, and dropped if it was used only once."""

import gc
import weakref

import pytest

from kschedd.api.pods import Pod, PodSpec
from kschedd.store.admission.cache import AdmissionCache
from kschedd.store.store import Store
from tests.actors.clusters import pod


def _key(number: int) -> bytes:
    return number.to_bytes(2)


@pytest.mark.parametrize("most", [2, 3, 4, 9, 64])
def test_no_more_are_kept_than_it_may_and_at_least_half_of_that(most: int) -> None:
    cache: AdmissionCache[int] = AdmissionCache(most)
    for number in range(200):
        cache.add(_key(number), number)
        assert len(cache) <= most
    assert [cache.get(_key(number)) for number in range(200 - most // 2, 200)] == list(range(200 - most // 2, 200))
    assert cache.get(_key(0)) is None
    assert most - 1 <= cache.most_kept <= most


def test_what_is_used_stays() -> None:
    cache: AdmissionCache[str] = AdmissionCache(4)
    cache.add(b"used", "yes")
    for number in range(100):
        cache.add(_key(number), "once")
        assert cache.get(b"used") == "yes"


def test_a_lower_bound_is_kept_to_as_more_come() -> None:
    cache: AdmissionCache[int] = AdmissionCache(64)
    for number in range(64):
        cache.add(_key(number), number)
    cache.most = 4
    for number in range(64, 70):
        cache.add(_key(number), number)
    assert len(cache) <= 4


def test_nothing_is_left_once_it_is_cleared() -> None:
    cache: AdmissionCache[int] = AdmissionCache(4)
    for number in range(4):
        cache.add(_key(number), number)
    cache.clear()
    assert len(cache) == 0
    assert [cache.get(_key(number)) for number in range(4)] == [None] * 4


def test_specs_of_pods_that_are_gone_go_though_each_pod_had_its_own() -> None:
    store = Store(now=lambda: 0.0)
    store.log.keep(10)  # the log then holds the pods of at most 20 changes
    store.keep_admitted(8)
    specs: list[weakref.ref[PodSpec]] = []
    for number in range(200):
        manifest = pod(f"p{number}")
        manifest["spec"]["nodeSelector"] = {f"only-{number}": "x"}
        made = store.create(manifest)
        assert isinstance(made, Pod)
        specs.append(weakref.ref(made.signature.spec))
        store.delete("Pod", "default", f"p{number}")
    del made
    gc.collect()
    assert sum(spec() is not None for spec in specs) <= 8 + 20
    assert store.admitted_used == (8, 8)


def test_a_fork_keeps_to_the_bound_of_what_it_was_made_of() -> None:
    store = Store(now=lambda: 0.0)
    store.keep_admitted(4)
    twin = store.fork()
    for number in range(20):
        manifest = pod(f"p{number}")
        manifest["metadata"]["labels"] = {"run": f"r{number}"}
        twin.create(manifest)
    assert twin.admitted_used == (4, 4)
