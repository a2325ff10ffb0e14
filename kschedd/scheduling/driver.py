"""SchedulingDriver: the state machine around scheduling attempts. Events go in, effects (writes, requeues) come out.

States of a pod between its pop and its end:

    popped ─▶ attempted ─▶ assumed ─▶ waiting at Permit ─▶ binding: plan after plan ─▶ bound
                 │            ╰───────────────────────────────▲        │ (plan written, not ready yet)
                 │                       │                              │
                 ▼                       ▼                              ▼
               failed ◀───────────── rejected ◀─────────────────── binding failed

A failed pod goes back to the queue with the plugins that rejected it, its PodScheduled condition is written, and if
preemption chose victims their eviction is an effect, too. There is one failure handler (`_fail`). From `assumed` on a
pod is in a machine of its own, `BindingCycles`, which the driver owns and forwards the answers to. `AttemptRecords`
makes the log entries and metrics of each attempt.

Inputs are values (`kschedd.scheduling.inputs`), given to `step` one at a time, in this order of priority:

    Observe                     watch events; applied to the caches first, then to the queue
    PlansExecuted, PluginCalled what a binding cycle waited for
    Tick, Resume...             time has passed, or the wait of a binding cycle is over
    PodsPopped, PodsNominated   pods popped from the queue
    BeginAttempt                returns a generator to run (see `scheduler`); the cache must not change meanwhile
    CompleteAttempt             its result; if the attempt raised, the one that `BreakOff` returns
                                (`completing`: the same as a generator, for attempts that may be stopped)
    CompleteRun                 of `begin_run`: several attempts made together, in one call

`PlansExecuted` and `PluginCalled` may also arrive while an attempt waits for a plugin or an extender. A binding that
fails then is undone after the attempt is completed, because the cache must not change within an attempt.

Outputs are effects (`take_effects`), to be applied in the order of the fields of `Effects`; each plan among them is
answered by `PlansExecuted`, each call by `PluginCalled`, exactly once. The caller supplies time, the queue and the
connection to the API server: the scheduling actor with channels and threads, the scheduling loop synchronously. Neither
makes decisions.

Invariants:
- A pod is in at most one of: popped, being attempted, `bindings.cycles`. Otherwise the queue holds its entry.
- An assumed pod is in `bindings.cycles` until it is bound or forgotten, with the framework (plugin instances) of its
  attempt; Unreserve is called on those instances even after a reconfiguration.
- A nomination (`nominator`) belongs to a pending pod and ends when the pod gets a node or is deleted; an attempt sees
  the nominations of all earlier attempts.
- Writes become visible through `Observe` only. A failed pod is handed to the queue before the eviction of its
  victims begins, so the events of their deletion cannot be missed.

Pure: no clock, no randomness but that of the machine's `choose`, no channel. Times are seconds since the epoch.
Source: Kubernetes v1.34, scheduler/schedule_one.go (ScheduleOne, handleBindingCycleError, handleSchedulingFailure),
scheduler/eventhandlers.go.
"""

from bisect import insort
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.text.times import stamp
from kschedd.config.changing.values import changed_origins
from kschedd.config.model import Config
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.faults import PluginError
from kschedd.framework.status import Code, Status, error, fault_text
from kschedd.metrics.instruments import MetricFamily
from kschedd.object_faults import ObjectRef
from kschedd.queue.entry import SECOND, QueuedPod
from kschedd.queue.groups import order_in_group
from kschedd.queue.operations import (
    Activate,
    AssumedPodForgotten,
    AttemptFailed,
    EventsObserved,
    GroupAttempted,
    QueueOperation,
    Reconfigured,
)
from kschedd.queue.scheduling_queue import QueueSettings
from kschedd.scheduling.attempt.outcome import Attempt, FitError, ScheduleResult
from kschedd.scheduling.attempt.scheduler import broken_off
from kschedd.scheduling.attempt_records import AttemptRecords
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.binding.run import AttemptRun
from kschedd.scheduling.binding_cycles import BindingCycles
from kschedd.scheduling.config_changes import ConfigChange, ConfigChanges
from kschedd.scheduling.debug.breakpoints import StopPoint
from kschedd.scheduling.debug.debugger import Debugger
from kschedd.scheduling.debug.stepper import Stepper
from kschedd.scheduling.debug.work import Work
from kschedd.scheduling.effects import Effects, Eviction
from kschedd.scheduling.failure import FailedAttempt, failed_by_error, failure_status
from kschedd.scheduling.gangs.counted import group_fault, try_counted
from kschedd.scheduling.gangs.cycle import order_of_members, profile_fault, try_group
from kschedd.scheduling.gangs.outcome import (
    condition_type,
    failed_in_counted_group,
    failed_with_group,
    group_condition,
    not_placed,
)
from kschedd.scheduling.gangs.trial import MemberDone, TriedGroup, TriedMember
from kschedd.scheduling.inputs import (
    Allow,
    BeginAttempt,
    BeginGroupCycle,
    BreakOff,
    ChangeConfig,
    CompleteAttempt,
    CompleteRun,
    EvictionFailed,
    Input,
    InputListener,
    Intervene,
    Observe,
    PlansExecuted,
    PluginCalled,
    PodsNominated,
    PodsPopped,
    Reconfigure,
    Reject,
    Resume,
    ResumeDecided,
    ResumeReady,
    ResumeStopped,
    Tick,
    UndoConfigChange,
)
from kschedd.scheduling.machine import Choices, SchedulingMachine
from kschedd.scheduling.nominations.pending import PendingPods
from kschedd.scheduling.records import Happened, PodPreempted
from kschedd.scheduling.verdicts import Diagnosis
from kschedd.store.objects.log import ADDED, DELETED, EventType, WatchEvent

