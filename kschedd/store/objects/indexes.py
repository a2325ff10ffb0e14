"""Indexes of pods by node and of dependents by owner UID, updated at every write; entries in insertion order."""

from collections.abc import Generator, Iterable, Sequence
from typing import Final, TypeVar

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod

Key = tuple[str, str, str]  # kind, namespace, name
PodKey = tuple[str, str]  # namespace, name
_STEP: Final = 500  # number of entries copied between two yields, in less than 1 ms
_K = TypeVar("_K")


def _references(obj: Object | None) -> Sequence[Raw]:
    meta = obj.raw.get("metadata") if obj is not None else None
    return (meta.get("ownerReferences") or ()) if meta else ()


def _uids(references: Sequence[Raw]) -> tuple[str, ...]:
    return tuple(reference.get("uid") or "" for reference in references)


class Indexes:
    def __init__(self) -> None:
        self._on_node: dict[str, dict[PodKey, None]] = {}
        self._dependents: dict[str, dict[Key, None]] = {}

    def copying(self) -> Generator[None, None, "Indexes"]:
        """Copy the indexes step by step."""
        twin = Indexes()
        yield from _copying(self._on_node, twin._on_node)
        yield from _copying(self._dependents, twin._dependents)
        return twin

    def on_node(self, node_name: str) -> Iterable[PodKey]:
        return self._on_node.get(node_name, ())

    def dependents(self, uid: str) -> Iterable[Key]:
        return self._dependents.get(uid, ())

    def got_node(self, pod: Pod) -> None:
        """Update the indexes for a pod that was just bound and is otherwise unchanged; a faster path than `move`."""
        try:
            self._on_node[pod.node_name][pod.namespace, pod.name] = None
        except KeyError:
            self._on_node[pod.node_name] = {(pod.namespace, pod.name): None}

    def move(self, old: Object | None, new: Object | None) -> None:
        """Update the indexes for one write; `old` is None for a created object, `new` for a deleted one."""
        if old is None and isinstance(new, Pod) and not new.node_name and "ownerReferences" not in new.raw["metadata"]:
            return
        if isinstance(new, Pod) and isinstance(old, Pod) and new.node_name == old.node_name:
            if new.raw["metadata"].get("ownerReferences") is old.raw["metadata"].get("ownerReferences"):
                return  # return early, because most updates of pods change only the status
        obj = new if new is not None else old
        before, after = _references(old), _references(new)
        uids = None if before is after else (_uids(before), _uids(after))
        if isinstance(obj, Pod):
            was = old.node_name if isinstance(old, Pod) else ""
            now = new.node_name if isinstance(new, Pod) else ""
            if was != now:
                key = (obj.namespace, obj.name)
                if was:
                    self._leave_node(was, key)
                if now:
                    self._on_node.setdefault(now, {})[key] = None
        if uids is not None:
            assert obj is not None, "there is nothing to move"
            self._move_owners((obj.kind, obj.namespace, obj.name), *uids)

    def _leave_node(self, node_name: str, key: PodKey) -> None:
        pods = self._on_node[node_name]
        del pods[key]
        if not pods:
            del self._on_node[node_name]

    def _move_owners(self, key: Key, before: tuple[str, ...], after: tuple[str, ...]) -> None:
        for uid in before:
            if uid not in after and uid in self._dependents:
                owned = self._dependents[uid]
                owned.pop(key, None)
                if not owned:
                    del self._dependents[uid]
        for uid in after:
            if uid not in before:
                self._dependents.setdefault(uid, {})[key] = None


def _copying(mine: dict[str, dict[_K, None]], its: dict[str, dict[_K, None]]) -> Generator[None, None, None]:
    for number, (key, held) in enumerate(mine.items()):
        its[key] = held.copy()
        if not number % _STEP:
            yield
