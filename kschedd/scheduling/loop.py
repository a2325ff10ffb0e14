"""SchedulingLoop: the scheduling driver and the queue in one synchronous loop, which applies each effect immediately.

The loop's caller (a simulation, or a replay of recorded traces) provides the clock and the objects, and chooses the
order of the calls:

    observe(event)        a watch event; applied to the caches first, then to the queue
    pop()                 the next pod, in flight from now on; None if there is nothing to do
    decide(entry)         filters, scores, PostFilter; None if the pod is skipped
    group_cycle(entry)    instead of these three, if the pod is tried together with its PodGroup
    stepped_cycle(...)    both of these, step by step, for a driver whose debugger may stop them
    complete(...)         act on the result: requeue with a status write, or assume and start the binding cycle
    resume_bindings()     continue waiting binding cycles whose wait is over

Writes are executed in the environment immediately; the scheduler observes their effects only through `Observe`. The
loop makes no decisions. The daemon's actors do the same for a driver over channels.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Final, Protocol, TypeVar

from kschedd.api.pods import Pod
from kschedd.framework.status import Status
from kschedd.framework.writes import Plan, Write
from kschedd.queue.entry import QueuedPod
from kschedd.queue.operations import PodDone, Pop, PopOthersOfGroup, QueueOperation, TakeNominated
from kschedd.queue.scheduling_queue import Recorder
from kschedd.scheduling.attempt.outcome import Attempt, FitError, ScheduleResult
from kschedd.scheduling.binding.cycle import AssumedPod, CallExtender, CallPlugin, ExecutePlan
from kschedd.scheduling.debug.breakpoints import StopPoint
from kschedd.scheduling.debug.work import Work, answered, drive
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.gangs.trial import MemberDone
from kschedd.scheduling.inputs import (
    BeginAttempt,
    BeginGroupCycle,
    BreakOff,
    CompleteAttempt,
    EvictionFailed,
    Observe,
    PlansExecuted,
    PluginCalled,
    PodsNominated,
    PodsPopped,
    Resume,
    ResumeStopped,
)
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.preemption.eviction import evict
from kschedd.store.objects.log import WatchEvent

T = TypeVar("T")

_POP: Final = Pop()


class Environment(Protocol):
    """The clock and the object store, supplied by the loop's caller."""

    @property
    def now_s(self) -> float:
        """The time in seconds since the epoch."""

    @property
    def now_ns(self) -> int:
        """The queue's clock."""

    def current_pod(self, key: str) -> Pod | None:
        """Return the stored pod with that key."""

    def write(self, write: Write) -> Status | None:
        """Execute one write. Execute a write; return a Status if the API server rejects it."""


