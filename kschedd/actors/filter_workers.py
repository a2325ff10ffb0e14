"""FilterWorker: runs shards of plain Python plugins' work, each in a worker thread with a time limit. There are N of
them.

Receives: `Job`.  Sends: its answer, or PluginTimeout where it took longer than the limit.
Owns: nothing between jobs.  Ends: when the scheduling actor closes the channel.
Fails: a plugin's exceptions are contained in the shard; a shard that hangs is left to its thread.

Shards that work on columns never come here: numpy on a few thousand rows takes less time than the way.
"""

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import trio

from kschedd.actors.mailbox import Reply
from kschedd.framework.guard import GuardedCall

Shard = Callable[[], Any]


@attrs.frozen(eq=False)
class Job:
    shard: Shard
    reply: Reply[Any]


@attrs.define(eq=False)
class FilterWorker:
    _inbox: trio.MemoryReceiveChannel[Job]
    _limit_s: float
    # As many threads as there are workers, and those that hang.
    _limiter: trio.CapacityLimiter

    async def run(self) -> None:
        async with self._inbox:
            async for job in self._inbox:
                await self._work(job)

    async def _work(self, job: Job) -> None:
        call = GuardedCall()
        answer: Any = None
        with trio.move_on_after(self._limit_s) as limit:
            try:
                answer = await trio.to_thread.run_sync(
                    call.run, job.shard, abandon_on_cancel=True, limiter=self._limiter
                )
            except Exception as fault:  # raised where the answer is awaited
                job.reply.refuse(fault)
                return
        if limit.cancelled_caught:
            job.reply.refuse(call.give_up(self._limit_s))
        else:
            job.reply.give(answer)


@attrs.frozen(eq=False)
class FilterWorkers:
    """All of them, for the scheduling actor."""

    _send: "trio.MemorySendChannel[Job]"

    async def run(self, shards: Sequence[Shard]) -> list[Any]:
        """The answers of all shards, in their order. Raises PluginTimeout if one takes too long."""
        jobs = [Job(shard, Reply()) for shard in shards]
        for job in jobs:
            await self._send.send(job)
        return [await job.reply.value() for job in jobs]

    def close(self) -> None:
        self._send.close()
