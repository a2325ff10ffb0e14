"""A request tried out on a fork of the store, beside everything else, and what it comes to taken over by the store.

To check a large object takes half a second, and an atomic request may hold ten thousand small ones: neither may hold
up others. So it runs on a fork (`Store.fork`: the same objects, which nobody changes), in a thread; `changes_of` says
what it did there, and `Store.adopt` does the same to the store, where that costs little, unless somebody has changed
in the meantime what the request had read: then it is tried again on a new fork.

What it reads besides the objects it changes are the kinds that admission looks at; pods, nodes and the like are not
among them.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Set
from typing import Final

import attrs

from kschedd.api.objects import Object
from kschedd.store.objects.log import DELETED, WatchEvent

Key = tuple[str, str, str]  # kind, namespace, name

_LOOKED_AT: Final = 1_000  # objects, before others may have their turn
UNREAD: Final = frozenset(
    "Pod Node Event Lease ConfigMap Secret Service Endpoints EndpointSlice ReplicaSet Deployment StatefulSet DaemonSet"
    " Job CronJob PersistentVolume PersistentVolumeClaim CSINode VolumeAttachment ResourceSlice".split()
)
"""Kinds that no write reads, except of the very object it writes."""
READ_BY_THEIR_OWN: Final = frozenset(("Service",))
"""Those of them that a write of another object of the kind reads: a Service gets what address and port none has."""


@attrs.frozen(eq=False)
class Changes:
    """What became of the objects of a store: each as it was (None: not there) and as it is (None: gone)."""

    since: int  # the version of the store before
    objects: Mapping[Key, tuple[Object | None, Object | None]]
    loaded: Set[Key] = frozenset()  # objects that come from a dump

    def stale(self, events: Iterable[WatchEvent]) -> bool:
        """Whether what others wrote in the meantime may have made a difference."""
        read = READ_BY_THEIR_OWN.intersection(kind for kind, _, _ in self.objects)
        return any(
            event.new.kind not in UNREAD or event.new.kind in read or key_of(event.new) in self.objects
            for event in events
        )


def unchanged(changes: Changes, find: Callable[[str, str, str], Object | None]) -> Generator[None, None, bool]:
    """Whether all the objects are where `find` looks as they were, in steps."""
    for number, (key, (old, _)) in enumerate(changes.objects.items(), 1):
        if find(*key) is not old:
            return False
        if not number % _LOOKED_AT:
            yield
    return True


def key_of(obj: Object) -> Key:
    return obj.kind, obj.namespace, obj.name


def changes_of(since: int, events: Iterable[WatchEvent]) -> Changes:
    """The events of a fork, each object's taken together."""
    objects: dict[Key, tuple[Object | None, Object | None]] = {}
    loaded: set[Key] = set()
    for event in events:
        key = key_of(event.new)
        if event.loaded:
            loaded.add(key)
        before = objects[key][0] if key in objects else event.old
        objects[key] = before, None if event.type == DELETED else event.new
    return Changes(since, {key: change for key, change in objects.items() if change[0] is not change[1]}, loaded)
