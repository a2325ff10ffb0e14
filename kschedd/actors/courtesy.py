"""Courtesy: busy tasks on the event loop yield in favor of small requests.

A request takes several rounds of the loop: it is read, passed to the owner of the state, answered, and sent. While the
scheduler has enough work for the whole loop, each of these rounds would wait for one of its slices. After a slice, the
scheduler therefore lets several rounds pass if a request began a moment ago. The extra rounds cost a fraction of a
slice.

The sessions, which record the start of requests, share this object with the actors that work in slices.
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
