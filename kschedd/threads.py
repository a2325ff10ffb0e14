"""Threads behind a small Protocol: callers use `in_thread` to run work in a thread.

A Trio run has one `Threads`: Trio's own threads, unless `use_threads` has set other threads. A simulation runs the work
on the event loop, after a delay of virtual time, so that the seed determines the order of all work.
"""

from collections.abc import Callable
from typing import Final, Protocol, TypeVar

import trio

T = TypeVar("T")


class Threads(Protocol):
    async def run(
        self, work: Callable[[], T], /, *, abandon_on_cancel: bool, limiter: trio.CapacityLimiter | None
    ) -> T:
        """Return the result of `work` or raise its exception; see trio.to_thread.run_sync."""


class TrioThreads:
    async def run(self, work: Callable[[], T], *, abandon_on_cancel: bool, limiter: trio.CapacityLimiter | None) -> T:
        return await trio.to_thread.run_sync(work, abandon_on_cancel=abandon_on_cancel, limiter=limiter)


_THREADS: Final = trio.lowlevel.RunVar[Threads]("threads", TrioThreads())


def use_threads(threads: Threads) -> None:
    """Use these threads until the end of this Trio run."""
    _THREADS.set(threads)


async def in_thread(
    work: Callable[[], T], *, abandon_on_cancel: bool = False, limiter: trio.CapacityLimiter | None = None
) -> T:
    return await _THREADS.get().run(work, abandon_on_cancel=abandon_on_cancel, limiter=limiter)
