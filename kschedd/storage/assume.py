"""Assume caches for claims and volumes: the objects that the scheduler writes, before the API server confirms them.

`get` returns the assumed object, otherwise the object in the scheduler cache. An assumption ends when it is restored,
when the object is deleted, or when a newer version arrives, because the API server's version always wins. Volumes are
also indexed by StorageClass. All instances of VolumeBinding share the caches, so that each instance uses the
assumptions of all instances. The caches read the scheduler cache and never change it.
Source: Kubernetes v1.34, scheduler/util/assumecache/assume_cache.go, volumebinding/assume_cache.go.
"""

from collections.abc import Callable, Mapping

import attrs

from kschedd.api.objects import Object
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.storage.volumes import StorageError, Volume

CLAIM, VOLUME = "PersistentVolumeClaim", "PersistentVolume"
Objects = Callable[[], Mapping[str, Object]]


@attrs.define(eq=False)
class _Assumption:
    known: Object  # version in the scheduler cache at the time of the assumption
    assumed: Object


@attrs.define(eq=False)
class AssumeCache:
    """The objects of one kind by key. `objects` returns the current objects of the scheduler cache."""

    kind: str
    objects: Objects
    _assumptions: dict[str, _Assumption] = attrs.field(factory=dict)

    def actual(self, key: str) -> Object | None:
        """Return the version in the scheduler cache, ignoring assumptions."""
        return self.objects().get(key)

    def get(self, key: str) -> Object | None:
        known = self.objects().get(key)
        assumption = self._assumptions.get(key)
        if assumption is None:
            return known
        if known is assumption.known:
            return assumption.assumed
        if known is not None and 0 < known.resource_version <= assumption.assumed.resource_version:
            assumption.known = known  # the event is not newer than the assumption
            return assumption.assumed
        del self._assumptions[key]
        return known

    def assume_as(self, other: "AssumeCache") -> None:
        """Copy the assumptions of `other`, whose cluster contains the same objects."""
        for key, kept in other._assumptions.items():
            self._assumptions[key] = _Assumption(kept.known, kept.assumed)

    def assumed_keys(self) -> list[str]:
        """Return the keys that have an assumption, even if it equals the version in the scheduler cache."""
        return list(self._assumptions)

    def assume(self, obj: Object) -> None:
        """Assume `obj` in place of the cached version.

        Raises StorageError if the cached version is unknown or out of date.
        """
        latest = self.get(obj.key)
        known = self.objects().get(obj.key)
        if latest is None or known is None:
            raise StorageError(f'could not find v1.{self.kind} "{obj.key}"')
        if obj.resource_version < latest.resource_version:
            stored, ours = latest.resource_version, obj.resource_version
            raise StorageError(f'v1.{self.kind} "{obj.key}" is out of sync (stored: {stored}, assume: {ours})')
        self._assumptions[obj.key] = _Assumption(known, obj)

    def restore(self, key: str) -> None:
        """Drop the assumption for this key, if there is one."""
        self._assumptions.pop(key, None)


@attrs.define(eq=False)
class VolumeCache(AssumeCache):
    """PersistentVolumes; each version of a volume is parsed into a `Volume` once."""

    version: Callable[[], int] = lambda: -1  # number that grows with each change of a volume; -1: unknown
    _seen: int = -1
    _read: dict[str, Volume] = attrs.field(factory=dict)
    _by_class: dict[str, dict[str, Volume]] = attrs.field(factory=dict)
    _assumed: dict[str, Volume] = attrs.field(factory=dict)

    def volume(self, name: str) -> Volume | None:
        obj = self.get(name)
        return None if obj is None else self._volume(obj)

    def of_class(self, storage_class: str) -> list[Volume]:
        """Return all volumes of a class in the order of the scheduler cache, with assumptions applied."""
        self._refresh()
        found = self._by_class.get(storage_class, {})
        changed = {key: latest for key in self.assumed_keys() if key in found and (latest := self.volume(key))}
        return [changed.get(name, volume) for name, volume in found.items()] if changed else list(found.values())

    def _volume(self, obj: Object) -> Volume:
        for memory in (self._read, self._assumed):
            known = memory.get(obj.name)
            if known is not None and known.obj is obj:
                return known
        self._assumed = {name: read for name, read in self._assumed.items() if name in self._assumptions}
        read = self._assumed[obj.name] = Volume.of(obj)
        return read

    def _refresh(self) -> None:
        version = self.version()
        if version >= 0 and version == self._seen:
            return
        self._seen = version
        current = self.objects()
        read = self._read
        for name, obj in current.items():
            known = read.get(name)
            if known is None or known.obj is not obj:
                self._take_in(name, known, Volume.of(obj))
        if len(read) > len(current):
            for name in [name for name in read if name not in current]:
                del self._by_class[read.pop(name).storage_class][name]

    def _take_in(self, name: str, old: Volume | None, new: Volume) -> None:
        if old is not None and old.storage_class != new.storage_class:
            del self._by_class[old.storage_class][name]
        self._read[name] = new
        self._by_class.setdefault(new.storage_class, {})[name] = new


class AssumedVolumes:
    """The claims and volumes of the scheduler cache, with assumptions applied."""

    def __init__(self, cluster: SchedulerCache) -> None:
        versions = cluster.versions
        self.claims = AssumeCache(CLAIM, lambda: cluster.of_kind(CLAIM))
        self.volumes = VolumeCache(VOLUME, lambda: cluster.of_kind(VOLUME), version=lambda: versions.latest(VOLUME))

    def fork(self, cluster: SchedulerCache) -> "AssumedVolumes":
        """Return the same assumptions for a fork of the cluster."""
        forked = AssumedVolumes(cluster)
        forked.claims.assume_as(self.claims)
        forked.volumes.assume_as(self.volumes)
        return forked
