"""BindingActor: carries decisions to the API server: pods to their nodes, claims to their volumes, reasons to the pods.

Receives: `Errands`, a batch from the scheduling actor.  Sends: `Answered` to it, for the bindings among them.
Owns: nothing but the binding cycles that have to wait.  Ends: when its sender closes and the running cycles have ended.
Fails: a refusal of the API server is a Status in the answer; anything else is a bug.

Bindings that need nothing but writes share one request to the store. One that has to wait for what others do with
them (a volume to be provisioned) is a task of its own, under its plugin's timeout; no more than a limit of them run
at a time.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import attrs
import structlog
import trio

from kschedd.actors.mailbox import Doorbell, waiting_in
from kschedd.actors.store import StoreClient
from kschedd.framework.status import Code, Status, error
from kschedd.framework.writes import Plan
from kschedd.scheduling.eviction import evict
from kschedd.store.errors import ApiError
from kschedd.store.store import Store
from kschedd.store.writes import Write, perform
from kschedd.values import value

log = structlog.get_logger("kschedd.binding")

_MOST = 16  # batches in one request


@value(eq=False)
class Carry:
    """The next step of a binding. `settled` brings word that what the plan waits for has come true, or cannot."""

    ticket: Any  # goes back with the answer
    plan: Plan
    settled: "trio.MemoryReceiveChannel[Status] | None" = None


@attrs.frozen(eq=False)
class Eviction:
    """What preemption wants written for a pod; answered only if something of it went wrong."""

    ticket: Any
    writes: Sequence[Write]


@attrs.frozen(eq=False)
class Errands:
    """`writes` are not answered: if they are refused, things have moved on."""

    writes: Sequence[Write]
    evictions: Sequence[Eviction]
    carries: Sequence[Carry]


@attrs.frozen(eq=False)
class Written:
    """In place of a ticket: the writes of its plan are done, and the wait for it to settle begins."""

    ticket: Any


@attrs.frozen(eq=False)
class Answered:
    answers: Sequence[tuple[Any, Status | None]]  # (ticket, None or what failed)


@attrs.define(eq=False)
class BindingActor:
    _inbox: trio.MemoryReceiveChannel[Errands]
    _store: StoreClient
    _answers: "trio.MemorySendChannel[Answered]"
    _bell: Doorbell
    _limiter: trio.CapacityLimiter

    async def run(self) -> None:
        try:
            async with self._inbox, self._answers, trio.open_nursery() as cycles:
                async for first in self._inbox:
                    batch = [first, *waiting_in(self._inbox, _MOST - 1)]
                    quick: list[Carry] = []
                    for carry in (carry for errands in batch for carry in errands.carries):
                        if carry.settled is None:
                            quick.append(carry)
                        else:
                            cycles.start_soon(self._cycle, carry, carry.settled)
                    answers = await self._store.do(partial(carry_out, batch, quick))
                    if answers:
                        await self._answer(answers)
        finally:
            self._store.close()

    async def _cycle(self, carry: Carry, settled: trio.MemoryReceiveChannel[Status]) -> None:
        """One binding that has to wait."""
        async with self._limiter:
            [(_, status)] = await self._store.do(partial(carry_out, (), [carry]))
            if status is None:
                await self._answer([(Written(carry.ticket), None)])
                try:
                    with trio.move_on_after(carry.plan.timeout_s) as patience:
                        status = await settled.receive()
                    if patience.cancelled_caught:
                        status = carry.plan.timed_out or error("timed out")
                except trio.EndOfChannel:
                    status = error("the daemon is ending")
            settled.close()
        await self._answer([(carry.ticket, None if status is None or status.code == Code.SUCCESS else status)])

    async def _answer(self, answers: Sequence[tuple[Any, Status | None]]) -> None:
        await self._answers.send(Answered(answers))
        self._bell.ring()


def carry_out(batch: Sequence[Errands], carries: Sequence[Carry], store: Store) -> list[tuple[Any, Status | None]]:
    """Do the writes of the batch, then those of each plan up to the first that is refused. The answers that are due."""
    answers: list[tuple[Any, Status | None]] = []
    for errands in batch:
        for write in errands.writes:
            _do(write, store)
        for eviction in errands.evictions:
            failure = evict(eviction.writes, partial(_do, store=store), partial(_uid_of, store))
            if failure is not None:
                answers.append((eviction.ticket, failure))
    for carry in carries:
        answers.append((carry.ticket, _first_failure(carry.plan, store)))
    return answers


def _do(write: Write, store: Store) -> Status | None:
    try:
        perform(store, write)
    except ApiError as refusal:
        log.debug("write_refused", write=type(write).__name__, why=str(refusal))
        return error(str(refusal))
    return None


def _uid_of(store: Store, namespace: str, name: str) -> str | None:
    pod = store.find("Pod", namespace, name)
    return None if pod is None else pod.uid


def _first_failure(plan: Plan, store: Store) -> Status | None:
    for write in plan.writes:
        failure = _do(write, store)
        if failure is not None:
            return failure
    return None