MOST_POPPED: Final = 128  # pods popped at once: a hop between actors costs more than a pop
_PENDING: Final = "pending"  # name under which a failed update of a pending pod is retried


class SchedulingDriver:
    """The scheduling driver; see the module.

    `current_pod` returns the stored pod to plugins, if there is a source newer than the watch.
    """

    def __init__(
        self,
        machine: SchedulingMachine,
        *,
        current_pod: Callable[[str], Pod | None] | None = None,
        pending: PendingPods | None = None,
    ) -> None:
        self.machine = machine
        self.pending = pending or PendingPods()
        self.nominator = self.pending.nominator
        self.observed = 0  # every write up to this version has been observed; set by the observer
        self.attempts_allowed: int | None = None  # attempts left; None: unlimited
        self._popped: deque[QueuedPod] = deque()  # received from the queue, not attempted yet
        self._to_activate: list[Pod] = []
        self.observed_version = 0  # store version: all writes up to it are in the cache
        self.attempting = False  # between `begin` and the end of `complete_attempt`
        self._observations = 0  # number of observations so far
        self._seen = 0  # number of observations when the latest attempt, or cycle of a PodGroup, began
        self._result: tuple[QueuedPod, ScheduleResult | FitError] | None = None  # result of the attempt being completed
        self._choices_before: Choices | None = None  # choices before the attempt of `stepper`
        self._failed: list[tuple[AssumedPod, Status]] = []  # bindings that failed during the attempt
        self.debugger = Debugger(self._state)
        self.stepper: Stepper | None = None  # of the current or latest attempt
        self.stops_within_groups = True  # False in a replay, which has one record of the whole cycle
        self.group_tried: Sequence[TriedMember] = ()  # results so far of the group whose cycle is stopped
        self.latest_group: TriedGroup | None = None  # results of the group whose cycle ended last
        self.listener: InputListener | None = None
        self._steps: dict[type[Input], Callable[[Any, float], Any]] = {
            Observe: self._observe,
            PodsPopped: self._popped_more,
            PodsNominated: self._nominated,
            BeginAttempt: self._begin,
            BeginGroupCycle: self._begin_group_cycle,
            BreakOff: self._break_off,
            CompleteAttempt: self._complete_attempt,
            CompleteRun: self._complete_run,
            Intervene: self._intervene,
            PlansExecuted: lambda given, now: self.bindings.plans_executed(given.plans, now),
            PluginCalled: lambda given, now: self.bindings.plugin_called(given.uid, given.answer, now),
            EvictionFailed: self._eviction_failed,
            Tick: self._tick,
            Resume: lambda given, now: self.bindings.resume(given.cycle, now),
            ResumeDecided: lambda given, now: self.bindings.resume_decided(now),
            ResumeReady: lambda given, now: self.bindings.resume_ready(now),
            ResumeStopped: self._resume_stopped,
            Allow: lambda given, now: self.machine.waiting.allow(given.uid, given.plugin),
            Reject: lambda given, now: self.machine.waiting.reject(given.uid, given.plugin, given.reason),
            Reconfigure: lambda given, now: self._reconfigure(given.config),
            ChangeConfig: self._change_config,
            UndoConfigChange: self._undo_config_change,
        }
        self._effects = Effects()
        self._records = AttemptRecords(self._effects, machine.metrics)
        self.bindings = BindingCycles(machine, self.pending, self._effects, self._binding_failed)
        self.config_changes = ConfigChanges()
        handle = machine.handle
        handle.nominated_pods = self.nominator.on_node
        handle.current_pod = current_pod or self.pending.pods.get
        handle.activate = self._to_activate.extend
        handle.in_pre_bind = self.bindings.in_pre_bind

    def step(self, given: Input, now: float = 0.0) -> Any:
        """Process an input and return the result described at its class. `now`: seconds since the epoch."""
        step = self._steps[type(given)]
        return step(given, now) if self.listener is None else self.listener.given(given, now, step)

    @property
    def has_effects(self) -> bool:
        return bool(self._to_activate or self._effects)

    @property
    def happened(self) -> Sequence[Happened]:
        """The log entries among the effects not taken yet."""
        return self._effects.happened

    def record_leads(self) -> None:
        """Record from now on the chosen node's lead over the second best."""
        self._records.table = self.machine.cluster.table

    def take_effects(self) -> Effects:
        """Return the effects since the last call; allowed while another call waits for a plugin."""
        if self._to_activate:
            self._effects.queue.append(Activate(tuple(self._to_activate)))
            self._to_activate.clear()
        effects = self._effects.take()
        if self.listener is not None:
            self.listener.taken(effects)
        return effects

    def tell_queue(self, operation: QueueOperation) -> None:
        """Queue an operation for the queue's owner, after the earlier ones."""
        self._effects.queue.append(operation)

    # -- the cluster ------------------------------------------------------------------------------------------

    def _observe(self, given: Observe, now: float) -> None:
        """Update the caches from watch events, then add the events and their consequences to the queue's operations.

        An exception while processing an event is recorded as a fault of the event's object.
        """
        events, told_at = given.events, len(self._effects.queue)
        observe, faults = self.machine.observe_each, self.machine.faults
        if events:
            self.observed_version = events[-1].version
        assumed: set[str] = set()
        rejected: set[str] = set()
        if faults.by_object:
            faults.retry(now)
        last, resizing = len(events) - 1, self.machine.handle.rules.resizes_preempt
        for place, event in enumerate(events):
            # An event deleted by the next one need not be applied: pods are marked for deletion before they are
            # deleted.
            if place == last or events[place + 1].type != DELETED or events[place + 1].old is not event.new:
                observe(event, now)
            pod, old = event.new, event.old
            if not isinstance(pod, Pod):
                continue
            if resizing and (self.machine.resizes(pod) or (isinstance(old, Pod) and self.machine.resizes(old))):
                self._follow_resize(event, pod)
                continue
            if pod.node_name and isinstance(old, Pod) and old.node_name and not faults.by_object:
                continue  # already observed with its node, so no longer pending
            try:
                self._follow_pending(event, pod, assumed, rejected)
            except Exception as fault:  # a fault of this pod
                again = partial(self._follow_again, event, pod)
                faults.note(ObjectRef("Pod", pod.namespace, pod.name), again, fault, now, _PENDING)
            else:
                if faults.by_object:
                    faults.strike_off(ObjectRef("Pod", pod.namespace, pod.name), _PENDING)
        self.machine.cluster.table.trim()
        self._observations += 1
        observed = EventsObserved(events, frozenset(assumed), frozenset(rejected), self._observations)
        self._effects.queue.insert(told_at, observed)

    def _follow_resize(self, event: WatchEvent, pod: Pod) -> None:
        """Follow a running pod, which is queued while its resize is deferred."""
        if event.type != DELETED and self.machine.resizes(pod) and not pod.finished:
            self.pending.put(pod)
        else:
            self.pending.gone(pod)

    def _follow_pending(self, event: WatchEvent, pod: Pod, assumed: set[str], rejected: set[str]) -> None:
        if event.type == DELETED or pod.node_name or pod.finished:
            self._no_longer_pending(pod, rejected)
        else:
            self._pending_changed(event, pod, assumed)

    def _follow_again(self, event: WatchEvent, pod: Pod, now: float) -> None:
        """Retry following a pod, unless a newer event of the pod arrived."""
        self._follow_pending(event, pod, set(), set())

    def _no_longer_pending(self, pod: Pod, rejected: set[str]) -> None:
        self.pending.gone(pod)
        self._let_go(pod)
        if pod.uid in self.machine.waiting.pods and self.machine.waiting.reject(pod.uid, "", "removed"):
            rejected.add(pod.uid)

    def _pending_changed(self, event: WatchEvent, pod: Pod, assumed: set[str]) -> None:
        self.pending.put(pod)
        if isinstance(event.old, Pod):
            if self.machine.cluster.is_assumed(pod):
                assumed.add(pod.uid)
                if pod.deletion_timestamp and not event.old.deletion_timestamp:
                    self._let_go(pod)
            elif self.machine.responsible(pod.scheduler_name):
                self.pending.updated(event.old, pod)

    def _let_go(self, pod: Pod) -> None:
        """Release an assumed pod that was deleted or is being deleted, so that others may take its place.

        In force with the rule `assumed_pods_forgotten`.

        Source: Kubernetes v1.36, scheduler/eventhandlers.go (handleAssumedPodDeletion).
        """
        cluster, waiting = self.machine.cluster, self.machine.waiting
        if not self.machine.handle.rules.assumed_pods_forgotten or not cluster.is_assumed(pod):
            return
        assumed = cluster.pod(pod.uid)
        assert assumed is not None, "what is assumed is there"
        if not waiting.reject(pod.uid, "", "removed"):  # otherwise it is forgotten when its binding ends
            cluster.forget(assumed)
        self.tell_queue(AssumedPodForgotten(assumed, for_itself=True))

    # -- attempts ---------------------------------------------------------------------------------------------

    @property
    def pods_wanted(self) -> int:
        """The maximum number of pods to pop now; 0 until all popped pods have been attempted.

        Nominations do not reduce the number: an attempt sees the nominations of all earlier ones whenever its pod was
        popped, and events observed before it begins do not cause a retry (`AttemptFailed.seen`).
        """
        if self._popped or self.debugger.stop is not None:
            return 0
        most = 1 if self.debugger.engaged else MOST_POPPED
        return most if self.attempts_allowed is None else min(most, self.attempts_allowed)

    def _popped_more(self, given: PodsPopped, now: float) -> None:
        if not self._popped:
            self._popped.extend(given.entries)
            return
        sort_key = self.machine.sort_key()
        for entry in given.entries:
            insort(self._popped, entry, key=lambda popped: (popped.popped_early, sort_key(popped)))

    def _nominated(self, given: PodsNominated, now: float) -> None:
        self.pending.active_with_nomination(given.pods)

    def next_popped(self, now: float = 0.0) -> QueuedPod | None:
        """Return the popped pod to attempt next; None if there is none, or no attempt is allowed."""
        if self.debugger.engaged and not self.lets_begin(now):
            return None
        self.machine.handle.now_s = now
        return self._popped.popleft() if self._popped and self.attempts_allowed != 0 else None

    def lets_begin(self, now: float) -> bool:
        """Return whether the debugger lets the next attempt, or the next cycle of a PodGroup, begin."""
        head = self.head
        if not self.debugger.lets_begin(now):
            return False
        if head is None or self.attempts_allowed == 0 or not self.in_group(head):
            return True
        group = head.pod.pod_group
        pods = {entry.pod: entry.attempts for entry in self._popped if entry.pod.pod_group == group}
        return self.debugger.enters_group(group, pods, now)

    @property
    def popped_entries(self) -> tuple[QueuedPod, ...]:
        """The pods that were popped and not attempted yet, in the order of their attempts."""
        return tuple(self._popped)

    def hand_back(self, uid: str) -> None:
        """Drop a popped pod that is in the queue again: it is not attempted from here."""
        self._popped = deque(entry for entry in self._popped if entry.uid != uid)

    @property
    def head(self) -> QueuedPod | None:
        """The popped pod whose attempt is next."""
        return self._popped[0] if self._popped else None

    @property
    def first_tried(self) -> QueuedPod | None:
        """The popped pod that is tried next; for a PodGroup the first in the order of its cycle."""
        head = self.head
        if head is None or not self.in_group(head):
            return head
        members = [entry for entry in self._popped if entry.pod.pod_group == head.pod.pod_group]
        if self.machine.handle.rules.gangs_counted:
            return min(members, key=order_in_group)
        return order_of_members(members)[0]

    @property
    def has_next(self) -> bool:
        """True if `next_popped` would return a pod."""
        return bool(self._popped) and self.attempts_allowed != 0 and self.debugger.stop is None

    def _begin(self, given: BeginAttempt, now: float) -> Attempt | None:
        entry = given.entry
        if self.attempts_allowed is not None:
            self.attempts_allowed -= 1
        cycle = self.machine.batches.next_cycle()
        if not self._begins(entry):
            return None
        pod = entry.pod
        if self.machine.metrics is not None:
            self.machine.metrics.sampling.next()
        self.attempting = True
        self.stepper = self._result = None
        debugger = self.debugger
        if debugger.engaged and debugger.began(pod):
            return self.step_by_step(entry)
        return self.machine.begin(pod, self.nominator.nominated, cycle=cycle)

    def step_by_step(self, entry: QueuedPod) -> Attempt:
        """Return the attempt that has just begun, to be run plugin by plugin."""
        debugger, machine = self.debugger, self.machine
        self.stepper = Stepper(debugger, entry.pod, entry.attempts, machine.cluster.table, debugger.cycle)
        self._choices_before = machine.choices()
        return machine.begin(entry.pod, self.nominator.nominated, self.stepper, cycle=machine.batches.cycle)

    # -- pod groups -------------------------------------------------------------------------------------------

    def in_group(self, entry: QueuedPod) -> bool:
        """Return whether the pod is tried with the others of its PodGroup, in one cycle (`_group_cycle`)."""
        return self.machine.handle.rules.pod_groups and bool(entry.pod.pod_spec.pod_group_name)

    def _begin_group_cycle(self, given: BeginGroupCycle, now: float) -> Work[None]:
        return self._group_cycle(given.entry, given.clock, given.told)

    def _group_cycle(self, entry: QueuedPod, clock: Callable[[], float], told: MemberDone) -> Work[None]:
        """Run the cycle of all popped pods of the PodGroup. Yields what attempts yield."""
        group = entry.pod.pod_group
        entries = [entry, *(other for other in self._popped if other.pod.pod_group == group)]
        self._popped = deque(other for other in self._popped if other.pod.pod_group != group)
        self.machine.batches.next_cycle()
        counted = self.machine.handle.rules.gangs_counted
        entries = sorted(entries, key=order_in_group) if counted else order_of_members(entries)
        fault = group_fault(self.machine, group, entries) if counted else ""
        entries = [one for one in entries if self._begins(one)]
        if self.attempts_allowed is not None:
            self.attempts_allowed -= 1
        if not entries:
            self._group_attempted(group, Code.SUCCESS)
            return
        self.attempting, self.stepper, self._result = True, None, None
        if self.debugger.engaged:
            self.debugger.began(entry.pod)
        if not counted:
            fault = profile_fault(entries)
        tried = TriedGroup(error(fault), ())
        if not fault:
            if self.debugger.engaged:
                self._choices_before = self.machine.choices()
            pause, attempt = self._before_member, try_counted if counted else try_group
            tried = yield from attempt(self.machine, self.nominator, entries, clock(), self._broken, pause=pause)
        self._complete_group(group, entries, tried, clock(), told)

    def _before_member(self, entry: QueuedPod, tried: Sequence[TriedMember]) -> StopPoint | None:
        """Return where the cycle of a PodGroup stops before one of its pods; None if it continues."""
        debugger, self.group_tried = self.debugger, ()
        at = StopPoint(debugger.cycle, entry.pod, entry.attempts, "", "")
        if not debugger.engaged or not self.stops_within_groups:
            return None
        if self.has_out_of_tree:  # their Reserve would be called again for the previous pods
            return None
        if not debugger.before_member(at):
            return None
        self.group_tried = tuple(tried)
        return at

    def skips(self, entry: QueuedPod) -> bool:
        """Return whether the popped pod is skipped: it was deleted, is being deleted, or is assumed."""
        pod = self.pending.current(entry)
        if pod is None or self.machine.skips(pod):
            return True
        return not self.machine.responsible(pod.scheduler_name)  # its profile was removed meanwhile

    def _begins(self, entry: QueuedPod) -> bool:
        """Return whether an attempt of this pod begins now; otherwise it is skipped and no longer in flight."""
        pod = self.pending.current(entry)
        self.pending.begin(entry.uid)
        self._seen = self._observations
        if pod is None or self.skips(entry):
            self._effects.released.append(entry.uid)
            self.pending.pass_over(entry)
            return False
        entry.pod = pod
        return True

    def _complete_group(
        self, key: str, entries: Sequence[QueuedPod], tried: TriedGroup, now: float, told: MemberDone
    ) -> None:
        placed = tried.status.code is Code.SUCCESS
        rules = self.machine.handle.rules
        failed_in_group = failed_in_counted_group if rules.gangs_counted else failed_with_group
        self.attempting, self.group_tried, self.latest_group = False, (), tried
        for at, entry in enumerate(entries):
            member = tried.members[at] if at < len(tried.members) else None
            if placed and member is not None and member.failed is None:
                told(entry, member.result)
                self._complete(entry, member.result, now)
                continue
            failed = failed_in_group(tried, entry, member)
            result = FitError(entry.pod, tried.status, Diagnosis(0), CycleState()) if member is None else member.result
            told(entry, result if isinstance(result, FitError) else not_placed(entry, failed))
            self._records.note(entry, result, now, 0.0, failed, self.observed_version)
            self._fail(failed, now, self._seen)
        while self._failed:
            self._undo(*self._failed.pop(0), now)
        group = self.machine.groups.object(key)
        condition = None if group is None else group_condition(group, tried.status, stamp(now), condition_type(rules))
        if condition is not None:
            self._effects.writes.append(condition)
        self._preempt_for_group(key, group, entries, tried, now)
        self.debugger.left_group(now)

    def _preempt_for_group(
        self, key: str, group: Object | None, entries: Sequence[QueuedPod], tried: TriedGroup, now: float
    ) -> None:
        """Return the group to the queue, and evict the victims of its preemption."""
        outcome = tried.status.code if tried.untried is None else tried.untried.code
        preemption = tried.preemption
        if preemption is not None:
            self._effects.writes.extend(preemption.writes)
        if group is None or preemption is None or preemption.evicted is None:
            self._group_attempted(key, outcome)
            return
        failed = self.machine.evict(failed_by_error(entries[0], ""), preemption.evicted, now)
        self._group_attempted(key, outcome, group.uid if failed.evicts else "")
        self._evict(failed, now, group.uid)

    def _group_attempted(self, key: str, outcome: Code, evicting: str = "") -> None:
        if self.machine.handle.rules.groups_queued:
            self._effects.queue.append(GroupAttempted(key, outcome, evicting))

    def _break_off(self, given: BreakOff, now: float) -> FitError:
        return self._broken(given.entry, given.fault)

    def _broken(self, entry: QueuedPod, fault: Exception) -> FitError:
        status = broken_off(fault) if isinstance(fault, PluginError) else error(fault_text(fault))
        return FitError(entry.pod, status, Diagnosis(self.machine.cluster.table.node_count), CycleState())

    def _complete_attempt(self, given: CompleteAttempt, now: float) -> AssumedPod | FailedAttempt:
        return self._complete(given.entry, given.result, now, given.took_s)

    def _complete(
        self, entry: QueuedPod, result: ScheduleResult | FitError, now: float, took_s: float = 0.0
    ) -> AssumedPod | FailedAttempt:
        self._result = entry, result
        return self._completed(entry, result, self.machine.complete_attempt(entry, result, now), now, took_s)

    # -- runs of attempts ---------------------------------------------------------------------------------------

    def begin_run(self, now: float) -> AttemptRun:
        """Attempt the next popped pods together and assume them on their nodes; `CompleteRun` must follow at once.

        Only pods like those attempted before take part. Returns an empty run if the next pod must be attempted by
        itself (`next_popped`), which is always allowed.
        """
        popped = self._popped
        if len(popped) < 2 or self.nominator or self._failed or self.attempts_allowed is not None:
            return AttemptRun()
        if self.debugger.engaged or self.in_group(popped[0]):
            return AttemptRun()
        self.machine.handle.now_s = now
        most = self.machine.longest_run(popped[0].pod)
        entries = self._together(most) if most > 1 else ()
        return self.machine.run(entries, now) if len(entries) > 1 else AttemptRun()

    def _together(self, most: int) -> Sequence[QueuedPod]:
        """Return at most `most` popped pods that are next and may be in one run, with their current versions."""
        machine, known = self.machine, self.machine.cluster.pod
        profile, signatures = self._popped[0].pod.scheduler_name, set()
        entries = []
        for entry in islice(self._popped, most):
            pod = self.pending.current(entry)
            if pod is None or pod.nominated_node_name or pod.deletion_timestamp or known(pod.uid) is not None:
                break
            signature = pod.signature
            if signature not in signatures:
                if pod.scheduler_name != profile or self.in_group(entry) or not machine.may_run(pod):
                    break
                signatures.add(signature)
            entry.pod = pod
            entries.append(entry)
        return entries

    def _complete_run(self, given: CompleteRun, now: float) -> None:
        run, took_s = given.run, given.took_s
        self.stepper = self._result = None
        plans = self.machine.binding_steps.direct_plans(run)
        began_s = run.results[0].framework.times.start()
        for result, outcome, plan in zip(run.results, run.outcomes, plans, strict=True):
            entry = self._popped.popleft()
            self.machine.batches.cycle += 1
            if plan is None or not isinstance(outcome, AssumedPod):
                self.pending.begin(entry.uid)
                self._seen = self._observations
                outcome = outcome or self.machine.complete_attempt(entry, result, now)
                self._completed(entry, result, outcome, now, took_s)
                continue
            self._records.note(entry, result, now, took_s, None, self.observed_version)
            self.bindings.begin_of_run(outcome, plan, began_s, now, took_s)
        if self.machine.metrics is not None:
            self.machine.metrics.found_nodes(took_s, sum([plan is not None for plan in plans]))

    def completing(
        self, entry: QueuedPod, result: ScheduleResult | FitError, now: float, took_s: float = 0.0
    ) -> Work[AssumedPod | FailedAttempt]:
        """Complete an attempt as `CompleteAttempt` does, stopping where the debugger stops it."""
        work = self._completing(entry, result, now, took_s)
        return work if self.listener is None else self.listener.completing(work, now, took_s)

    def _completing(
        self, entry: QueuedPod, result: ScheduleResult | FitError, now: float, took_s: float
    ) -> Work[AssumedPod | FailedAttempt]:
        self._result = entry, result
        outcome = yield from self.machine.completing(entry, result, now, self.stepper)
        return self._completed(entry, result, outcome, max(now, self.debugger.now_s), took_s)

    @property
    def stepped_pod(self) -> str:
        """The pod of the attempt that runs step by step or is stopped; "" if there is none."""
        return self.stepper.pod.key if self.attempting and self.stepper is not None else ""

    def _intervene(self, given: Intervene, now: float) -> None:
        assert self.stepper is not None, "an attempt is stopped"
        self.stepper.intervene(given.change)

    def choices(self) -> Choices:
        """Return the choices of the next attempt; during an attempt step by step, those with which it began."""
        if (self.stepped_pod or self.group_tried) and self._choices_before is not None:
            return self._choices_before
        return self.machine.choices()

    @property
    def reserving(self) -> AssumedPod | None:
        """The assumed pod for which Reserve or Permit plugins are being called; None if there is none."""
        if not self.attempting or self._result is None:
            return None
        entry, result = self._result
        if not isinstance(result, ScheduleResult) or not self.machine.cluster.is_assumed(entry.pod):
            return None
        assumed = self.machine.cluster.pod(entry.uid)
        assert assumed is not None, "what is assumed is there"
        return AssumedPod(entry, assumed, result, None)

    def _completed(
        self,
        entry: QueuedPod,
        result: ScheduleResult | FitError,
        outcome: AssumedPod | FailedAttempt,
        now: float,
        took_s: float,
    ) -> AssumedPod | FailedAttempt:
        self.attempting = False
        if isinstance(outcome, FailedAttempt):
            self._records.note(entry, result, now, took_s, outcome, self.observed_version)
            self._fail(outcome, now, self._seen)
        else:
            self._records.note(entry, result, now, took_s, None, self.observed_version)
            if self.machine.metrics is not None:
                self.machine.metrics.algorithm_s.observe(took_s)
            self.nominator.remove(entry.pod)
            self.bindings.begin(outcome, self.stepper, now, took_s)
        while self._failed:
            self._undo(*self._failed.pop(0), now)
        return outcome

    def _fail(self, failed: FailedAttempt, now: float, seen: int = 0) -> None:
        """Return the pod to the queue and write the reason to its status. `seen`: see `AttemptFailed`."""
        entry, effects = failed.entry, self._effects
        if not failed.evicts:
            effects.writes.extend(failed.writes)
        pod = self.pending.current(entry)
        if pod is not None and self.machine.resizes(entry.pod):
            self.pending.release(entry.uid)
            effects.queue.append(
                AttemptFailed(entry, pod, failed.unschedulable_plugins, failed.pending_plugins, failed.evicts, seen)
            )
            effects.failures.append(failed)
            self._evict(failed, now)
            return
        if pod is None:
            effects.released.append(entry.uid)
            self.pending.release(entry.uid)
            is_gone = entry.key not in self.pending.pods and self.machine.cluster.pod(entry.uid) is None
            if is_gone and (patch := failure_status(entry.pod, failed, stamp(now))) is not None:
                effects.writes.append(patch)  # rejected, unless only the watch has lost the pod
        else:
            self.pending.failed(pod, failed.nominated_node)
            effects.queue.append(
                AttemptFailed(entry, pod, failed.unschedulable_plugins, failed.pending_plugins, failed.evicts, seen)
            )
            patch = failure_status(pod, failed, stamp(now))
            if patch is not None:
                effects.writes.append(patch)
        pod = entry.pod
        effects.failures.append(failed)
        self._evict(failed, now)

    def _evict(self, failed: FailedAttempt, now: float, group: str = "") -> None:
        """Evict the victims. `group`: the uid of the preempting PodGroup; "" if the pod itself preempts."""
        pod, effects = failed.entry.pod, self._effects
        if failed.evicts:
            gone_fails = not self.machine.handle.rules.gone_victims_evicted
            effects.evictions.append(Eviction(pod, failed.writes, gone_fails))
        for victim in failed.victims:
            in_memory = victim.uid in failed.in_memory
            if in_memory:
                self.bindings.cancel(victim.uid)
            effects.happened.append(PodPreempted(now, victim.key, victim.uid, victim.node_name, pod, in_memory, group))

    def _eviction_failed(self, given: EvictionFailed, now: float) -> None:
        self._to_activate.append(given.pod)

    # -- bindings ---------------------------------------------------------------------------------------------

    @property
    def any_to_resume(self) -> bool:
        """True if a binding that was stopped may continue."""
        return bool(self.bindings.stopped) and self.debugger.stop is None

    def _resume_stopped(self, given: ResumeStopped, now: float) -> None:
        while self.any_to_resume:
            self.bindings.resume_stopped(now)

    def _tick(self, given: Tick, now: float) -> None:
        for waiting in list(self.machine.waiting.pods.values()):
            waiting.expire(now)

    def _binding_failed(self, assumed: AssumedPod, failure: Status, now: float) -> None:
        """Undo a failed binding: at once, or when the running attempt is completed."""
        if self.attempting:
            self._failed.append((assumed, failure))
        else:
            self._undo(assumed, failure, now)

    def _undo(self, assumed: AssumedPod, failure: Status, now: float) -> None:
        pod, effects = assumed.pod, self._effects
        failed = self.machine.undo(assumed, failure, now)
        self._records.note(assumed.entry, assumed.result, now, 0.0, failed, self.observed_version, of_binding=True)
        if failure.rejected:
            # Otherwise the event of its own removal from the node would requeue the pod at once.
            self._fail(failed, now)
            effects.queue.append(AssumedPodForgotten(pod, for_itself=False))
        else:
            effects.queue.append(AssumedPodForgotten(pod, for_itself=True))
            self._fail(failed, now)

    @property
    def working(self) -> bool:
        """True if work is in progress that ends by itself, without time passing."""
        if self.attempting or self.has_next:
            return self.debugger.stop is None
        return self.bindings.any_executing

    @property
    def samples(self) -> bool:
        """True if the latest attempt is sampled in detail."""
        return self.machine.metrics is not None and self.machine.metrics.sampling.plugins

    def steps_of(self, profile: str) -> Mapping[str, float]:
        """Return the seconds of each timed extension point of that profile's latest attempt."""
        return self.machine.times(profile).steps

    def metrics(self) -> list[MetricFamily]:
        """Return the current metrics; empty if metrics are off."""
        if self.machine.metrics is None:
            return []
        cluster = self.machine.cluster
        sizes = {
            "nodes": cluster.table.node_count,
            "pods": cluster.pod_count,
            "assumed_pods": len(cluster.assumed_pods()),
        }
        return self.machine.metrics.families(sizes, {"binding": len(self.bindings.cycles)})

    # -- the debugger -----------------------------------------------------------------------------------------

    def _state(self) -> dict[str, int]:
        """Return the values of the debugger's `STATE_VARIABLES`, except for the time."""
        cluster = self.machine.cluster
        return {
            "attempts": self._records.attempts,
            "scheduled": self.bindings.pods_bound,
            "failed": self._records.failures,
            "pending": len(self.pending.pods),
            "waiting": len(self.bindings.permit_waits),
            "binding": len(self.bindings.cycles),
            "nodes": cluster.table.node_count,
            "pods": cluster.pod_count,
        }

    # -- the configuration --------------------------------------------------------------------------------------

    @property
    def has_out_of_tree(self) -> bool:
        """True if any profile has out-of-tree plugins."""
        added = self.machine.registry.added
        return any(name in added for profile in self.machine.config.profiles for name in profile.names())

    def calls_out_of_tree(self, entry: QueuedPod) -> bool:
        """Return whether an attempt of this pod, or its completion, may call out-of-tree plugins."""
        if self._failed:  # failed bindings, possibly of other profiles, are undone when the attempt ends
            return True
        scheduler = self.machine.schedulers.get(entry.pod.scheduler_name)
        return scheduler is None or len(scheduler.profile.in_tree) < len(scheduler.profile.plugins)

    def _reconfigure(self, config: Config) -> Config:
        before, served = self.machine.config, frozenset(self.machine.schedulers)
        self.machine.reconfigure(config)
        serves = frozenset(self.machine.schedulers)
        # Removals precede the new configuration and additions follow it, because the queue ignores pods of unknown
        # profiles.
        self._tell_of_pods(served - serves, DELETED)
        self._effects.queue.append(self.queue_configuration())
        self._tell_of_pods(serves - served, ADDED)
        return before

    def _tell_of_pods(self, profiles: frozenset[str], event: EventType) -> None:
        """Remove from, or add to, the queue the pending pods of profiles that were removed or added."""
        if not profiles:
            return
        cluster, popped = self.machine.cluster, {entry.uid for entry in self._popped}
        pods = [
            pod
            for pod in self.pending.pods.values()
            if pod.scheduler_name in profiles and pod.uid not in popped and not cluster.is_assumed(pod)
        ]
        events = [WatchEvent(event, None, pod, pod.resource_version) for pod in pods]
        if events:
            for pod in pods:
                self.pending.handed_over(pod.uid)
            self._effects.queue.append(EventsObserved(events, frozenset(), frozenset()))

    def _change_config(self, given: ChangeConfig, now: float) -> ConfigChange:
        changes, before = self.config_changes, self.machine.config
        origin = f"change {changes.count + 1}"
        config = attrs.evolve(given.config, origins=changed_origins(before, given.config, origin))
        self._reconfigure(config)
        changes.count += 1
        change = ConfigChange(changes.count, now, given.what, before, config)
        changes.made.append(change)
        return change

    def _undo_config_change(self, given: UndoConfigChange, now: float) -> ConfigChange:
        change = self.config_changes.latest
        self._reconfigure(change.before)
        self.config_changes.made.pop()
        return change

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
                config.unschedulable_flush_s * SECOND,
                config.rules.bound_nominees_wake_none,
                config.rules.gated_pods_flushed,
                config.rules.gated_nominations_kept,
                config.rules.groups_queued,
                config.rules.resize_rules if config.rules.resizes_preempt else None,
            ),
            machine.sort_key(),
            machine.pre_enqueue(),
            machine.registrations(),
        )
