"""A bounded pool of threads for what a client asks and nobody can cut into slices: reading manifests, trying them out.

No client has more than one thread at a time, and those that wait are served client by client, so one that asks for a
lot waits for itself. A piece of work whose client has left is given up: `GivenUp.check` in it raises, where it looks;
where it does not, its thread goes on and counts until it is done, so the pool is never larger than it is.

Owns: its threads' slots.  Ends: with the daemon, which does not wait for threads that are given up.
"""

import math
from collections.abc import Callable
from typing import Protocol, TypeVar

import attrs
import trio

from kschedd.rpc.turns import FairLimiter

T = TypeVar("T")

THREADS = 2


class GivenUpError(Exception):
    """Nobody waits for this any more; ends the work, and is seen by nobody."""


@attrs.define(eq=False)
class GivenUp:
    """Whether a piece of work is still wanted; for its thread to look at now and then."""

    is_so: bool = False

    def check(self) -> None:
        if self.is_so:
            raise GivenUpError


class Workers(Protocol):
    """Where such work is done."""

    async def run(self, client: str, work: Callable[[GivenUp], T]) -> T:
        """What `work` returns or raises."""


class AtOnce:
    """Work is done where it is asked for: for whoever holds nobody up."""

    async def run(self, client: str, work: Callable[[GivenUp], T]) -> T:
        return work(GivenUp())


class WorkerPool:
    def __init__(self, threads: int = THREADS) -> None:
        self.slots = FairLimiter(threads, share=1)
        self._threads = trio.CapacityLimiter(math.inf)  # the slots are what bounds them

    async def run(self, client: str, work: Callable[[GivenUp], T]) -> T:
        """What `work` returns or raises, run in a thread of its own when it is this client's turn."""
        await self.slots.acquire(client)
        given_up = GivenUp()
        slot = _Slot(self.slots, client)
        loop = trio.lowlevel.current_trio_token()

        def in_thread() -> T:
            slot.threads_own = True
            try:
                return work(given_up)
            finally:
                try:
                    loop.run_sync_soon(slot.release)
                except trio.RunFinishedError:
                    pass  # the daemon has ended meanwhile

        try:
            return await trio.to_thread.run_sync(in_thread, abandon_on_cancel=True, limiter=self._threads)
        finally:
            given_up.is_so = True
            if not slot.threads_own:
                slot.release()  # cancelled before there was a thread


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
