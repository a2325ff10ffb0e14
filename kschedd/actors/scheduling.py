"""SchedulingActor: makes the decisions, one pod after the other, and keeps the scheduler's caches.

Receives: rings of the store's watch; `Popped` from the queue; `Answered` from the binding actor; `Expired` from permit
waiters; `Question` over its Progress.  Sends: `Report` to the queue, `Errands` to the binding actor, jobs to the filter
workers, what happened to the records.
Owns: the SchedulingMachine (caches, profiles, waiting pods), in a Progress.  Ends: when the store closes its watch;
then its channels close.  Fails: a fault of a plugin from elsewhere is the pod's; anything else is a bug.

Caches take in events between two attempts only. It works in short slices, so that the loop is never held for more
than a few milliseconds; and tells others once for each slice, not for each pod. Where plugins from elsewhere take
part, everything that may call them runs in a worker thread while this actor waits, so that the rest of the daemon
goes on.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

import attrs
import structlog
import trio

from kschedd.actors.binding import Answered, Errands
from kschedd.actors.clock import Clock
from kschedd.actors.decisions import Decision
from kschedd.actors.events import Happening
from kschedd.actors.filter_workers import FilterWorkers
from kschedd.actors.mailbox import Doorbell, Ending, Question, waiting_in
from kschedd.actors.permit import Expired, PermitWaiter
from kschedd.actors.progress import Outbox, Progress, Underway, send_on
from kschedd.actors.queue import MOST_POPPED, Popped, Report
from kschedd.actors.store import StoreClient, Watch
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.scheduler import Failed, Placed

log = structlog.get_logger("kschedd.scheduling")

T = TypeVar("T")
M = TypeVar("M")

_SLICE_S = 0.004
_MOST_EVENTS = 500  # taken in between two looks at the clock
_MOST = 64  # messages of one kind in a turn


@attrs.frozen(eq=False)
class Inboxes:
    """Where messages for the scheduling actor wait; who puts one in rings the bell."""

    popped: trio.MemoryReceiveChannel[Popped]
    answered: trio.MemoryReceiveChannel[Answered]
    expired: trio.MemoryReceiveChannel[Expired]
    expire: "trio.MemorySendChannel[Expired]"  # the other end, for the permit waiters it starts
    questions: trio.MemoryReceiveChannel[Question[Progress, Any]]


@attrs.frozen(eq=False)
class Outboxes:
    queue: "trio.MemorySendChannel[Report]"
    binding: "trio.MemorySendChannel[Errands]"
    events: "trio.MemorySendChannel[list[Happening]]"
    decisions: "trio.MemorySendChannel[list[Decision]]"
    workers: FilterWorkers

    def close(self) -> None:
        for way in (self.queue, self.binding, self.events, self.decisions, self.workers):
            way.close()


@attrs.define(eq=False)
class SchedulingActor:
    _progress: Progress
    _store: StoreClient
    _bell: Doorbell
    _inboxes: Inboxes
    _outboxes: Outboxes
    _clock: Clock
    _entries: deque[QueuedPod] = attrs.field(factory=deque, init=False)  # handed out to us, not tried yet
    _asked: bool = attrs.field(default=False, init=False)  # for pods, and no answer yet
    _waiters: dict[str, "trio.MemorySendChannel[float]"] = attrs.field(factory=dict, init=False)
    _strangers: bool = attrs.field(init=False)
    _watch: Watch = attrs.field(init=False)
    _nursery: trio.Nursery = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._strangers = self._progress.strangers

    async def run(self) -> None:
        try:
            async with trio.open_nursery() as self._nursery:
                self._watch = await self._store.watch(with_present=True, bell=self._bell)
                busy = True
                while not self._watch.ended and (busy or await self._bell.wait()):
                    busy = await self._turn()
                    if busy:
                        await trio.lowlevel.checkpoint()
                await self._finish()
                self._nursery.cancel_scope.cancel()
        finally:
            self._outboxes.close()
            self._inboxes.questions.close()
            self._store.close()

    async def _turn(self) -> bool:
        """Do what there is to do, for a slice of time; whether there is more."""
        pause = time.perf_counter() + _SLICE_S
        await self._take_in()
        await self._hear()
        if self._asked:
            for popped in waiting_in(self._inboxes.popped, 1):
                self._asked = False
                self._entries.extend(popped.entries)
                self._progress.nominated = popped.nominated
        while self._entries and not self._progress.renominated:
            await self._attempt(self._entries.popleft())
            if time.perf_counter() > pause:
                break
        await self._report()
        return bool(self._entries) or self._watch.behind

    async def _take_in(self) -> None:
        pause = time.perf_counter() + _SLICE_S
        while self._watch.behind:
            events = self._watch.take(_MOST_EVENTS)
            if events:
                await self._step(self._progress.take_in, events)
            if time.perf_counter() > pause:
                await self._report()
                await trio.lowlevel.checkpoint()
                pause = time.perf_counter() + _SLICE_S

    async def _hear(self) -> None:
        """Questions, answers to bindings, and patience that has ended."""
        progress = self._progress
        for question in waiting_in(self._inboxes.questions, _MOST):
            await self._step(question.work_out, progress)
            question.reply.announce()
            self._strangers = progress.strangers
        for answered in waiting_in(self._inboxes.answered, _MOST):
            for ticket, status in answered.answers:
                await self._step(progress.answered, ticket, status, self._clock.now())
        for expired in waiting_in(self._inboxes.expired, _MOST):
            self._expire(expired.uid)
        await self._release()

    # -- attempts ---------------------------------------------------------------------------------------------

    async def _attempt(self, entry: QueuedPod) -> None:
        progress = self._progress
        started = time.perf_counter()
        attempt = progress.begin(entry)
        if attempt is None:
            return
        try:
            shards, result = await self._step(send_on, attempt, None)
            while shards is not None:
                shards, result = await self._step(send_on, attempt, await self._outboxes.workers.run(shards))
        except Exception as fault:  # a stranger's, or else raised again
            attempt.close()
            result = progress.broken(entry, fault)
            log.warning("attempt_broken", pod=entry.key, why=result.message)
        assert isinstance(result, Placed | Failed)
        took = time.perf_counter() - started
        await self._step(progress.settle, entry, result, self._clock.now(), took)
        if progress.permits:
            await self._release()

    async def _step(self, work: Callable[..., T], *args: Any) -> T:
        """Run a part of the machine that may call plugins."""
        if not self._strangers:
            return work(*args)
        return await trio.to_thread.run_sync(work, *args)

    # -- pods that wait in Permit ---------------------------------------------------------------------------------

    async def _release(self) -> None:
        """Let the waiting pods go on that are decided, and have the new ones watched over."""
        progress = self._progress
        if not progress.permits:
            return
        while decided := progress.decided_permits():
            for underway in decided:
                waiter = self._waiters.pop(underway.uid, None)
                if waiter is not None:
                    waiter.close()
                await self._step(progress.advance, underway, None, self._clock.now())
        self._watch_over(progress.arrived)
        progress.arrived = []

    def _watch_over(self, arrived: list[Underway]) -> None:
        for underway in arrived:
            waiting = underway.reserved.waiting
            if waiting is None or underway.uid not in self._progress.permits:
                continue
            # One word at a time: the next comes only after the waiter has rung.
            send, receive = trio.open_memory_channel[float](1)
            self._waiters[underway.uid] = send
            waiter = PermitWaiter(
                underway.uid, waiting.deadline, self._clock, receive, self._inboxes.expire.clone(), self._bell
            )
            self._nursery.start_soon(waiter.run)

    def _expire(self, uid: str) -> None:
        """A waiter's time has come: reject the pod, unless the plugin whose time it was has let go meanwhile."""
        underway = self._progress.permits.get(uid)
        waiting = None if underway is None else underway.reserved.waiting
        if waiting is None or waiting.decided:
            return
        waiting.expire(self._clock.now())
        if not waiting.decided:
            self._waiters[uid].send_nowait(waiting.deadline)

    # -- telling others -------------------------------------------------------------------------------------------

    async def _report(self) -> None:
        progress = self._progress
        out, progress.out = progress.out, Outbox()
        wants = None
        if progress.renominated and self._entries:
            wants = 0
        elif not self._entries and not self._asked:
            wants = MOST_POPPED
            self._asked = True
        progress.renominated = False
        for settling, status in out.settled:
            try:
                settling.word.send_nowait(status)
            except trio.BrokenResourceError:
                pass  # its patience has just ended
        if out.done or out.items or wants is not None:
            await _send(self._outboxes.queue, Report(out.done, out.items, wants))
        if out.writes or out.evictions or out.carries:
            await _send(self._outboxes.binding, Errands(out.writes, out.evictions, out.carries))
        if out.happenings:
            await _send(self._outboxes.events, out.happenings)
        if out.decisions:
            await _send(self._outboxes.decisions, out.decisions)
        if wants == 0:
            progress.nominated = (await self._inboxes.popped.receive()).nominated

    async def _finish(self) -> None:
        """The store is ending: carry out what was decided, then hear no more."""
        self._asked = True  # no more pods
        self._entries.clear()
        await self._report()
        for settling in self._progress.settling.values():
            settling.word.close()
        self._outboxes.binding.close()
        async for answered in self._inboxes.answered:
            for ticket, status in answered.answers:
                await self._step(self._progress.answered, ticket, status, self._clock.now())
        await self._report_last()
        for question in waiting_in(self._inboxes.questions, _MOST):
            question.reply.refuse(Ending("scheduler"))

    async def _report_last(self) -> None:
        out, self._progress.out = self._progress.out, Outbox()
        if out.happenings:
            await _send(self._outboxes.events, out.happenings)


async def _send(channel: "trio.MemorySendChannel[M]", message: M) -> None:
    try:
        channel.send_nowait(message)  # most often there is room, and a checkpoint costs more than the send
    except trio.WouldBlock:
        await channel.send(message)
