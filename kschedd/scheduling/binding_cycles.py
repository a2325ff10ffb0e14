"""BindingCycles: the binding cycles in flight, each from an assumed pod to a bound or failed pod.

    begun ─▶ at Permit ─▶ a plan is executed, or a call is made, one after the other ─▶ ended: bound, or failed
                             │ ▲
                             ▼ │
                          waits until the plan is ready

All waiting cycles are continued by `_advance`. The next steps of a cycle are effects
for the driver. `failed` is called for a cycle that has failed; the driver then undoes the assumption.

This class owns the cycles, and the numbers of cycles begun and pods bound. A cycle is in `cycles` from its beginning to
its end. While a cycle waits, it is also in one of `permit_waits`, `plan_waits` and `stopped`. Pure, like the driver.
Times are seconds since the epoch.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from kschedd.framework.status import Code, Status, error, fault_text
from kschedd.framework.writes import Plan
from kschedd.queue.entry import SECOND
from kschedd.scheduling.binding.cycle import (
    NOTHING_DONE,
    AssumedPod,
    AwaitPermit,
    BindingCycle,
    BindingProgress,
    CallExtender,
    CallPlugin,
    Ended,
    ExecutePlan,
    PlanWait,
    ReleaseInFlight,
    StageStep,
)
from kschedd.scheduling.debug.breakpoints import StopPoint
from kschedd.scheduling.debug.stepper import Stepper
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.nominations.pending import PendingPods
from kschedd.scheduling.profiles.metrics import SUCCESS
from kschedd.scheduling.records import PodBound


class BindingCycles:
    """The binding cycles in flight.

    `failed(assumed, status, now)` is called when a cycle has ended without binding its pod.
    """

    def __init__(
        self,
        machine: SchedulingMachine,
        pending: PendingPods,
        effects: Effects,
        failed: Callable[[AssumedPod, Status, float], None],
    ) -> None:
        self._machine = machine
        self._pending = pending
        self._effects = effects
        self._failed = failed
        self.cycles: dict[str, BindingCycle] = {}  # by uid, like the three mappings below
        self.permit_waits: dict[str, BindingCycle] = {}  # waiting at Permit
        self.plan_waits: dict[str, BindingCycle] = {}  # cycles whose plan is written but not ready
        self.stopped: dict[str, BindingCycle] = {}  # cycles stopped by the debugger, in the order in which they stopped
        self.begun = 0  # cycles begun so far; the number of the latest cycle
        self.pods_bound = 0  # since the start
        self._cancelled: deque[str] = deque()  # uids of cancelled bindings in PreBind

    @property
    def any_executing(self) -> bool:
        """True while a write or a call is in progress: these cycles continue without a change of the virtual time."""
        return any(cycle.call is not None or cycle.plan is not None for cycle in self.cycles.values())

    def in_pre_bind(self, uid: str) -> bool:
        """Return whether PreBind plugins are being called for this pod, or their writes are being executed."""
        cycle = self.cycles.get(uid)
        return cycle is not None and cycle.progress.in_pre_bind

    # -- beginning --------------------------------------------------------------------------------------------

    def begin(self, assumed: AssumedPod, stepper: Stepper | None, now: float, took_s: float) -> None:
        """Begin the binding cycle of a pod that an attempt has assumed on its node; the attempt took `took_s` seconds.

        `stepper` is set if the attempt runs step by step; its binding cycle then also does.
        """
        self.begun += 1
        if stepper is None:
            bind_began_s = assumed.framework.times.start()
            plan = self._machine.binding_steps.direct_plan(assumed)
            if plan is not None:
                self._begin_directly(assumed, plan, bind_began_s, now, took_s)
                return
        uid = assumed.pod.uid
        self.cycles[uid] = cycle = BindingCycle(
            uid, self.begun, assumed, stepper=stepper, began_s=now, attempt_s=took_s
        )
        self._advance(cycle, None, now)

    def _begin_directly(self, assumed: AssumedPod, plan: Plan, bind_began_s: float, now: float, took_s: float) -> None:
        """Begin a binding cycle that consists of one plan."""
        uid = assumed.pod.uid
        cycle = self._of_one_plan(assumed, plan, bind_began_s, now, took_s)
        try:
            self._pending.release(uid)
        except Exception as fault:  # a fault of this pod fails only its binding
            self._ended(cycle, error(fault_text(fault)), now)
            return
        self._effects.released.append(uid)
        self._effects.plans.append(ExecutePlan(uid, plan))
        self.cycles[uid] = cycle

    def _of_one_plan(
        self, assumed: AssumedPod, plan: Plan, bind_began_s: float, now: float, took_s: float
    ) -> BindingCycle:
        return BindingCycle(
            assumed.pod.uid,
            self.begun,
            assumed,
            plan,
            is_one_plan=True,
            progress=NOTHING_DONE,
            began_s=now,
            attempt_s=took_s,
            bind_began_s=bind_began_s,
        )

    def begin_of_run(self, assumed: AssumedPod, plan: Plan, bind_began_s: float, now: float, took_s: float) -> None:
        """Begin the binding cycle of a pod of a run, which consists of this plan.

        The pod was never marked in flight.
        """
        self.begun += 1
        uid = assumed.pod.uid
        self._effects.released.append(uid)
        self._effects.plans.append(ExecutePlan(uid, plan))
        self.cycles[uid] = self._of_one_plan(assumed, plan, bind_began_s, now, took_s)

    def take_up(
        self,
        number: int,
        assumed: AssumedPod,
        progress: BindingProgress,
        deadline_s: float | None,
        now: float,
        stepper: Stepper | None = None,
        stopped_at: StopPoint | None = None,
    ) -> None:
        """Continue a binding cycle of another driver, beginning with the plugin, extender or write for which it waited.

        With `stepper`, the debugger may stop the cycle; with `stopped_at`, it has stopped the cycle there. With
        `deadline_s`, the cycle waits for a plan whose writes are done: the plugin computes the plan again, and the
        cycle waits until this plan is ready.
        """
        uid = assumed.pod.uid
        if assumed.waiting is not None:
            self._machine.waiting.pods[uid] = assumed.waiting
        progress.step, progress.began_s = StageStep.NONE, assumed.framework.times.start()
        self.cycles[uid] = cycle = BindingCycle(
            uid, number, assumed, progress=progress, stepper=stepper, stopped_at=stopped_at, began_s=now
        )
        if stopped_at is not None:
            progress.step = StageStep.STOPPED
            self._release(uid)
            self.stopped[uid] = cycle
            return
        if deadline_s is None or progress.cancelled is not None:
            if not progress.awaits_permit:
                self._release(uid)
            self._advance(cycle, None, now)
            return
        plan = self._plan_again(cycle)
        if isinstance(plan, Plan):
            cycle.waits = PlanWait(plan, deadline_s)
            self.plan_waits[uid] = cycle
        else:
            del self.cycles[uid]
            self._ended(cycle, plan, now)

    def _plan_again(self, cycle: BindingCycle) -> Plan | Status | None:
        """Return the first plan of the cycle's next plugins, or the cycle's result if they return no plan."""
        answer: Plan | Status | None = None
        while True:
            effect = self._machine.binding_steps.next(cycle, answer)
            if isinstance(effect, ExecutePlan):
                return effect.plan
            if isinstance(effect, Ended):
                return effect.failure
            answer = effect.run() if isinstance(effect, CallPlugin) else None

    # -- answers -------------------------------------------------------------------------------------------------

    def plugin_called(self, uid: str, answer: Plan | Status | None, now: float) -> None:
        """Continue a binding cycle after the call of an out-of-tree plugin or an extender has ended or failed."""
        cycle = self.cycles[uid]
        assert cycle.call is not None, f"no plugin is being called for {uid}"
        cycle.call = None
        self._advance(cycle, answer, now)

    def plan_executed(self, uid: str, failure: Status | None, now: float) -> None:
        """Continue a binding cycle after its plan's writes are done, or after the API server has rejected a write."""
        cycle = self.cycles[uid]
        plan = cycle.plan
        assert plan is not None, f"no plan of {uid} is expected to be executed now"
        cycle.plan = None
        if cycle.is_one_plan:
            del self.cycles[uid]
            self._ended(
                cycle, self._machine.binding_steps.bound_directly(cycle.assumed, cycle.bind_began_s, failure), now
            )
        elif failure is None and plan.ready is not None:
            cycle.waits = PlanWait(plan, now + plan.timeout_s)
            self.plan_waits[uid] = cycle
            if cycle.progress.cancelled is not None:
                self._cancelled.append(uid)
        else:
            self._advance(cycle, failure, now)

    def plans_executed(self, plans: Iterable[tuple[str, Status | None]], now: float) -> None:
        """Call `plan_executed` for each uid, with the status of the pod's rejected write, or None."""
        ended: list[BindingCycle] = []
        for uid, failure in plans:
            cycle = self.cycles[uid]
            if (
                failure is None
                and cycle.is_one_plan
                and (not ended or ended[0].assumed.framework is cycle.assumed.framework)
            ):
                ended.append(self.cycles.pop(uid))
                continue
            self._bound_directly(ended, now)
            ended.clear()
            self.plan_executed(uid, failure, now)
        self._bound_directly(ended, now)

    def _bound_directly(self, cycles: Sequence[BindingCycle], now: float) -> None:
        """End binding cycles of one profile that consisted of one plan each; their pods are bound."""
        if not cycles:
            return
        self._machine.binding_steps.all_bound_directly(
            cycles[0].assumed.framework, [cycle.bind_began_s for cycle in cycles]
        )
        for cycle in cycles:
            self._bound(cycle, now)

    # -- waits ---------------------------------------------------------------------------------------------------

    def waiting(self) -> list[BindingCycle]:
        """Return the waiting binding cycles, in order of start."""
        waiting = [*self.permit_waits.values(), *self.plan_waits.values()]
        if len(waiting) > 1:
            waiting.sort(key=lambda cycle: cycle.number)
        return waiting

    def deadlines(self) -> Iterator[float]:
        """Return the times at which the waiting binding cycles time out."""
        return (at for cycle in self.waiting() if (at := cycle.deadline_s) is not None)

    def resume(self, cycle: BindingCycle, now: float) -> bool:
        """Continue a binding if its wait has ended, successfully or not. Return whether the binding continued."""
        waits, answer = cycle.waits, None
        if isinstance(waits, PlanWait):
            cancelled = cycle.progress.cancelled
            status = self._ready(waits, now) if cancelled is None else waits.plan.cancelled or cancelled
            if status is None:
                return False
            answer = None if status.code == Code.SUCCESS else status
            del self.plan_waits[cycle.uid]
        elif cycle.is_decided:
            del self.permit_waits[cycle.uid]
            if self._machine.metrics is not None and isinstance(waits, AwaitPermit):
                rejection = waits.waiting.rejection
                label = SUCCESS if rejection is None else rejection.code.label
                self._machine.metrics.permit_s.observe(now - cycle.began_s, label)
        else:
            return False
        self._effects.resumed.append(cycle.uid)
        self._advance(cycle, answer, now)
        return True

    def _ready(self, waits: PlanWait, now: float) -> Status | None:
        plan = waits.plan
        assert plan.ready is not None
        self._machine.handle.now_s = now
        try:
            status = plan.ready(self._machine.cluster)
        except Exception as fault:  # a plugin's exception fails the binding, not the daemon
            status = error(fault_text(fault))
        if status is None and waits.deadline_s <= now:
            return plan.timed_out or error("timed out")
        return status

    def cancel(self, uid: str) -> None:
        """Let the binding of a pod in PreBind fail after the pending calls and writes are finished."""
        if self.in_pre_bind(uid):
            self.cycles[uid].progress.cancelled = error("context canceled")
            self._cancelled.append(uid)

    @property
    def any_decided(self) -> bool:
        """True if a binding may continue, because its pod was decided at Permit or cancelled in PreBind."""
        if self._cancelled:
            return True
        return bool(self.permit_waits) and any(cycle.is_decided for cycle in self.permit_waits.values())

    def resume_decided(self, now: float) -> None:
        """Continue the bindings decided at Permit, and end the cancelled ones.

        Continuing a binding may decide further waiting pods.
        """
        while self._cancelled:
            cancelled = self.plan_waits.get(self._cancelled.popleft())
            if cancelled is not None:  # otherwise the binding ends after its pending call or write
                self.resume(cancelled, now)
        while decided := [cycle for cycle in self.permit_waits.values() if cycle.is_decided]:
            for cycle in decided:
                self.resume(cycle, now)

    def resume_ready(self, now: float) -> None:
        """Continue the bindings with a plan that is ready, failed or timed out."""
        for cycle in list(self.plan_waits.values()):
            self.resume(cycle, now)

    def resume_stopped(self, now: float) -> None:
        """Continue the binding that was stopped first."""
        cycle = self.stopped.pop(next(iter(self.stopped)))
        cycle.stopped_at = None
        self._advance(cycle, None, now)

    # -- steps ---------------------------------------------------------------------------------------------------

    def _advance(self, cycle: BindingCycle, answer: Plan | Status | None, now: float) -> None:
        """Run a binding until it has to wait, or ends."""
        cycle.waits = None
        self._machine.handle.now_s = now
        assert not cycle.is_one_plan, "a binding cycle that is one plan has no further steps"
        effects, steps = self._effects, self._machine.binding_steps
        try:
            while True:
                effect = steps.next(cycle, answer)
                answer = None
                if isinstance(effect, ExecutePlan):
                    if effect.plan.writes or effect.plan.ready is not None:
                        cycle.plan = effect.plan
                        effects.plans.append(effect)
                        return
                elif isinstance(effect, CallPlugin | CallExtender):
                    cycle.call = effect
                    effects.calls.append(effect)
                    return
                elif isinstance(effect, StopPoint):
                    cycle.stopped_at = effect
                    self.stopped[cycle.uid] = cycle
                    return
                elif isinstance(effect, ReleaseInFlight):
                    self._release(cycle.uid)
                elif isinstance(effect, Ended):
                    failure = effect.failure
                    break
                elif not effect.waiting.decided:
                    cycle.waits = effect
                    self.permit_waits[cycle.uid] = cycle
                    effects.permit_waits.append(cycle)
                    return
        except Exception as fault:  # a fault of this pod fails only its binding
            failure = error(fault_text(fault))
        del self.cycles[cycle.uid]
        self._ended(cycle, failure, now)

    def _release(self, uid: str) -> None:
        """End the in-flight state of a pod that has passed Permit."""
        self._pending.release(uid)
        self._effects.released.append(uid)

    def _ended(self, cycle: BindingCycle, failure: Status | None, now: float) -> None:
        if failure is None:
            self._bound(cycle, now)
        else:
            self._failed(cycle.assumed, failure, now)

    def _bound(self, cycle: BindingCycle, now: float) -> None:
        entry, pod = cycle.assumed.entry, cycle.assumed.pod
        if self._machine.metrics is not None:
            since_s = (entry.initial_attempt or entry.timestamp) / SECOND
            attempt_s = cycle.attempt_s + now - cycle.began_s
            self._machine.metrics.bound(pod.scheduler_name, attempt_s, entry.attempts, now - since_s)
            if entry.was_flushed:
                self._machine.metrics.after_flush.add()
        self.pods_bound += 1
        self._effects.happened.append(PodBound(now, entry.key, pod.uid, pod.node_name, pod.scheduler_name))
