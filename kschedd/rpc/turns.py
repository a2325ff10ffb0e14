"""Slots that clients share fairly, and the slices of work that are done in them.

A `FairLimiter` has so many slots, and no client holds more than its share. Whoever waits is served client by client,
round and round: the tenth request of a client that asks a lot comes after the first of one that asks little.

`Turns` is one such slot, for work on the event loop that takes longer than others may be held up: a generator that
yields wherever it may be left. It runs for a few milliseconds at a time, and the loop and the other clients have their
turn in between; so however many clients ask for a lot at once, the loop is held for one slice only.

Owns: who waits.  Talks to nobody.  Ends: never; a client that leaves is cancelled, and gives back what it holds.
"""

import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager
from typing import TypeVar

import attrs
import trio

T = TypeVar("T")

SLICE_S = 0.003


@attrs.define(eq=False)
class _Waiting:
    granted: trio.Event = attrs.field(factory=trio.Event)


class FairLimiter:
    """See the module. `share` is how many slots one client may hold."""

    def __init__(self, slots: int, share: int | None = None) -> None:
        self._free = slots
        self._share = slots if share is None else share
        self._held: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[_Waiting]] = OrderedDict()

    @property
    def held(self) -> int:
        return self._held.total()

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    async def acquire(self, client: str) -> None:
        """Wait for a slot; whoever has one must `release` it."""
        await trio.lowlevel.checkpoint_if_cancelled()
        waiting = _Waiting()
        self._waiting.setdefault(client, deque()).append(waiting)
        self._grant()
        try:
            await waiting.granted.wait()
        except BaseException:
            if waiting.granted.is_set():
                self.release(client)
            else:
                self._forget(client, waiting)
            raise

    def release(self, client: str) -> None:
        assert self._held[client] > 0, f"{client} is expected to hold a slot"
        self._held[client] -= 1
        if not self._held[client]:
            del self._held[client]
        self._free += 1
        self._grant()

    @asynccontextmanager
    async def slot(self, client: str) -> AsyncIterator[None]:
        await self.acquire(client)
        try:
            yield
        finally:
            self.release(client)

    def _grant(self) -> None:
        while self._free:
            client = next((name for name in self._waiting if self._held[name] < self._share), None)
            if client is None:
                return
            queue = self._waiting[client]
            queue.popleft().granted.set()
            if queue:
                self._waiting.move_to_end(client)
            else:
                del self._waiting[client]
            self._held[client] += 1
            self._free -= 1

    def _forget(self, client: str, waiting: _Waiting) -> None:
        queue = self._waiting[client]
        queue.remove(waiting)
        if not queue:
            del self._waiting[client]


class Turns:
    """See the module. `slices` counts how often somebody had a turn."""

    def __init__(self, slice_s: float = SLICE_S) -> None:
        self._limiter = FairLimiter(1)
        self._slice_s = slice_s
        self.slices = 0

    async def drive(self, client: str, work: Generator[None, None, T]) -> T:
        """What the generator returns; it runs in this client's turns."""
        while True:
            async with self.turn(client):
                pause = time.perf_counter() + self._slice_s
                while True:
                    try:
                        next(work)
                    except StopIteration as done:
                        value: T = done.value
                        return value
                    if time.perf_counter() >= pause:
                        break

    @asynccontextmanager
    async def turn(self, client: str) -> AsyncIterator[None]:
        """This client's turn, for one slice. A round of the loop lies between two of them."""
        async with self._limiter.slot(client):
            self.slices += 1
            yield
            # Whoever waits runs in the next round: let everybody else have this one first.
            await trio.lowlevel.cancel_shielded_checkpoint()
