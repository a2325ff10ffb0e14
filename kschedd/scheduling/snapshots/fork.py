"""A fork of the scheduling driver: its owner takes a snapshot between two steps, a driver is made of it elsewhere.

`DriverSnapshot.of` is the owner's part. It copies columns, lists and maps and shares all values, which takes a few
milliseconds at 5,000 nodes. `restored` may run in any thread: it counts the pods again, makes the plugins anew from
the same arguments, and has every binding cycle go on.

What carries over: the cache with its assumed pods, what in-tree plugins share (assumed volumes, claims in flight),
nominations, pods at Permit with their deadlines, the random numbers that break ties, where the next search begins.
What does not: what an out-of-tree plugin keeps in itself, caches of evaluations (filled again as needed), the ledger of
object faults.

An attempt that is being made, or that the debugger has stopped, is a generator, too: it begins again from its start,
with the random numbers that it began with. What it had reserved is given back. The debugger is not carried over, nor is
what was changed by hand of the attempt: in a fork nobody holds it, and scheduling runs.

A binding cycle is a generator, which cannot be copied. One at Permit waits there again; any other begins again after
the PreBind plugins that were done. One whose plan was being written writes it, and may be refused if that was done
in the same moment; then its pod is tried again.
"""

from collections.abc import Callable, Mapping
from typing import Final

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.model import Config
from kschedd.framework.handle import Handle
from kschedd.framework.registry import Registry
from kschedd.framework.status import error
from kschedd.queue.entry import QueuedPod
from kschedd.queue.snapshot import EntryCopies, EntryStates
from kschedd.scheduling.attempt.outcome import ScheduleResult
from kschedd.scheduling.binding.cycle import AssumedPod, AwaitPermit, BindingCycle, BindingProgress, PlanWait
from kschedd.scheduling.binding.waiting import WaitingPod
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.inputs import PodsPopped
from kschedd.scheduling.machine import Choices, SchedulingMachine
from kschedd.scheduling.nominations.pending import PendingPods
from kschedd.scheduling.profiles.profile import Framework, build_profile

_BEGUN_AGAIN: Final = error("the attempt begins again")
IsBound = Callable[[Pod], bool]
"""Whether the API server has this assumed pod on its node already."""


@attrs.frozen(eq=False)
class _Binding:
    """A binding cycle as it was. `deadline_s`: until when its plan may take to be ready."""

    number: int
    entry: QueuedPod
    pod: Pod
    result: ScheduleResult
    waiting: WaitingPod | None  # None once it is past Permit
    progress: BindingProgress
    deadline_s: float | None

    @classmethod
    def of(cls, cycle: BindingCycle) -> "_Binding":
        assumed, waits = cycle.assumed, cycle.waits
        at_permit = assumed.waiting is not None and isinstance(waits, AwaitPermit)
        return cls(
            cycle.number,
            assumed.entry,
            assumed.pod,
            assumed.result,
            assumed.waiting.copy() if assumed.waiting is not None and at_permit else None,
            attrs.evolve(cycle.progress),
            waits.deadline_s if isinstance(waits, PlanWait) else None,
        )


@attrs.frozen(eq=False)
class DriverSnapshot:
    """See the module. It may be restored once: the driver takes over what is in it."""

    config: Config
    registry: Registry
    seed: int
    cluster: SchedulerCache
    handle: Handle
    choices: Choices
    pending: PendingPods
    popped: tuple[QueuedPod, ...]
    bindings: tuple[_Binding, ...]
    begins_again: str  # the pod whose attempt was stopped; "" if none was
    reserving: AssumedPod | None  # the pod of the attempt that was being made, if it was assumed already
    states: EntryStates  # of the entries in the above
    cycles: int
    pods_bound: int
    observed: int  # every write up to this version has been observed

    @classmethod
    def of(cls, driver: SchedulingDriver) -> "DriverSnapshot":
        machine = driver.machine
        cluster = machine.cluster.fork()
        popped = driver.popped_entries
        bindings = tuple(_Binding.of(cycle) for cycle in driver.bindings.cycles.values())
        reserving = driver.reserving
        held = [binding.entry for binding in bindings] + ([] if reserving is None else [reserving.entry])
        return cls(
            machine.config,
            machine.registry,
            machine.seed,
            cluster,
            machine.handle.fork(cluster),
            driver.choices(),
            driver.pending.fork(),
            popped,
            bindings,
            driver.stepped_pod,
            reserving,
            EntryStates.of([*popped, *held]),
            driver.bindings.begun,
            driver.bindings.pods_bound,
            driver.observed,
        )

    def restored(
        self, copies: EntryCopies, current_pod: Callable[[str], Pod | None] | None, is_bound: IsBound, now: float
    ) -> SchedulingDriver:
        """The driver. What its binding cycles do next is among its effects. Raises PluginLoadError."""
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
        driver = SchedulingDriver(machine, current_pod=current_pod, pending=self.pending)
        bindings, driver.observed = driver.bindings, self.observed
        bindings.begun, bindings.pods_bound = self.cycles, self.pods_bound
        driver.step(PodsPopped([copies.of(entry) for entry in self.popped]))
        frameworks = {name: scheduler.profile for name, scheduler in machine.schedulers.items()}
        reserving = self.reserving
        if reserving is not None and not is_bound(reserving.pod):
            result = _result(machine, frameworks, reserving.result)
            machine.undo(AssumedPod(copies.of(reserving.entry), reserving.pod, result, None), _BEGUN_AGAIN, now)
        for binding in self.bindings:
            if is_bound(binding.pod):
                bindings.pods_bound += 1
            else:
                result = _result(machine, frameworks, binding.result)
                assumed = AssumedPod(copies.of(binding.entry), binding.pod, result, binding.waiting)
                bindings.take_up(binding.number, assumed, binding.progress, binding.deadline_s, now)
        return driver


def _result(machine: SchedulingMachine, present: Mapping[str, Framework], before: ScheduleResult) -> ScheduleResult:
    """The fork's own copy of what an attempt came to."""
    framework = _framework(machine, present, before.framework)
    return attrs.evolve(before, framework=framework, state=before.state.clone())


def _framework(machine: SchedulingMachine, present: Mapping[str, Framework], before: Framework) -> Framework:
    """The fork's framework for a binding that began with this one, which may be of an earlier configuration."""
    known = present.get(before.name)
    if known is not None and known.profile == before.profile:
        return known
    return build_profile(machine.config, before.profile, machine.registry, machine.handle)
