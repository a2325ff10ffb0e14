"""Completion data: kinds, names of live objects, label keys, profiles and plugins, kept up to date by a watch.

`Names` is an immutable value that the completer reads in the prompt's thread. `NameBook` is the mutable state it is
made from; its task lists every kind once and then watches all objects. Talks to: the daemon. Owns: the book.
Ends: with the connection, or by cancellation.
"""

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import trio

from kschedd.api.kinds import KINDS, kind_of
from kschedd.rpc.client import Client
from kschedd.rpc.errors import RpcError
from kschedd_repl.link import together

MOST_NAMES = 2000  # per kind: more would not help the user, and cost the daemon time
_PAUSE_S = 0.05  # between two updates of the value: changes are batched


@attrs.frozen
class Names:
    """`objects` is kind -> "namespace/name" ("/name" if cluster-scoped), sorted."""

    kinds: tuple[str, ...] = tuple(kind.plural for kind in KINDS)
    objects: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    label_keys: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    labels: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)  # kind -> "key=value"
    profiles: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    counts: tuple[tuple[str, int], ...] = ()

    def of(self, kind: str, namespace: str) -> list[str]:
        """The names of a kind's objects in a namespace."""
        found = []
        for key in self.objects.get(kind, ()):
            where, _, name = key.partition("/")
            if where in ("", namespace):
                found.append(name)
        return found

    @property
    def namespaces(self) -> list[str]:
        return [key.partition("/")[2] for key in self.objects.get("Namespace", ())]


Labels = Mapping[str, str]


class NameBook:
    """The names of every kind, updated from the watch. `names` is the latest value made from them."""

    def __init__(self) -> None:
        self.names = Names()
        self._objects: dict[str, dict[str, Labels]] = {}  # only kinds with at most MOST_NAMES objects
        self._plurals: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._changed: set[str] = set()

    def begin(self, kinds: list[dict[str, Any]]) -> list[str]:
        """Reset to these kinds, in the format of `objects.kinds`; returns the kinds to list."""
        self._objects.clear()
        self._plurals = {str(kind["name"]): str(kind.get("plural") or kind["name"]) for kind in kinds}
        self._counts = {str(kind["name"]): int(kind.get("count") or 0) for kind in kinds}
        self._changed = set(self._counts)
        return [name for name, count in self._counts.items() if 0 < count <= MOST_NAMES]

    def listed(self, kind: str, items: list[dict[str, Any]]) -> None:
        self._objects[kind] = dict(map(_entry, items))
        self._counts[kind] = len(items)
        self._changed.add(kind)

    def changed(self, change: Mapping[str, Any]) -> bool:
        """Apply one item of `objects.watch`. True if its kind must be listed: it is new, or had too many objects."""
        raw = change["object"]
        kind = kind_of(raw).name
        if kind not in self._plurals:
            return bool(change["type"] != "DELETED")
        known = self._objects.get(kind)
        self._changed.add(kind)
        if known is None:
            if self._counts[kind] or change["type"] == "DELETED":
                # Too many objects: only their number is kept, to notice when they can be listed again.
                self._counts[kind] += {"ADDED": 1, "DELETED": -1}.get(change["type"], 0)
                return self._counts[kind] <= MOST_NAMES // 2
            known = self._objects[kind] = {}
        key, labels = _entry(raw)
        if change["type"] == "DELETED":
            known.pop(key, None)
        else:
            known[key] = labels
        self._counts[kind] = len(known)
        if len(known) > MOST_NAMES:
            del self._objects[kind]
        return False

    def make(self, profiles: tuple[str, ...], plugins: tuple[str, ...]) -> None:
        """Update `names`; the parts of unchanged kinds are reused."""
        objects, keys = dict(self.names.objects), dict(self.names.label_keys)
        labels = dict(self.names.labels)
        for kind in self._changed:
            known = self._objects.get(kind) or {}
            pairs = {pair for found in known.values() for pair in found.items()}
            objects[kind] = tuple(sorted(known))
            keys[kind] = tuple(sorted({key for key, _ in pairs}))
            labels[kind] = tuple(sorted(f"{key}={value}" for key, value in pairs))
        self._changed = set()
        plurals = tuple(sorted({*Names().kinds, *self._plurals.values()}))
        self.names = Names(plurals, objects, keys, labels, profiles, plugins, tuple(sorted(self._counts.items())))


def _entry(raw: Mapping[str, Any]) -> tuple[str, Labels]:
    meta = raw.get("metadata") or {}
    labels = {str(key): str(value) for key, value in (meta.get("labels") or {}).items()}
    return f"{meta.get('namespace') or ''}/{meta.get('name', '')}", labels


async def keep_names(client: Client, book: NameBook, told: Callable[[], None] = lambda: None) -> None:
    """Keep the book up to date while the connection lasts. `told` is called after each change of `book.names`.

    Raises RpcError where the daemon ends the stream; the caller then starts again.
    """
    profiles, plugins = await _configured(client)
    async with client.subscribe("objects.watch", metadata_only=True, patience_s=5.0) as stream:
        # Listed after the watch began: changes in between arrive twice, and applying them is idempotent.
        for kind in book.begin(await client.call("objects.kinds")):
            await _list(client, book, kind)
        news = trio.Event()

        async def follow() -> None:
            async for change in stream:
                if book.changed(change):
                    for kind in book.begin(await client.call("objects.kinds")):
                        await _list(client, book, kind)
                news.set()

        async def make() -> None:
            nonlocal news
            while True:
                book.make(profiles, plugins)
                told()
                await news.wait()
                news = trio.Event()
                await trio.sleep(_PAUSE_S)

        await together(follow, make)


async def _list(client: Client, book: NameBook, kind: str) -> None:
    book.listed(kind, (await client.call("objects.list", kind=kind, metadata_only=True))["items"])


async def _configured(client: Client) -> tuple[tuple[str, ...], tuple[str, ...]]:
    from kschedd.printing.scheduling import weights_table

    try:
        rows = weights_table(await client.call("scheduler.config")).rows
    except (RpcError, KeyError, TypeError, AttributeError):
        return (), ()
    return tuple(dict.fromkeys(row[0] for row in rows)), tuple(dict.fromkeys(row[1] for row in rows))
