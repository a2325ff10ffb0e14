"""Methods that read objects: one, lists of them, the kinds there are, and watches."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import trio

from kschedd.api.objects import Object
from kschedd.api.schemas.field_labels import check_field_selector
from kschedd.api.schemas.kinds import lookup
from kschedd.log.events import EventSeries
from kschedd.service.cluster import ClusterBackend
from kschedd.service.errors import RpcError
from kschedd.service.objects.answers import KindAnswer, ListAnswer, ObjectAnswer, WatchAnswer, WatchItem
from kschedd.service.objects.events import follow
from kschedd.service.objects.kinds import described, find_kind, named_object
from kschedd.service.objects.parameters import FIELDS, KIND, MANAGERS, METADATA_ONLY, NAME, NAMESPACE, SPACES
from kschedd.service.objects.recorded_events import EVENT, as_object, recorded_event, with_recorded_events
from kschedd.service.params import Param
from kschedd.service.selecting import selectors
from kschedd.service.table import Call, Large, Method, Stream
from kschedd.store.cluster_api import ClusterReader, ClusterWatch
from kschedd.store.errors import NotFound, OtherEpoch
from kschedd.store.managing import with_resolved_entries, without_entries
from kschedd.store.objects.listing import raw_in_order
from kschedd.store.objects.log import WatchEvent
from kschedd.values import run_steps

Raw = Mapping[str, Any]

_FEW = 256  # objects that are put in order at once
_MOST_BEHIND = 200_000  # events that are kept for a watcher that does not read them
_ITEMS = 500  # watch events sent in one go
_LONGEST_PAUSE_S = 60


@attrs.frozen(eq=False)
class ReadingMethods:
    _cluster: ClusterBackend

    def table(self) -> list[Method]:
        return [
            Method(
                "objects.get",
                self.get,
                (KIND, NAME, NAMESPACE, MANAGERS),
                reads=True,
                doc="Reads one object.",
                answer=ObjectAnswer,
            ),
            Method(
                "objects.list",
                self.list,
                (
                    KIND,
                    SPACES,
                    Param("label_selector", "string", False, doc="as of `kubectl get -l`: `app=web,tier!=db`"),
                    Param("field_selector", "string", False, doc="`status.phase=Pending,spec.nodeName!=n1`"),
                    METADATA_ONLY,
                    FIELDS,
                    MANAGERS,
                ),
                reads=True,
                doc="Lists the objects of a kind, sorted by namespace and name. Among those of kind Event are the "
                "scheduler's, which are kept in memory only.",
                large=True,
                small=self.short_list,
                answer=ListAnswer,
            ),
            Method(
                "objects.kinds",
                self.kinds,
                reads=True,
                doc="Every kind there is, those of which there are only objects among them.",
                answer=list[KindAnswer],
            ),
            Method(
                "objects.watch",
                self.watch,
                (
                    Param("kind", "string", False, doc="null: all kinds"),
                    Param("without", "string[]", False, doc="names of kinds that are left out, such as `Pod`"),
                    SPACES,
                    Param("since", "integer", False, doc="a resource_version; null: from now on", minimum=0),
                    Param("epoch", "string", False, doc="the epoch that `since` belongs to, as it came with it"),
                    METADATA_ONLY,
                    FIELDS,
                    Param(
                        "interval_s",
                        "number",
                        False,
                        0.0,
                        "pause between two batches of changes; of each object a batch has only the latest",
                        (),
                        0,
                        _LONGEST_PAUSE_S,
                    ),
                ),
                reads=True,
                doc="Follows changes; of the kind Event, those of the scheduler's events too. To resume after a break, "
                "give the last resource_version seen, and the epoch; `gone` is answered where that is too long ago, or "
                "of another history than this daemon's: list again. A stream that falls too "
                "far behind ends with `too_slow`.",
                answer=WatchAnswer,
                item=WatchItem,
            ),
        ]

    async def get(self, call: Call) -> Any:
        try:
            found = await self._cluster.store.do(partial(named_object, call))
        except NotFound:
            event = None
            if lookup(call["kind"]).name == EVENT:
                event = await recorded_event(self._cluster, call["namespace"] or "default", call["name"])
            if event is None:
                raise
            found = event
        return ObjectAnswer(with_resolved_entries(found.raw) if call["managed_fields"] else without_entries(found.raw))

    async def list(self, call: Call) -> Any:
        return await self._listed(call)

    async def short_list(self, call: Call) -> Any | None:
        """The same where there are few objects of the kind, else None."""
        return await self._listed(call, _FEW)

    async def _listed(self, call: Call, most: int | None = None) -> Large | None:
        labels, fields = await selectors(call, call["label_selector"], call["field_selector"])
        shown = _shown(call["metadata_only"], call["fields"], call["managed_fields"])

        def read(store: ClusterReader) -> tuple[str, Sequence[Sequence[Object]], int] | None:
            kind = find_kind(store, call["kind"])
            if most is not None and (kind.name == EVENT or store.count(kind.name) > most):
                return None  # events are kept elsewhere as well
            space = call["namespace"] if kind.namespaced else None
            check_field_selector(kind, fields)
            return kind.name, store.present(kind.name, space), store.version

        there = await self._cluster.store.do(read)
        if there is None:
            return None
        name, present, version = there
        if name == EVENT:
            present = await with_recorded_events(self._cluster, present, call["namespace"])
        sorting = raw_in_order(present, labels, fields)
        items: Sequence[Raw]
        if sum(map(len, present)) <= _FEW:
            items = run_steps(sorting)
        else:
            items = await call.services.turns.drive(call.client, sorting)
        head = {"kind": name, "resource_version": version, "epoch": self._cluster.epoch}
        return Large(head, "items", items, shown=shown)

    async def kinds(self, call: Call) -> Any:
        return await self._cluster.store.do(described)

    async def watch(self, call: Call) -> Any:
        store = self._cluster.store
        kinds = None
        if call["kind"] is not None:
            kinds = {(await store.do(lambda owned: find_kind(owned, call["kind"]))).name}
        if call["since"] is not None and call["epoch"] not in (None, self._cluster.epoch):
            raise OtherEpoch(call["since"], call["epoch"])
        watch = await store.watch(kinds, call["since"])
        since = watch.version
        namespace, without = call["namespace"], frozenset(call["without"] or ())
        shown = _shown(call["metadata_only"], call["fields"])
        pause_s = float(call["interval_s"])
        latest = await self._cluster.log.query(lambda log: log.events.number)

        def recorded(event: EventSeries) -> WatchItem:
            return WatchItem("ADDED" if event.count == 1 else "MODIFIED", shown(as_object(event)), since)

        def wanted(event: WatchEvent) -> bool:
            return event.new.kind not in without and namespace in (None, event.new.namespace)

        async def feed(stream: Stream) -> None:
            async with trio.open_nursery() as beside:
                if kinds == {EVENT}:
                    beside.start_soon(follow, self._cluster, latest, namespace, recorded, stream)
                await stored(stream)
                beside.cancel_scope.cancel()

        async def stored(stream: Stream) -> None:
            try:
                while watch.behind or await watch.wait():
                    if watch.lag > _MOST_BEHIND:
                        raise RpcError("too_slow", f"{watch.lag} events behind; resume from the last one read")
                    fresh = await _all_behind(watch, wanted) if pause_s else list(filter(wanted, watch.take(_ITEMS)))
                    for start in range(0, len(fresh), _ITEMS):
                        await stream.send_many(
                            [
                                WatchItem(event.type, shown(event.new.raw), event.version)
                                for event in fresh[start : start + _ITEMS]
                            ]
                        )
                    if pause_s:
                        await trio.sleep(pause_s)
            finally:
                watch.close()

        return WatchAnswer(call.open_stream(feed), since, self._cluster.epoch)


def _metadata(raw: Raw) -> Raw:
    return {"apiVersion": raw.get("apiVersion"), "kind": raw.get("kind"), "metadata": raw.get("metadata") or {}}


def _shown(metadata_only: bool, fields: Sequence[str] | None, managers: bool = False) -> Callable[[Raw], Raw]:
    """What is sent of an object; who manages its fields only where that is asked for."""
    known = with_resolved_entries if managers else without_entries
    if fields is None and not metadata_only:
        return known
    part = _part_shown(fields)
    return lambda raw: part(known(raw))


def _part_shown(fields: Sequence[str] | None) -> Callable[[Raw], Raw]:
    if fields is None:
        return _metadata
    paths = _outermost(dict.fromkeys(tuple(path.split(".")) for path in fields))
    return lambda raw: _with_fields(raw, paths)


def _outermost(paths: Collection[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Leave out the paths within another of them, which are sent with that one."""
    kept: dict[tuple[str, ...], None] = {}
    last: tuple[str, ...] | None = None
    for path in sorted(paths):
        if last is None or path[: len(last)] != last:
            kept[path] = None
            last = path
    return [path for path in paths if path in kept]


def _with_fields(raw: Raw, paths: Sequence[Sequence[str]]) -> Raw:
    """apiVersion, kind, metadata, and of the rest what is at these paths, in the places where it is."""
    shown: dict[str, Any] = {**_metadata(raw)}
    for path in paths:
        found: Any = raw
        for name in path:
            found = found.get(name) if isinstance(found, Mapping) else None
        if found is None or path[0] == "metadata":
            continue
        into = shown
        for name in path[:-1]:
            into = into.setdefault(name, {})
        into[path[-1]] = found
    return shown


async def _all_behind(watch: ClusterWatch, wanted: Callable[[WatchEvent], bool]) -> list[WatchEvent]:
    """All that is waiting and is wanted, of each object only its latest event, in the order of these."""
    latest: dict[tuple[str, str, str], WatchEvent] = {}
    while watch.behind:
        for event in filter(wanted, watch.take(_ITEMS)):
            key = (event.new.kind, event.new.namespace, event.new.name)
            before = latest.pop(key, None)
            if before is not None and before.type == "ADDED" and event.type == "MODIFIED":
                event = attrs.evolve(event, type=before.type, old=None)
            latest[key] = event
        await trio.lowlevel.checkpoint()
    return list(latest.values())
