"""A bounded pool of threads for work that cannot be divided into slices: parsing manifests, dry runs on a fork.

Each client has at most one thread at a time, and clients with waiting work take turns, so a busy client delays only
itself. If a client disconnects, its work is cancelled: the next call of `GivenUp.check` raises an error. If the work
never calls `check`, its thread keeps running and occupies its slot until the work is done.

At the end of the daemon, threads with cancelled work are not awaited.
"""

import math
from collections.abc import Callable
from time import perf_counter, sleep
from typing import Protocol, TypeVar

import attrs
import trio

from kschedd.service.turns import FairLimiter, Turns
from kschedd.threads import in_thread

T = TypeVar("T")

THREADS = 2
_PAUSE_EVERY_S = 0.004
_PAUSE_S = 0.0001


class GivenUpError(Exception):
    """The error that ends cancelled work. Never reaches a caller."""


@attrs.define(eq=False)
class GivenUp:
    """The cancellation token of a piece of work; the work's thread calls `check` regularly.

    With `pausing`, `check` also pauses the thread from time to time. Without pauses, a thread that often calls numpy
    releases the interpreter lock only for times that are too short for the event loop.
    """

    is_so: bool = False
    pausing: bool = False
    _paused_s: float = 0.0  # end of the last pause

    def check(self) -> None:
        if self.is_so:
            raise GivenUpError
        if self.pausing and perf_counter() - self._paused_s > _PAUSE_EVERY_S:
            sleep(_PAUSE_S)
            self._paused_s = perf_counter()


class Workers(Protocol):
    """Runs work for clients, outside the event loop."""

    async def run(self, client: str, work: Callable[[GivenUp], T]) -> T:
        """Run `work` and return its result or raise its exception."""

    async def run_apart(self, work: Callable[[], T], limiter: trio.CapacityLimiter) -> T:
        """Run work that takes long but needs little CPU.

        The work occupies a token of `limiter` instead of a slot of the client.
        """


class AtOnce:
    """Runs work in the caller's thread, which may block."""

    async def run(self, client: str, work: Callable[[GivenUp], T]) -> T:
        return work(GivenUp())

    async def run_apart(self, work: Callable[[], T], limiter: trio.CapacityLimiter) -> T:
        return work()


class WorkerPool:
    def __init__(self, threads: int = THREADS) -> None:
        self.slots = FairLimiter(threads, share=1)
        self._threads = trio.CapacityLimiter(math.inf)  # unlimited, because the slots limit the number of threads

    async def run(self, client: str, work: Callable[[GivenUp], T]) -> T:
        """Run `work` in a thread when the client has a slot; return its result or raise its exception."""
        await self.slots.acquire(client)
        given_up = GivenUp(pausing=True)
        slot = _Slot(self.slots, client)
        loop = trio.lowlevel.current_trio_token()

        def work_and_release() -> T:
            slot.threads_own = True
            try:
                return work(given_up)
            finally:
                try:
                    loop.run_sync_soon(slot.release)
                except trio.RunFinishedError:
                    pass  # the daemon has ended

        try:
            return await in_thread(work_and_release, abandon_on_cancel=True, limiter=self._threads)
        finally:
            given_up.is_so = True
            if not slot.threads_own:
                slot.release()  # cancelled before the thread started

    async def run_apart(self, work: Callable[[], T], limiter: trio.CapacityLimiter) -> T:
        return await in_thread(work, abandon_on_cancel=True, limiter=limiter)


@attrs.define(eq=False)
class _Slot:
    _slots: FairLimiter
    _client: str
    threads_own: bool = False
    _released: bool = False

    def release(self) -> None:
        if not self._released:
            self._released = True
            self._slots.release(self._client)


@attrs.define(eq=False)
class FairShares:
    """Resources that all clients of HTTP and the socket share: time on the event loop, threads, and slots for lists.

    `large` are the slots for answers that grow with the cluster: four slots, at most one per client.
    """

    turns: Turns = attrs.field(factory=Turns)
    workers: WorkerPool = attrs.field(factory=WorkerPool)
    large: FairLimiter = attrs.field(factory=lambda: FairLimiter(4, share=1))
