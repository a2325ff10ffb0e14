"""Tests of writes that depend on a version: the copy in the mirror may be older than the object in the cluster."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from kschedd.api.objects import Object
from kschedd.live.api_server import ApiServer
from kschedd.live.errors import LiveError
from kschedd.live.rate_limit import RateLimit
from kschedd.live.writer import RemoteWriter
from kschedd.store.errors import Conflict
from kschedd.store.writes import Update, patch_of, status_of
from tests.live.real_cluster import Real, real_cluster, scheduler_of
from tests.live.scripted_server import ServedRequest, nothing_happens, scripted
from tests.live.test_adverse_servers import kubeconfig
from tests.live.test_claims import resource_claim, storage_class, volume

Raw = dict[str, Any]
VOLUME = ("PersistentVolume", "", "disk")


@attrs.frozen(eq=False)
class Held:
    """Copies of objects."""

    objects: dict[tuple[str, str, str], Object]

    async def find(self, *key: str) -> Object | None:
        return self.objects.get(key)  # type: ignore[call-overload, no-any-return]


@asynccontextmanager
async def writing(folder: Path) -> AsyncIterator[tuple[Real, Held, RemoteWriter]]:
    """Run a real cluster with a volume and a claim; yield it with a mirror of both and a writer."""
    async with real_cluster() as real:
        for made in (storage_class("kubernetes.io/no-provisioner"), volume(), resource_claim("one")):
            await real.cluster.store.create(made)
        async with scheduler_of(folder, real.port) as scheduler:
            held = Held({})
            for kind, namespace, name in (VOLUME, ("ResourceClaim", "default", "one")):
                held.objects[kind, namespace, name] = await scheduler.cluster.store.get(kind, namespace, name)
            server: Any = scheduler.remote.server
            store: Any = held
            yield real, held, RemoteWriter(server, store, RateLimit(-1, 1))


def claimed(disk: Object) -> Raw:
    claim = {
        "kind": "PersistentVolumeClaim",
        "namespace": "default",
        "name": "data",
        "uid": "c",
        "resourceVersion": "3",
    }
    return {**disk.raw, "spec": {**disk.spec, "claimRef": claim}}


async def test_what_is_there_as_it_is_held_is_written(tmp_path: Path) -> None:
    async with writing(tmp_path) as (real, held, writer):
        await writer.write(Update(claimed(held.objects[VOLUME])), {})
        disk = await real.cluster.store.get(*VOLUME)
        assert disk.spec["claimRef"]["name"] == "data"
        assert "resourceVersion" not in disk.spec["claimRef"]


async def test_what_has_changed_there_is_a_conflict(tmp_path: Path) -> None:
    async with writing(tmp_path) as (real, held, writer):
        await real.cluster.store.patch(*VOLUME, {"metadata": {"labels": {"a": "b"}}})
        with pytest.raises(Conflict, match="the object has been modified"):
            await writer.write(Update(claimed(held.objects[VOLUME])), {})
        assert "claimRef" not in (await real.cluster.store.get(*VOLUME)).spec


async def test_what_has_changed_here_since_it_was_decided_is_a_conflict(tmp_path: Path) -> None:
    async with writing(tmp_path) as (_, held, writer):
        older = held.objects[VOLUME]
        held.objects[VOLUME] = older.at_version(older.resource_version + 1)
        with pytest.raises(Conflict):
            await writer.write(Update(claimed(older)), {})
        del held.objects[VOLUME]
        with pytest.raises(Conflict):
            await writer.write(Update(claimed(older)), {})


async def test_a_write_goes_on_from_what_one_before_it_made(tmp_path: Path) -> None:
    async with writing(tmp_path) as (real, held, writer):
        claim, written = held.objects["ResourceClaim", "default", "one"], {}
        await writer.write(patch_of(claim, {"metadata": {"finalizers": ["example.com/kept"]}}), written)
        results = [{"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}]
        await writer.write(status_of(claim, {"allocation": {"devices": {"results": results}}}, guarded=True), written)
        there = await real.cluster.store.get("ResourceClaim", "default", "one")
        assert there.status["allocation"]
        with pytest.raises(Conflict):
            await writer.write(status_of(claim, {"allocation": None}, guarded=True), {})


async def test_a_scheduler_that_may_not_see_what_it_decides_by_does_not_begin(tmp_path: Path) -> None:
    async def script(request: ServedRequest) -> None:
        if request.plural == "poddisruptionbudgets":
            await request.refuse(403, "poddisruptionbudgets is forbidden")
        else:
            await nothing_happens(request)

    why = "no permission to read poddisruptionbudgets, which a scheduler needs"
    async with scripted(script) as url:
        with pytest.RaisesGroup(pytest.RaisesExc(LiveError, match=why), flatten_subgroups=True, allow_unwrapped=True):
            async with scheduler_of(tmp_path, int(url.rpartition(":")[2])):
                pass


@pytest.mark.parametrize("body", [{}, {"metadata": [3]}, {"metadata": {"uid": [3]}}])
async def test_a_pod_without_a_uid_is_another_one(tmp_path: Path, body: Raw) -> None:
    async def script(request: ServedRequest) -> None:
        await request.answer(body)

    async with scripted(script) as url, await ApiServer.connect(str(kubeconfig(tmp_path, url))) as server:
        store: Any = Held({})
        assert await RemoteWriter(server, store, RateLimit(-1, 1)).uid_of("default", "a") == ""


async def test_an_answer_that_is_no_object_is_a_fault_of_the_server(tmp_path: Path) -> None:
    async def script(request: ServedRequest) -> None:
        await request.answer([3])

    async with scripted(script) as url, await ApiServer.connect(str(kubeconfig(tmp_path, url))) as server:
        store: Any = Held({})
        with pytest.raises(LiveError, match="unusable response to GET /api/v1/namespaces/default/pods/a"):
            await RemoteWriter(server, store, RateLimit(-1, 1)).uid_of("default", "a")
