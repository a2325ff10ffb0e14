"""RemoteBindingActor: executes plans on a real API server.

Receives: `BindingBatch` messages from the scheduling actor. Sends: `Answered` messages to the scheduling actor, for
plans and failed evictions.

Owns: the pending writes, and the order of the writes to each object. Ends: when the sender has closed the channel and
all tasks of the actor have ended. If the local store shuts down, tasks that do not end within a few seconds are
cancelled.

Fails: if the server rejects a write or does not respond, the result is a Status with the server's message, and the pod
is tried again. Writes that the server forbids are logged once for each kind of write.

Each plan is a task that performs its writes one after the other, until one is rejected. The victims of a preemption are
evicted at the same time, except the last one, whose deletion requeues the preemptor. The mirror receives the effects
of the writes, also of a write that succeeded but whose response was lost.

Batches are received immediately, so that the scheduling actor never waits. If the server is slow,
the scheduling actor pops no more pods from the queue until it is notified. A separate task collects and sends the
results, so that no write waits for the scheduling actor.
"""

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

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

_UNDER_WAY: Final = 128  # maximum number of plans and writes in progress; at this number, no more pods are attempted
_ENDING_S: Final = 5.0
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_PAUSES_S: Final = (0.01, 0.05, 0.25)
_ENDING: Final = error("the daemon is shutting down: it has not waited for the API server's answer")
_NONE: Final = Outcomes(0, 0)
T = TypeVar("T")


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
    _count: int = attrs.field(default=0, init=False)  # of started tasks
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
        return self._count < _UNDER_WAY

    def _begin(self, batch: BindingBatch, tasks: trio.Nursery) -> None:
        for write in batch.writes:
            self._start(tasks, self._write, write, [write])
        for eviction in batch.evictions:
            self._start(tasks, self._evict, eviction, eviction.writes)
        for wanted in batch.plans:
            self._start(tasks, self._execute, wanted, wanted.plan.writes)
        for request in batch.requests:
            self._start(tasks, self._execute_and_wait, request, request.wanted.plan.writes)

    def _start(
        self, tasks: trio.Nursery, work: Callable[[T, WriteTurn], Awaitable[None]], wanted: T, writes: Sequence[Write]
    ) -> None:
        self._count += 1
        tasks.start_soon(work, wanted, self._order.take(map(key_written, writes)))

    # -- tasks -------------------------------------------------------------------------------------------------------

    async def _write(self, write: Write, turn: WriteTurn) -> None:
        self.metrics.began(0, 1)
        began_s, refused = time.perf_counter(), True
        with self._under_way(turn):
            await turn.come()
            refused = await self._perform(write, {}) is not None
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
        with self._under_way(turn):
            await turn.come()
            failure = await self._first_failure(wanted.plan.writes)
        self.metrics.ended(time.perf_counter() - began_s, _outcome(failure is not None), _NONE)
        self._executed.append((wanted.uid, failure))
        self._more.ring()

    async def _execute_and_wait(self, request: BindingRequest, turn: WriteTurn) -> None:
        """Execute a binding that must wait; the binding counts towards the limit until its wait ends."""
        async with self._limiter, request.over:
            await self._execute(request.wanted, turn)
            async for _ in request.over:
                pass

    @contextmanager
    def _under_way(self, turn: WriteTurn) -> Iterator[None]:
        """Cancel the work in the context when the daemon shuts down."""
        try:
            with turn, trio.CancelScope() as scope:
                self._begun.add(scope)
                try:
                    yield
                finally:
                    self._begun.discard(scope)
        finally:
            self._count -= 1
            if self._count == _UNDER_WAY - 1:
                self._bell.ring()

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
        written: Written = {}
        for write in writes:
            failure = await self._perform(write, written)
            if failure is not None:
                return failure
        return None

    async def _perform(self, write: Write, written: Written) -> Status | None:
        """Perform one write; return a Status if the server rejects it."""
        return (await self._tried(write, written, self._writer))[0]

    async def _tried(self, write: Write, written: Written, writer: RemoteWriter) -> tuple[Status | None, int]:
        """Perform one write; return a Status and the HTTP status (0: none) if the server rejects it."""
        try:
            await self._write_retrying(write, written, writer)
        except LiveError as failure:
            why = failure.message or str(failure)
            if failure.code == _FORBIDDEN:
                self._log_forbidden(write, why)
            log.debug("write_refused", write=type(write).__name__, why=why)
            return error(why), failure.code
        except Exception as failure:
            return refused(write, failure), 0
        return None, 0

    async def _write_retrying(self, write: Write, written: Written, writer: RemoteWriter) -> None:
        """Perform one write; if the server fails, retry it after a pause while attempts remain."""
        conflicts = self._rules.status_conflicts_retried and isinstance(write, Patch)
        for pause_s in _PAUSES_S[: tries_of(write) - 1]:
            try:
                return await writer.write(write, written)
            except LiveError as failure:
                if not is_sent_again(failure.code, str(failure), conflicts=conflicts):
                    raise
            await trio.sleep(pause_s)
        await writer.write(write, written)

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
