"""Time control: moves virtual time from one due event to the next.

The time does not move while any actor is at work. When no actor is at work, the time moves to the earliest time for
which a task waits: the end of a backoff, the completion of a pod, a Permit timeout. Every timer therefore fires at its
exact time.

Owns: the order of concurrent callers, which run one after the other. Uses: the clock, and the actors, which report
whether they are at work. Ends: with each call; a cancelled call stops the time where it is. Errors: NotVirtual.
"""

import math
from collections.abc import Awaitable, Callable
from enum import Enum

import attrs
import trio

from kschedd.actors.clock import Clock
from kschedd.actors.threads import any_at_work
from kschedd.errors import KscheddError

_BUSY_S = 0.001  # interval in seconds of the checks while threads are at work


@attrs.define(eq=False)
class NotVirtual(KscheddError, rpc_code="conflict"):
    """The time of the cluster is not virtual, so that it cannot be advanced on request."""

    speed: float

    def __str__(self) -> str:
        return f"time runs by itself at {self.speed:g}x: make it virtual first with `time virtual`"


class Moved(Enum):
    """The reason why the time stopped moving."""

    REACHED = "reached"  # it is the requested time
    STOPPED = "stopped"  # the debugger stopped scheduling
    NOTHING_DUE = "nothing due"  # no task waits for a time


@attrs.define(eq=False)
class TimeControl:
    """The control of a cluster's virtual time.

    `going_on` returns whether any actor is at work. `stops` returns the number of the debugger's stops so far.
    """

    clock: Clock
    going_on: Callable[[], Awaitable[bool]]
    stops: Callable[[], Awaitable[int]]
    moved: Callable[[], None]  # callback after each advance of the time, before tasks observe the new time
    _turn: trio.Lock = attrs.field(factory=trio.Lock)

    async def set_speed(self, speed: float) -> None:
        """Set the speed at which time passes; with 0, it only moves on request."""
        self.clock.set_speed(speed)
        self.moved()

    def move_to(self, at_s: float) -> bool:
        """Move the time forward to `at_s` at once, at any speed; return whether it was earlier."""
        if self.clock.now() >= at_s:
            return False
        self.clock.move_to(at_s)
        self.moved()
        return True

    async def advance(self, until_s: float | None, on_moved: Callable[[], Awaitable[None]]) -> Moved:
        """Move the time to `until_s` (None: without a limit), or until the debugger stops scheduling.

        `on_moved` is called after each move. Raises NotVirtual.
        """
        end = math.inf if until_s is None else until_s
        async with self._turn:
            stops = await self.stops()
            await self.until_idle()
            while await self.stops() == stops:
                self._virtual()
                due = self.clock.next_deadline()
                if due is None and until_s is None:
                    return Moved.NOTHING_DUE
                if due is None or due > end:
                    self.clock.move_to(end)
                    self.moved()
                    await self.until_idle()
                    return Moved.REACHED
                self.clock.move_to(due)
                self.moved()
                await self.until_idle()
                await on_moved()
            return Moved.STOPPED

    def _virtual(self) -> None:
        if not self.clock.is_virtual:
            raise NotVirtual(self.clock.speed)

    async def until_idle(self) -> None:
        """Wait until no task has work at the current time."""
        from trio.testing import wait_all_tasks_blocked  # part of Trio's scheduler, although it is in `trio.testing`

        while True:
            busy = await self.going_on()
            await wait_all_tasks_blocked()
            if not busy and not any_at_work():
                return
            await trio.sleep(_BUSY_S)
