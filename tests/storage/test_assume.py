"""Tests that assumptions about volumes and claims hold until they are reverted or the cluster has a newer object."""

from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.storage.assume import AssumeCache, VolumeCache
from kschedd.storage.volumes import StorageError


def volume(version: int, name: str = "v", storage_class: str = "c", **spec: Any) -> Object:
    meta = {"name": name, "resourceVersion": str(version)}
    spec = {"storageClassName": storage_class, "capacity": {"storage": "1Gi"}, **spec}
    return Object.from_raw({"kind": "PersistentVolume", "metadata": meta, "spec": spec})


@pytest.fixture
def known() -> dict[str, Object]:
    return {"v": volume(5)}


@pytest.fixture
def cache(known: dict[str, Object]) -> VolumeCache:
    return VolumeCache("PersistentVolume", lambda: known)


def test_assumed_version_holds_until_it_is_taken_back(known: dict[str, Object], cache: VolumeCache) -> None:
    assumed = volume(5, claimRef={"name": "data"})
    cache.assume(assumed)
    assert cache.get("v") is assumed
    assert cache.actual("v") is known["v"]
    cache.restore("v")
    assert cache.get("v") is known["v"]


def test_newer_version_ends_the_assumption(known: dict[str, Object], cache: VolumeCache) -> None:
    cache.assume(volume(5, claimRef={"name": "data"}))
    known["v"] = newer = volume(6)
    assert cache.get("v") is newer
    cache.restore("v")
    assert cache.get("v") is newer


def test_same_version_delivered_again_does_not(known: dict[str, Object], cache: VolumeCache) -> None:
    assumed = volume(5, claimRef={"name": "data"})
    cache.assume(assumed)
    known["v"] = volume(5)
    assert cache.get("v") is assumed


def test_deletion_ends_the_assumption(known: dict[str, Object], cache: VolumeCache) -> None:
    cache.assume(volume(5))
    del known["v"]
    assert cache.get("v") is None


def test_what_is_unknown_or_out_of_date_cannot_be_assumed(cache: AssumeCache) -> None:
    with pytest.raises(StorageError, match=r'could not find v1\.PersistentVolume "w"'):
        cache.assume(volume(5, "w"))
    with pytest.raises(StorageError, match=r"out of sync \(stored: 5, assume: 4\)"):
        cache.assume(volume(4))


def test_volumes_by_class_follow_the_cluster_and_what_is_assumed(known: dict[str, Object], cache: VolumeCache) -> None:
    known["w"] = volume(6, "w", "d")
    assert [found.name for found in cache.of_class("c")] == ["v"]
    cache.assume(volume(5, claimRef={"namespace": "ns", "name": "data"}))
    assert cache.of_class("c")[0].claim_ref is not None
    cache.restore("v")
    assert cache.of_class("c")[0].claim_ref is None
    known["v"] = volume(7, storage_class="d")
    assert [found.name for found in cache.of_class("d")] == ["w", "v"]
    assert cache.of_class("c") == []
    del known["w"]
    assert [found.name for found in cache.of_class("d")] == ["v"]
