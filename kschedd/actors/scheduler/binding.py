"""BindingActor: executes the plans that bind pods, bind claims, and set conditions.

Receives: `BindingBatch` from the scheduling actor. Sends: `Answered` to the scheduling actor, for each plan, and for
each eviction that failed. Owns: only the binding cycles that must wait. Ends: when its sender closes and the running
cycles have ended. Fails: if a write is rejected by the API server, fails otherwise, or cannot be persisted by the
journal, the answer contains a Status.

Plans that consist only of writes share one request to the store. The next batch is sent before the store has answered
the previous one. The store answers when the journal contains the whole batch. Answers are passed on in the order of
their batches. If a plan must wait for other components after its writes (such as for a volume), it has its own task
until the scheduling actor ends the wait. The number of these tasks is limited.
"""

import time
from collections.abc import Sequence
from functools import partial

import attrs
import structlog
import trio

from kschedd.actors.mailbox import Doorbell, post, waiting_in
from kschedd.actors.scheduler.api_call_metrics import ApiCallMetrics, Outcomes
from kschedd.api.pods import Pod
from kschedd.controllers.running.turns import subject
from kschedd.framework.status import Status, error
from kschedd.object_faults import fault_text
from kschedd.scheduling.binding.cycle import ExecutePlan
from kschedd.scheduling.effects import Eviction
from kschedd.scheduling.preemption.eviction import evict
from kschedd.store.cluster_api import ClusterApi, ClusterReader, ClusterWriter, PendingAnswer, perform
from kschedd.store.errors import ApiError
from kschedd.store.journal.format import JournalError
from kschedd.store.writes import Bind, Write

log = structlog.get_logger("kschedd.binding")

_MOST = 16  # batches per request
_UNANSWERED = 16  # maximum number of unanswered requests, in addition to the one being sent


@attrs.frozen(eq=False)
class BindingRequest:
    """A plan that waits after its writes; `over` is closed at the end of the wait."""

    wanted: ExecutePlan
    over: "trio.MemoryReceiveChannel[None]"


@attrs.frozen(eq=False)
class BindingBatch:
    """Writes, evictions and plans to execute.

    `writes` are not answered, because newer events follow a rejected write. An eviction is answered only if it
    fails.
    """

    writes: Sequence[Write]
    evictions: Sequence[Eviction]
    plans: Sequence[ExecutePlan]  # plans that consist only of writes
    requests: Sequence[BindingRequest]


@attrs.frozen(eq=False)
class Answered:
    plans: Sequence[tuple[str, Status | None]]  # for each plan: uid, and None or the Status of the failure
    failed_evictions: Sequence[Pod] = ()  # for these pods
    refused: int = 0  # number of rejected writes among `writes`


@attrs.frozen(eq=False)
class _Request:
    """A batch that was sent to the store, and the time of sending (time.perf_counter)."""

    batch: Sequence[BindingBatch]
    plans: Sequence[ExecutePlan]
    answer: PendingAnswer[Answered]
    began_s: float


@attrs.define(eq=False)
class BindingActor:
    _inbox: trio.MemoryReceiveChannel[BindingBatch]
    _store: ClusterApi
    _answers: "trio.MemorySendChannel[Answered]"
    _bell: Doorbell
    _limiter: trio.CapacityLimiter
    metrics: ApiCallMetrics = attrs.field(factory=ApiCallMetrics)

    async def run(self) -> None:
        try:
            with self._inbox, self._answers:
                async with trio.open_nursery() as cycles:
                    await self._execute_all(cycles)
        finally:
            self._store.close()

    async def _execute_all(self, cycles: trio.Nursery) -> None:
        sent, unanswered = trio.open_memory_channel[_Request](_UNANSWERED)
        cycles.start_soon(self._pass_on, unanswered)
        with sent:
            async for first in self._inbox:
                batch = [first, *waiting_in(self._inbox, _MOST - 1)]
                for request in (request for one in batch for request in one.requests):
                    cycles.start_soon(self._cycle, request)
                plans = [wanted for one in batch for wanted in one.plans]
                await post(sent, await self._send(batch, plans), "binding")

    async def _pass_on(self, unanswered: "trio.MemoryReceiveChannel[_Request]") -> None:
        """Pass on the store's answers in the order of the batches."""
        with unanswered:
            async for request in unanswered:
                await self._answer(await self._answered(request))

    async def _cycle(self, request: BindingRequest) -> None:
        """Run a binding that must wait. The binding is included in the limit until its wait ends."""
        async with self._limiter, request.over:
            await self._answer(await self._answered(await self._send((), [request.wanted])))
            async for _ in request.over:
                pass

    async def _send(self, batch: Sequence[BindingBatch], plans: Sequence[ExecutePlan]) -> _Request:
        self.metrics.began(len(plans), sum(len(one.writes) for one in batch))
        began_s = time.perf_counter()
        return _Request(batch, plans, await self._store.ask(partial(execute_batch, batch, plans)), began_s)

    async def _answered(self, request: _Request) -> Answered:
        batch, plans = request.batch, request.plans
        patches = sum(len(one.writes) for one in batch)
        try:
            answered = await request.answer.value()
        except JournalError as failure:  # nothing was persisted
            status = error(str(failure))
            failed = [eviction.pod for one in batch for eviction in one.evictions]
            answered = Answered([(wanted.uid, status) for wanted in plans], failed, patches)
        refused = sum(failure is not None for _, failure in answered.plans)
        self.metrics.ended(
            time.perf_counter() - request.began_s,
            Outcomes(len(plans) - refused, refused),
            Outcomes(patches - answered.refused, answered.refused),
            _preemptions([eviction for one in batch for eviction in one.evictions], answered.failed_evictions),
        )
        return answered

    async def _answer(self, answered: Answered) -> None:
        if answered.plans or answered.failed_evictions:
            await self._answers.send(answered)
            self._bell.ring()


