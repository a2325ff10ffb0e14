"""Courtesy: lets busy tasks on the event loop yield to small requests.

A request takes several iterations of the event loop: it is read, passed to an actor, answered, and sent back. While the
scheduler is busy, each of these iterations would wait for one of the scheduler's slices. If a request has just begun,
the scheduler therefore lets several iterations run after a slice. The additional iterations cost a fraction of a slice.

Sessions record the start of requests in a Courtesy object; actors that work in slices read it.
"""

import time
from collections.abc import Awaitable, Callable

import attrs
import trio

_ROUNDS = 4  # number of iterations from a request's first byte to its answer
_MOMENT_S = 0.05


@attrs.define(eq=False)
class Courtesy:
    _now: Callable[[], float] = time.perf_counter
    _until: float = attrs.field(default=0.0, init=False)

    def request_began(self) -> None:
        """Record that a request has begun."""
        self._until = self._now() + _MOMENT_S

    async def pause(self, meanwhile: Callable[[], Awaitable[None]] | None = None) -> None:
        """Let other tasks run between two slices; for several iterations if a request is waiting.

        `meanwhile` is called between these iterations.
        """
        await trio.lowlevel.checkpoint()
        if self._now() < self._until:
            for _ in range(_ROUNDS - 1):
                if meanwhile is not None:
                    await meanwhile()
                await trio.lowlevel.checkpoint()
