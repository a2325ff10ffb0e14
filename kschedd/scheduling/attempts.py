"""Attempts: the start and the completion of scheduling attempts, one at a time or several together in a run.

A completed attempt has either assumed its pod on a node and begun the binding cycle, or failed (`FailureHandler`). If a
binding fails while an attempt is running, the binding is undone after the attempt, because the cache must not change
during an attempt. Each attempt adds an entry to the log (`AttemptRecords`).

This class stores whether an attempt runs, its entries, its stepper, and the tie-break choices at its start. A fork uses
these values to repeat the attempt up to the same place.

Source: Kubernetes v1.34, scheduler/schedule_one.go (ScheduleOne, handleBindingCycleError).
"""

from collections.abc import Sequence

from kschedd.framework.cycle_state import CycleState
from kschedd.framework.faults import PluginError
from kschedd.framework.status import Status, error, fault_text
from kschedd.queue.entry import QueuedPod
from kschedd.queue.operations import AssumedPodForgotten
from kschedd.scheduling.attempt.outcome import Attempt, FitError, ScheduleResult
from kschedd.scheduling.attempt.scheduler import broken_off
from kschedd.scheduling.attempt_records import AttemptRecords
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.binding.run import AttemptRun
from kschedd.scheduling.binding_cycles import BindingCycles
from kschedd.scheduling.debug.debugger import Debugger, Reentry
from kschedd.scheduling.debug.stepper import Stepper
from kschedd.scheduling.debug.work import Work
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.failure_handler import FailureHandler
from kschedd.scheduling.gangs.trial import TriedMember
from kschedd.scheduling.inputs import BeginAttempt, BreakOff, CompleteAttempt, CompleteRun, Intervene
from kschedd.scheduling.machine import Choices, SchedulingMachine
from kschedd.scheduling.nominations.pending import PendingPods
from kschedd.scheduling.observer import Observer
from kschedd.scheduling.popped import PoppedPods
from kschedd.scheduling.verdicts import Diagnosis