def _preemptions(evictions: Sequence[Eviction], failed: Sequence[Pod]) -> dict[str, Outcomes]:
    """Return the numbers of successful and failed evictions by type of preemptor."""
    uids, counted = {pod.uid for pod in failed}, dict[str, Outcomes]()
    for preemptor in {eviction.preemptor for eviction in evictions}:
        refused = [eviction.pod.uid in uids for eviction in evictions if eviction.preemptor == preemptor]
        counted[preemptor] = Outcomes(len(refused) - sum(refused), sum(refused))
    return counted


def execute_batch(batch: Sequence[BindingBatch], plans: Sequence[ExecutePlan], store: ClusterWriter) -> Answered:
    """Execute the writes of the batch, and then the writes of each plan up to the first rejected write."""
    failed: list[Pod] = []
    refused = 0
    for one in batch:
        for write in one.writes:
            refused += apply_result(write, store) is not None
        for eviction in one.evictions:
            perform, uid_of = partial(apply_result, store=store), partial(_uid_of, store)
            if evict(eviction.writes, perform, uid_of, gone_fails=eviction.gone_fails) is not None:
                failed.append(eviction.pod)
    return Answered(_execute(plans, store), failed, refused)


def _execute(plans: Sequence[ExecutePlan], store: ClusterWriter) -> list[tuple[str, Status | None]]:
    """Execute the plans one after the other.

    Plans with a single binding, which are the usual case, are executed together.
    """
    answers: list[tuple[str, Status | None]] = []
    uids: list[str] = []
    bindings: list[Bind] = []  # parallel to `uids`
    for wanted in plans:
        writes = wanted.plan.writes
        if len(writes) == 1 and isinstance(writes[0], Bind):
            uids.append(wanted.uid)
            bindings.append(writes[0])
            continue
        answers += zip(uids, _bind_each(bindings, store), strict=True)
        uids, bindings = [], []
        answers.append((wanted.uid, _first_failure(writes, store)))
    answers += zip(uids, _bind_each(bindings, store), strict=True)
    return answers


def _bind_each(bindings: Sequence[Bind], store: ClusterWriter) -> list[Status | None]:
    failures = store.bind_many(bindings)
    return [
        None if failure is None else refused(wanted, failure)
        for wanted, failure in zip(bindings, failures, strict=True)
    ]


def apply_result(write: Write, store: ClusterWriter) -> Status | None:
    """Execute one write, and return the Status if it is rejected."""
    try:
        perform(store, write)
    except Exception as failure:
        return refused(write, failure)
    return None


def refused(write: Write, failure: Exception) -> Status:
    """Return the Status of a rejected or failed write.

    If an object causes an exception, it is logged, and the pod is retried.
    """
    if isinstance(failure, ApiError):
        log.debug("write_refused", write=type(write).__name__, why=str(failure))
        return error(str(failure))
    why = fault_text(failure)
    log.error("object_fault", component="binding", object=str(subject(write)), why=why)
    return error(why)


def _uid_of(store: ClusterReader, namespace: str, name: str) -> str | None:
    pod = store.find("Pod", namespace, name)
    return None if pod is None else pod.uid


def _first_failure(writes: Sequence[Write], store: ClusterWriter) -> Status | None:
    for write in writes:
        failure = apply_result(write, store)
        if failure is not None:
            return failure
    return None
