"""Methods that read objects: get, list, watch, and the available kinds."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import attrs
import trio

from kschedd.api.container_ids import with_container_ids
from kschedd.api.schemas.kinds import Kind
from kschedd.log.events import EventSeries
from kschedd.service.cluster import ClusterBackend
from kschedd.service.errors import RpcError
from kschedd.service.objects.answers import KindAnswer, ListAnswer, ObjectAnswer, WatchAnswer, WatchItem
from kschedd.service.objects.events import follow
from kschedd.service.objects.kinds import described, kind_meant, resolve_namespace
from kschedd.service.objects.parameters import FIELDS, KIND, MANAGERS, METADATA_ONLY, NAME, NAMESPACE, SPACES, selectors
from kschedd.service.operations.authorizing import authorize_read
from kschedd.service.operations.reading import FEW, get, list_objects
from kschedd.service.operations.recorded_events import EVENT, as_object
from kschedd.service.operations.watching import MOST_BEHIND, watch_objects
from kschedd.service.params import Param
from kschedd.service.request import ReadOptions, Request
from kschedd.service.table import Call, Large, Methods, Stream, method
from kschedd.store.cluster_api import ClusterWatch
from kschedd.store.errors import OtherEpoch
from kschedd.store.managing import with_resolved_entries, without_entries
from kschedd.store.objects.log import WatchEvent
from kschedd.values import in_parts

Raw = Mapping[str, Any]

_ITEMS = 500  # maximum number of watch events per message
_LONGEST_PAUSE_S = 60


@attrs.frozen(eq=False)
class ReadingMethods(Methods):
    _cluster: ClusterBackend

    @method(
        "objects.get",
        (KIND, NAME, NAMESPACE, MANAGERS),
        reads=True,
        judged=True,
        doc="Reads one object.",
        answer=ObjectAnswer,
    )
    async def get(self, call: Call) -> Any:
        kind = await kind_meant(self._cluster, call["kind"])
        namespace = resolve_namespace(kind, call["namespace"])
        await authorize_read(self._cluster, call, "get", kind, namespace, call["name"])
        found = await get(self._cluster, Request("get", kind.name, namespace, call["name"]))
        return ObjectAnswer(_shown(False, None, call["managed_fields"])(found.raw))

    @method(
        "objects.list",
        (
            KIND,
            SPACES,
            Param("label_selector", "string", False, doc="as for `kubectl get -l`: `app=web,tier!=db`"),
            Param("field_selector", "string", False, doc="`status.phase=Pending,spec.nodeName!=n1`"),
            METADATA_ONLY,
            FIELDS,
            MANAGERS,
        ),
        reads=True,
        judged=True,
        doc="Lists the objects of a kind, sorted by namespace and name. For the kind Event, the scheduler's events, "
        "which exist only in memory, are included.",
        large=True,
        small="short_list",
        answer=ListAnswer,
    )
    async def list(self, call: Call) -> Any:
        return await self._listed(call, await kind_meant(self._cluster, call["kind"]))

    async def short_list(self, call: Call) -> Any | None:
        """Return the list if the kind has few objects; otherwise None."""
        kind = await kind_meant(self._cluster, call["kind"])
        if kind.name == EVENT or await self._cluster.store.do(lambda store: store.count(kind.name)) > FEW:
            return None  # the store does not contain the scheduler's events
        return await self._listed(call, kind)

    async def _listed(self, call: Call, kind: Kind) -> Large:
        await authorize_read(self._cluster, call, "list", kind, _space(kind, call))
        labels, fields = await selectors(call, call["label_selector"], call["field_selector"])
        options = ReadOptions(labels, fields, selected_in=kind)
        request = Request("list", kind.name, _space(kind, call), reading=options)
        page = await list_objects(self._cluster, request, call.services.turns, call.client)
        shown = _shown(call["metadata_only"], call["fields"], call["managed_fields"])
        head = {"kind": kind.name, "resource_version": page.version, "epoch": self._cluster.epoch}
        return Large(head, "items", page.objects, shown=lambda obj: shown(obj.raw))

    @method(
        "objects.kinds",
        reads=True,
        judged=True,
        doc="Lists every kind, including kinds without a definition that have objects.",
        answer=Sequence[KindAnswer],
    )
    async def kinds(self, call: Call) -> Any:
        return await self._cluster.store.do(described)

    @method(
        "objects.watch",
        (
            Param("kind", "string", False, doc="null: all kinds"),
            Param("without", "string[]", False, doc="names of kinds to omit, such as `Pod`"),
            SPACES,
            Param("since", "integer", False, doc="a resource_version; null: changes from now on", minimum=0),
            Param("epoch", "string", False, doc="the epoch that was received with `since`"),
            METADATA_ONLY,
            FIELDS,
            Param(
                "interval_s",
                "number",
                False,
                0.0,
                "pause between two batches of changes; a batch has only the latest change of each object",
                (),
                0,
                _LONGEST_PAUSE_S,
            ),
        ),
        reads=True,
        judged=True,
        doc="Follows changes; a watch of Events includes the Events of the scheduler and of kubelets. To resume, pass "
        "the last received resource_version and the epoch. The error is `gone` if the version is too old, or if it "
        "belongs to another history than this daemon's: list again. A stream that falls too far behind ends with "
        "`too_slow`.",
        answer=WatchAnswer,
        item=WatchItem,
    )
    async def watch(self, call: Call) -> Any:
        kind = None if call["kind"] is None else await kind_meant(self._cluster, call["kind"])
        await authorize_read(self._cluster, call, "watch", kind, _space(kind, call))
        if call["since"] is not None and call["epoch"] not in (None, self._cluster.epoch):
            raise OtherEpoch(call["since"], call["epoch"])
        options = ReadOptions(version=call["since"], initial_events=False, without=frozenset(call["without"] or ()))
        request = Request("watch", "" if kind is None else kind.name, _space(kind, call), reading=options)
        watching = await watch_objects(self._cluster, request, call.services.turns, call.client)
        watch, since = watching.events, watching.events.version
        shown = _shown(call["metadata_only"], call["fields"])
        pause_s = float(call["interval_s"])
        latest = await self._cluster.log.query(lambda log: log.events.number)

        def recorded(event: EventSeries) -> WatchItem:
            return WatchItem("ADDED" if event.count == 1 else "MODIFIED", shown(as_object(event)), since)

        async def feed(stream: Stream) -> None:
            async with trio.open_nursery() as beside:
                if request.kind == EVENT:
                    beside.start_soon(follow, self._cluster, latest, call["namespace"], recorded, stream)
                await stored(stream)
                beside.cancel_scope.cancel()

        async def stored(stream: Stream) -> None:
            try:
                while watch.behind or await watch.wait():
                    if watch.lag > MOST_BEHIND:
                        raise RpcError("too_slow", f"{watch.lag} events behind; resume from the last one read")
                    for fresh in in_parts(await _all_behind(watch) if pause_s else watch.take(_ITEMS), _ITEMS):
                        await stream.send_many(
                            [
                                WatchItem(type_, shown(raw), event.version)
                                for event in fresh
                                for type_, raw in watching.changes(event)
                            ]
                        )
                    if pause_s:
                        await trio.sleep(pause_s)
            finally:
                watch.close()

        return WatchAnswer(call.open_stream(feed), since, self._cluster.epoch)


def _space(kind: Kind | None, call: Call) -> str:
    return call["namespace"] or "" if kind is None or kind.namespaced else ""


def _metadata(raw: Raw) -> Raw:
    return {"apiVersion": raw.get("apiVersion"), "kind": raw.get("kind"), "metadata": raw.get("metadata") or {}}


def _shown(metadata_only: bool, fields: Sequence[str] | None, managers: bool = False) -> Callable[[Raw], Raw]:
    """Return a function that returns the parts of an object to send, with managedFields only if requested."""
    known = with_resolved_entries if managers else without_entries
    if fields is None and not metadata_only:
        return lambda raw: with_container_ids(known(raw))
    part = _part_shown(fields)
    return lambda raw: part(known(raw))


def _part_shown(fields: Sequence[str] | None) -> Callable[[Raw], Raw]:
    if fields is None:
        return _metadata
    paths = _outermost(dict.fromkeys(tuple(path.split(".")) for path in fields))
    return lambda raw: _with_fields(raw, paths)


def _outermost(paths: Collection[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the paths without paths inside another path."""
    kept: dict[tuple[str, ...], None] = {}
    last: tuple[str, ...] | None = None
    for path in sorted(paths):
        if last is None or path[: len(last)] != last:
            kept[path] = None
            last = path
    return [path for path in paths if path in kept]


def _with_fields(raw: Raw, paths: Sequence[Sequence[str]]) -> Raw:
    """Return an object with apiVersion, kind and metadata, and the fields at these paths."""
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


async def _all_behind(watch: ClusterWatch) -> list[WatchEvent]:
    """Return the latest waiting event of each object, in order."""
    latest: dict[tuple[str, str, str], WatchEvent] = {}
    while watch.behind:
        for event in watch.take(_ITEMS):
            key = (event.new.kind, event.new.namespace, event.new.name)
            before = latest.pop(key, None)
            if before is not None and before.type == "ADDED" and event.type == "MODIFIED":
                event = attrs.evolve(event, type=before.type, old=None)
            latest[key] = event
        await trio.lowlevel.checkpoint()
    return list(latest.values())
