"""RemoteEventsActor: writes the scheduler's events about pods as Events of a real cluster.

Receives: batches of `SchedulerEvent` from the log's actor, without delaying it. Sends: Events to the API server, at
most `_WRITERS` at the same time, because requests that arrive together cost the server less than single ones.
Owns: the waiting events, and the series. Ends: at most a few seconds after its sender has closed.

Fails: Events never delay scheduling. An Event that the server rejects is dropped. While the server cannot be reached,
events wait; above a limit, the oldest are dropped. Each kind of drop is logged once.

Source: Kubernetes v1.34, client-go/tools/events (event_broadcaster.go), scheduler/schedule_one.go.
"""

import random
from collections import deque
from collections.abc import Sequence
from typing import Final

import attrs
import structlog
import trio

from kschedd.actors.clock import Clock
from kschedd.live.api_server import ApiServer
from kschedd.live.errors import LiveError
from kschedd.live.event_series import SWEEP_S, EventCorrelator, WrittenEvent
from kschedd.live.rate_limit import RateLimit
from kschedd.live.write_order import WriteOrder
from kschedd.log.events import SchedulerEvent

log = structlog.get_logger("kschedd.events")

_WAITING: Final = 1000
_WRITERS: Final = 4
_TRIES: Final = 12
_PAUSE_S: Final = 10.0
_ENDING_S: Final = 2.0
_NOT_FOUND, _TOO_MANY, _SERVER_FAILED = 404, 429, 500


@attrs.define(eq=False)
class RemoteEventsActor:
    _inbox: trio.MemoryReceiveChannel[Sequence[SchedulerEvent]]
    _server: ApiServer
    _clock: Clock
    _rate: RateLimit
    _correlator: EventCorrelator
    _waiting: deque[SchedulerEvent] = attrs.field(factory=deque, init=False)
    _writers: int = attrs.field(default=0, init=False)  # number of tasks that write waiting events
    _order: WriteOrder = attrs.field(factory=WriteOrder, init=False)  # of the requests for each Event
    _more: trio.Event = attrs.field(factory=trio.Event, init=False)
    _is_behind: bool = attrs.field(default=False, init=False)
    _is_ending: bool = attrs.field(default=False, init=False)
    # HTTP status codes of rejections that were already logged
    _refused: set[int] = attrs.field(factory=set, init=False)

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            writing = trio.CancelScope()
            nursery.start_soon(self._write_all, writing)
            with self._inbox:
                async for batch in self._inbox:
                    self._take(batch)
            self._is_ending = True
            self._more.set()
            writing.deadline = trio.current_time() + _ENDING_S

    def _take(self, batch: Sequence[SchedulerEvent]) -> None:
        self._waiting.extend(batch)
        over = len(self._waiting) - _WAITING
        for _ in range(over):
            self._waiting.popleft()
        if over > 0 and not self._is_behind:
            log.warning("events_dropped", why="the API server accepts events more slowly than they occur")
        self._is_behind = over > 0 or (self._is_behind and bool(self._waiting))
        self._more.set()

    async def _write_all(self, scope: trio.CancelScope) -> None:
        with scope:
            async with trio.open_nursery() as nursery:
                while True:
                    for _ in range(min(len(self._waiting), _WRITERS - self._writers)):
                        self._writers += 1
                        nursery.start_soon(self._write_waiting)
                    if self._is_ending:
                        return
                    self._more = trio.Event()
                    with trio.move_on_after(SWEEP_S):
                        await self._more.wait()
                    for written in self._correlator.sweep(self._clock.now()):
                        await self._write(written)

    async def _write_waiting(self) -> None:
        """Write waiting events, one after the other, until there are none."""
        while self._waiting:
            written = self._correlator.take(self._waiting.popleft())
            if written is not None:
                await self._write(written)
        self._writers -= 1

    async def _write(self, event: WrittenEvent) -> None:
        with self._order.take((("Event", event.namespace, event.name),)) as turn:
            await turn.come()
            await self._send(event)

    async def _send(self, event: WrittenEvent) -> None:
        request = event.request
        for _ in range(_TRIES):
            try:
                await self._server.send(request, self._rate)
                return
            except LiveError as failure:
                if failure.code == _NOT_FOUND and request is event.request and event.anew is not None:
                    request = event.anew  # the Event has expired on the server
                    continue
                if 0 < failure.code < _SERVER_FAILED and failure.code != _TOO_MANY:
                    self._log_failure(failure)
                    return
            await trio.sleep(_PAUSE_S * random.uniform(0.75, 1.25))

    def _log_failure(self, failure: LiveError) -> None:
        if failure.code not in self._refused:
            self._refused.add(failure.code)
            log.warning("event_refused", why=failure.message or failure.why)
