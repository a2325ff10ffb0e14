"""A bounded pool of threads for client work that cannot be sliced: parsing manifests, dry runs on a fork.

Each client has at most one thread at a time, and waiting work is served round-robin by client, so a busy client delays
only itself. If a client disconnects, its work is abandoned: the next call of `GivenUp.check` raises. Without such a
call the thread runs on and keeps its slot until its work is done, so the pool never exceeds its size.

Owns: its threads' slots.  Ends: with the daemon, which does not wait for abandoned threads.
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
    """Raised to end abandoned work, because its result has no receiver. Never reaches a caller."""


@attrs.define(eq=False)
class GivenUp:
    """The cancellation token of a piece of work, which the work's thread checks regularly.

    With `pausing`, a check also pauses the thread for a moment from time to time. A thread that calls numpy often
    releases the interpreter lock for too short a time for the event loop to take it, and resets the switch interval.
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
    """An executor of work for clients."""

    async def run(self, client: str, work: Callable[[GivenUp], T]) -> T:
        """Run `work` and return its result or raise its exception."""

    async def run_apart(self, work: Callable[[], T], limiter: trio.CapacityLimiter) -> T:
        """Run work that takes long but little CPU. It takes no client's slot, only a token of `limiter`."""


class AtOnce:
    """An executor that runs work in the caller's thread, for callers that may block."""

    async def run(self, client: str, work: Callable[[GivenUp], T]) -> T:
        return work(GivenUp())

    async def run_apart(self, work: Callable[[], T], limiter: trio.CapacityLimiter) -> T:
        return work()


class WorkerPool:
    def __init__(self, threads: int = THREADS) -> None:
        self.slots = FairLimiter(threads, share=1)
        self._threads = trio.CapacityLimiter(math.inf)  # the slots already limit the number of threads

    async def run(self, client: str, work: Callable[[GivenUp], T]) -> T:
        """Run `work` in a thread once this client has a slot; return its result or raise its exception."""
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
                    pass  # the daemon has ended in the meantime

        try:
            return await in_thread(work_and_release, abandon_on_cancel=True, limiter=self._threads)
        finally:
            given_up.is_so = True
            if not slot.threads_own:
                slot.release()  # cancelled before the thread was started

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
    """The resources that all clients of HTTP and the socket share: time on the event loop, threads, slots for lists.

    `large` are the slots for answers that grow with the cluster: four slots, at most one per client.
    """

    turns: Turns = attrs.field(factory=Turns)
    workers: WorkerPool = attrs.field(factory=WorkerPool)
    large: FairLimiter = attrs.field(factory=lambda: FairLimiter(4, share=1))
