"""RemoteBindingActor: executes plans on a real API server.

Receives: `BindingBatch` messages from the scheduling actor. Sends: `Answered` messages to the scheduling actor, for
plans and failed evictions.

Owns: the pending writes, and the order of the writes to each object. Ends: when the sender has closed the channel and
all tasks of the actor have ended. If the local store shuts down, tasks that do not end within a few seconds are
cancelled.

Fails: if the server rejects a write or does not respond, the result is a Status with the server's message, and the pod
is tried again. Writes that the server forbids are logged once for each kind of write.

The writes of a plan are performed one after the other, until one is rejected. At most `_WORKERS` plans and single
writes are in progress; further ones wait in the order in which they arrived. Evictions, and plans that wait for the
cluster, are separate tasks, because they must not wait for bindings, or wait too long. The victims of a preemption are
evicted at the same time, except the last one, whose deletion requeues the preemptor. The mirror receives the effects of
the writes, also of a write that succeeded but whose response was lost.

Batches are received immediately, so that the scheduling actor never waits. If `_UNDER_WAY` plans and writes have not
ended, the scheduling actor pops no more pods from the queue until half of these have ended. The actor then attempts
pods in batches, which cost less per pod than single pods. A separate task collects and sends the results, so that no
write waits for the scheduling actor.
"""

import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import attrs
import structlog
import trio

from kschedd.actors.mailbox import Doorbell
from kschedd.actors.scheduler.api_call_metrics import ApiCallMetrics, Outcomes
from kschedd.actors.scheduler.binding import Answered, BindingBatch, BindingRequest, refused
from kschedd.api.pods import Pod
from kschedd.config.versions.rules import Rules
from kschedd.framework.status import Status, error
from kschedd.live.errors import LiveError
from kschedd.live.write_order import WriteOrder, WriteTurn
from kschedd.live.write_requests import key_written
from kschedd.live.writer import RemoteWriter, Written
from kschedd.scheduling.binding.cycle import ExecutePlan
from kschedd.scheduling.effects import Eviction
from kschedd.scheduling.preemption.eviction import EvictionOutcome
from kschedd.store.cluster_api import ClusterApi
from kschedd.store.trial import Key
from kschedd.store.writes import Patch, Write, is_sent_again, tries_of

log = structlog.get_logger("kschedd.binding")

_UNDER_WAY: Final = 128  # number of plans and writes that have not ended at which no more pods are attempted
_WORKERS: Final = 32  # maximum number of plans and single writes in progress
_ENDING_S: Final = 5.0
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_PAUSES_S: Final = (0.01, 0.05, 0.25)
_ENDING: Final = error("the daemon is shutting down: it has not waited for the API server's answer")
_NONE: Final = Outcomes(0, 0)
_Work = Callable[[Any, WriteTurn], Awaitable[None]]


