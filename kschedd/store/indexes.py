"""Which pods each node has, and which objects each owner has: kept up with every write, in order of arrival."""

from collections.abc import Iterable

from kschedd.api.objects import Object
from kschedd.api.pods import Pod

Key = tuple[str, str, str]  # kind, namespace, name
PodKey = tuple[str, str]  # namespace, name


def _owners(obj: Object | None) -> tuple[str, ...]:
    if obj is None:
        return ()
    meta = obj.raw.get("metadata")
    references = meta.get("ownerReferences") if meta else None
    return tuple(ref.get("uid") or "" for ref in references) if references else ()


class Indexes:
    def __init__(self) -> None:
        self._on_node: dict[str, dict[PodKey, None]] = {}
        self._dependents: dict[str, dict[Key, None]] = {}

    def on_node(self, node_name: str) -> Iterable[PodKey]:
        return self._on_node.get(node_name, ())

    def dependents(self, uid: str) -> Iterable[Key]:
        return self._dependents.get(uid, ())

    def move(self, old: Object | None, new: Object | None) -> None:
        """An object became another version of itself; None where it was not there before, or is gone."""
        if isinstance(new, Pod) or isinstance(old, Pod):
            was = old.node_name if isinstance(old, Pod) else ""
            now = new.node_name if isinstance(new, Pod) else ""
            if was != now:
                pod = new if new is not None else old
                assert pod is not None
                key = (pod.namespace, pod.name)
                if was:
                    self._leave_node(was, key)
                if now:
                    self._on_node.setdefault(now, {})[key] = None
        before, after = _owners(old), _owners(new)
        if before != after:
            obj = new if new is not None else old
            assert obj is not None
            self._move_owners((obj.kind, obj.namespace, obj.name), before, after)

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
