"""Courtesy of those who have much to do on the event loop towards those who ask for little.

A request takes several rounds of the loop: it is read, handed to the owner of what it asks about, answered, sent. While
the scheduler has work for all of the loop, each round would take one of its slices. So after a slice it lets several
rounds pass if somebody has asked for something a moment ago; that costs a fraction of a slice.

Shared by the sessions, which note that a request has begun, and the actors that work in slices.
"""

import time

import attrs
import trio

_ROUNDS = 4  # from a request's first byte to its answer
_MOMENT_S = 0.05


@attrs.define(eq=False)
class Courtesy:
    _until: float = 0.0

    def asked(self) -> None:
        """A request has begun."""
        self._until = time.perf_counter() + _MOMENT_S

    async def pause(self) -> None:
        """Between two slices: let the others run, several times over if somebody waits for an answer."""
        await trio.lowlevel.checkpoint()
        if time.perf_counter() < self._until:
            for _ in range(_ROUNDS - 1):
                await trio.lowlevel.checkpoint()
