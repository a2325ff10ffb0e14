"""SchedulingActor: runs scheduling cycles, one pod at a time, and maintains the scheduler cache.

Receives: notifications from the store's watch; `Popped` from the queue; `Answered` from the binding actor; `Called`
from calls of plugins; `Expired` from permit waiters; `OwnerQuery` over its driver. Sends: `QueueUpdate` to the queue,
`BindingBatch` to the binding actor, jobs to the filter workers, entries to the log. Owns: the SchedulingDriver (cache,
profiles, nominations, binding cycles). Ends: when the store closes its watch; then its channels close. Fails: a fault
of an out-of-tree plugin fails the pod's attempt; any other exception is a bug in kschedd.

While the debugger has stopped an attempt or all scheduling, other work continues.

This module adds channels, time and threads; the logic is in the driver. The cache is updated only between two attempts.
The actor works in short slices, so that it blocks the event loop for at most a few milliseconds. The actor sends one
message per slice, not one per pod.

With out-of-tree plugins, every step that may call them runs in a worker thread that holds the SchedulerLock, except
while it waits for a plugin. An attempt of a profile with only in-tree plugins runs on the event loop. Until the step
ends, `_meanwhile` answers queries. During an attempt, it also continues bindings in other threads, which take the lock.
`_meanwhile` pauses while other code of this actor runs, so two threads never use the driver at the same time.
`_meanwhile` also runs while extenders are called. PreBind, Bind and PostBind of out-of-tree plugins, and an extender's
Bind, run as separate tasks (`PluginCall`).
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, TypeVar

import attrs
import structlog
import trio

from kschedd.actors.bulletin import Bulletin
from kschedd.actors.clock import Clock
from kschedd.actors.courtesy import Courtesy
from kschedd.actors.mailbox import Doorbell, Ending, OwnerQuery, waiting_in
from kschedd.actors.queue import Popped, QueueUpdate
from kschedd.actors.scheduler.attempt_log import attempt_trace, log_scores, log_slow
from kschedd.actors.scheduler.binding import Answered, BindingBatch, BindingRequest
from kschedd.actors.scheduler.extenders import ExtenderClients
from kschedd.actors.scheduler.filter_workers import FilterWorkers
from kschedd.actors.scheduler.permit import Expired, PermitWaiter
from kschedd.actors.scheduler.plugin_calls import Called, PluginCall, PluginThreads
from kschedd.actors.threads import in_actor_thread
from kschedd.extenders.calls import ExtenderCall
from kschedd.framework.status import fault_text
from kschedd.log.log import Entry
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.attempt.outcome import Attempt, FitError, ScheduleResult
from kschedd.scheduling.binding.cycle import BindingCycle, ExecutePlan, PlanWait
from kschedd.scheduling.debug.breakpoints import StopPoint
from kschedd.scheduling.debug.work import Work
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.filtering.filters import PluginBatch
from kschedd.scheduling.inputs import (
    BeginAttempt,
    BeginGroupCycle,
    BreakOff,
    CompleteAttempt,
    CompleteRun,
    EvictionFailed,
    Observe,
    PlansExecuted,
    PluginCalled,
    PodsNominated,
    PodsPopped,
    ResumeDecided,
    ResumeReady,
    ResumeStopped,
    Tick,
)
from kschedd.store.cluster_api import ClusterApi, ClusterWatch
from kschedd.telemetry.exporter import TelemetryExporter

log = structlog.get_logger("kschedd.scheduling")

T = TypeVar("T")
M = TypeVar("M")

_SLICE_S = 0.004
_MOST_EVENTS = 500  # maximum number of events observed between two checks of the slice's time
_MOST = 64  # maximum number of messages of one kind in a turn
_MOST_ATTEMPTS = 128  # maximum number of attempts in a turn; between turns, pods that sort earlier are received
_CATCH_UP_S = 0.01
_SLOW_S = 0.1  # seconds after which an attempt is logged as slow, as in kube-scheduler


@attrs.frozen(eq=False)
class Inboxes:
    """The receiving channels of the scheduling actor; a sender rings its doorbell after each message."""

    popped: trio.MemoryReceiveChannel[Popped]
    answered: trio.MemoryReceiveChannel[Answered]
    expired: trio.MemoryReceiveChannel[Expired]
    expire: "trio.MemorySendChannel[Expired]"  # channel for the permit waiters that this actor starts
    called: trio.MemoryReceiveChannel[Called]
    call: "trio.MemorySendChannel[Called]"  # channel for the calls that this actor starts
    questions: trio.MemoryReceiveChannel[OwnerQuery[SchedulingDriver, Any]]


@attrs.frozen(eq=False)
class Outboxes:
    queue: "trio.MemorySendChannel[QueueUpdate]"
    binding: "trio.MemorySendChannel[BindingBatch]"
    log: "trio.MemorySendChannel[Sequence[Entry]]"
    workers: FilterWorkers
    extenders: ExtenderClients

    def close(self) -> None:
        for way in (self.queue, self.binding, self.log, self.workers):
            way.close()


@attrs.define(eq=False)
class SchedulingActor:
    _driver: SchedulingDriver
    _store: ClusterApi
    _bell: Doorbell
    _inboxes: Inboxes
    _outboxes: Outboxes
    _clock: Clock
    _threads: PluginThreads
    _stops: Bulletin = attrs.field(factory=Bulletin)  # numbers of the debugger's changes
    _log_scores: bool = False  # log a line for each plugin, node and attempt
    _telemetry: TelemetryExporter | None = None
    _must_wait: Callable[[], bool] | None = None  # returns whether this actor must wait until the recording is written
    # returns whether the binding actor can accept another pod; if not, it wakes this actor later
    _has_room: Callable[[], bool] | None = None
    _courtesy: Courtesy = attrs.field(factory=Courtesy)
    _requested: bool = attrs.field(default=False, init=False)  # true if a request for pods is not answered yet
    _permit_waiters: dict[str, "trio.MemorySendChannel[float]"] = attrs.field(factory=dict, init=False)  # by uid
    _plan_waits: dict[str, "trio.MemorySendChannel[None]"] = attrs.field(factory=dict, init=False)  # closed at its end
    _out_of_tree: bool = attrs.field(init=False)
    _watch: ClusterWatch = attrs.field(init=False)
    _nursery: trio.Nursery = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._out_of_tree = self._driver.machine.has_out_of_tree

    async def run(self) -> None:
        try:
            async with trio.open_nursery() as self._nursery:
                self._watch = await self._store.watch(with_present=True, bell=self._bell)
                busy = True
                while not self._watch.ended and (busy or await self._rung()):
                    busy = await self._turn()
                    while self._must_wait is not None and self._must_wait():  # noqa: ASYNC110 - a thread catches up
                        await trio.sleep(_CATCH_UP_S)
                    if busy:
                        await self._courtesy.pause(self._attend)
                await self._finish()
                await self._outboxes.extenders.close()
                self._nursery.cancel_scope.cancel()
        finally:
            self._outboxes.close()
            self._inboxes.questions.close()
            self._store.close()

    async def _rung(self) -> bool:
        """Wait for the doorbell or for the deadline of a plan. Return False if the doorbell is closed."""
        if not self._plan_waits and self._driver.debugger.until is None:
            return await self._bell.wait()
        rung = True
        with self._clock.move_on_at(min(self._plan_deadlines(), default=None)):
            rung = await self._bell.wait()
        return rung

    def _plan_deadlines(self) -> list[float]:
        waits = (cycle.waits for cycle in self._driver.bindings.plan_waits.values())
        until = self._driver.debugger.until
        ends = [] if until is None or until.time_s is None else [until.time_s]
        return [wait.deadline_s for wait in waits if isinstance(wait, PlanWait)] + ends

    async def _turn(self) -> bool:
        """Work for one slice of time. Return whether more work is pending."""
        driver = self._driver
        pause = time.perf_counter() + _SLICE_S
        await self._observe()
        await self._hear()
        now = self._clock.now()
        made = 0
        while made < _MOST_ATTEMPTS:
            if together := self._attempt_several():
                made += together
            elif (entry := driver.popped.take(now)) is not None:
                made += 1
                now = await self._attempt(entry)
            else:
                break
            if time.perf_counter() > pause:
                break
        await self._send_effects()
        self._stops.publish(driver.debugger.changes, driver.debugger.stop is not None)
        return driver.popped.has_next or self._watch.behind

    async def _observe(self) -> None:
        pause = time.perf_counter() + _SLICE_S
        while self._watch.behind:
            events = self._watch.take(_MOST_EVENTS)
            if events:
                await self._step(self._driver.step, Observe(events), self._clock.now())
            if not self._watch.first:
                self._driver.observed = self._watch.version
            if time.perf_counter() > pause:
                await self._send_effects()
                await trio.lowlevel.checkpoint()
                pause = time.perf_counter() + _SLICE_S

    async def _hear(self) -> None:
        """Process the inboxes (queries, binding results, expired Permit timeouts, popped pods) and due plans."""
        driver = self._driver
        for question in waiting_in(self._inboxes.questions, _MOST):
            await self._evaluate(question)
            # Bindings end with the plugin instances of their attempt.
            self._out_of_tree = driver.machine.has_out_of_tree or (self._out_of_tree and bool(driver.bindings.cycles))
        for answered in waiting_in(self._inboxes.answered, _MOST):
            await self._answered(answered)
        for expired in waiting_in(self._inboxes.expired, _MOST):
            self._expire(expired.uid)
        for called in waiting_in(self._inboxes.called, _MOST):
            await self._step(driver.step, PluginCalled(called.uid, called.answer), self._clock.now())
        for popped in waiting_in(self._inboxes.popped, _MOST):
            self._requested &= not popped.requested
            if popped.nominated:
                driver.step(PodsNominated(popped.nominated))
            await self._step(driver.step, PodsPopped(popped.entries))
        if driver.bindings.any_decided:
            await self._step(driver.step, ResumeDecided(), self._clock.now())
        if driver.any_to_resume:
            await self._step(driver.step, ResumeStopped(), self._clock.now())
        if driver.bindings.plan_waits:
            await self._step(driver.step, ResumeReady(), self._clock.now())

    async def _evaluate(self, question: OwnerQuery[SchedulingDriver, Any]) -> None:
        """Answer a query.

        Until the query is answered, no other code uses the driver.
        """
        await (self._in_thread if question.long else self._alone)(question.evaluate, self._driver)
        question.reply.publish()

    async def _answered(self, answered: Answered, step: Callable[..., Awaitable[Any]] | None = None) -> None:
        driver, step = self._driver, step or self._step
        await step(driver.step, PlansExecuted(answered.plans), self._clock.now())
        if self._plan_waits:
            for uid, _ in answered.plans:
                if uid in self._plan_waits and uid not in driver.bindings.plan_waits:
                    self._plan_waits.pop(uid).close()  # a write of the plan was rejected
        for pod in answered.failed_evictions:
            await step(driver.step, EvictionFailed(pod))

    # -- attempts ---------------------------------------------------------------------------------------------

    def _attempt_several(self) -> int:
        """Attempt the next pods that can be attempted together, and return their number."""
        if self._out_of_tree or self._log_scores or self._telemetry is not None:
            return 0
        driver, started = self._driver, time.perf_counter()
        try:
            run = driver.attempts.begin_run(self._clock.now())
        except Exception as fault:  # a fault of one of the pods, which occurs again in its single attempt
            log.warning("run_broken", why=fault_text(fault))
            return 0
        if run:
            driver.step(CompleteRun(run, (time.perf_counter() - started) / len(run)), self._clock.now())
        return len(run)

    async def _attempt(self, entry: QueuedPod) -> float:
        """Attempt the pod and act on the result; return the time of the result."""
        driver = self._driver
        if driver.popped.in_group(entry):
            await self._run(driver.step(BeginGroupCycle(entry, self._clock.now), self._clock.now()))
            if driver.bindings.any_decided:
                await self._step(driver.step, ResumeDecided(), self._clock.now())
            return self._clock.now()
        started = time.perf_counter()
        attempt: Attempt | None = None
        try:
            attempt = driver.step(BeginAttempt(entry), self._clock.now())
            if attempt is None:
                return self._clock.now()
            result = await self._run(attempt, entry)
        except Exception as fault:  # a fault of a plugin or of the pod: the attempt fails, and the pod is retried
            if attempt is not None:
                attempt.close()
            result = driver.step(BreakOff(entry, fault), self._clock.now())
            log.warning("attempt_broken", pod=entry.key, why=result.message)
        assert isinstance(result, ScheduleResult | FitError)
        took = time.perf_counter() - started
        if driver.attempts.stepper is None:
            if self._log_scores:
                await self._step(log_scores, driver, result)
            if took > _SLOW_S:
                log_slow(entry, driver.steps_of(entry.pod.scheduler_name), took)
            if self._telemetry is not None and (took > _SLOW_S or driver.samples):
                self._telemetry.note(attempt_trace(driver, entry, result, took))
            now, completed = self._clock.now(), CompleteAttempt(entry, result, took)
            if self._out_of_tree:
                await self._step_of(entry)(driver.step, completed, now)
            else:
                driver.step(completed, now)
        else:
            await self._run(driver.completing(entry, result, self._clock.now(), took))
            now = self._clock.now()
        if driver.bindings.any_decided:
            await self._step(driver.step, ResumeDecided(), now)
        return now

    async def _run(self, work: Work[T], entry: QueuedPod | None = None) -> T:
        """Run work to its end: execute the calls that it yields, and wait at debugger stops.

        `entry`: of one attempt.
        """
        step = self._step_of(entry)
        yielded, result = await step(send_on, work, None) if self._out_of_tree else send_on(work, None)
        while yielded is not None:
            if isinstance(yielded, StopPoint):
                await self._stopped()
                answers: list[Any] = []
            else:
                answers = await self._outside(yielded)
            yielded, result = await step(send_on, work, answers)
        ended: T = result
        return ended

    async def _stopped(self) -> None:
        """Serve all other requests until the debugger continues the attempt or the daemon shuts down."""
        driver, debugger = self._driver, self._driver.debugger
        await self._send_effects(await self._alone(driver.take_effects))
        while debugger.stop is not None:
            await self._attend()
            self._stops.publish(debugger.changes, debugger.stop is not None)
            if debugger.stop is None:
                break
            if self._watch.ended or not await self._bell.wait():
                debugger.end()
        debugger.now_s = self._clock.now()
        self._bell.ring()  # other inboxes may contain messages

    async def _step(self, work: Callable[..., T], *args: Any) -> T:
        """Run a part of the driver that may call plugins."""
        if not self._out_of_tree:
            return work(*args)
        return await self._beside(partial(self._in_thread, passes_on=True), work, *args)

    def _step_of(self, entry: QueuedPod | None) -> Callable[..., Awaitable[Any]]:
        """Return the function that runs parts of this pod's attempt; without out-of-tree plugins, no thread is used."""
        if not self._out_of_tree or entry is None or self._driver.attempts.calls_out_of_tree(entry):
            return self._step
        return self._here

    async def _here(self, work: Callable[..., T], *args: Any) -> T:
        with self._exclusively():
            return work(*args)

    async def _in_thread(self, work: Callable[..., T], *args: Any, passes_on: bool = False) -> T:
        """Run this function in a thread that holds the SchedulerLock."""

        def run() -> T:
            with self._threads.lock.held(passes_on=passes_on):
                return work(*args)

        return await in_actor_thread(run)

    def _exclusively(self) -> AbstractContextManager[object]:
        """Return a context for a short part of the driver that calls no plugin.

        Calls of binding cycles run in their own threads and may change the same state. These threads never hold the
        lock while they wait.
        """
        return self._threads.lock.taken() if self._out_of_tree else nullcontext()

    # -- while plugins and extenders are waited for -----------------------------------------------------------------

    async def _beside(self, work: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Await work while `_meanwhile` serves other requests. `_meanwhile` pauses again before this method returns."""
        resting = trio.CancelScope()
        fault: Exception | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._meanwhile, resting)
            try:
                result = await work(*args)
            except Exception as raised:  # raised again outside the nursery, which would wrap it in a group
                fault = raised
            resting.cancel()
        if fault is not None:
            raise fault
        return result

    async def _outside(self, shards: Any) -> list[Any]:
        """Return the answers to calls of an attempt: calls of extenders, or shards of work."""
        if shards and isinstance(shards[0], ExtenderCall):
            return await self._beside(self._outboxes.extenders.ask, shards)
        if any(isinstance(shard, PluginBatch) for shard in shards):
            parallelism = self._driver.machine.config.parallelism
            return await self._beside(self._outboxes.workers.run, shards, parallelism)
        return await self._in_tree(shards)

    async def _in_tree(self, shards: Sequence[Callable[[], Any]]) -> list[Any]:
        """Return the results of in-tree plugins, computed in this thread.

        In-tree plugins are plain Python, which threads do not make faster, and passing 64 nodes to a thread takes
        longer than evaluating them.
        """
        if self._out_of_tree:
            return await self._step(lambda: [shard() for shard in shards])
        answers: list[Any] = []
        pause = time.perf_counter() + _SLICE_S
        for shard in shards:
            answers.append(shard())
            if time.perf_counter() > pause:
                await trio.lowlevel.checkpoint()
                pause = time.perf_counter() + _SLICE_S
        return answers

    async def _alone(self, work: Callable[..., T], *args: Any) -> T:
        """Run work while no other code uses the driver."""
        return await self._in_thread(work, *args) if self._out_of_tree else work(*args)

    async def _meanwhile(self, resting: trio.CancelScope) -> None:
        """Answer queries, and during an attempt continue bindings, until `resting` is cancelled."""
        rung = False
        with resting:
            while True:
                with trio.CancelScope(shield=True):  # messages taken from an inbox must be processed completely
                    await self._attend()
                if not await self._bell.wait():
                    break
                rung = True
        if rung:
            self._bell.ring()  # the inboxes may contain more messages

    async def _attend(self) -> None:
        driver, inboxes = self._driver, self._inboxes
        for question in waiting_in(inboxes.questions, _MOST):
            await self._evaluate(question)
        if not driver.attempts.running:
            return
        answers = waiting_in(inboxes.answered, _MOST)
        calls = waiting_in(inboxes.called, _MOST)
        for answered in answers:
            await self._answered(answered, self._alone)
        for called in calls:
            await self._alone(driver.step, PluginCalled(called.uid, called.answer), self._clock.now())
        if answers or calls:
            await self._send_effects(await self._alone(driver.take_effects))

    # -- waiting binding cycles -----------------------------------------------------------------------------------

    def _watch_over(self, cycle: BindingCycle) -> None:
        """Start a PermitWaiter task for a pod that waits at Permit."""
        if cycle.deadline_s is None:
            return  # the pod was allowed or rejected meanwhile
        # Capacity one is enough, because a new deadline is sent only after the waiter has reported the previous one.
        send, receive = trio.open_memory_channel[float](1)
        self._permit_waiters[cycle.uid] = send
        expire = self._inboxes.expire.clone()
        self._nursery.start_soon(
            PermitWaiter(cycle.uid, cycle.deadline_s, self._clock, receive, expire, self._bell).run
        )

    def _expire(self, uid: str) -> None:
        """Reject the pod at its deadline, unless this plugin has allowed it meanwhile."""
        with self._exclusively():
            self._driver.step(Tick(), self._clock.now())
        waiter = self._permit_waiters.get(uid)
        cycle = self._driver.bindings.cycles.get(uid)
        if waiter is not None and cycle is not None and cycle.deadline_s is not None:
            waiter.send_nowait(cycle.deadline_s)

    # -- sending --------------------------------------------------------------------------------------------------

    async def _send_effects(self, effects: Effects | None = None) -> None:
        """Send effects to the other actors: the given effects, or all effects so far."""
        driver, outboxes = self._driver, self._outboxes
        max_pods = None
        if effects is None:
            with self._exclusively():
                effects = driver.take_effects()
            if not self._requested and (self._has_room is None or self._has_room()):
                max_pods = driver.popped.wanted or None
                self._requested = max_pods is not None
        for uid in effects.resumed:
            way = self._permit_waiters.pop(uid, None) or self._plan_waits.pop(uid, None)
            if way is not None:
                way.close()
        for cycle in effects.permit_waits:
            self._watch_over(cycle)
        for wanted in effects.calls:
            call = PluginCall(wanted, self._threads, outboxes.extenders, self._inboxes.call.clone(), self._bell)
            self._nursery.start_soon(call.run)
        if effects.released or effects.queue or max_pods is not None:
            await _send(outboxes.queue, QueueUpdate(effects.released, effects.queue, max_pods))
        if effects.writes or effects.evictions or effects.plans:
            plans = [one for one in effects.plans if one.plan.ready is None]
            requests = [self._request(one) for one in effects.plans if one.plan.ready is not None]
            await _send(outboxes.binding, BindingBatch(effects.writes, effects.evictions, plans, requests))
        if effects.happened:
            await _send(outboxes.log, effects.happened)

    def _request(self, wanted: ExecutePlan) -> BindingRequest:
        # nothing is sent through this channel; closing the channel is the signal
        self._plan_waits[wanted.uid], over = trio.open_memory_channel[None](0)
        return BindingRequest(wanted, over)

    async def _finish(self) -> None:
        """Complete the bindings of decided pods, and then end, because the store is shutting down."""
        self._requested = True  # request no more pods
        await self._send_effects()
        while self._driver.bindings.any_executing:
            await self._advance_one()
            await self._send_effects()
        for over in self._plan_waits.values():
            over.close()
        self._outboxes.binding.close()
        async for answered in self._inboxes.answered:
            await self._answered(answered)
        effects = self._driver.take_effects()
        if effects.happened:
            await _send(self._outboxes.log, effects.happened)
        for question in waiting_in(self._inboxes.questions, _MOST):
            question.reply.refuse(Ending("scheduler"))

    async def _advance_one(self) -> None:
        """Wait for a plugin call of a binding cycle, or else for a plan. Process the result."""
        driver, inboxes = self._driver, self._inboxes
        if any(cycle.call is not None for cycle in driver.bindings.cycles.values()):
            called = await inboxes.called.receive()
            await self._step(driver.step, PluginCalled(called.uid, called.answer), self._clock.now())
        else:
            await self._answered(await inboxes.answered.receive())


async def _send(channel: "trio.MemorySendChannel[M]", message: M) -> None:
    try:
        channel.send_nowait(message)  # the channel is rarely full, and a checkpoint costs more than the send
    except trio.WouldBlock:
        await channel.send(message)


def send_on(work: Work[T], answers: list[Any] | None) -> tuple[Any, Any]:
    """Advance an attempt. Return (request, None) if the work yields, or (None, result) at its end.

    `answers` are the answers to the work's last request, or None to begin.
    """
    try:
        return next(work) if answers is None else work.send(answers), None
    except StopIteration as end:
        return None, end.value