class Attempts:
    """The attempts of a driver: their start and completion."""

    def __init__(
        self,
        machine: SchedulingMachine,
        pending: PendingPods,
        effects: Effects,
        observer: Observer,
        popped: PoppedPods,
        debugger: Debugger,
    ) -> None:
        self._machine = machine
        self._pending = pending
        self._effects = effects
        self._observer = observer
        self._popped = popped
        self._debugger = debugger
        self.bindings = BindingCycles(machine, pending, effects, self._binding_failed)
        self.failures = FailureHandler(machine, pending, effects, self.bindings)
        self.records = AttemptRecords(effects, machine.metrics)
        self.running = False  # true during an attempt or a PodGroup's cycle
        self._entries: Sequence[QueuedPod] = ()  # of the latest attempt or PodGroup's cycle
        self.seen = 0  # number of events observed before the latest attempt or PodGroup cycle
        self.stepper: Stepper | None = None  # stepper of the current or latest attempt
        self.group_tried: Sequence[TriedMember] = ()  # results so far of a stopped group cycle
        self._result: tuple[QueuedPod, ScheduleResult | FitError] | None = None  # result of the attempt being completed
        self._choices_before: Choices | None = None  # choices before the attempt of `stepper`
        self.to_undo: list[tuple[AssumedPod, Status]] = []  # bindings that failed during the attempt; undone at its end

    # -- the running attempt ----------------------------------------------------------------------------------

    @property
    def stepped_pod(self) -> str:
        """The pod of the attempt that runs step by step or is stopped; "" if there is none."""
        return self.stepper.pod.key if self.running and self.stepper is not None else ""

    @property
    def entries(self) -> Sequence[QueuedPod]:
        """The pod of the running attempt, or the pods of the running cycle of a PodGroup."""
        return self._entries if self.running else ()

    @property
    def reentry(self) -> Reentry | None:
        """The place at which the debugger has stopped the running attempt or PodGroup's cycle; None if it has not."""
        stop, stepper = self._debugger.stop, self.stepper
        if not self.running or stop is None or stop.point is None:
            return None
        uid = stop.point.pod.uid
        if stepper is None:
            return Reentry(uid, 0, {}, stop) if self.group_tried else None
        if stepper.pod.uid != uid:
            return None
        return Reentry(uid, stepper.points, {point: tuple(made) for point, made in stepper.made.items()}, stop)

    @property
    def choices(self) -> Choices:
        """The choices of the next attempt; while an attempt runs step by step, the choices with which it began."""
        if (self.stepped_pod or self.group_tried) and self._choices_before is not None:
            return self._choices_before
        return self._machine.choices()

    @property
    def reserving(self) -> AssumedPod | None:
        """The assumed pod for which Reserve or Permit plugins are being called, or None."""
        if not self.running or self._result is None:
            return None
        entry, result = self._result
        if not isinstance(result, ScheduleResult) or not self._machine.cluster.is_assumed(entry.pod):
            return None
        assumed = self._machine.cluster.pod(entry.uid)
        assert assumed is not None, "what is assumed is there"
        return AssumedPod(entry, assumed, result, None)

    def calls_out_of_tree(self, entry: QueuedPod) -> bool:
        """Return whether an attempt of this pod, or its completion, may call out-of-tree plugins."""
        if self.to_undo:  # undo failed bindings, possibly of other profiles
            return True
        scheduler = self._machine.schedulers.get(entry.pod.scheduler_name)
        return scheduler is None or len(scheduler.profile.in_tree) < len(scheduler.profile.plugins)

    def intervene(self, given: Intervene, now: float) -> None:
        assert self.stepper is not None, "an attempt is stopped"
        self.stepper.intervene(given.change)

    # -- beginning --------------------------------------------------------------------------------------------

    def begin(self, given: BeginAttempt, now: float) -> Attempt | None:
        """Return the attempt of a popped pod for the caller to run, or None if the pod is skipped."""
        entry, machine = given.entry, self._machine
        self._popped.count_attempt()
        cycle = machine.batches.next_cycle()
        if not self.begins(entry):
            return None
        if machine.metrics is not None:
            machine.metrics.sampling.next()
        self.start((entry,))
        if self._debugger.engaged and self._debugger.began(entry.pod):
            return self.step_by_step(entry)
        return machine.begin(entry.pod, self._pending.nominator.nominated, cycle=cycle)

    def begins(self, entry: QueuedPod) -> bool:
        """Return whether an attempt of this pod begins; if it is skipped, the pod is no longer in flight."""
        pod = self._pending.current(entry)
        self._pending.begin(entry.uid)
        self.seen = self._observer.count
        if pod is None or self._popped.skips(entry):
            self._effects.released.append(entry.uid)
            self._pending.pass_over(entry)
            return False
        entry.pod = pod
        return True

    def start(self, entries: Sequence[QueuedPod]) -> None:
        """Start the attempt of a pod, or the cycle of a PodGroup with these pods, without stepping."""
        self.running, self._entries, self.stepper, self._result = True, entries, None, None

    def step_by_step(self, entry: QueuedPod) -> Attempt:
        """Return the attempt that has just begun, in a form that runs plugin by plugin."""
        debugger, machine = self._debugger, self._machine
        self.stepper = Stepper(debugger, entry.pod, entry.attempts, machine.cluster.table, debugger.cycle)
        if debugger.reentry is not None and debugger.enters(entry.pod):
            self.stepper.planned, self.stepper.reenters_at = debugger.reentry.changes, debugger.reentry.point
        self.keep_choices()
        return machine.begin(entry.pod, self._pending.nominator.nominated, self.stepper, cycle=machine.batches.cycle)

    def keep_choices(self) -> None:
        """Keep the present choices for a fork taken while this attempt is stopped."""
        self._choices_before = self._machine.choices()

    def break_off(self, given: BreakOff, now: float) -> FitError:
        return self.broken(given.entry, given.fault)

    def broken(self, entry: QueuedPod, fault: Exception) -> FitError:
        """Return the result of an attempt that raised this exception."""
        status = broken_off(fault) if isinstance(fault, PluginError) else error(fault_text(fault))
        return FitError(entry.pod, status, Diagnosis(self._machine.cluster.table.node_count), CycleState())

    # -- completing -------------------------------------------------------------------------------------------

    def complete_attempt(self, given: CompleteAttempt, now: float) -> AssumedPod | FailedAttempt:
        return self.complete(given.entry, given.result, now, given.took_s)

    def complete(
        self, entry: QueuedPod, result: ScheduleResult | FitError, now: float, took_s: float = 0.0
    ) -> AssumedPod | FailedAttempt:
        """Act on the result of an attempt: assume the pod and begin its binding cycle, or fail the attempt."""
        self._result = entry, result
        return self._completed(entry, result, self._machine.completion.complete(entry, result, now), now, took_s)

    def completing(
        self, entry: QueuedPod, result: ScheduleResult | FitError, now: float, took_s: float
    ) -> Work[AssumedPod | FailedAttempt]:
        """Complete an attempt as in `complete`, with stops for the debugger."""
        self._result = entry, result
        outcome = yield from self._machine.completion.completing(entry, result, now, self.stepper)
        return self._completed(entry, result, outcome, max(now, self._debugger.now_s), took_s)

    def _completed(
        self,
        entry: QueuedPod,
        result: ScheduleResult | FitError,
        outcome: AssumedPod | FailedAttempt,
        now: float,
        took_s: float,
    ) -> AssumedPod | FailedAttempt:
        self.running = False
        if self._debugger.reentry is not None:
            self._debugger.missed_reentry()
        if isinstance(outcome, FailedAttempt):
            self.fail(entry, result, outcome, now, took_s)
        else:
            self.records.note(entry, result, now, took_s, None, self._observer.version)
            if self._machine.metrics is not None:
                self._machine.metrics.algorithm_s.observe(took_s)
            self._pending.nominator.remove(entry.pod)
            self.bindings.begin(outcome, self.stepper, now, took_s)
        self.undo_failed(now)
        return outcome

    def fail(
        self, entry: QueuedPod, result: ScheduleResult | FitError, failed: FailedAttempt, now: float, took_s: float
    ) -> None:
        """Record the attempt as failed and return its pod to the queue."""
        self.records.note(entry, result, now, took_s, failed, self._observer.version)
        self.failures.fail(failed, now, self.seen)

    # -- runs of attempts -------------------------------------------------------------------------------------

    def begin_run(self, now: float) -> AttemptRun:
        """Try to schedule the next popped pods together, and assume them on the selected nodes.

        The caller must call `complete_run` before any other work.

        The pods of a run belong to classes that were attempted before. Return an empty run if the next pod must be
        attempted alone; an empty run is always a valid result.
        """
        if self._pending.nominator or self.to_undo or self._debugger.engaged:
            return AttemptRun()
        self._machine.handle.now_s = now
        entries = self._popped.for_run()
        return self._machine.run(entries, now) if entries else AttemptRun()

    def complete_run(self, given: CompleteRun, now: float) -> None:
        """Act on the results of a run."""
        run, took_s = given.run, given.took_s
        self.stepper = self._result = None
        plans = self._machine.binding_steps.direct_plans(run)
        began_s = run.results[0].framework.times.start()
        for result, outcome, plan in zip(run.results, run.outcomes, plans, strict=True):
            entry = self._popped.take_head()
            self._machine.batches.cycle += 1
            if plan is None:
                self.seen = self._observer.count
                outcome = outcome or self._machine.completion.complete(entry, result, now)
                self._completed(entry, result, outcome, now, took_s)
                continue
            assert isinstance(outcome, AssumedPod), "it has a plan"
            self.records.note(entry, result, now, took_s, None, self._observer.version)
            self.bindings.begin_of_run(outcome, plan, began_s, now, took_s)
        if self._machine.metrics is not None:
            self._machine.metrics.found_nodes(took_s, sum([plan is not None for plan in plans]))

    # -- failed bindings --------------------------------------------------------------------------------------

    def _binding_failed(self, assumed: AssumedPod, failure: Status, now: float) -> None:
        """Undo a failed binding now, or after the running attempt."""
        if self.running:
            self.to_undo.append((assumed, failure))
        else:
            self._undo(assumed, failure, now)

    def undo_failed(self, now: float) -> None:
        """Undo the bindings that failed during the attempt or PodGroup cycle that has just ended."""
        while self.to_undo:
            self._undo(*self.to_undo.pop(0), now)

    def _undo(self, assumed: AssumedPod, failure: Status, now: float) -> None:
        pod, queue = assumed.pod, self._effects.queue
        failed = self._machine.completion.undo(assumed, failure, now)
        self.records.note(assumed.entry, assumed.result, now, 0.0, failed, self._observer.version, of_binding=True)
        if failure.rejected:
            # The pod returns to the queue first; otherwise its own removal from the node would immediately activate it.
            self.failures.fail(failed, now)
            queue.append(AssumedPodForgotten(pod, for_itself=False))
        else:
            queue.append(AssumedPodForgotten(pod, for_itself=True))
            self.failures.fail(failed, now)
