"""EventCorrelator: decides which events become new Events, and which are counted in an existing series.

The first event is written as a new Event; the second changes this Event to a series. Further events are only counted.
The count is written when the series has ended, and every half hour, so that the Event does not expire. Events belong to
the same series if all their fields except the time are equal. kube-scheduler compares the version of the pod instead of
the message; the version changes whenever the message in the pod's condition changes.

Pure.
Source: Kubernetes v1.34, client-go/tools/events/event_broadcaster.go (recordToSink, finishSeries,
refreshExistingEventSeries), event_recorder.go (makeEvent), scheduler/schedule_one.go, framework/preemption.
"""

from typing import Any, Final

import attrs

from kschedd.api.text.times import SECOND, micro_stamp
from kschedd.live.api_server import ServedResource
from kschedd.live.connection import ServerRequest
from kschedd.live.write_requests import MERGE
from kschedd.log.events import SchedulerEvent
from kschedd.values import fast_frozen

# seconds without events after which a series has ended; also the interval of the checks
SWEEP_S: Final = 360.0
_REFRESH_S: Final = 1800.0
_EVENTS: Final = ServedResource("Event", "events.k8s.io/v1", "events")
_ACTIONS: Final = {"Scheduled": "Binding", "FailedScheduling": "Scheduling", "Preempted": "Preempting"}
_NAME: Final = 253 - 17  # maximum number of characters of a pod's name in an Event's name
_INSTANCE: Final = 128
_NANOSECOND: Final = 1_000_000_000

Raw = dict[str, Any]
_Key = tuple[str, str, str, str]


@fast_frozen(eq=False)
class WrittenEvent:
    """An Event to write. `anew` is the request to send if the Event to change no longer exists."""

    namespace: str
    name: str
    request: ServerRequest
    anew: ServerRequest | None = None


@attrs.define
class _Series:
    event: Raw
    last_s: float
    count: int = 1
    written: int = 1  # part of the count that was already written
    written_s: float = 0.0


@attrs.define(eq=False)
class EventCorrelator:
    _host: str
    _series: dict[_Key, _Series] = attrs.field(factory=dict, init=False)
    _number: int = attrs.field(default=0, init=False)  # number of the last Event, which is part of its name
    _next_sweep_s: float = attrs.field(default=0.0, init=False)

    def take(self, event: SchedulerEvent) -> WrittenEvent | None:
        """Return the Event to write because of this event, or None."""
        key = (event.reason, event.uid, event.message, event.scheduler)
        series = self._series.get(key)
        if series is None:
            made = self._event(event)
            self._series[key] = _Series(made, event.at_s, written_s=event.at_s)
            return _written(made, _creation(made))
        series.count += 1
        series.last_s = event.at_s
        return self._written(series, event.at_s) if series.count == 2 else None

    def sweep(self, now: float) -> list[WrittenEvent]:
        """Return the Events to write for series that have ended or whose Event might expire."""
        if now < self._next_sweep_s:
            return []
        self._next_sweep_s = now + SWEEP_S
        found = []
        for key, series in list(self._series.items()):
            ended = series.last_s < now - SWEEP_S
            if series.count > series.written and (ended or series.written_s < now - _REFRESH_S):
                found.append(self._written(series, now))
            if ended:
                del self._series[key]
        return found

    def _event(self, event: SchedulerEvent) -> Raw:
        self._number = max(self._number + 1, round(event.at_s * _NANOSECOND))
        preemptor = event.preemptor
        return {
            "apiVersion": _EVENTS.api_version,
            "kind": "Event",
            "metadata": {
                "name": f"{event.name[:_NAME].rstrip('.-')}.{self._number:x}",
                "namespace": event.namespace,
            },
            "eventTime": _at(event.at_s),
            "reportingController": event.scheduler,
            "reportingInstance": f"{event.scheduler}-{self._host}"[:_INSTANCE],
            "action": _ACTIONS.get(event.reason, event.reason),
            "reason": event.reason,
            "regarding": _pod(event.namespace, event.name, event.uid),
            **({} if preemptor is None else {"related": _pod(preemptor.namespace, preemptor.name, preemptor.uid)}),
            "note": event.message,
            "type": event.type,
        }

    @staticmethod
    def _written(series: _Series, now: float) -> WrittenEvent:
        series.written, series.written_s = series.count, now
        counted = {"series": {"count": series.count, "lastObservedTime": _at(series.last_s)}}
        meta = series.event["metadata"]
        path = _EVENTS.path_of(meta["namespace"], meta["name"])
        change = ServerRequest("PATCH", path, body=counted, media_type=MERGE)
        return _written(series.event, change, _creation({**series.event, **counted}))


def _written(event: Raw, request: ServerRequest, anew: ServerRequest | None = None) -> WrittenEvent:
    return WrittenEvent(event["metadata"]["namespace"], event["metadata"]["name"], request, anew)


def _creation(event: Raw) -> ServerRequest:
    return ServerRequest("POST", _EVENTS.path_in(event["metadata"]["namespace"]), body=event)


def _pod(namespace: str, name: str, uid: str) -> Raw:
    return {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": uid}


def _at(seconds: float) -> str:
    return micro_stamp(round(seconds * SECOND))
