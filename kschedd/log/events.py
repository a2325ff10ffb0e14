"""Events as shown by `kubectl get events`, created from log entries; equal events are counted as one series.

A series ends with its last entry: when this entry is deleted from the log, the series is deleted, too. Messages are
formatted when they are read.

Source: Kubernetes v1.34, scheduler/schedule_one.go (truncateMessage), framework/preemption.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

import attrs

from kschedd.api.pods import Pod
from kschedd.scheduling.records import AttemptRecord, Happened, PodBound, PodPreempted

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
SOURCE: Final = "default-scheduler"

_LONGEST: Final = 1024  # bytes of a message
_CUT: Final = " ..."
_NUMBER: Final = 3  # index of the number in the fields of a series
_BORN: Final = 4
_MOST_DELETED: Final = 10_000  # maximum number of stored deletions; Events of older deletions appear again


@attrs.frozen(eq=False)
class SchedulerEvent:
    """A pod's event in the form that `kubectl get events` would show."""

    at_s: float
    type: str  # NORMAL or WARNING
    reason: str
    namespace: str
    name: str  # of the pod
    message: str
    uid: str = ""  # of the pod
    scheduler: str = ""  # name of the profile that reports the event
    preemptor: Pod | None = None  # the preempting pod, if the event is about a victim


def event_of(entry: Happened) -> SchedulerEvent | None:
    """Return the event that `kubectl get events` shows for this log entry; None if there is no such event."""
    namespace, _, name = entry.pod.partition("/")
    if isinstance(entry, PodBound):
        message = f"Successfully assigned {entry.pod} to {entry.node}"
        return SchedulerEvent(entry.at_s, NORMAL, "Scheduled", namespace, name, message, entry.uid, entry.scheduler)
    if isinstance(entry, PodPreempted):
        by = entry.preemptor
        message = f"Preempted by pod {by.uid} on node {entry.node}"
        if entry.group:
            message = f"Preempted by podgroup {entry.group} on node cluster"
        if entry.in_memory:
            message += " (in kube-scheduler memory)."
        return SchedulerEvent(
            entry.at_s, NORMAL, "Preempted", namespace, name, message, entry.uid, by.scheduler_name, by
        )
    # no event if the pod found a node, or if it already had a node and only needed a resize
    if entry.node or (entry.attempted is not None and entry.attempted.node_name):
        return None
    scheduler = "" if entry.attempted is None else entry.attempted.scheduler_name
    return SchedulerEvent(
        entry.at_s, WARNING, "FailedScheduling", namespace, name, _cut(entry.message), entry.uid, scheduler
    )


def _cut(message: str) -> str:
    encoded = message.encode()
    return message if len(encoded) <= _LONGEST else encoded[: _LONGEST - len(_CUT)].decode(errors="ignore") + _CUT


@attrs.frozen(eq=False)
class EventSeries:
    """One series of equal events, in its state at the time of reading.

    `number` is the sequence number of the latest change of the series, and grows with every change of any series.
    `born` is the number of the first occurrence of the event, and identifies the series.
    """

    entry: Happened  # the first one
    last_s: float
    count: int
    number: int
    born: int

    @property
    def first(self) -> SchedulerEvent:
        event = event_of(self.entry)
        assert event is not None, "there are series of events only"
        return event


EventKey = tuple[str, str, int]  # namespace, name and count of an Event object
_Fields = tuple[Happened, float, int, int, int]  # the fields of an EventSeries as a tuple, which is faster to create


class SeriesByEvent:
    """The series, in the order of their latest change."""

    def __init__(self, instance: str) -> None:
        self.instance = instance
        self.number = 0  # of the last event
        self._forgotten = 0  # the highest number of a deleted series
        self._series: OrderedDict[tuple[object, ...], _Fields] = OrderedDict()
        # counts of the kubelets' Events that a client has deleted, at the time of the deletion
        self._deleted: OrderedDict[tuple[str, str], int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._series)

    def note(self, entry: Happened) -> None:
        """Count a log entry for which `kubectl get events` shows an event."""
        key: tuple[object, ...]
        if isinstance(entry, PodBound):
            key = entry.pod, entry.node
        elif isinstance(entry, AttemptRecord):
            key = entry.pod, entry.message, ""
        else:
            key = entry.pod, entry.node, entry.preemptor.uid, entry.in_memory
        self.number = number = self.number + 1
        known = self._series.pop(key, None)
        if known is None:
            self._series[key] = entry, entry.at_s, 1, number, number
        else:
            first, _, count, _, born = known
            self._series[key] = first, entry.at_s, count + 1, number, born

    def delete(self, events: Iterable[EventKey]) -> None:
        """Delete the Events that a client names. If a deleted event occurs again, a new series begins.

        A deleted Event of a kubelet appears again when its count changes.
        """
        keys = {(*fields[0].pod.split("/"), fields[_BORN]): key for key, fields in self._series.items()}
        for namespace, name, count in events:
            pod, _, number = name.rpartition(".")
            key = keys.get((namespace, pod, int(number, 16)))
            if key is not None:
                del self._series[key]
                continue
            self._deleted[namespace, name] = count
            if len(self._deleted) > _MOST_DELETED:
                self._deleted.popitem(last=False)

    def is_deleted(self, event: EventKey) -> bool:
        """Return whether a client has deleted this Event of a kubelet with its present count."""
        return self._deleted.get(event[:2]) == event[2]

    def forget(self, number: int) -> None:
        """Delete the series whose last log entry has at most this number."""
        series = self._series
        while series and (last := next(iter(series.values()))[_NUMBER]) <= number:
            series.popitem(last=False)
            self._forgotten = last

    def latest(
        self, namespace: str | None = None, name: str | None = None, limit: int | None = None
    ) -> list[EventSeries]:
        """Return the current series about these pods (None means all), oldest first."""
        found: list[EventSeries] = []
        for series in reversed(self._series.values()):
            if limit is not None and len(found) >= limit:
                break
            space, _, named = series[0].pod.partition("/")
            if namespace in (None, space) and name in (None, named):
                found.append(EventSeries(*series))
        return found[::-1]

    def reaches_back_to(self, number: int, instance: str | None) -> bool:
        """Return whether all series after this number of that log (None: this log) are still available."""
        return instance in (None, self.instance) and self._forgotten <= number <= self.number

    def since(self, number: int) -> list[EventSeries]:
        """Return, in order, the current series that began or were repeated after this number."""
        found: list[EventSeries] = []
        for series in reversed(self._series.values()):
            if series[_NUMBER] <= number:
                break
            found.append(EventSeries(*series))
        return found[::-1]
