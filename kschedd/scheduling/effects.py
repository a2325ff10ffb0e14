"""Effects: what the scheduling driver wants done, for its caller to apply."""

from typing import Final

import attrs

from kschedd.api.pods import Pod
from kschedd.framework.writes import Write
from kschedd.queue.operations import QueueOperation
from kschedd.scheduling.binding_cycle import BindingCycle, CallExtender, CallPlugin, ExecutePlan
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.records import AttemptRecord, SchedulerEvent
from kschedd.values import fast_frozen


@fast_frozen(eq=False)
class Eviction:
    """The writes of one preemption; if they fail so that no deletion follows, call `eviction_failed`."""

    pod: Pod
    writes: tuple[Write, ...]


@attrs.define(eq=False)
class Effects:
    """What is to be done, in the order of the fields. The driver has one, which nobody else ever has: `take` gives what
    came up so far, and the taker is its only owner."""

    released: list[str] = attrs.field(factory=list)  # uids no longer in flight: the queue's `done`
    queue: list[QueueOperation] = attrs.field(factory=list)
    writes: list[Write] = attrs.field(factory=list)  # not answered: a refusal means that newer events follow
    evictions: list[Eviction] = attrs.field(factory=list)
    plans: list[ExecutePlan] = attrs.field(factory=list)  # answered by `plan_executed`
    calls: list[CallPlugin | CallExtender] = attrs.field(factory=list)  # answered by `plugin_called`
    permit_waits: list[BindingCycle] = attrs.field(factory=list)  # started to wait at Permit
    resumed: list[str] = attrs.field(factory=list)  # uids whose wait, at Permit or for a plan, is over
    events: list[SchedulerEvent] = attrs.field(factory=list)
    records: list[AttemptRecord] = attrs.field(factory=list)
    failures: list[FailedAttempt] = attrs.field(factory=list)  # for readers who need more than records hold
    bound: list[Pod] = attrs.field(factory=list)

    def __bool__(self) -> bool:
        return bool(
            self.queue
            or self.released
            or self.plans
            or self.calls
            or self.records
            or self.bound
            or self.writes
            or self.evictions
            or self.events
            or self.permit_waits
            or self.resumed
        )

    def take(self) -> "Effects":
        """All there are. A call of the driver that waits for a plugin meanwhile goes on with this one, now empty, so
        that nothing is ever added to what has been taken."""
        taken = Effects()
        for name in _FIELDS:
            found = getattr(self, name)
            if found:
                setattr(self, name, getattr(taken, name))
                setattr(taken, name, found)
        return taken


_FIELDS: Final = tuple(field.name for field in attrs.fields(Effects))
