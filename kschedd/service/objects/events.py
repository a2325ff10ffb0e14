"""Methods for events: the scheduler's events in memory, and the Event objects that controllers write."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import attrs

from kschedd.actors.mailbox import Doorbell
from kschedd.answers import extended
from kschedd.api.objects import Object
from kschedd.api.schemas.kinds import BY_NAME, lookup
from kschedd.api.text.times import stamp
from kschedd.log.events import SOURCE, WARNING, EventSeries
from kschedd.log.log import Log
from kschedd.object_faults import ObjectFault
from kschedd.service.cluster import ClusterBackend
from kschedd.service.errors import RpcError
from kschedd.service.objects.answers import EventAnswer, EventsAnswer, EventsWatchAnswer, WatchedEvent
from kschedd.service.objects.parameters import SPACES
from kschedd.service.operations.authorizing import authorize_read
from kschedd.service.operations.kubelet_events import events_of, reported
from kschedd.service.operations.recorded_events import EVENT, present_events
from kschedd.service.params import Param
from kschedd.service.table import Call, Methods, Stream, method
from kschedd.store.cluster_api import ClusterReader


@attrs.frozen(eq=False)
class EventMethods(Methods):
    _cluster: ClusterBackend

    @method(
        "events.list",
        (
            SPACES,
            Param("for", "string", False, doc="only events about this object: `pod/web-1`"),
            Param("limit", "integer", False, doc="maximum number of events; the latest are returned", minimum=0),
        ),
        reads=True,
        judged=True,
        doc="Returns the latest events, the newest last. Equal events are merged into one event with a count.",
        large=True,
        answer=EventsAnswer,
    )
    async def list(self, call: Call) -> Any:
        namespace, limit = call["namespace"], call["limit"]
        await authorize_read(self._cluster, call, "list", BY_NAME[EVENT], namespace or "")
        kind, name = _about(call["for"])

        def latest(log: Log) -> tuple[list[EventSeries], int, str]:
            events = log.events
            series = events.latest(namespace, name, limit) if kind in (None, "Pod") else []
            return series, events.number, events.instance

        series, number, instance = await self._cluster.log.query(latest)
        stored = await self._cluster.store.do(lambda store: _stored(store, namespace, kind, name))
        if kind in (None, "Pod"):
            pod = name if namespace else None
            found = await self._cluster.store.do(lambda store: reported(store, namespace, pod))
            of_kubelets = await call.services.turns.drive(call.client, events_of(found))
            stored += _answers(await present_events(self._cluster, of_kubelets), kind, name)
        faults = [
            _fault(fault)
            for fault in await self._cluster.faults()
            if kind in (None, fault.ref.kind) and name in (None, fault.ref.name)
            if namespace is None or fault.ref.namespace in ("", namespace)
        ]
        events = sorted((*map(_event_answer, series), *stored, *faults), key=lambda event: event.last_seen)
        if limit is not None:
            events = events[max(len(events) - limit, 0) :]
        return EventsAnswer(events, number, instance)

    @method(
        "events.watch",
        (
            SPACES,
            Param("since", "integer", False, doc="only events after this number; null: events from now on", minimum=0),
            Param("instance", "string", False, doc="the instance to which the number belongs; null: this daemon"),
        ),
        reads=True,
        judged=True,
        doc="Follows the events of the scheduler. To resume after a break, pass the last received number and the "
        "instance. The error is `gone` if the number is too old, or belongs to another run of the daemon: list again.",
        answer=EventsWatchAnswer,
        item=WatchedEvent,
        items="a repeated event is sent again with its new count",
    )
    async def watch(self, call: Call) -> Any:
        since, instance = call["since"], call["instance"]
        await authorize_read(self._cluster, call, "watch", BY_NAME[EVENT], call["namespace"] or "")

        def start(log: Log) -> tuple[int, str]:
            events = log.events
            if since is None:
                return events.number, events.instance
            if not events.reaches_back_to(since, instance):
                raise RpcError(
                    "gone", f"the events after number {since} are not kept: list them, then watch from there"
                )
            return since, events.instance

        number, instance = await self._cluster.log.query(start)

        async def feed(stream: Stream) -> None:
            await follow(self._cluster, number, call["namespace"], _watched, stream)

        return EventsWatchAnswer(call.open_stream(feed), number, instance)


def _watched(series: EventSeries) -> WatchedEvent:
    return extended(WatchedEvent, _event_answer(series), number=series.number)


async def follow(
    cluster: ClusterBackend,
    seen: int,
    namespace: str | None,
    item: Callable[[EventSeries], Any],
    stream: Stream,
) -> None:
    """Send the scheduler's events after number `seen`, converted by `item`, until the daemon ends."""
    bell = Doorbell()
    ask = cluster.log.query
    await ask(lambda log: log.subscribers.add(bell))
    try:
        while True:
            fresh = await ask(partial(_since, number=seen))
            seen = max((series.number for series in fresh), default=seen)
            await stream.send_many([item(series) for series in fresh if namespace in (None, series.first.namespace)])
            if not await bell.wait():
                return
    finally:
        bell.close()


def _since(log: Log, number: int) -> list[EventSeries]:
    return log.events.since(number)


def _about(text: str | None) -> tuple[str | None, str | None]:
    """Return the kind and the name from text such as `pod/web-1`."""
    if text is None:
        return None, None
    word, slash, name = text.partition("/")
    if not slash or not word or not name:
        raise RpcError("invalid", f'for: "{text[:100]}" is not KIND/NAME, such as pod/web-1', {"for": text[:100]})
    return lookup(word).name, name


def _event_answer(series: EventSeries) -> EventAnswer:
    first = series.first
    return EventAnswer(
        time=stamp(first.at_s),
        last_seen=stamp(series.last_s),
        type=first.type,
        reason=first.reason,
        object=f"Pod/{first.name}",
        namespace=first.namespace,
        message=first.message,
        count=series.count,
        from_=SOURCE,
    )


def _fault(fault: ObjectFault) -> EventAnswer:
    """Return an event about an object that a part of the daemon cannot process."""
    return EventAnswer(
        time=stamp(fault.first_s),
        last_seen=stamp(fault.last_s),
        type=WARNING,
        reason="Fault",
        object=f"{fault.ref.kind}/{fault.ref.name}",
        namespace=fault.ref.namespace,
        message=fault.why,
        count=fault.count,
        from_=fault.component,
    )


def _stored(store: ClusterReader, namespace: str | None, kind: str | None, name: str | None) -> list[EventAnswer]:
    return _answers(store.list("Event", namespace), kind, name)


def _answers(events: Iterable[Object], kind: str | None, name: str | None) -> list[EventAnswer]:
    found = []
    for event in events:
        about = event.raw.get("involvedObject") or event.raw.get("regarding") or {}
        if kind in (None, about.get("kind")) and name in (None, about.get("name")):
            found.append(_event(event))
    return found


def _event(event: Object) -> EventAnswer:
    raw = event.raw
    about = raw.get("involvedObject") or raw.get("regarding") or {}
    created = event.metadata.get("creationTimestamp") or ""
    return EventAnswer(
        time=raw.get("firstTimestamp") or raw.get("eventTime") or created,
        last_seen=raw.get("lastTimestamp") or raw.get("eventTime") or created,
        type=raw.get("type") or "",
        reason=raw.get("reason") or "",
        object=f"{about.get('kind', '')}/{about.get('name', '')}",
        namespace=about.get("namespace") or event.namespace,
        message=raw.get("message") or raw.get("note") or "",
        count=raw.get("count") or 1,
        from_=raw.get("reportingComponent") or (raw.get("source") or {}).get("component") or "",
    )
