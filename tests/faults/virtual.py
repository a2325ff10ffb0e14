"""Order and time from a seed: Trio's choice of the next task, threads, and the stopwatches of slices.

Time is that of Trio's mock clock, which jumps to the next deadline when all tasks wait. Work for threads runs on the
event loop, after a random delay. A stopwatch (`time.perf_counter`) advances by a random step at each reading, so that
slices of work can end anywhere.
"""

import random
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from unittest import mock

import attrs
import trio
import trio._core._run  # private: the generator that orders tasks, which Hypothesis seeds in the same way
import trio.testing

T = TypeVar("T")


@attrs.frozen(eq=False)
class VirtualThreads:
    """Threads that start and finish at random virtual times; their work itself takes no virtual time."""

    _chance: random.Random

    async def run(self, work: Callable[[], T], *, abandon_on_cancel: bool, limiter: trio.CapacityLimiter | None) -> T:
        limiter = limiter or trio.CapacityLimiter(1)
        with trio.CancelScope(shield=not abandon_on_cancel):
            async with limiter:
                await trio.sleep(self._delay())
                try:
                    return work()
                finally:
                    await trio.sleep(self._delay())

    def _delay(self) -> float:
        return self._chance.choice((0.0, 0.0001, 0.001, 0.01)) * self._chance.random()


@contextmanager
def _stopwatches(chance: random.Random) -> Iterator[None]:
    now = 0.0

    def look() -> float:
        nonlocal now
        now += chance.choice((0.0, 0.00001, 0.002, 0.01))
        return now

    with mock.patch.object(time, "perf_counter", look), mock.patch.object(time, "monotonic", look):
        yield


def run_from_seed(main: Callable[[], Awaitable[T]], seed: int) -> T:
    """Run the main task with order and time determined by the seed."""
    run = trio._core._run
    with _stopwatches(random.Random(f"stopwatches {seed}")):
        was = run._ALLOW_DETERMINISTIC_SCHEDULING
        run._ALLOW_DETERMINISTIC_SCHEDULING = True
        run._r.seed(seed)
        try:
            return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
        finally:
            run._ALLOW_DETERMINISTIC_SCHEDULING = was
