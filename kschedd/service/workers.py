"""A bounded pool of threads for work that cannot be sliced: parsing manifests, dry runs on a fork.

Each client has at most one thread at a time, and clients with waiting work take turns, so a busy client delays only
itself. If a client disconnects, its work is cancelled: the next call of `GivenUp.check` raises an error. Without such a
call, the thread continues and keeps its slot until the work is done, so the pool never exceeds its size.

The pool contains the slots of its threads. It ends with the daemon, which does not wait for threads with cancelled
work.
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
    """Raised to end cancelled work, because nothing will receive its result. Never reaches a caller."""


@attrs.define(eq=False)
class GivenUp:
    """The cancellation token of a piece of work, which the thread of the work checks regularly.

    With `pausing`, a check also pauses the thread for a moment from time to time. Without such pauses, a thread that
    calls numpy often would release the interpreter lock only for times that are too short for the event loop to acquire
    it, and each release resets the switch interval.
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
        """Run work that takes a long time but little CPU.

        The work uses no slot of the client, only a token of `limiter`.
        """


class AtOnce:
    """Runs work in the caller's thread; for callers that may block."""

    async def run(self, client: str, work: Callable[[GivenUp], T]) -> T:
        return work(GivenUp())

    async def run_apart(self, work: Callable[[], T], limiter: trio.CapacityLimiter) -> T:
        return work()


class WorkerPool:
    def __init__(self, threads: int = THREADS) -> None:
        self.slots = FairLimiter(threads, share=1)
        self._threads = trio.CapacityLimiter(math.inf)  # the slots already limit the number of threads

    async def run(self, client: str, work: Callable[[GivenUp], T]) -> T:
        """Run `work` in a thread as soon as this client has a slot; return its result or raise its exception."""
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
    """Resources that all clients of HTTP and the socket share: time on the event loop, threads, and slots for lists.

    `large` are the slots for answers that grow with the cluster: four slots in total, one per client.
    """

    turns: Turns = attrs.field(factory=Turns)
    workers: WorkerPool = attrs.field(factory=WorkerPool)
    large: FairLimiter = attrs.field(factory=lambda: FairLimiter(4, share=1))
