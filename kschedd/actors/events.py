"""EventsActor: the Events a user sees with `kubectl get events`, in memory: the latest, equal ones as one series.

Receives: batches of `SchedulerEvent` from the scheduling actor; `OwnerQuery` over the record.  Sends: rings to the
doorbells of its watchers; where a real cluster is scheduled, the same batches to whoever writes them there.
Owns: the EventRecord.  Ends: when its last sender closes.

Events are not objects of the store: every attempt emits one, and no scheduling code reads them. Messages are formatted
only when an event is read.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import attrs
import trio

from kschedd.actors.mailbox import Doorbell, OwnerQuery, batch_from
from kschedd.scheduling.records import SchedulerEvent

KEPT = 10_000  # event series; the least recently repeated one is evicted first
_MOST = 64

SOURCE = "default-scheduler"


@attrs.define(eq=False)
class EventSeries:
    """One series of equal events: count, first and last time. `number` is the sequence number of its last change and
    grows with every change of any series; `born`, the number of its first occurrence, identifies the series."""

    first: SchedulerEvent
    last_s: float
    count: int
    number: int
    born: int

    @property
    def message(self) -> str:
        return self.first.message


class EventRecord:
    """The latest events, equal ones merged into one series with a count. `instance` names this record: a number of
    another one means nothing here."""

    def __init__(self, kept: int = KEPT, instance: str = "") -> None:
        self._kept = kept
        self.instance = instance
        self._evicted = 0  # the latest number that a series had which is no longer kept
        self._told: OrderedDict[tuple[str, str, str, str, str], EventSeries] = OrderedDict()
        self.number = 0
        self.bells: set[Doorbell] = set()

    def __len__(self) -> int:
        return len(self._told)

    def extend(self, events: Iterable[SchedulerEvent]) -> None:
        """Record these events, which happened one after the other."""
        told = self._told
        for event in events:
            key = (event.reason, event.namespace, event.name, event.about, event.type)
            self.number += 1
            series = told.get(key)
            if series is None:
                told[key] = EventSeries(event, event.at_s, 1, self.number, self.number)
                if len(told) > self._kept:
                    self._evicted = told.popitem(last=False)[1].number
            else:
                series.last_s, series.number = event.at_s, self.number
                series.count += 1
                told.move_to_end(key)

    def latest(
        self, namespace: str | None = None, name: str | None = None, limit: int | None = None
    ) -> list[EventSeries]:
        """The events of these pods (None: all), oldest first."""
        found: list[EventSeries] = []
        for told in reversed(self._told.values()):
            if limit is not None and len(found) >= limit:
                break
            if namespace not in (None, told.first.namespace) or name not in (None, told.first.name):
                continue
            found.append(attrs.evolve(told))
        return found[::-1]

    def reaches_back_to(self, number: int, instance: str | None) -> bool:
        """Whether all that came after this number of that record (None: this one) is still here."""
        return instance in (None, self.instance) and self._evicted <= number <= self.number

    def since(self, number: int) -> list[EventSeries]:
        """The series that began or were repeated after this sequence number, in order."""
        found: list[EventSeries] = []
        for told in reversed(self._told.values()):
            if told.number <= number:
                break
            found.append(attrs.evolve(told))
        return found[::-1]


Message = Sequence[SchedulerEvent] | OwnerQuery[EventRecord, Any]


@attrs.define(eq=False)
class EventsActor:
    _record: EventRecord
    _inbox: trio.MemoryReceiveChannel[Message]
    _onward: "trio.MemorySendChannel[Sequence[SchedulerEvent]] | None" = None

    async def run(self) -> None:
        async with self._inbox, nullcontext() if self._onward is None else self._onward:
            try:
                while True:
                    await self._take(await batch_from(self._inbox, _MOST))
            except trio.EndOfChannel:
                for bell in self._record.bells:
                    bell.close()

    async def _take(self, batch: Sequence[Message]) -> None:
        before = self._record.number
        for message in batch:
            if isinstance(message, OwnerQuery):
                message.evaluate(self._record)
                message.reply.publish()
            else:
                self._record.extend(message)
                if self._onward is not None:
                    await self._onward.send(message)  # who receives them never waits
        if self._record.number != before:
            self._record.bells = {bell for bell in self._record.bells if not bell.closed}
            for bell in self._record.bells:
                bell.ring()
