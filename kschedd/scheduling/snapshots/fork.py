"""A fork of the scheduling driver: a snapshot between two steps, and a new driver created from it.

`DriverSnapshot.of` creates the snapshot; call it between two steps of the driver. The snapshot copies columns, lists
and maps but shares all values, which takes a few milliseconds for 5,000 nodes. `restored` may run in any thread: it
counts the pods again, creates the plugins from the same arguments, and continues every binding cycle.

The fork copies the cache with its assumed pods, the state that in-tree plugins share (assumed volumes, claims in
flight), nominations, pods at Permit with their deadlines, the random generator for ties, and the start of the next
search. The fork does not copy the state inside out-of-tree plugins, cached evaluations, or recorded object faults.

An attempt that is running or stopped by the debugger is repeated: the fork releases the attempt's reservations and
begins the attempt again from the same random state. By default, scheduling runs in the fork: no client controls its
debugger, and the user's changes to a stopped attempt are not copied. With `stopped`, the fork copies the debugger. The
fork repeats a stopped attempt with the user's changes, up to the stop point of the original attempt (`Reentry`), and
stops there again.

A binding cycle is copied with its current stage. A plugin call in progress is repeated, and so are the writes of a plan
in progress. If the original write succeeded meanwhile, the repeated write is rejected and the pod is retried.
"""

from collections.abc import Callable, Mapping
from typing import Final

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.model import Config
from kschedd.framework.handle import Handle
from kschedd.framework.registry import Registry
from kschedd.framework.status import Status, error
from kschedd.queue.entry import QueuedPod
from kschedd.queue.snapshot import EntryCopies, EntryStates
from kschedd.scheduling.attempt.outcome import ScheduleResult
from kschedd.scheduling.binding.cycle import AssumedPod, BindingCycle, BindingProgress, PlanWait
from kschedd.scheduling.binding.waiting import WaitingPod
from kschedd.scheduling.debug.breakpoints import StopPoint
from kschedd.scheduling.debug.debugger import Debugger
from kschedd.scheduling.debug.stepper import Stepper
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.inputs import PodsPopped
from kschedd.scheduling.machine import Choices, SchedulingMachine
from kschedd.scheduling.nominations.pending import PendingPods
from kschedd.scheduling.profiles.profile import Framework, build_profile

_BEGUN_AGAIN: Final = error("the attempt begins again")
IsBound = Callable[[Pod], bool]
"""Returns whether the API server has this assumed pod on its node already."""


@attrs.frozen(eq=False)
class _Binding:
    """A binding cycle at the time of the snapshot. `deadline_s` is the time by which the cycle's plan must be ready."""

    number: int
    entry: QueuedPod
    pod: Pod
    result: ScheduleResult
    waiting: WaitingPod | None  # None after Permit
    progress: BindingProgress
    deadline_s: float | None
    attempt_number: int  # number of its attempt among all attempts, if the cycle runs step by step; otherwise 0
    stopped_at: StopPoint | None  # set if the debugger has stopped the cycle

    @classmethod
    def of(cls, cycle: BindingCycle) -> "_Binding":
        assumed, waits = cycle.assumed, cycle.waits
        return cls(
            cycle.number,
            assumed.entry,
            assumed.pod,
            assumed.result,
            assumed.waiting.copy() if assumed.waiting is not None and cycle.progress.awaits_permit else None,
            attrs.evolve(cycle.progress),
            waits.deadline_s if isinstance(waits, PlanWait) else None,
            0 if cycle.stepper is None else cycle.stepper.cycle,
            cycle.stopped_at,
        )