class SchedulingLoop:
    """The synchronous scheduling loop.

    `on_effects` is called with every applied batch of effects, except queue operations for events. For a fork, `driver`
    is the copied driver.
    """

    def __init__(
        self,
        machine: SchedulingMachine,
        environment: Environment,
        *,
        recorder: Recorder | None = None,
        on_effects: Callable[[Effects], None] = lambda effects: None,
        driver: SchedulingDriver | None = None,
    ) -> None:
        self.environment = environment
        self.machine = machine
        self.driver = driver or SchedulingDriver(machine, current_pod=environment.current_pod)
        queue_config = self.driver.config_changes.for_queue()
        self.queue = queue_config.new_queue()
        self.queue.recorder = recorder
        self.operations = queue_config.new_operations(self.queue)
        machine.handle.evicting, machine.handle.leaving = self.operations.evicting, self.operations.leaving
        self._on_effects = on_effects
        # true if each binding of a PodGroup advances as far as possible before the next binding
        self.one_by_one = False
        self.held: list[ExecutePlan] | None = None  # plans that wait for `release`; None: plans never wait

    def observe(self, event: WatchEvent) -> None:
        """Apply one watch event to the caches, then to the queue."""
        self.observe_all((event,))

    def observe_all(self, events: Sequence[WatchEvent]) -> None:
        """Apply watch events: first all of them to the caches, then all of them to the queue."""
        self.driver.step(Observe(events), self.environment.now_s)
        self.apply_effects()

    # -- attempts ---------------------------------------------------------------------------------------------

    def pop(self) -> QueuedPod | None:
        debugger = self.driver.debugger
        if debugger.engaged and not debugger.lets_begin(self.environment.now_s):
            return None
        popped: QueuedPod | None = self.driver.popped.take(self.environment.now_s)
        if popped is None and self.driver.popped.attempts_allowed != 0:
            popped = self.operations.step(_POP, self.environment.now_ns)
            if popped is not None and self.driver.popped.in_group(popped):
                others = self.operations.step(PopOthersOfGroup(popped), self.environment.now_ns)
                if debugger.engaged:  # the debugger may stop before the group's cycle
                    self.driver.step(PodsPopped([popped, *others]))
                    return self.driver.popped.take(self.environment.now_s)
                self.driver.step(PodsPopped(others))
        return popped

    def group_cycle(self, entry: QueuedPod, on_result: MemberDone) -> None:
        """Run the cycle of a popped pod's PodGroup and apply all results.

        Call `on_result` with each result before it is applied.
        """
        drive(self._begun_group(entry, on_result))
        self.apply_effects()

    def stepped_group(self, entry: QueuedPod, on_result: MemberDone) -> Generator[StopPoint, None, None]:
        """Run the cycle of a PodGroup, and yield at each debugger stop."""
        yield from _stops_of(self._begun_group(entry, on_result))
        self.apply_effects()

    def _begun_group(self, entry: QueuedPod, on_result: MemberDone) -> Work[None]:
        cycle: Work[None] = self.driver.step(
            BeginGroupCycle(entry, lambda: self.environment.now_s, on_result), self.environment.now_s
        )
        return cycle

    def decide(self, entry: QueuedPod) -> ScheduleResult | FitError | None:
        """Run the attempt for a popped pod. Return None if the pod is skipped; the pod is then no longer in flight."""
        attempt: Attempt | None = None
        try:
            attempt = self.driver.step(BeginAttempt(entry), self.environment.now_s)
            if attempt is not None:
                result: ScheduleResult | FitError = drive(attempt)
                return result
        except Exception as fault:  # a fault of a plugin or of the pod: the attempt fails, and the pod is retried
            if attempt is not None:
                attempt.close()
            return self._broken_off(entry, fault)
        self.apply_effects()
        return None

    def stepped_cycle(
        self, entry: QueuedPod, on_result: Callable[[ScheduleResult | FitError], None]
    ) -> Generator[StopPoint, None, None]:
        """Run the scheduling cycle of a popped pod, and yield at each debugger stop. `on_result` gets it."""
        driver, attempt = self.driver, None
        try:
            attempt = driver.step(BeginAttempt(entry), self.environment.now_s)
            if attempt is None:
                self.apply_effects()
                return
            result: ScheduleResult | FitError = yield from _stops_of(attempt)
        except Exception as fault:  # a fault of a plugin or of the pod: the attempt fails, and the pod is retried
            if attempt is not None:
                attempt.close()
            result = self._broken_off(entry, fault)
        on_result(result)
        yield from _stops_of(driver.completing(entry, result, self.environment.now_s))
        self.apply_effects()

    def _broken_off(self, entry: QueuedPod, fault: Exception) -> FitError:
        result: FitError = self.driver.step(BreakOff(entry, fault), self.environment.now_s)
        return result

    def complete(self, entry: QueuedPod, result: ScheduleResult | FitError) -> AssumedPod | FailedAttempt:
        """Act on the attempt's result."""
        outcome: AssumedPod | FailedAttempt = self.driver.step(CompleteAttempt(entry, result), self.environment.now_s)
        self.apply_effects()
        return outcome

    # -- bindings ---------------------------------------------------------------------------------------------

    def resume_bindings(self) -> bool:
        """Continue the binding cycles whose wait has ended. Return whether any continued."""
        resumed = self.driver.any_to_resume
        if resumed:
            self.driver.step(ResumeStopped(), self.environment.now_s)
            self.apply_effects()
        for cycle in self.driver.bindings.waiting():
            if self.driver.step(Resume(cycle), self.environment.now_s):
                self.apply_effects()
                resumed = True
        return resumed

    # -- effects ----------------------------------------------------------------------------------------------

    def apply_effects(self) -> None:
        """Apply the effects, and then the effects that the driver adds in response."""
        driver, environment = self.driver, self.environment
        while driver.has_effects:
            effects = driver.take_effects()
            now = environment.now_ns
            for uid in effects.released:
                self.operations.step(PodDone(uid), now)
            if effects.queue:
                self._tell_queue(*effects.queue)
            for write in effects.writes:
                environment.write(write)
            for eviction in effects.evictions:
                failure = evict(eviction.writes, environment.write, self._uid_of, gone_fails=eviction.gone_fails)
                if failure is not None:
                    driver.step(EvictionFailed(eviction.pod))
            if self.held is not None:
                self.held += effects.plans
                effects.plans = []
            for wanted in effects.plans:
                if self.one_by_one:
                    self._resume_before(wanted.uid)
                driver.step(PlansExecuted(((wanted.uid, self._execute(wanted.plan)),)), environment.now_s)
                if self.one_by_one:
                    self.apply_effects()
            for called in effects.calls:
                driver.step(PluginCalled(called.uid, self._call(called)), environment.now_s)
            self._on_effects(effects)

    def _resume_before(self, uid: str) -> None:
        """Continue the bindings that began before this pod's binding, if their wait has ended."""
        number = self.driver.bindings.cycles[uid].number
        for cycle in self.driver.bindings.waiting():
            if cycle.number < number and self.driver.step(Resume(cycle), self.environment.now_s):
                self.apply_effects()

    def release(self) -> None:
        """Execute the held plans one after the other, each followed by the effects of its result."""
        held, self.held = self.held or (), None
        for wanted in held:
            answer = wanted.uid, self._execute(wanted.plan)
            self.driver.step(PlansExecuted((answer,)), self.environment.now_s)
            self.apply_effects()

    def _tell_queue(self, *operations: QueueOperation) -> None:
        queue, now = self.operations, self.environment.now_ns
        for operation in operations:
            queue.step(operation, now)
        if queue.nominated:
            self.driver.step(PodsNominated(queue.step(TakeNominated(), now)))

    def _call(self, called: CallPlugin | CallExtender) -> Plan | Status | None:
        """Make the call now.

        An extender that binds pods is not called, because it would bind the pod in the real cluster. The loop executes
        the extender's write instead.
        """
        if isinstance(called, CallExtender):
            return self.environment.write(called.binding)
        return called.run()

    def _execute(self, plan: Plan) -> Status | None:
        """Execute the writes of a plan until one is rejected, and return the Status of the rejected write."""
        for write in plan.writes:
            failure = self.environment.write(write)
            if failure is not None:
                return failure
        return None

    def _uid_of(self, namespace: str, name: str) -> str | None:
        pod = self.environment.current_pod(f"{namespace}/{name}")
        return None if pod is None else pod.uid


def _stops_of(work: Work[T]) -> Generator[StopPoint, None, T]:
    """Run this work, and yield at each debugger stop."""
    try:
        yielded = next(work)
        while True:
            if isinstance(yielded, StopPoint):
                yield yielded
                yielded = work.send([])
            else:
                yielded = work.send(answered(work, yielded))
    except StopIteration as end:
        value: T = end.value
        return value
