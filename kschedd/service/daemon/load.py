"""The method cluster.load, which loads a dump of a cluster unchanged into this cluster."""

from collections.abc import Generator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import attrs

from kschedd.api.objects import Object
from kschedd.api.schemas.weight import is_large
from kschedd.api.simulation.standard_class import STANDARD_CLASS, is_standard_class
from kschedd.api.text.times import stamp
from kschedd.config.changing.changes import with_schedulers
from kschedd.dumps.applying import in_order
from kschedd.dumps.loading import LoadOptions, Prepared, apply_manifests, kind_counts, read_dump, taken
from kschedd.scheduling.inputs import ChangeConfig
from kschedd.service.cluster import ClusterBackend
from kschedd.service.daemon.answers import LoadedAnswer
from kschedd.service.errors import RpcError
from kschedd.service.execution import Executor
from kschedd.service.params import Param
from kschedd.service.table import Call, Methods, method
from kschedd.service.workers import GivenUp
from kschedd.storage.claims import class_of
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.journal.state_dir import note_dump
from kschedd.values import in_parts, run_steps

_COMPLETED = ("Namespace", "PriorityClass", "Node", "PersistentVolume", "PersistentVolumeClaim")
_AT_ONCE = 32  # number of manifests applied in one request to the store (3 ms each for existing pods)
_FREED = 64  # objects freed at once
_OWNERS = ("ReplicaSet", "StatefulSet", "Deployment")


@attrs.frozen(eq=False)
class LoadMethods(Methods):
    _cluster: ClusterBackend

    @method(
        "cluster.load",
        (
            Param("paths", "string[]", doc="absolute paths of files and folders on the daemon's host"),
            Param("keep_secrets", "boolean", False, False, doc="include the data of Secrets and ConfigMaps"),
            Param("complete", "boolean", False, True, doc="create objects that are referenced but missing"),
            Param("schedulers", "map", False, doc="map from schedulerName to the profile that schedules these pods"),
        ),
        outside=True,
        doc="Loads a dump: objects keep UID, status, times and owners, bound pods stay on their nodes, and no object "
        "passes admission again. All objects become visible at the same time. Objects without a UID are applied as "
        "manifests afterwards.",
        answer=LoadedAnswer,
    )
    async def load(self, call: Call) -> Any:
        for path in call["paths"]:
            if not Path(path).is_absolute():
                raise RpcError(
                    "invalid",
                    f"{path}: not an absolute path, which is required because the daemon has its own working directory",
                )
        schedulers = _schedulers(call["schedulers"])
        config = await self._cluster.scheduler.query(lambda owner: with_schedulers(owner.machine.config, schedulers))
        options = LoadOptions(call["keep_secrets"], call["complete"], config.scheduler_names)
        there, now = await self._cluster.store.do(lambda store: (_present(store), store.now))

        def read(given_up: GivenUp) -> Prepared:
            return read_dump(call["paths"], options, is_there=there.__contains__, now=now, check=given_up.check)

        prepared = await call.services.workers.run(call.client, read)
        if prepared.taken_at is not None and self._cluster.time.move_to(prepared.taken_at):
            prepared.assumptions.note(f"the cluster's time moved to {stamp(prepared.taken_at)}, the latest in the dump")
        if schedulers:
            what = ", ".join(f"scheduler {name} as {profile}" for name, profile in schedulers.items())
            await self._cluster.scheduler.query(
                lambda owner: owner.step(ChangeConfig(with_schedulers(owner.machine.config, schedulers), what), now)
            )
        in_the_way = await self._cluster.store.do_in_steps(partial(_taking_in, prepared))
        if prepared.objects and self._cluster.journal is not None:
            note_dump(self._cluster.journal.parent)
        refused = await self._apply(call, prepared)
        outcome = taken(prepared, in_the_way, refused)
        result = LoadedAnswer(
            kind_counts(prepared.objects),
            outcome.applied,
            [f"{obj.kind} {obj.key}" for obj in in_the_way],
            outcome.errors,
            prepared.assumptions.texts(),
        )
        await call.services.workers.run(call.client, partial(_free, prepared))
        return result

    async def _apply(self, call: Call, prepared: Prepared) -> list[str]:
        """Apply the manifests, a few per request, so that other requests can run in between; return the rejections."""
        executor = Executor.of(self._cluster, call)
        refused: list[str] = []
        for some in in_parts(in_order(prepared.manifests), _AT_ONCE):
            for large, part in groupby(some, lambda found: is_large(found.raw)):
                if large:
                    for found in part:
                        refused += await executor.aside(
                            lambda fork, _, found=found: run_steps(  # type: ignore[misc]
                                apply_manifests(fork, (found,), prepared.assumptions)
                            ),
                        )
                else:
                    applying = partial(apply_manifests, manifests=list(part), assumptions=prepared.assumptions)
                    refused += await self._cluster.store.do_in_steps(applying)
        return refused


def _taking_in(prepared: Prepared, store: ClusterWriter) -> Generator[None, None, list[Object]]:
    """Store the objects of a dump, and delete the default StorageClass unless a claim uses it."""
    if prepared.objects:
        store.become_copy()
    standard = store.find("StorageClass", "", STANDARD_CLASS["metadata"]["name"])
    if prepared.objects and standard is not None and is_standard_class(standard.raw):
        if not any(class_of(claim) == standard.name for claim in store.list("PersistentVolumeClaim")):
            store.delete("StorageClass", "", standard.name)
    return (yield from store.take_in(prepared.objects))


def _free(prepared: Prepared, given_up: GivenUp) -> None:
    """Free the objects in steps, because freeing tens of thousands of objects together would block all threads."""
    for values in (prepared.manifests, prepared.objects):
        while values:
            del values[-_FREED:]


def _schedulers(given: Any) -> dict[str, str]:
    if given is None:
        return {}
    if not all(isinstance(key, str) and isinstance(value, str) for key, value in given.items()):
        raise RpcError("invalid", "schedulers: must be a map of names to names")
    return dict(given)


def _present(store: Any) -> frozenset[tuple[str, str, str]]:
    """Return the objects of the cluster to which objects of a dump may refer."""
    return frozenset(
        (obj.kind, obj.namespace, obj.name)
        for kind in (*_COMPLETED, *_OWNERS)
        for space in store.present(kind)
        for obj in space
    )
