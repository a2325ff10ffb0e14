"""Tests that the current parallelism limits the number of active filter workers."""

import threading
from collections.abc import Sequence

import pytest
import trio

from kschedd.actors.scheduler.filter_workers import FilterWorkers
from kschedd.framework.exclusion import SchedulerLock


class Counted:
    """Shards that record how many of them run at the same time. Each waits until `together` shards run."""

    def __init__(self, together: int) -> None:
        self._lock = threading.Lock()
        self._met = threading.Barrier(together)
        self._running = 0
        self.most = 0

    def __call__(self) -> int:
        with self._lock:
            self._running += 1
            self.most = max(self.most, self._running)
        place = self._met.wait(30)
        with self._lock:
            self._running -= 1
        return place


async def test_parallelism_is_raised_and_lowered() -> None:
    async with trio.open_nursery() as nursery:
        workers = FilterWorkers(1, 30, SchedulerLock(), nursery)

        async def most_of(shards: int, parallelism: int, together: int) -> int:
            counted = Counted(together)
            work: Sequence[Counted] = [counted] * shards
            with trio.fail_after(60):
                await workers.run(work, parallelism)
            return counted.most

        assert await most_of(2, 1, 1) == 1
        assert workers.started == 1
        assert await most_of(6, 3, 3) == 3
        assert workers.started == 3
        assert await most_of(4, 2, 2) == 2
        assert await most_of(3, 1, 1) == 1
        assert workers.started == 3  # idle workers wait
        assert await most_of(2, 16, 2) == 2
        assert workers.started == 3  # at most one worker per shard
        workers.close()


async def test_once_a_shard_has_failed_those_that_have_not_begun_are_not_done() -> None:
    done: list[int] = []

    def fails() -> None:
        raise ValueError("boom")

    async with trio.open_nursery() as nursery:
        workers = FilterWorkers(1, 30, SchedulerLock(), nursery)
        with pytest.raises(ValueError, match="boom"):
            await workers.run([lambda: done.append(1), fails, lambda: done.append(3)], 1)
        assert done == [1]
        await workers.run([lambda: done.append(4)], 1)
        assert done == [1, 4]
        workers.close()
