"""SchedulingDriver: what follows from what around an attempt. What happens is told to it, what is to be done comes out.

What a pod goes through between its pop and its end:

    popped ─▶ attempted ─▶ assumed ─▶ waiting at Permit ─▶ binding: plan after plan ─▶ bound
                 │            ╰───────────────────────────────▲        │ (plan written, not ready yet)
                 │                       │                              │
                 ▼                       ▼                              ▼
               failed ◀───────────── rejected ◀─────────────────── binding failed

A failed pod goes back to the queue with the plugins that rejected it, is told why by a write of its status, and may
have chosen victims: then their eviction is an effect, too. There is one failure handler (`_fail`), and one place where
a binding goes on (`_advance`).

In go, one call after the other and in this order of urgency:

    observe(events)                  the watch told of these changes; caches first, then the queue
    plan_executed(uid, failure)      the writes of a binding's plan are done, or one was refused
    tick(now)                        time has passed: Permit plugins may have run out of patience
    resume(cycle, now)               for each of `waiting_cycles()`: go on with it if what it waits for has come
                                     (`resume_decided` and `resume_ready` do so for all that wait for the one or other)
    popped(entries), nominated(pods) what the queue handed out
    begin(entry) → attempt           a generator to be driven (see `scheduler`), the cluster standing still meanwhile
    complete_attempt(entry, result)

Out come effects (`take_effects`), to be applied in the order of the fields of `Effects`; each plan among them is
answered by `plan_executed`, exactly once. A shell around the driver has the time, the queue and the way to the API
server: the scheduling actor with channels and threads, the scheduling loop synchronously. Neither decides anything.

Invariants:
- A pod is in at most one of: popped, being attempted, `binding_cycles`. Its entry is with the queue otherwise.
- An assumed pod is in `binding_cycles` until it is bound or forgotten, with the framework (plugin instances) that its
  attempt began with; Unreserve goes to those whatever has been configured since.
- A nomination (`nominator`) is of a pod that is pending, and ends when that gets its node or goes; an attempt sees the
  nominations that all attempts before it have made.
- What is written comes back through `observe` only. A failed pod is handed to the queue before the eviction of its
  victims begins, so nothing can wake it too early, and their end cannot be missed.

Pure: no clock, no randomness but that of the machine's `choose`, no channel. Times are seconds since the epoch.
Source: Kubernetes v1.34, scheduler/schedule_one.go (ScheduleOne, handleBindingCycleError, handleSchedulingFailure),
scheduler/eventhandlers.go.
"""

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from kschedd.api.pods import Pod
from kschedd.config.model import Config
from kschedd.framework.status import Code, Status, error, fault_text
from kschedd.object_faults import ObjectRef
from kschedd.queue.entry import SECOND, QueuedPod
from kschedd.queue.operations import (
    Activate,
    AssumedPodForgotten,
    AttemptFailed,
    EventsObserved,
    Reconfigured,
)
from kschedd.queue.scheduling_queue import QueueSettings
from kschedd.scheduling.binding_cycle import (
    AssumedPod,
    BindingCycle,
    ExecutePlan,
    PlanWait,
    ReleaseInFlight,
)
from kschedd.scheduling.effects import Effects, Eviction
from kschedd.scheduling.failure import FailedAttempt, failure_status
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.pending import PendingPods
from kschedd.scheduling.records import NORMAL, WARNING, AttemptRecord, SchedulerEvent
from kschedd.scheduling.scheduler import Attempt, FitError, ScheduleResult
from kschedd.store.log import DELETED, WatchEvent
from kschedd.store.times import stamp

MOST_POPPED: Final = 32  # pods handed out at once: a hop between actors costs more than a pop
_PENDING: Final = "pending"  # the step that is tried again where following a pending pod went wrong


