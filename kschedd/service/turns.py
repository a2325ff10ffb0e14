"""Fair scheduling of the clients' work: limited slots, and time slices on the event loop.

A `FairLimiter` has a fixed number of slots in total, and a maximum number per client. The next slot is for the waiting
client that has recently held slots for the shortest time; equal clients take turns. The tenth request of a busy client
is therefore served after the first request of every other client. Small requests are served before large requests,
however many clients have large ones.

`Turns` is a FairLimiter with one slot, for long work on the event loop: a generator that yields where it can be paused.
The work runs in slices of a few milliseconds; between slices, the event loop and other clients run. The event loop is
therefore blocked for one slice at most, even if many clients have long work.

Owns: the waiting tasks. When a client disconnects, its tasks are cancelled and release their slots.
"""

import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager
from typing import TypeVar

import attrs
import trio

from kschedd.values import run_steps

T = TypeVar("T")

SLICE_S = 0.003
_MEMORY_S = 5.0  # earlier use of slots is not counted


@attrs.define(eq=False)
class _Waiting:
    granted: trio.Event = attrs.field(factory=trio.Event)


class FairLimiter:
    """A limiter that distributes slots fairly among clients. `share` is the maximum number of slots per client."""

    def __init__(self, slots: int, share: int | None = None, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._free = slots
        self._share = slots if share is None else share
        self._held: Counter[str] = Counter()
        self._took_s: dict[str, float] = {}  # by client: seconds for which it has held slots since `_since`
        self._begun: dict[str, deque[float]] = {}  # by client: start time of each slot that it holds
        self._since = 0.0
        self._waiting: OrderedDict[str, deque[_Waiting]] = OrderedDict()

    @property
    def held(self) -> int:
        return self._held.total()

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    async def acquire(self, client: str) -> None:
        """Wait for a slot, which the caller must `release`."""
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
        self._took_s[client] = self._took_s.get(client, 0.0) + self._now() - self._begun[client].popleft()
        self._held[client] -= 1
        if not self._held[client]:
            del self._held[client], self._begun[client]
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
            candidates = [name for name in self._waiting if self._held[name] < self._share]
            if not candidates:
                return
            now = self._now()
            if now - self._since > _MEMORY_S:
                self._took_s.clear()
                self._since = now
            client = min(candidates, key=lambda name: self._took_s.get(name, 0.0))
            queue = self._waiting[client]
            queue.popleft().granted.set()
            if queue:
                self._waiting.move_to_end(client)
            else:
                del self._waiting[client]
            self._held[client] += 1
            self._begun.setdefault(client, deque()).append(now)
            self._free -= 1

    def _forget(self, client: str, waiting: _Waiting) -> None:
        queue = self._waiting[client]
        queue.remove(waiting)
        if not queue:
            del self._waiting[client]


class Turns:
    """Time slices for long work on the event loop. `slices` is the number of slices that have run."""

    def __init__(self, slice_s: float = SLICE_S) -> None:
        self._limiter = FairLimiter(1)
        self._slice_s = slice_s
        self.slices = 0

    async def drive(self, client: str, work: Generator[None, None, T]) -> T:
        """Run the generator in the time slices of the client; return the result of the generator."""
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
        """Run the body of the `with` statement as one turn of this client.

        The event loop runs one iteration between two slices.
        """
        async with self._limiter.slot(client):
            self.slices += 1
            yield
            # One iteration of the event loop lets all other tasks run first.
            await trio.lowlevel.cancel_shielded_checkpoint()


class Uninterrupted(Turns):
    """Time slices for a single caller without an event loop: the work runs without pauses."""

    async def drive(self, client: str, work: Generator[None, None, T]) -> T:
        return run_steps(work)
