"""Courtesy of those who have much to do on the event loop towards those who ask for little.

A request takes several rounds of the loop: it is read, handed to the owner of what it asks about, answered, sent. While
the scheduler has work for all of the loop, each round would take one of its slices. So after a slice it lets several
rounds pass if somebody has asked for something a moment ago; that costs a fraction of a slice.

Shared by the sessions, which note that a request has begun, and the actors that work in slices.
"""

import time
from collections.abc import Awaitable, Callable

import attrs
import trio

_ROUNDS = 4  # from a request's first byte to its answer
_MOMENT_S = 0.05


@attrs.define(eq=False)
class Courtesy:
    _now: Callable[[], float] = time.perf_counter
    _until: float = attrs.field(default=0.0, init=False)

    def asked(self) -> None:
        """A request has begun."""
        self._until = self._now() + _MOMENT_S

    async def pause(self, meanwhile: Callable[[], Awaitable[None]] | None = None) -> None:
        """Between two slices: let the others run, several times over if somebody waits for an answer. `meanwhile` is
        what the caller does for them in between."""
        await trio.lowlevel.checkpoint()
        if self._now() < self._until:
            for _ in range(_ROUNDS - 1):
                if meanwhile is not None:
                    await meanwhile()
                await trio.lowlevel.checkpoint()
