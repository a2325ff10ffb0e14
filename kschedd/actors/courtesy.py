"""Courtesy: lets busy tasks on the event loop yield to small requests.

A request takes several rounds of the loop: it is read, passed to the owner of the state, answered, and sent back. While
the scheduler has enough work for the whole loop, each of these rounds would wait for one of the scheduler's slices. If
a request has begun a moment ago, the scheduler therefore lets several rounds pass after a slice. The extra rounds cost
a fraction of a slice.

The sessions record the start of requests in a Courtesy object, which the actors that work in slices read.
"""

import time
from collections.abc import Awaitable, Callable

import attrs
import trio

_ROUNDS = 4  # number of rounds from a request's first byte to its answer
_MOMENT_S = 0.05


@attrs.define(eq=False)
class Courtesy:
    _now: Callable[[], float] = time.perf_counter
    _until: float = attrs.field(default=0.0, init=False)

    def request_began(self) -> None:
        """Record that a request has begun."""
        self._until = self._now() + _MOMENT_S

    async def pause(self, meanwhile: Callable[[], Awaitable[None]] | None = None) -> None:
        """Let other tasks run between two slices: for several rounds if a request waits for an answer.

        `meanwhile` is called between these rounds.
        """
        await trio.lowlevel.checkpoint()
        if self._now() < self._until:
            for _ in range(_ROUNDS - 1):
                if meanwhile is not None:
                    await meanwhile()
                await trio.lowlevel.checkpoint()