class SchedulingDriver:
    """See the module. `current_pod` tells plugins of stored pods, where somebody knows more than the watch has told."""

    def __init__(self, machine: SchedulingMachine, *, current_pod: Callable[[str], Pod | None] | None = None) -> None:
        self.machine = machine
        self.pending = PendingPods()
        self.nominator = self.pending.nominator
        self.binding_cycles: dict[str, BindingCycle] = {}  # by uid
        self.pods_bound = 0  # since the start
        self.attempts_allowed: int | None = None  # so many more; None: as many as there are pods
        self.permit_waits: dict[str, BindingCycle] = {}  # those of them that wait at Permit, by uid
        self.plan_waits: dict[str, BindingCycle] = {}  # those whose plan is written and not ready yet, by uid
        self._popped: deque[QueuedPod] = deque()  # handed out to us, not tried yet
        self._to_activate: list[Pod] = []
        self._cycles = 0
        self._effects = Effects()
        handle = machine.handle
        handle.nominated_pods = self.nominator.on_node
        handle.current_pod = current_pod or self.pending.pods.get
        handle.activate = self._to_activate.extend

    @property
    def has_effects(self) -> bool:
        return bool(self._to_activate or self._effects)

    def take_effects(self) -> Effects:
        """What is to be done since the last time."""
        if self._to_activate:
            self._effects.queue.append(Activate(tuple(self._to_activate)))
            self._to_activate.clear()
        effects, self._effects = self._effects, Effects()
        return effects

    # -- the cluster ------------------------------------------------------------------------------------------

    def observe(self, events: Sequence[WatchEvent], now: float = 0.0) -> None:
        """Bring the caches up to date, and have the queue told. What goes wrong over one is that one's fault."""
        observe, faults = self.machine.observe, self.machine.faults
        assumed: set[str] = set()
        rejected: set[str] = set()
        for event in events:
            observe((event,), now)
            pod = event.new
            if not isinstance(pod, Pod):
                continue
            try:
                self._follow_pending(event, pod, assumed, rejected)
            except Exception as fault:  # the pod's
                again = partial(self._follow_again, event, pod)
                faults.note(ObjectRef("Pod", pod.namespace, pod.name), again, fault, now, _PENDING)
            else:
                if faults:
                    faults.strike_off(ObjectRef("Pod", pod.namespace, pod.name), _PENDING)
        self._effects.queue.append(EventsObserved(events, frozenset(assumed), frozenset(rejected)))

    def _follow_pending(self, event: WatchEvent, pod: Pod, assumed: set[str], rejected: set[str]) -> None:
        if event.type == DELETED or pod.node_name or pod.finished:
            self._no_longer_pending(pod, rejected)
        else:
            self._pending_changed(event, pod, assumed)

    def _follow_again(self, event: WatchEvent, pod: Pod, now: float) -> None:
        """As long as that is the last that was heard of the pod."""
        self._follow_pending(event, pod, set(), set())

    def _no_longer_pending(self, pod: Pod, rejected: set[str]) -> None:
        self.pending.gone(pod)
        if pod.uid in self.permit_waits and self.machine.waiting.reject(pod.uid, "", "removed"):
            rejected.add(pod.uid)

    def _pending_changed(self, event: WatchEvent, pod: Pod, assumed: set[str]) -> None:
        self.pending.put(pod)
        if isinstance(event.old, Pod):
            if self.machine.cluster.is_assumed(pod):
                assumed.add(pod.uid)
            elif self.machine.responsible(pod.scheduler_name):
                self.pending.updated(event.old, pod)

    # -- attempts ---------------------------------------------------------------------------------------------

    @property
    def pods_wanted(self) -> int:
        """How many pods the queue may hand out at most: none before those are tried that it has handed out.

        One at a time as long as pods are nominated: what their victims leave must find the pods after them in the
        queue, not in flight.
        """
        if self._popped:
            return 0
        most = 1 if self.nominator else MOST_POPPED
        return most if self.attempts_allowed is None else min(most, self.attempts_allowed)

    def popped(self, entries: Sequence[QueuedPod]) -> None:
        """The queue handed these out. Those that come before others that wait here are tried before them."""
        if not self._popped:
            self._popped.extend(entries)
            return
        sort_key = self.machine.sort_key()
        for entry in entries:
            insort(self._popped, entry, key=sort_key)

    def nominated(self, pods: Sequence[Pod]) -> None:
        """These got into the active queue with a nomination of their own."""
        self.pending.active_with_nomination(pods)

    def next_popped(self) -> QueuedPod | None:
        """The pod to be tried next, of those that were handed out; None if there is none, or no attempt is allowed."""
        return self._popped.popleft() if self._popped and self.attempts_allowed != 0 else None

    @property
    def has_next(self) -> bool:
        """Whether `next_popped` would give a pod."""
        return bool(self._popped) and self.attempts_allowed != 0

    def begin(self, entry: QueuedPod) -> Attempt | None:
        """An attempt for a popped pod, as it is now; None if it is passed over, and then no longer in flight."""
        pod = self.pending.current(entry)
        self.pending.begin(entry.uid)
        if self.attempts_allowed is not None:
            self.attempts_allowed -= 1
        if (
            pod is None
            or self.machine.skips(pod)
            or not self.machine.responsible(pod.scheduler_name)  # its profile was taken away meanwhile
        ):
            self._effects.released.append(entry.uid)
            self.pending.pass_over(entry)
            return None
        entry.pod = pod
        return self.machine.begin(pod, self.nominator.nominated)

    def complete_attempt(
        self, entry: QueuedPod, result: ScheduleResult | FitError, now: float, took_s: float = 0.0
    ) -> AssumedPod | FailedAttempt:
        """What an attempt comes to: the pod goes on to its node, or back to the queue."""
        outcome = self.machine.complete_attempt(entry, result, now)
        if isinstance(outcome, FailedAttempt):
            self._record(entry, result, now, took_s, outcome)
            self._fail(outcome, now)
            return outcome
        self._record(entry, result, now, took_s, None)
        self.nominator.remove(entry.pod)
        self._cycles += 1
        uid = outcome.pod.uid
        self.binding_cycles[uid] = cycle = BindingCycle(uid, self._cycles, outcome, self.machine.binding(outcome))
        self._advance(cycle, None, now)
        return outcome

    def _record(
        self,
        entry: QueuedPod,
        result: ScheduleResult | FitError,
        now: float,
        took_s: float,
        failed: FailedAttempt | None,
        of_binding: bool = False,
    ) -> None:
        node, feasible, visited, ties, score = "", 0, 0, 0, None
        if isinstance(result, ScheduleResult):
            feasible, visited, ties, score = len(result.feasible), result.visited, result.ties, result.score
            node = "" if failed is not None else result.node_name
        elif result.diagnosis.verdicts is not None:
            visited = len(result.diagnosis.verdicts.rows)
        self._effects.records.append(
            AttemptRecord(
                now,
                entry.key,
                entry.pod.uid,
                entry.attempts,
                node,
                feasible,
                visited,
                ties,
                score,
                took_s,
                "" if failed is None else failed.message,
                "" if failed is None else failed.nominated_node or "",
                of_binding,
            )
        )

    def _fail(self, failed: FailedAttempt, now: float) -> None:
        """Hand the pod back to the queue and tell the API server why."""
        entry, effects = failed.entry, self._effects
        pod = self.pending.current(entry)
        if pod is None:
            effects.released.append(entry.uid)
            self.pending.release(entry.uid)
        else:
            self.pending.failed(pod, failed.nominated_node)
            effects.queue.append(
                AttemptFailed(entry, pod, failed.unschedulable_plugins, failed.pending_plugins, failed.evicts)
            )
            patch = failure_status(pod, failed, stamp(now))
            if patch is not None:
                effects.writes.append(patch)
        pod = entry.pod
        if failed.evicts:
            effects.evictions.append(Eviction(pod, failed.writes))
        else:
            effects.writes.extend(failed.writes)
        effects.failures.append(failed)
        effects.events.append(SchedulerEvent(now, WARNING, "FailedScheduling", pod.namespace, pod.name, failed.message))
        for victim in failed.victims:
            text = f"Preempted by pod {pod.uid} on node {victim.node_name}"
            effects.events.append(SchedulerEvent(now, NORMAL, "Preempted", victim.namespace, victim.name, text))

    def eviction_failed(self, pod: Pod) -> None:
        """Nothing will wake the pod for which these victims were to go: it is tried again at once."""
        self._to_activate.append(pod)

    # -- bindings ---------------------------------------------------------------------------------------------

    def plan_executed(self, uid: str, failure: Status | None, now: float) -> None:
        """The writes of a binding's plan are done, or the API server refused one."""
        cycle = self.binding_cycles[uid]
        plan = cycle.plan
        assert plan is not None, f"no plan of {uid} is expected to be executed now"
        cycle.plan = None
        if failure is None and plan.ready is not None:
            cycle.waits = PlanWait(plan, now + plan.timeout_s)
            self.plan_waits[uid] = cycle
        else:
            self._advance(cycle, failure, now)

    def tick(self, now: float) -> None:
        """Time has passed: reject the pods at Permit for which a plugin's patience has ended."""
        for waiting in list(self.machine.waiting.pods.values()):
            waiting.expire(now)

    def waiting_cycles(self) -> list[BindingCycle]:
        """The binding cycles that wait, in the order in which they began."""
        waiting = [*self.permit_waits.values(), *self.plan_waits.values()]
        if len(waiting) > 1:
            waiting.sort(key=lambda cycle: cycle.number)
        return waiting

    @property
    def any_decided(self) -> bool:
        """Whether a pod at Permit has been decided about: its binding can go on."""
        return bool(self.permit_waits) and any(cycle.is_decided for cycle in self.permit_waits.values())

    def resume_decided(self, now: float) -> None:
        """Go on with the bindings that waited at Permit and are decided; one of them may decide about others."""
        while decided := [cycle for cycle in self.permit_waits.values() if cycle.is_decided]:
            for cycle in decided:
                self.resume(cycle, now)

    def resume_ready(self, now: float) -> None:
        """Go on with the bindings whose plan is ready, or will not be."""
        for cycle in list(self.plan_waits.values()):
            self.resume(cycle, now)

    def deadlines(self) -> Iterator[float]:
        """When the patience with each binding cycle that waits ends."""
        return (at for cycle in self.waiting_cycles() if (at := cycle.deadline_s) is not None)

    def resume(self, cycle: BindingCycle, now: float) -> bool:
        """Go on with a binding if what it waits for has come, or will not; whether it did."""
        waits, answer = cycle.waits, None
        if isinstance(waits, PlanWait):
            status = self._ready(waits, now)
            if status is None:
                return False
            answer = None if status.code == Code.SUCCESS else status
            del self.plan_waits[cycle.uid]
        elif cycle.is_decided:
            del self.permit_waits[cycle.uid]
        else:
            return False
        self._effects.resumed.append(cycle.uid)
        self._advance(cycle, answer, now)
        return True

    def _ready(self, waits: PlanWait, now: float) -> Status | None:
        plan = waits.plan
        assert plan.ready is not None
        try:
            status = plan.ready(self.machine.cluster)
        except Exception as fault:  # a plugin's fault ends here: the binding fails
            status = error(fault_text(fault))
        if status is None and waits.deadline_s <= now:
            return plan.timed_out or error("timed out")
        return status

    def _advance(self, cycle: BindingCycle, answer: Status | None, now: float) -> None:
        """Go on with a binding until it has to wait, or ends."""
        cycle.waits = None
        effects, binding = self._effects, cycle.binding
        try:
            while True:
                effect = binding.send(answer)
                answer = None
                if isinstance(effect, ExecutePlan):
                    if effect.plan.writes or effect.plan.ready is not None:
                        cycle.plan = effect.plan
                        effects.plans.append(effect)
                        return
                elif isinstance(effect, ReleaseInFlight):
                    self.pending.release(cycle.uid)
                    effects.released.append(cycle.uid)
                elif not effect.waiting.decided:
                    cycle.waits = effect
                    self.permit_waits[cycle.uid] = cycle
                    effects.permit_waits.append(cycle)
                    return
        except StopIteration as end:
            failure = end.value
        except Exception as fault:  # the pod's: its binding has failed
            failure = error(fault_text(fault))
        del self.binding_cycles[cycle.uid]
        self._ended(cycle.assumed, failure, now)

    def _ended(self, assumed: AssumedPod, failure: Status | None, now: float) -> None:
        pod, effects = assumed.pod, self._effects
        if failure is None:
            effects.bound.append(pod)
            self.pods_bound += 1
            effects.events.append(SchedulerEvent(now, NORMAL, "Scheduled", pod.namespace, pod.name, pod.node_name))
            return
        failed = self.machine.undo(assumed, failure, now)
        self._record(assumed.entry, assumed.result, now, 0.0, failed, of_binding=True)
        if failure.rejected:
            # Woken by the room it leaves itself, the pod would come straight back.
            self._fail(failed, now)
            effects.queue.append(AssumedPodForgotten(pod, for_itself=False))
        else:
            effects.queue.append(AssumedPodForgotten(pod, for_itself=True))
            self._fail(failed, now)

    # -- the configuration --------------------------------------------------------------------------------------

    @property
    def has_out_of_tree(self) -> bool:
        """Whether any profile has out-of-tree plugins."""
        added = self.machine.registry.added
        return any(name in added for profile in self.machine.config.profiles for name in profile.names())

    def reconfigure(self, config: Config) -> Config:
        """Run by this configuration from the next attempt on; returns the one before. Raises PluginLoadError."""
        before = self.machine.config
        self.machine.reconfigure(config)
        self._effects.queue.append(self.queue_configuration())
        return before

    def queue_configuration(self) -> Reconfigured:
        machine = self.machine
        config = machine.config
        return Reconfigured(
            self.has_out_of_tree,
            frozenset(machine.schedulers),
            QueueSettings(
                config.pod_initial_backoff_s * SECOND,
                config.pod_max_backoff_s * SECOND,
                config.feature_gates.get("SchedulerPopFromBackoffQ", True),
            ),
            machine.sort_key(),
            machine.pre_enqueue(),
            machine.registrations(),
        )
