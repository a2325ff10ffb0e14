"""StoredObjects: all objects by kind, namespace and name, with their indexes and the event log.

This class has the role of etcd and of kube-apiserver's watch cache. Only `commit` and its three fast paths for pods
write objects. Each of these methods stores an object, updates the indexes (pods by node, dependents by owner, UIDs) and
appends an event to the log. This class enforces no rules; its callers do, and set the next resourceVersion in the
object.

Objects are immutable values. A space contains the objects of a kind in a namespace, by name; readers must not store a
reference to it.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.objects import Object, Raw, parse
from kschedd.api.pods import Pod
from kschedd.api.schemas.kinds import BY_NAME
from kschedd.store.errors import ApiError, NotFound
from kschedd.store.objects.indexes import Indexes
from kschedd.store.objects.log import ADDED, DELETED, MODIFIED, EventLog, EventType, WatchEvent
from kschedd.store.prototypes.pod_strategy import rebuild_pod

_EMPTY: Final[Mapping[str, Object]] = {}


class StoredObjects:
    """The stored objects.

    `changed` is called with the old and the new object for each object, except a Pod, that is created, changed or
    deleted.
    """

    def __init__(self, log: EventLog, changed: Callable[[Object | None, Object | None], None]) -> None:
        self.log = log
        self._changed = changed
        self._by_kind: dict[str, dict[str, dict[str, Object]]] = {}
        self._indexes = Indexes()
        # UIDs of all objects; None until an object with a given UID is added
        self._uids: set[str] | None = None
        self.refusal: ApiError | None = None  # error for every write, if this store is read-only

    def copying(self, other: "StoredObjects") -> Generator[None, None, None]:
        """Copy the objects of another instance into this new one, step by step. The log is not copied."""
        for kind, spaces in other._by_kind.items():
            self._by_kind[kind] = {namespace: space.copy() for namespace, space in spaces.items()}
            yield
        self._indexes = yield from other._indexes.copying()

    # --- reading ------------------------------------------------------------------------------------------------------

    def find(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return the latest version of the object, even if watches do not receive it yet; None if it does not exist."""
        try:
            return self._by_kind[kind][namespace][name]
        except KeyError:
            return None

    def get(self, kind: str, namespace: str, name: str) -> Object:
        """Return the latest version of the object. Raises NotFound."""
        found = self.find(kind, namespace, name)
        if found is None:
            raise NotFound(kind, name)
        return found

    def space(self, kind: str, namespace: str) -> Mapping[str, Object]:
        """Return the objects of a kind in a namespace, by name."""
        try:
            return self._by_kind[kind][namespace]
        except KeyError:
            return _EMPTY

    def spaces(self, kind: str, namespace: str | None) -> Sequence[Mapping[str, Object]]:
        """Return the spaces of a kind, sorted by namespace; `namespace` None means all of them."""
        spaces = self._by_kind.get(kind) or {}
        chosen = sorted(spaces) if namespace is None else [namespace]
        return [spaces[space] for space in chosen if space in spaces]

    def present_in(self, kind: str, namespace: str) -> bool:
        """Return whether objects of a kind exist, or have existed, in a namespace."""
        return kind in self._by_kind and namespace in self._by_kind[kind]

    def kinds(self) -> Sequence[str]:
        """Return the kinds that have at least one object."""
        return sorted(kind for kind, spaces in self._by_kind.items() if any(spaces.values()))

    def count(self, kind: str) -> int:
        return sum(len(space) for space in (self._by_kind.get(kind) or {}).values())

    def owned_by(self, uid: str) -> Sequence[Object]:
        """Return the objects whose ownerReferences contain this UID, in order of creation."""
        return [self._by_kind[k][ns][n] for k, ns, n in self._indexes.dependents(uid)]

    def pods_on(self, node_name: str) -> Sequence[Pod]:
        """Return the pods bound to this node, in the order of their binding."""
        found = (self._by_kind["Pod"][ns][n] for ns, n in self._indexes.on_node(node_name))
        return [pod for pod in found if isinstance(pod, Pod)]

    def in_namespace(self, namespace: str) -> Sequence[Object]:
        """Return all objects in a namespace."""
        return [obj for kind in sorted(self._by_kind) for obj in self._by_kind[kind].get(namespace, {}).values()]

    def has_uid(self, uid: str) -> bool:
        """Return whether an object has this UID."""
        if self._uids is None:
            self._uids = {
                obj.uid for spaces in self._by_kind.values() for space in spaces.values() for obj in space.values()
            }
        return uid in self._uids

    # --- writing ------------------------------------------------------------------------------------------------------

    def commit(self, event_type: EventType, old: Object | None, new: Object, *, loaded: bool = False) -> None:
        """Commit one write: `new` replaces `old`; for a deletion, it is the last state of the object.

        Raises `refusal` if this attribute is not None.
        `loaded` is true if `new` comes from a dump (`WatchEvent`).
        """
        if self.refusal is not None:
            raise self.refusal
        self.place(old, None if event_type == DELETED else new)
        self.log.append(WatchEvent(event_type, old, new, new.resource_version, loaded))

    def commit_copy(self, pod: Pod, indexed: bool) -> None:
        """Commit a new pod in a space that already has pods; `indexed` is true if the pod has a node or owners."""
        if self.refusal is not None:
            raise self.refusal
        self._by_kind["Pod"][pod.namespace][pod.name] = pod
        if indexed:
            self._indexes.move(None, pod)
        if self._uids is not None:
            self._uids.add(pod.uid)
        self.log.append(WatchEvent(ADDED, None, pod, pod.resource_version))

    def commit_binding(self, old: Pod, bound: Pod) -> None:
        """Commit the binding of a pod; only the index by node is updated."""
        if self.refusal is not None:
            raise self.refusal
        self._by_kind["Pod"][bound.namespace][bound.name] = bound
        self._indexes.got_node(bound)
        self.log.append(WatchEvent(MODIFIED, old, bound, bound.resource_version))

    def commit_renewal(self, old: Object, renewed: Object) -> None:
        """Commit a Lease of which only the renewTime has changed; no index and no cache contains the renewTime."""
        if self.refusal is not None:
            raise self.refusal
        self._by_kind[old.kind][old.namespace][old.name] = renewed
        self.log.append(WatchEvent(MODIFIED, old, renewed, renewed.resource_version, renewal=True))

    def commit_end(self, old: Pod, going: Pod, gone: Pod) -> None:
        """Commit the deletion of a pod as two writes: the first marks it as deleting, the second removes it.

        The marked pod must not differ from the old one in any indexed field.
        """
        if self.refusal is not None:
            raise self.refusal
        self.place(old, None)
        self.log.append(WatchEvent(MODIFIED, old, going, going.resource_version))
        self.log.append(WatchEvent(DELETED, going, gone, gone.resource_version))

    def place(self, old: Object | None, new: Object | None) -> None:
        """Replace `old` by `new` without an event, to fill a store at startup."""
        obj = new if new is not None else old
        assert obj is not None, "there is nothing to place"
        try:
            space = self._by_kind[obj.kind][obj.namespace]
        except KeyError:
            space = self._by_kind.setdefault(obj.kind, {}).setdefault(obj.namespace, {})
        if new is not None:
            space[obj.name] = new
        else:
            del space[obj.name]
        self._indexes.move(old, new)
        if self._uids is not None:
            if old is not None:
                self._uids.discard(old.uid)
            if new is not None:
                self._uids.add(new.uid)
        if obj.kind != "Pod":
            self._changed(old, new)

    def place_whole(self, obj: Object) -> None:
        """Add a new object to all indexes; if it is invalid, add it to none."""
        try:
            self.place(None, obj)
        except Exception:
            self._by_kind[obj.kind][obj.namespace].pop(obj.name, None)
            raise

    def roll_back(self, version: int) -> None:
        """Undo the writes after this version; none of them may have been delivered to watches."""
        for event in reversed(self.log.written_after(version)):
            self.place(None if event.type == DELETED else event.new, event.old)
        self.log.truncate(version)

    def forget_uids(self) -> None:
        """Drop the set of UIDs; it is built again when needed."""
        self._uids = None


def typed(kind: str, raw: Raw) -> Object:
    """Return the typed object for a stored manifest; `kind` is the kind's name in the store."""
    if kind in BY_NAME:
        return parse(raw)
    # A custom resource may have the name of a built-in kind, so kind and group together identify the type.
    return attrs.evolve(Object.from_raw(raw), kind=kind)


def retyped(old: Object, raw: dict[str, Any]) -> Object:
    """Return the typed object for a changed manifest."""
    return rebuild_pod(raw, old) if isinstance(old, Pod) else typed(old.kind, raw)
