"""Completion data: kinds, names of live objects and their states, label keys, profiles, plugins; kept up to date.

`Names` is an immutable value that the completer reads in the thread of the prompt, so that keys never wait for the
daemon. `NameBook` is the mutable state from which `Names` is created. A task lists every kind once, and then watches
all objects in batches. Kinds with too many objects for completion are not watched, so that a busy daemon does not send
thousands of pod changes per second; their number and the pending pods are polled instead. Data for which there is no
watch (the configuration, pods at Permit, breakpoints, forks) is requested at the start and after each command.

Talks to: the daemon.
Owns: the book. Ends: with the connection, or by cancellation.
"""

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import trio

from kschedd.api.schemas.kinds import KINDS, kind_of
from kschedd.rpc.client import Client
from kschedd.service.errors import RpcError
from kschedd.values import fast_frozen
from kschedd.verbs.command_line.grammar import LiveState
from kschedd_repl.link import together

MOST_NAMES = 2000  # maximum number of names per kind: more would not help the user, and would cause load in the daemon
_MOST_OF = {"Node": 10_000}  # nodes change seldom, and users type their names
MOST_QUEUED = 500  # maximum number of names of pending pods, if there are too many pods
_BATCH_S = 0.25  # seconds between two batches of changes
_COUNT_S = 2.0  # seconds between two polls of kinds that are not watched
_FIELDS = ["spec.nodeName", "status.phase", "spec.unschedulable", "spec.taints"]

Raw = Mapping[str, Any]
Labels = Mapping[str, str]


@fast_frozen
class ScheduledState:
    """The state of a pod or node that completion uses, in addition to its labels."""

    node: str = ""  # of a pod
    finished: bool = False  # of a pod
    cordoned: bool = False
    taints: tuple[str, ...] = ()  # `key:Effect`

    @classmethod
    def of(cls, kind: str, raw: Raw) -> "ScheduledState":
        spec, status = raw.get("spec") or {}, raw.get("status") or {}
        if kind == "Pod":
            return cls(str(spec.get("nodeName") or ""), status.get("phase") in ("Succeeded", "Failed"))
        if kind == "Node":
            taints = tuple(f"{taint.get('key')}:{taint.get('effect')}" for taint in spec.get("taints") or ())
            return cls(cordoned=bool(spec.get("unschedulable")), taints=taints)
        return _NO_STATE


_NO_STATE = ScheduledState()


@attrs.frozen
class LookedUpNames:
    """Data that is requested, because there is no watch for it."""

    profiles: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()  # score plugins
    plugins_on: Mapping[str, bool] = attrs.field(factory=dict)
    waiting: tuple[str, ...] = ()  # `namespace/name` of pods at Permit
    breakpoints: tuple[str, ...] = ()
    forks: tuple[str, ...] = ()


@attrs.frozen
class Names:
    """The completion data.

    `objects` contains, for each kind, the sorted keys "namespace/name" ("/name" if cluster-scoped) of its objects;
    `states` contains the same for each state.
    """

    kinds: tuple[str, ...] = tuple(kind.plural for kind in KINDS)
    objects: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    label_keys: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    labels: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)  # kind -> "key=value"
    states: Mapping[LiveState, tuple[str, ...]] = attrs.field(factory=dict)
    taints: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)  # node -> "key:Effect"
    profiles: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    plugins_on: Mapping[str, bool] = attrs.field(factory=dict)
    counts: tuple[tuple[str, int], ...] = ()

    def of(self, kind: str, namespace: str) -> list[str]:
        """Return the names of the objects of a kind in a namespace."""
        return _within(self.objects.get(kind, ()), namespace)

    def live(self, state: LiveState, namespace: str) -> list[str]:
        """Return the names of the objects in that state in a namespace."""
        return _within(self.states.get(state, ()), namespace)

    def pending_elsewhere(self, namespace: str) -> list[str]:
        """Return the pods without a node in all other namespaces, as `namespace/name`."""
        keys = self.states.get(LiveState.PENDING, ())
        return [key for key in keys if key.partition("/")[0] != namespace]

    @property
    def namespaces(self) -> list[str]:
        return [key.partition("/")[2] for key in self.objects.get("Namespace", ())]


def _within(keys: tuple[str, ...], namespace: str) -> list[str]:
    found = []
    for key in keys:
        where, _, name = key.partition("/")
        if where in ("", namespace):
            found.append(name)
    return found


def most_of(kind: str) -> int:
    """Return the maximum number of names of a kind. If a kind has more names, none of its names are stored."""
    return _MOST_OF.get(kind, MOST_NAMES)


