"""Effects: the actions that the caller of the scheduling driver must carry out."""

from typing import Any, Final

import attrs

from kschedd.api.pods import Pod
from kschedd.framework.writes import Write
from kschedd.queue.operations import QueueOperation
from kschedd.scheduling.binding.cycle import BindingCycle, CallExtender, CallPlugin, ExecutePlan
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.records import Happened
from kschedd.values import FrozenList, fast_frozen


@fast_frozen(eq=False)
class Eviction:
    """The writes of one preemption.

    If the writes fail, the caller sends `EvictionFailed` to the driver.
    """

    pod: Pod
    writes: tuple[Write, ...]
    gone_fails: bool = True  # see `EvictionOutcome`
    preemptor: str = "pod"  # kind of preemptor, for metrics: "pod" or "podgroup"


@attrs.define(eq=False)
class Effects:
    """The actions to carry out, field by field in this order.

    The driver uses one instance for all steps. `take` returns a copy of the effects so far.
    """

    released: list[str] = attrs.field(factory=list)  # uids of pods that are no longer in flight, for the queue's `done`
    queue: list[QueueOperation] = attrs.field(factory=list)
    writes: list[Write] = attrs.field(factory=list)  # writes whose results the driver does not need
    evictions: list[Eviction] = attrs.field(factory=list)
    plans: list[ExecutePlan] = attrs.field(factory=list)  # plans, each answered by `PlansExecuted`
    calls: list[CallPlugin | CallExtender] = attrs.field(factory=list)  # calls, each answered by `PluginCalled`
    permit_waits: list[BindingCycle] = attrs.field(factory=list)  # cycles that started to wait at Permit
    resumed: list[str] = attrs.field(factory=list)  # uids of pods that no longer wait (at Permit or for a plan)
    happened: list[Happened] = attrs.field(factory=list)  # entries of the log
    failures: list[FailedAttempt] = attrs.field(factory=list)  # failures, for observers that need more than log entries

    def __bool__(self) -> bool:
        return bool(
            self.queue
            or self.released
            or self.plans
            or self.calls
            or self.happened
            or self.writes
            or self.evictions
            or self.permit_waits
            or self.resumed
        )

    def take(self) -> "Effects":
        """Return all effects so far, which the caller must not change, and clear this instance.

        A suspended call of the driver adds later effects to this instance, never to the returned copy.
        """
        # Moving the fields one by one is faster; this method is called several times per pod.
        taken = Effects(*_NOTHING)
        if self.released:
            taken.released, self.released = self.released, []
        if self.queue:
            taken.queue, self.queue = self.queue, []
        if self.writes:
            taken.writes, self.writes = self.writes, []
        if self.evictions:
            taken.evictions, self.evictions = self.evictions, []
        if self.plans:
            taken.plans, self.plans = self.plans, []
        if self.calls:
            taken.calls, self.calls = self.calls, []
        if self.permit_waits:
            taken.permit_waits, self.permit_waits = self.permit_waits, []
        if self.resumed:
            taken.resumed, self.resumed = self.resumed, []
        if self.happened:
            taken.happened, self.happened = self.happened, []
        if self.failures:
            taken.failures, self.failures = self.failures, []
        return taken


_NOTHING: Final[tuple[list[Any], ...]] = (FrozenList(),) * len(attrs.fields(Effects))
