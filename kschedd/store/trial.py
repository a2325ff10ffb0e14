"""Requests that run on a fork of the store, before their changes are applied to the store.

Validating a large object takes half a second, and an atomic request may contain ten thousand small objects. Neither
kind of request may block other requests. A long request therefore runs in a thread, on a fork (`Store.fork`) that
shares the immutable objects. `changes_of` collects the fork's changes, and `Store.adopt` applies them to the store
quickly. If another request has changed an object that the request used, the request is retried on a new fork.

Besides the objects that it changes, a request uses the kinds that admission reads, which do not include pods and nodes.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Set
from typing import Final

import attrs

from kschedd.api.objects import Object
from kschedd.store.objects.log import DELETED, WatchEvent

Key = tuple[str, str, str]  # kind, namespace, name

_LOOKED_AT: Final = 1_000  # objects per slice
UNREAD: Final = frozenset(
    "Pod Node Event Lease ConfigMap Secret Service Endpoints EndpointSlice ReplicaSet Deployment StatefulSet DaemonSet"
    " Job CronJob PersistentVolume PersistentVolumeClaim CSINode VolumeAttachment ResourceSlice".split()
)
"""Kinds that are read only by writes of the very same object."""
READ_BY_THEIR_OWN: Final = frozenset(("Service",))
"""Kinds of `UNREAD` that writes of other objects of the kind read: a Service gets an unused address and port."""


@attrs.frozen(eq=False)
class Changes:
    """The changed objects of a store, each with its state before (None: missing) and after (None: deleted)."""

    since: int  # the store's version before the changes
    objects: Mapping[Key, tuple[Object | None, Object | None]]
    loaded: Set[Key] = frozenset()  # objects from a dump

    def stale(self, events: Iterable[WatchEvent]) -> bool:
        """Return whether these writes by other requests may have affected the result of the request."""
        read = READ_BY_THEIR_OWN.intersection(kind for kind, _, _ in self.objects)
        return any(
            event.new.kind not in UNREAD or event.new.kind in read or key_of(event.new) in self.objects
            for event in events
        )


def unchanged(changes: Changes, find: Callable[[str, str, str], Object | None]) -> Generator[None, None, bool]:
    """Return, step by step, whether the store still contains all these objects in their state before the changes."""
    for number, (key, (old, _)) in enumerate(changes.objects.items(), 1):
        if find(*key) is not old:
            return False
        if not number % _LOOKED_AT:
            yield
    return True


def key_of(obj: Object) -> Key:
    return obj.kind, obj.namespace, obj.name


def changes_of(since: int, events: Iterable[WatchEvent]) -> Changes:
    """Return the changes in a fork's events, merged by object."""
    objects: dict[Key, tuple[Object | None, Object | None]] = {}
    loaded: set[Key] = set()
    for event in events:
        key = key_of(event.new)
        if event.loaded:
            loaded.add(key)
        before = objects[key][0] if key in objects else event.old
        objects[key] = before, None if event.type == DELETED else event.new
    return Changes(since, {key: change for key, change in objects.items() if change[0] is not change[1]}, loaded)