@attrs.frozen(eq=False)
class DriverSnapshot:
    """A snapshot of a driver.

    A snapshot may be restored only once, because the new driver uses its objects.
    """

    config: Config
    registry: Registry
    seed: int
    cluster: SchedulerCache
    handle: Handle
    choices: Choices
    pending: PendingPods
    popped: tuple[QueuedPod, ...]
    bindings: tuple[_Binding, ...]
    stopped: tuple[str, ...]  # uids of the binding cycles that the debugger has stopped, in the order of their stops
    begins_again: str  # key of the pod whose attempt is stopped, or ""
    debugger: Debugger  # copy of the driver's debugger, which stops again where the original is stopped
    reserving: AssumedPod | None  # assumed pod of the running attempt, or None
    to_undo: tuple[tuple[AssumedPod, Status], ...]  # bindings that failed during the running attempt
    states: EntryStates  # scheduling states of the entries in the other fields
    cycles: int
    pods_bound: int
    observed: int  # version up to which all writes are observed

    @property
    def is_stopped(self) -> bool:
        """True if the debugger has stopped the driver."""
        return self.debugger.stop is not None or self.debugger.reentry is not None

    @classmethod
    def of(cls, driver: SchedulingDriver) -> "DriverSnapshot":
        machine = driver.machine
        cluster = machine.cluster.fork()
        popped = (*driver.attempts.entries, *driver.popped.entries)
        bindings = tuple(_Binding.of(cycle) for cycle in driver.bindings.cycles.values())
        reserving = driver.attempts.reserving
        to_undo = tuple(driver.attempts.to_undo)
        held = [binding.entry for binding in bindings] + ([] if reserving is None else [reserving.entry])
        held += [assumed.entry for assumed, _ in to_undo]
        return cls(
            machine.config,
            machine.registry,
            machine.seed,
            cluster,
            machine.handle.fork(cluster),
            driver.attempts.choices,
            driver.pending.fork(),
            popped,
            bindings,
            tuple(driver.bindings.stopped),
            driver.attempts.stepped_pod,
            driver.debugger.copy(driver.attempts.reentry),
            reserving,
            to_undo,
            EntryStates.of([*popped, *held]),
            driver.bindings.begun,
            driver.bindings.pods_bound,
            driver.observed,
        )

    def restored(
        self,
        copies: EntryCopies,
        current_pod: Callable[[str], Pod | None] | None,
        is_bound: IsBound,
        now: float,
        *,
        reading: bool = False,
        stopped: bool = False,
    ) -> SchedulingDriver:
        """Return the driver. Its effects contain the next steps of its binding cycles. Raises PluginLoadError.

        `stopped` is true if the driver copies the debugger, and therefore stops where the original is stopped.
        `reading` is true if the driver will make no attempts, so that its pods need not be counted.
        """
        if not reading:
            self.cluster.recount()
        machine = SchedulingMachine(
            self.config,
            registry=self.registry,
            cluster=self.cluster,
            seed=self.seed,
            choose=self.choices.choose,
            handle=self.handle,
        )
        machine.start.index = self.choices.start
        debugger = self.debugger if stopped else None
        driver = SchedulingDriver(machine, current_pod=current_pod, pending=self.pending, debugger=debugger)
        bindings, driver.observed = driver.bindings, self.observed
        bindings.begun, bindings.pods_bound = self.cycles, self.pods_bound
        driver.step(PodsPopped([copies.of(entry) for entry in self.popped]))
        frameworks = {name: scheduler.profile for name, scheduler in machine.schedulers.items()}
        reserving = self.reserving
        if reserving is not None and not is_bound(reserving.pod):
            result = _result(machine, frameworks, reserving.result)
            machine.completion.undo(
                AssumedPod(copies.of(reserving.entry), reserving.pod, result, None), _BEGUN_AGAIN, now
            )
        for failed, status in self.to_undo:
            result = _result(machine, frameworks, failed.result)
            driver.attempts.to_undo.append((AssumedPod(copies.of(failed.entry), failed.pod, result, None), status))
        for binding in self.bindings:
            if is_bound(binding.pod):
                bindings.pods_bound += 1
            else:
                result = _result(machine, frameworks, binding.result)
                assumed = AssumedPod(copies.of(binding.entry), binding.pod, result, binding.waiting)
                stepper = stopped_at = None
                if debugger is not None and binding.attempt_number:
                    pod, attempt = binding.pod, binding.entry.attempts
                    stepper = Stepper(debugger, pod, attempt, self.cluster.table, binding.attempt_number)
                    if (at := binding.stopped_at) is not None:
                        stopped_at = stepper.place(at.point, at.plugin, at.node, at.outcome)
                        if (stop := debugger.stop) is not None and stop.point is at:
                            debugger.stop = attrs.evolve(stop, point=stopped_at)
                bindings.take_up(
                    binding.number, assumed, binding.progress, binding.deadline_s, now, stepper, stopped_at
                )
        bindings.stopped = {uid: bindings.stopped[uid] for uid in self.stopped if uid in bindings.stopped}
        return driver


def _result(machine: SchedulingMachine, present: Mapping[str, Framework], before: ScheduleResult) -> ScheduleResult:
    """Return the fork's own copy of an attempt's result."""
    framework = _framework(machine, present, before.framework)
    return attrs.evolve(before, framework=framework, state=before.state.clone())


def _framework(machine: SchedulingMachine, present: Mapping[str, Framework], before: Framework) -> Framework:
    """Return the fork's counterpart of a binding's framework, which may belong to an earlier configuration."""
    known = present.get(before.name)
    if known is not None and known.profile == before.profile:
        return known
    return build_profile(machine.config, before.profile, machine.registry, machine.handle)
