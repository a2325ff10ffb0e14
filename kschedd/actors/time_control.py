"""Time control: moves the cluster's time where it is virtual, from one thing that is due to the next.

Time stands still while anything is going on, and then is what the next of all waits of the cluster is for: a backoff
that ends, a pod that completes, a Permit timeout. So nothing is late, and all that a time causes happens at that time.

Owns: nothing but the order of those who move time at once: one after the other. Talks to: the clock, and the actors, by
asking whether something is going on. Ends: with each call; one that is cancelled leaves time as far as it got.
Errors: NotVirtual.
"""

import math
from collections.abc import Awaitable, Callable
from enum import Enum

import attrs
import trio

from kschedd.actors.clock import Clock
from kschedd.actors.threads import any_at_work
from kschedd.errors import KscheddError

_BUSY_S = 0.001  # between two looks while threads are at work


@attrs.define(eq=False)
class NotVirtual(KscheddError, rpc_code="conflict"):
    """Time passes by itself, so that nobody may move it."""

    speed: float

    def __str__(self) -> str:
        return f"time passes by itself, at {self.speed:g}x: make it virtual first, by `time virtual`"


class Moved(Enum):
    """Why time was moved no further."""

    REACHED = "reached"  # it is the time that was asked for
    STOPPED = "stopped"  # the debugger has stopped scheduling
    NOTHING_DUE = "nothing due"  # nobody waits for any time


@attrs.define(eq=False)
class TimeControl:
    """See the module. `going_on`: whether actors are at work; `stops`: number of the debugger's stops up to now."""

    clock: Clock
    going_on: Callable[[], Awaitable[bool]]
    stops: Callable[[], Awaitable[int]]
    moved: Callable[[], None]  # called after each move, before anybody acts on it
    _turn: trio.Lock = attrs.field(factory=trio.Lock)

    async def set_speed(self, speed: float) -> None:
        """Let time pass at this speed from now on; 0: let it stand still."""
        self.clock.set_speed(speed)
        self.moved()

    async def advance(self, until_s: float | None, told: Callable[[], Awaitable[None]]) -> Moved:
        """Move time to `until_s`, or without end (None), unless the debugger stops scheduling; `told` after each move.

        Raises NotVirtual.
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
                await told()
            return Moved.STOPPED

    def _virtual(self) -> None:
        if not self.clock.is_virtual:
            raise NotVirtual(self.clock.speed)

    async def until_idle(self) -> None:
        """Wait until nobody has anything left to do at this time."""
        from trio.testing import wait_all_tasks_blocked  # a part of Trio's scheduler, not of its test doubles

        while True:
            busy = await self.going_on()
            await wait_all_tasks_blocked()
            if not busy and not any_at_work():
                return
            await trio.sleep(_BUSY_S)
