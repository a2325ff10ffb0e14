"""LogActor: stores the log of events and moves, and notifies subscribers of the scheduler's log entries.

Receives: batches of entries from the scheduling actor and the queue; `OwnerQuery` over the log. Sends: notifications to
subscribers; if a real cluster is scheduled, its Events to the task that writes them there. Owns: the Log. Ends: when
the channel's last sender closes.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import attrs
import trio

from kschedd.actors.mailbox import OwnerQuery, batch_from
from kschedd.log.events import SchedulerEvent, event_of
from kschedd.log.log import Entry, Log
from kschedd.queue.entry import Move

_MOST = 64

Message = Sequence[Entry] | OwnerQuery[Log, Any]


@attrs.define(eq=False)
class LogActor:
    _log: Log
    _inbox: trio.MemoryReceiveChannel[Message]
    _onward: "trio.MemorySendChannel[Sequence[SchedulerEvent]] | None" = None

    async def run(self) -> None:
        with self._inbox, nullcontext() if self._onward is None else self._onward:
            try:
                while True:
                    await self._take(await batch_from(self._inbox, _MOST))
            except trio.EndOfChannel:
                for subscriber in self._log.subscribers:
                    subscriber.close()

    async def _take(self, batch: Sequence[Message]) -> None:
        log = self._log
        for message in batch:
            if isinstance(message, OwnerQuery):
                message.evaluate(log)
                message.reply.publish()
            else:
                log.extend(message)
                if self._onward is not None and (events := _events(message)):
                    await self._onward.send(events)  # the receiver never waits
        if log.subscribers:
            log.ring()


def _events(entries: Sequence[Entry]) -> list[SchedulerEvent]:
    events = [event_of(entry) for entry in entries if not isinstance(entry, Move)]
    return [event for event in events if event is not None]
