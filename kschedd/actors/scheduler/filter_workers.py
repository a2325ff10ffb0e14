"""FilterWorker: runs shards of out-of-tree plugins that evaluate nodes one by one, each in a thread with a time limit.

There are `parallelism` workers, started on demand. If `parallelism` is lowered, fewer workers run at the same time.
Receives: `Job`. Sends: the result of the job, or PluginTimeout if the job exceeds the limit. Owns: nothing between
jobs. Ends: when the scheduling actor closes the channel. Fails: a plugin's exceptions are handled within the shard; the
thread of a hanging shard is abandoned.

In-tree plugins never run here: for a few thousand rows, numpy is faster than a switch of threads, and plain Python
gains nothing from threads with a common interpreter lock.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import attrs
import trio

from kschedd.actors.mailbox import Reply
from kschedd.framework.exclusion import SchedulerLock
from kschedd.framework.guard import GuardedCall
from kschedd.scheduling.filtering.filters import PluginBatch
from kschedd.threads import in_thread

Shard = Callable[[], Any]


@attrs.define(eq=False)
class Together:
    """The shards of one run: after one has failed, shards that have not begun fail with the same exception."""

    fault: Exception | None = None


@attrs.frozen(eq=False)
class Job:
    shard: Shard
    reply: Reply[Any]
    together: Together

    def refuse(self, fault: Exception) -> None:
        self.together.fault = self.together.fault or fault
        self.reply.refuse(fault)


@attrs.define(eq=False)
class FilterWorker:
    _inbox: trio.MemoryReceiveChannel[Job]
    _limit_s: float
    # limits the number of threads to one per worker; hanging threads are not included
    _limiter: trio.CapacityLimiter
    _lock: SchedulerLock
    _at_once: trio.CapacityLimiter

    async def run(self) -> None:
        with self._inbox:
            async for job in self._inbox:
                async with self._at_once:
                    await self._work(job)

    async def _work(self, job: Job) -> None:
        if job.together.fault is not None:
            job.reply.refuse(job.together.fault)
            return
        answer: Any = None
        if isinstance(job.shard, PluginBatch):
            call, limit_s = job.shard.guarded_call(self._lock), job.shard.limit_s
        else:
            call, limit_s = GuardedCall(scheduler=self._lock), self._limit_s
        with trio.move_on_after(limit_s) as limit:
            try:
                answer = await in_thread(partial(call.run, job.shard), abandon_on_cancel=True, limiter=self._limiter)
            except Exception as fault:  # raised again where the result is awaited
                job.refuse(fault)
                return
        if limit.cancelled_caught:
            job.refuse(call.give_up(limit_s))
        else:
            job.reply.give(answer)


class FilterWorkers:
    """The workers, as used by the scheduling actor. The workers run in `nursery`."""

    def __init__(self, at_once: int, limit_s: float, lock: SchedulerLock, nursery: trio.Nursery) -> None:
        # unbuffered, so that each worker takes one shard
        self._send, self._inbox = trio.open_memory_channel[Job](0)
        self._at_once = trio.CapacityLimiter(at_once)
        # unlimited, because the number of workers limits the threads, and a hanging thread must not occupy a slot
        self._threads = trio.CapacityLimiter(math.inf)
        self._limit_s, self._lock, self._nursery = limit_s, lock, nursery
        self.started = 0

    async def run(self, shards: Sequence[Shard], parallelism: int) -> list[Any]:
        """Return the results of all shards in order; at most `parallelism` shards run at the same time.

        Raises PluginTimeout if a shard exceeds the limit.
        """
        if shards and isinstance(shards[0], PluginBatch):
            parallelism = min(parallelism, shards[0].at_once or parallelism)
        self._at_once.total_tokens = parallelism
        while self.started < min(parallelism, len(shards)):
            self._start()
        together = Together()
        jobs = [Job(shard, Reply(), together) for shard in shards]
        for job in jobs:
            await self._send.send(job)
        return [await job.reply.value() for job in jobs]

    def _start(self) -> None:
        worker = FilterWorker(self._inbox.clone(), self._limit_s, self._threads, self._lock, self._at_once)
        self._nursery.start_soon(worker.run, name=f"filter worker {self.started}")
        self.started += 1

    def close(self) -> None:
        self._send.close()
        self._inbox.close()
