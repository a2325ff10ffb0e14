"""What the scheduling driver wants done: the effects of what it was told, for the shell around it to apply."""

import attrs

from kschedd.api.pods import Pod
from kschedd.framework.writes import Write
from kschedd.queue.operations import QueueOperation
from kschedd.scheduling.binding_cycle import BindingCycle, ExecutePlan
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.records import AttemptRecord, SchedulerEvent
from kschedd.values import value


@value(eq=False)
class Eviction:
    """What preemption wants written for a pod; if something of it goes wrong, `eviction_failed` is to be called."""

    pod: Pod
    writes: tuple[Write, ...]


@attrs.define(eq=False)
class Effects:
    """What is to be done, field by field; whoever took it has it alone."""

    released: list[str] = attrs.field(factory=list)  # uids no longer in flight: the queue's `done`
    queue: list[QueueOperation] = attrs.field(factory=list)
    writes: list[Write] = attrs.field(factory=list)  # not answered: if they are refused, things have moved on
    evictions: list[Eviction] = attrs.field(factory=list)
    plans: list[ExecutePlan] = attrs.field(factory=list)  # answered by `plan_executed`
    permit_waits: list[BindingCycle] = attrs.field(factory=list)  # these wait at Permit from now on
    resumed: list[str] = attrs.field(factory=list)  # uids whose wait, at Permit or for a plan, is over
    events: list[SchedulerEvent] = attrs.field(factory=list)
    records: list[AttemptRecord] = attrs.field(factory=list)
    failures: list[FailedAttempt] = attrs.field(factory=list)  # for those who look closer than records do
    bound: list[Pod] = attrs.field(factory=list)

    def __bool__(self) -> bool:
        return bool(
            self.queue
            or self.released
            or self.plans
            or self.records
            or self.bound
            or self.writes
            or self.evictions
            or self.events
            or self.permit_waits
            or self.resumed
        )