@attrs.define(eq=False)
class RemoteBindingActor:
    _inbox: trio.MemoryReceiveChannel[BindingBatch]
    _store: ClusterApi
    _answers: "trio.MemorySendChannel[Answered]"
    _bell: Doorbell
    _limiter: trio.CapacityLimiter  # limiter of the number of plans that wait for earlier plans
    _writer: RemoteWriter
    _evictor: RemoteWriter  # writer for evictions, so that they do not wait for the answers to bindings
    _rules: Rules
    metrics: ApiCallMetrics = attrs.field(factory=ApiCallMetrics)
    _order: WriteOrder = attrs.field(factory=WriteOrder, init=False)
    _count: int = attrs.field(default=0, init=False)  # of plans and writes that have not ended
    _is_full: bool = attrs.field(default=False, init=False)
    _jobs: "deque[tuple[_Work, Any, WriteTurn]]" = attrs.field(factory=deque, init=False)
    _workers: int = attrs.field(default=0, init=False)  # number of tasks that perform jobs
    _begun: set[trio.CancelScope] = attrs.field(factory=set, init=False)
    _executed: list[tuple[str, Status | None]] = attrs.field(factory=list, init=False)  # not sent yet
    _failed_evictions: list[Pod] = attrs.field(factory=list, init=False)
    _more: Doorbell = attrs.field(factory=Doorbell, init=False)  # signal that there are results to send
    _forbidden: set[str] = attrs.field(factory=set, init=False)  # kinds of writes that were already logged as forbidden

    async def run(self) -> None:
        try:
            with self._inbox, self._answers:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._pass_on)
                    ending: trio.CancelScope = await nursery.start(self._give_up_at_end)
                    async with trio.open_nursery() as tasks:
                        async for batch in self._inbox:
                            self._begin(batch, tasks)
                    self._more.close()
                    ending.cancel()
        finally:
            self._store.close()

    @property
    def has_room(self) -> bool:
        """Return whether more pods should be attempted."""
        return not self._is_full

    def _begin(self, batch: BindingBatch, tasks: trio.Nursery) -> None:
        for write in batch.writes:
            self._jobs.append((self._write, write, self._turn([write])))
        for eviction in batch.evictions:
            tasks.start_soon(self._evict, eviction, self._turn(eviction.writes))
        for wanted in batch.plans:
            self._jobs.append((self._execute, wanted, self._turn(wanted.plan.writes)))
        for request in batch.requests:
            tasks.start_soon(self._execute_and_wait, request, self._turn(request.wanted.plan.writes))
        for _ in range(min(len(self._jobs), _WORKERS - self._workers)):
            self._workers += 1
            tasks.start_soon(self._perform_jobs)

    def _turn(self, writes: Sequence[Write]) -> WriteTurn:
        self._count += 1
        self._is_full = self._is_full or self._count >= _UNDER_WAY
        return self._order.take(map(key_written, writes))

    def _ended(self) -> None:
        self._count -= 1
        if self._is_full and self._count <= _UNDER_WAY // 2:
            self._is_full = False
            self._bell.ring()

    # -- tasks -------------------------------------------------------------------------------------------------------

    async def _perform_jobs(self) -> None:
        """Perform plans and single writes, one after the other, until none waits.

        A job waits only for earlier ones, which are in progress, because jobs begin in the order in which they arrived.
        """
        while self._jobs:
            with self._cancelled_at_end():
                while self._jobs:
                    work, wanted, turn = self._jobs.popleft()
                    with turn:
                        try:
                            await work(wanted, turn)
                        finally:
                            self._ended()
        self._workers -= 1

    async def _write(self, write: Write, turn: WriteTurn) -> None:
        self.metrics.began(0, 1)
        began_s, refused = time.perf_counter(), True
        try:
            await turn.come()
            refused = await self._first_failure((write,)) is not None
        finally:
            self.metrics.ended(time.perf_counter() - began_s, _NONE, _outcome(refused))

    async def _evict(self, eviction: Eviction, turn: WriteTurn) -> None:
        began_s, failed = time.perf_counter(), True
        with self._under_way(turn):
            await turn.come()
            outcome = EvictionOutcome(eviction.gone_fails)
            *others, last = _by_victim(eviction.writes)
            async with trio.open_nursery() as nursery:
                for writes in others:
                    nursery.start_soon(self._evict_one, writes, outcome)
            await self._evict_one(last, outcome)
            failed = outcome.failure is not None
        self.metrics.ended(time.perf_counter() - began_s, _NONE, _NONE, {eviction.preemptor: _outcome(failed)})
        if failed:
            self._failed_evictions.append(eviction.pod)
            self._more.ring()

    async def _evict_one(self, writes: Sequence[Write], outcome: EvictionOutcome) -> None:
        """Perform the writes of one victim, one after the other."""
        written: Written = {}
        for write in writes:
            if outcome.wants(write):
                why, code = await self._tried(write, written, self._evictor)
                outcome.note(write, why, why is not None and await self._is_gone(write, code))

    async def _execute(self, wanted: ExecutePlan, turn: WriteTurn) -> None:
        self.metrics.began(1, 0)
        began_s = time.perf_counter()
        failure: Status | None = _ENDING
        try:
            await turn.come()
            failure = await self._first_failure(wanted.plan.writes)
        finally:
            self.metrics.ended(time.perf_counter() - began_s, _outcome(failure is not None), _NONE)
            self._executed.append((wanted.uid, failure))
            self._more.ring()

    async def _execute_and_wait(self, request: BindingRequest, turn: WriteTurn) -> None:
        """Execute a binding that must wait; the binding counts towards the limit until its wait ends."""
        async with self._limiter, request.over:
            with self._under_way(turn):
                await self._execute(request.wanted, turn)
            async for _ in request.over:
                pass

    @contextmanager
    def _under_way(self, turn: WriteTurn) -> Iterator[None]:
        """Perform the work in the context in its turn, and cancel it when the daemon shuts down."""
        try:
            with turn, self._cancelled_at_end():
                yield
        finally:
            self._ended()

    @contextmanager
    def _cancelled_at_end(self) -> Iterator[None]:
        with trio.CancelScope() as scope:
            self._begun.add(scope)
            try:
                yield
            finally:
                self._begun.discard(scope)

    async def _give_up_at_end(self, *, task_status: trio.TaskStatus[trio.CancelScope]) -> None:
        with trio.CancelScope() as scope:
            watch = await self._store.watch(())
            task_status.started(scope)
            while await watch.wait():
                watch.take()
            await trio.sleep(_ENDING_S)
            while True:  # repeat, because further tasks may have started
                for begun in self._begun:
                    begun.cancel()
                await trio.sleep(0.1)

    async def _pass_on(self) -> None:
        while await self._more.wait():
            await self._answer()
        await self._answer()

    async def _answer(self) -> None:
        executed, self._executed = self._executed, []
        failed, self._failed_evictions = self._failed_evictions, []
        if executed or failed:
            await self._answers.send(Answered(executed, failed))
            self._bell.ring()

    # -- writes ------------------------------------------------------------------------------------------------------

    async def _first_failure(self, writes: Sequence[Write]) -> Status | None:
        """Perform the writes until the server rejects one; return the Status of this one."""
        written: Written = {}
        for write in writes:
            failure, _ = await self._tried(write, written, self._writer)
            if failure is not None:
                return failure
        return None

    async def _tried(self, write: Write, written: Written, writer: RemoteWriter) -> tuple[Status | None, int]:
        """Perform one write; if the server fails, retry it after a pause while attempts remain.

        Return a Status and the HTTP status (0: none) if the server rejects the write.
        """
        tries = 0
        while True:
            try:
                await writer.write(write, written)
                return None, 0
            except LiveError as failure:
                tries += 1
                if tries >= tries_of(write) or not self._is_sent_again(write, failure):
                    return self._rejected(write, failure)
            except Exception as failure:
                return refused(write, failure), 0
            await trio.sleep(_PAUSES_S[tries - 1])

    def _is_sent_again(self, write: Write, failure: LiveError) -> bool:
        conflicts = self._rules.status_conflicts_retried and isinstance(write, Patch)
        return is_sent_again(failure.code, str(failure), conflicts=conflicts)

    def _rejected(self, write: Write, failure: LiveError) -> tuple[Status, int]:
        why = failure.message or str(failure)
        if failure.code == _FORBIDDEN:
            self._log_forbidden(write, why)
        log.debug("write_refused", write=type(write).__name__, why=why)
        return error(why), failure.code

    def _log_forbidden(self, write: Write, why: str) -> None:
        what = f"{type(write).__name__} {key_written(write)[0]}"
        if what not in self._forbidden:
            self._forbidden.add(what)
            log.warning("forbidden", write=what, why=why)

    async def _is_gone(self, write: Write, code: int) -> bool:
        """Return whether the pod of the rejected write no longer exists; `code` is the HTTP status."""
        pod = EvictionOutcome.asks_about(write)
        if pod is None:
            return False
        if code == _NOT_FOUND:
            return True
        try:
            return pod.is_gone(await self._evictor.uid_of(pod.namespace, pod.name))
        except LiveError:
            return False


def _by_victim(writes: Sequence[Write]) -> list[list[Write]]:
    """Return the writes grouped by object, in the order of the first write to each object."""
    found: dict[Key, list[Write]] = {}
    for write in writes:
        found.setdefault(key_written(write), []).append(write)
    return list(found.values()) or [[]]


def _outcome(failed: bool) -> Outcomes:
    return Outcomes(int(not failed), int(failed))
