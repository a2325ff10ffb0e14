"""SchedulingDriver: the state machine around scheduling attempts, which turns events into writes and requeues.

States of a pod from the pop to the end of its binding:

    popped ─▶ attempted ─▶ assumed ─▶ waiting at Permit ─▶ binding: plan after plan ─▶ bound
                 │            ╰───────────────────────────────▲        │ (plan written, not ready yet)
                 │                       │                              │
                 ▼                       ▼                              ▼
               failed ◀───────────── rejected ◀─────────────────── binding failed

The driver forwards each input to the object that stores the affected state:

    Observer        watch events, applied to the caches and the pending pods
    PoppedPods      pods popped from the queue, in the order of their attempts
    Attempts        the running attempt, its completion and its records
    GroupCycles     the cycle of a PodGroup, in which all its pods are attempted
    FailureHandler  failed pods: requeued, their condition written, victims evicted
    BindingCycles   assumed pods, from Permit to their end
    ConfigChanges   the configuration and its changes

Inputs are values (`kschedd.scheduling.inputs`). The caller passes the inputs to `step` one at a time, in this order of
priority:

    Observe                     watch events; applied to the caches first, then to the queue
    PlansExecuted, PluginCalled what a binding cycle waited for
    Tick, Resume...             time has passed, or the wait of a binding cycle is over
    PodsPopped, PodsNominated   pods popped from the queue
    BeginAttempt                returns a generator to run (see `scheduler`); the cache must not change meanwhile
    CompleteAttempt             its result; if the attempt raised, the one that `BreakOff` returns
                                (`completing`: the same as a generator, for attempts that may be stopped)
    CompleteRun                 of `begin_run`: several attempts made together, in one call

`PlansExecuted` and `PluginCalled` may also arrive while an attempt waits for a plugin or an extender. If a binding then
fails, it is undone after the attempt is completed, because the cache must not change during an attempt.

Outputs are effects (`take_effects`). The caller applies the effects in the order of the fields of `Effects`. The caller
answers each plan with `PlansExecuted` and each call with `PluginCalled`, exactly once. The caller supplies the time,
the queue and the connection to the API server. The scheduling actor uses channels and threads; the scheduling loop is
synchronous. Neither makes decisions.

Invariants:
- A pod is in at most one of these states: popped, being attempted, or in `bindings.cycles`. In all other states the
  queue holds the pod's entry.
- An assumed pod is in `bindings.cycles` until it is bound or forgotten, with the framework (plugin instances) of its
  attempt. Unreserve is called on these instances even after a reconfiguration.
- A nomination (`nominator`) belongs to a pending pod, and ends when the pod gets a node or is deleted. An attempt uses
  the nominations of all earlier attempts.
- Writes become visible only through `Observe`. A failed pod returns to the queue before the eviction of its victims
  begins, so that the queue cannot miss their deletion events.

The driver has no clock, no channel, and no randomness except the machine's `choose`. Times are seconds
since the epoch. Source: Kubernetes v1.34, scheduler/schedule_one.go (ScheduleOne, handleBindingCycleError,
handleSchedulingFailure), scheduler/eventhandlers.go.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kschedd.api.pods import Pod
from kschedd.metrics.instruments import MetricFamily
from kschedd.queue.entry import QueuedPod
from kschedd.queue.operations import Activate, EvictionEnded, QueueOperation
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.attempts import Attempts
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.config_changes import ConfigChanges
from kschedd.scheduling.debug.debugger import Debugger
from kschedd.scheduling.debug.work import Work
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.group_cycles import GroupCycles
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
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.nominations.pending import PendingPods
from kschedd.scheduling.observer import Observer
from kschedd.scheduling.popped import PoppedPods
from kschedd.scheduling.records import Happened


class SchedulingDriver:
    """The state machine around scheduling attempts.

    `current_pod` returns the stored version of a pod for plugins, if it may be newer than the watched version.
    `pending` and `debugger` belong to a fork.
    """

    def __init__(
        self,
        machine: SchedulingMachine,
        *,
        current_pod: Callable[[str], Pod | None] | None = None,
        pending: PendingPods | None = None,
        debugger: Debugger | None = None,
    ) -> None:
        self.machine = machine
        self.pending = pending or PendingPods()
        self.nominator = self.pending.nominator
        self.observed = 0  # highest version up to which all writes are observed; the watching task sets it
        self.listener: InputListener | None = None
        self._to_activate: list[Pod] = []
        self._effects = Effects()
        self.debugger = debugger or Debugger(self._state)
        self.debugger.state = self._state
        self.observer = Observer(machine, self.pending, self._effects)
        self.popped = PoppedPods(machine, self.pending, self.debugger)
        self.attempts = Attempts(machine, self.pending, self._effects, self.observer, self.popped, self.debugger)
        self.bindings = self.attempts.bindings
        self.groups = GroupCycles(machine, self.nominator, self._effects, self.popped, self.attempts, self.debugger)
        self.config_changes = ConfigChanges(machine, self.pending, self._effects, self.popped)
        self._steps: dict[type[Input], Callable[[Any, float], Any]] = {
            Observe: self.observer.observe,
            PodsPopped: self.popped.add,
            PodsNominated: lambda given, now: self.pending.active_with_nomination(given.pods),
            BeginAttempt: self.attempts.begin,
            BeginGroupCycle: self.groups.begin,
            BreakOff: self.attempts.break_off,
            CompleteAttempt: self.attempts.complete_attempt,
            CompleteRun: self.attempts.complete_run,
            Intervene: self.attempts.intervene,
            PlansExecuted: lambda given, now: self.bindings.plans_executed(given.plans, now),
            PluginCalled: lambda given, now: self.bindings.plugin_called(given.uid, given.answer, now),
            EvictionFailed: self._eviction_failed,
            Tick: self._tick,
            Resume: lambda given, now: self.bindings.resume(given.cycle, now),
            ResumeDecided: lambda given, now: self.bindings.resume_decided(now),
            ResumeReady: lambda given, now: self.bindings.resume_ready(now),
            ResumeStopped: self._resume_stopped,
            Allow: lambda given, now: machine.waiting.allow(given.uid, given.plugin),
            Reject: lambda given, now: machine.waiting.reject(given.uid, given.plugin, given.reason),
            Reconfigure: self.config_changes.reconfigure,
            ChangeConfig: self.config_changes.change,
            UndoConfigChange: self.config_changes.undo,
        }
        handle = machine.handle
        handle.nominated_pods = self.nominator.on_node
        handle.current_pod = current_pod or self.pending.pods.get
        handle.activate = self._to_activate.extend
        handle.in_pre_bind = self.bindings.in_pre_bind

    def step(self, given: Input, now: float = 0.0) -> Any:
        """Process an input and return the result that the input's class describes.

        `now` is in seconds since the epoch.
        """
        step = self._steps[type(given)]
        return step(given, now) if self.listener is None else self.listener.given(given, now, step)

    def completing(
        self, entry: QueuedPod, result: ScheduleResult | FitError, now: float, took_s: float = 0.0
    ) -> Work[AssumedPod | FailedAttempt]:
        """Complete an attempt as for `CompleteAttempt`, with stops for the debugger."""
        work = self.attempts.completing(entry, result, now, took_s)
        return work if self.listener is None else self.listener.completing(work, now, took_s)

    @property
    def has_effects(self) -> bool:
        return bool(self._to_activate or self._effects)

    @property
    def happened(self) -> Sequence[Happened]:
        """The new log entries that `take_effects` has not returned yet."""
        return self._effects.happened

    def record_leads(self) -> None:
        """Record the score difference between the selected and the second-best node in later attempts."""
        self.attempts.records.table = self.machine.cluster.table

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
        """Add an operation for the queue, to be carried out after all earlier operations."""
        self._effects.queue.append(operation)

    # -- time ---------------------------------------------------------------------------------------------------

    def _eviction_failed(self, given: EvictionFailed, now: float) -> None:
        pod = given.pod
        group = self.machine.groups.object(pod.pod_group) if pod.pod_group else None
        self._effects.queue.append(EvictionEnded((pod.uid,) if group is None else (pod.uid, group.uid)))
        self._to_activate.append(pod)

    def _tick(self, given: Tick, now: float) -> None:
        for waiting in list(self.machine.waiting.pods.values()):
            waiting.expire(now)

    @property
    def any_to_resume(self) -> bool:
        """True if a stopped binding may continue."""
        return bool(self.bindings.stopped) and self.debugger.stop is None

    def _resume_stopped(self, given: ResumeStopped, now: float) -> None:
        while self.any_to_resume:
            self.bindings.resume_stopped(now)

    @property
    def working(self) -> bool:
        """True if work is in progress that ends without an advance of the virtual time."""
        if self.attempts.running or self.popped.has_next:
            return self.debugger.stop is None
        return self.bindings.any_executing

    # -- figures ------------------------------------------------------------------------------------------------

    @property
    def samples(self) -> bool:
        """True if detailed timings of the latest attempt are recorded."""
        return self.machine.metrics is not None and self.machine.metrics.sampling.plugins

    def steps_of(self, profile: str) -> Mapping[str, float]:
        """Return the duration in seconds of each timed extension point in that profile's latest attempt."""
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
        batches = self.machine.batches
        batching = [each.family() for each in (*batches.counters, *batches.durations)]
        return self.machine.metrics.families(sizes, {"binding": len(self.bindings.cycles)}) + batching

    def _state(self) -> dict[str, int]:
        """Return the values of the debugger's `STATE_VARIABLES` except the time."""
        cluster = self.machine.cluster
        return {
            "attempts": self.attempts.records.attempts,
            "scheduled": self.bindings.pods_bound,
            "failed": self.attempts.records.failures,
            "pending": len(self.pending.pods),
            "waiting": len(self.bindings.permit_waits),
            "binding": len(self.bindings.cycles),
            "nodes": cluster.table.node_count,
            "pods": cluster.pod_count,
        }