class NameBook:
    """The names of every kind, updated from the watch. `names` is the latest value that was created from them."""

    def __init__(self, most_of: Callable[[str], int] = most_of) -> None:
        self._most_of = most_of
        self.unwatched: frozenset[str] = frozenset()  # number of objects of each kind that has too many objects
        self.names = Names()
        self.looked_up = LookedUpNames()
        # objects of the kinds with at most MOST_NAMES objects
        self._objects: dict[str, dict[str, tuple[Labels, ScheduledState]]] = {}
        self._pending: dict[str, None] = {}  # keys of pending pods; at most MOST_QUEUED if there are too many pods
        self._plurals: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._changed: set[str] = set()

    def begin(self, kinds: list[dict[str, Any]]) -> list[str]:
        """Reset the book to these kinds, in the format of `objects.kinds`; return the kinds to list."""
        self._objects.clear()
        self._pending.clear()
        self._plurals = {str(kind["name"]): str(kind.get("plural") or kind["name"]) for kind in kinds}
        self._counts = _counts_of(kinds)
        self._changed = set(self._counts)
        self.unwatched = frozenset(name for name, count in self._counts.items() if count > self._most_of(name))
        return [name for name, count in self._counts.items() if 0 < count <= self._most_of(name)]

    def counted(self, kinds: list[dict[str, Any]]) -> bool:
        """Apply the counts of unwatched kinds; return whether one of them has few enough objects to be watched again.

        A kind is watched again only below half of the limit, so that it does not alternate between watched and
        unwatched.
        """
        counts = _counts_of(kinds)
        if any(counts.get(kind, 0) <= self._most_of(kind) // 2 for kind in self.unwatched):
            return True
        self._counts.update((kind, counts[kind]) for kind in self.unwatched)
        return False

    def queued(self, keys: list[str]) -> None:
        """Set the pods in the scheduling queue; used while pods are not watched."""
        self._pending = dict.fromkeys(keys[:MOST_QUEUED])
        self._changed.add("Pod")

    def listed(self, kind: str, items: list[dict[str, Any]]) -> None:
        self._objects[kind] = known = {}
        for raw in items:
            key, labels = _entry(raw)
            state = ScheduledState.of(kind, raw)
            known[key] = (labels, state)
            self._note_pending(kind, key, state)
        self._counts[kind] = len(items)
        self._changed.add(kind)

    def changed(self, change: Mapping[str, Any]) -> bool:
        """Apply one item of `objects.watch`; return whether the set of watched kinds must change.

        The set must change if the kind is new or has too many objects now.
        """
        raw = change["object"]
        kind = kind_of(raw).name
        if kind not in self._plurals:
            return bool(change["type"] != "DELETED")
        known = self._objects.get(kind)
        key, labels = _entry(raw)
        state = ScheduledState.of(kind, raw)
        if change["type"] == "MODIFIED" and known is not None and known.get(key) == (labels, state):
            return False  # nothing that completion uses has changed, as in the heartbeats of thousands of nodes
        self._changed.add(kind)
        self._note_pending(kind, key, None if change["type"] == "DELETED" else state)
        if known is None:
            known = self._objects[kind] = {}
        if change["type"] == "DELETED":
            known.pop(key, None)
        else:
            known[key] = (labels, state)
        self._counts[kind] = len(known)
        return len(known) > self._most_of(kind)

    def _note_pending(self, kind: str, key: str, state: ScheduledState | None) -> None:
        """Record in the set of pending pods whether this pod is pending. `state`: None if the object was deleted."""
        if kind != "Pod":
            return
        if state is None or state.node or state.finished:
            self._pending.pop(key, None)
        else:
            self._pending[key] = None

    def make(self) -> None:
        """Update `names`; the parts for unchanged kinds are reused."""
        before, names = self.names, self.looked_up
        objects, keys, labels = dict(before.objects), dict(before.label_keys), dict(before.labels)
        states, taints = dict(before.states), before.taints
        for kind in self._changed:
            known = self._objects.get(kind) or {}
            pairs = {pair for found, _ in known.values() for pair in found.items()}
            objects[kind] = tuple(sorted(known))
            keys[kind] = tuple(sorted({key for key, _ in pairs}))
            labels[kind] = tuple(sorted(f"{key}={value}" for key, value in pairs))
            if kind == "Pod":
                states[LiveState.PENDING] = tuple(sorted(self._pending))
                states[LiveState.BOUND] = tuple(
                    sorted(key for key, (_, state) in known.items() if state.node and not state.finished)
                )
            elif kind == "Node":
                ordered = sorted(known.items())
                states[LiveState.CORDONED] = tuple(key for key, (_, state) in ordered if state.cordoned)
                states[LiveState.UNCORDONED] = tuple(key for key, (_, state) in ordered if not state.cordoned)
                taints = {key.partition("/")[2]: state.taints for key, (_, state) in ordered if state.taints}
        self._changed = set()
        states[LiveState.WAITING] = names.waiting
        states[LiveState.BREAKPOINTS] = tuple(f"/{name}" for name in names.breakpoints)
        states[LiveState.FORKS] = tuple(f"/{name}" for name in names.forks)
        self.names = Names(
            kinds=tuple(sorted({*Names().kinds, *self._plurals.values()})),
            objects=objects,
            label_keys=keys,
            labels=labels,
            states=states,
            taints=taints,
            profiles=names.profiles,
            plugins=names.plugins,
            plugins_on=names.plugins_on,
            counts=tuple(sorted(self._counts.items())),
        )


def _counts_of(kinds: list[dict[str, Any]]) -> dict[str, int]:
    return {str(kind["name"]): int(kind.get("count") or 0) for kind in kinds}


def _entry(raw: Raw) -> tuple[str, Labels]:
    meta = raw.get("metadata") or {}
    labels = {str(key): str(value) for key, value in (meta.get("labels") or {}).items()}
    return f"{meta.get('namespace') or ''}/{meta.get('name', '')}", labels


@attrs.define(eq=False)
class NameKeeper:
    """A task that keeps a book up to date. `on_change` is called after each change of `book.names`."""

    book: NameBook
    on_change: Callable[[], None] = lambda: None
    _wanted: trio.Event = attrs.field(factory=trio.Event)
    _fresh: trio.Event = attrs.field(factory=trio.Event)

    def ask_again(self) -> None:
        """Request the data without a watch again, because a command may have changed it."""
        self._wanted.set()

    async def run(self, client: Client) -> None:
        """Keep the book up to date while the connection lasts.

        Raises RpcError if the daemon ends the stream; the caller then has to call this method again.
        """
        self.book.looked_up = await look_up_names(client, self.book.looked_up)
        kinds = await client.call("objects.kinds")
        while True:
            self.book.begin(kinds)
            await self._watch(client)
            kinds = await client.call("objects.kinds")

    async def _watch(self, client: Client) -> None:
        """Watch the kinds that do not have too many objects, until this set of kinds changes."""
        unwatched = self.book.unwatched
        watching = client.subscribe(
            "objects.watch", fields=_FIELDS, interval_s=_BATCH_S, without=sorted(unwatched), patience_s=5.0
        )
        async with watching as stream:
            # The objects are listed after the watch has begun: changes in between arrive twice, and applying them twice
            # has no further effect.
            for kind in self.book.begin(await client.call("objects.kinds")):
                self.book.listed(kind, (await client.call("objects.list", kind=kind, fields=_FIELDS))["items"])
            if self.book.unwatched != unwatched:
                return

            async def follow() -> None:
                async for change in stream:
                    if self.book.changed(change):
                        return
                    self._fresh.set()

            await together(follow, lambda: self._count(client), lambda: self._look_up(client), self._make)

    async def _count(self, client: Client) -> None:
        """Poll the kinds that are not watched, until one of them can be watched again."""
        if not self.book.unwatched:
            await trio.sleep_forever()
        while True:
            if "Pod" in self.book.unwatched:
                queue = await client.call("queue.list", limit=MOST_QUEUED)
                self.book.queued([str(pod["key"]) for pod in queue["pods"]])
            self._fresh.set()
            await trio.sleep(_COUNT_S)
            if self.book.counted(await client.call("objects.kinds")):
                return

    async def _look_up(self, client: Client) -> None:
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            self.book.looked_up = await look_up_names(client, self.book.looked_up)
            self._fresh.set()

    async def _make(self) -> None:
        while True:
            self.book.make()
            self.on_change()
            await self._fresh.wait()
            self._fresh = trio.Event()
            await trio.sleep(_BATCH_S / 5)


async def look_up_names(client: Client, before: LookedUpNames) -> LookedUpNames:
    """Return the present data for which there is no watch.

    A plugin that was known before and that no profile contains now is off.
    """
    from kschedd.printing.reports.scheduling import profiles_of, weights_table

    config = await _answer(client, "scheduler.config", {})
    rows = weights_table(config).rows if config else ()
    enabled = {
        str(plugin["name"])
        for _, profile in (profiles_of(config) if config else ())
        for plugins in (profile.get("plugins") or {}).values()
        for plugin in plugins
    }
    loaded = {str(plugin["name"]) for plugin in await _answer(client, "plugins.list", [])}
    known = sorted({*before.plugins_on, *enabled, *loaded})
    return LookedUpNames(
        profiles=tuple(dict.fromkeys(row[0] for row in rows)),
        plugins=tuple(dict.fromkeys(row[1] for row in rows)),
        plugins_on={name: name in enabled for name in known},
        waiting=tuple(sorted(str(pod["pod"]) for pod in await _answer(client, "waiting.list", []))),
        breakpoints=tuple(str(each["id"]) for each in await _answer(client, "debug.break_list", [])),
        forks=tuple(str(fork["name"]) for fork in await _answer(client, "fork.list", [])),
    )


async def _answer(client: Client, method: str, absent: Any) -> Any:
    """Return the result of a method; `absent` if the daemon lacks the method or does not respond."""
    try:
        return await client.call(method)
    except RpcError:
        return absent
