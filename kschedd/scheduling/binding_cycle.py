"""A binding cycle: the way of a pod that has its node until it is bound, and what it waits for on it.

    assumed, reserved ─▶ AwaitPermit ─▶ ReleaseInFlight ─▶ ExecutePlan (PreBind, plugin by plugin; Bind) ─▶ bound

The machine's `binding` goes this way as a generator of these effects; the driver keeps one BindingCycle for each pod on
it. Source: Kubernetes v1.34, scheduler/schedule_one.go (bindingCycle).
"""

from collections.abc import Generator

import attrs

from kschedd.api.pods import Pod
from kschedd.framework.status import Status
from kschedd.framework.writes import Plan
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.profile import RunningProfile
from kschedd.scheduling.scheduler import ScheduleResult
from kschedd.scheduling.waiting import WaitingPod
from kschedd.values import value


@value(eq=False)
class AssumedPod:
    """The pod is assumed on `result.node_name`; `waiting` is set if Permit plugins keep it."""

    entry: QueuedPod
    pod: Pod  # as assumed: with its node
    result: ScheduleResult
    waiting: WaitingPod | None

    @property
    def framework(self) -> RunningProfile:
        """The plugins its attempt began with."""
        return self.result.framework


@attrs.frozen(eq=False)
class AwaitPermit:
    """The binding goes on when the waiting pod is decided."""

    waiting: WaitingPod


@attrs.frozen(eq=False)
class ReleaseInFlight:
    """The queue need not keep events for the pod any more: `done` is due, and a failure requeues through `undo`."""


@value(eq=False)
class ExecutePlan:
    """Do a plan's writes and wait until it is ready; answered with None, or the Status of what failed."""

    uid: str  # of the pod that is being bound
    plan: Plan


BindingEffect = AwaitPermit | ReleaseInFlight | ExecutePlan
Binding = Generator[BindingEffect, Status | None, Status | None]


@attrs.frozen
class PlanWait:
    """A plan whose writes are done: the binding goes on when it is ready, or fails at the deadline."""

    plan: Plan
    deadline_s: float


@attrs.define(eq=False)
class BindingCycle:
    """A pod that has its node and is on its way to be bound."""

    uid: str
    number: int  # in the order in which they began
    assumed: AssumedPod
    binding: Binding
    plan: Plan | None = None  # that is being executed
    waits: AwaitPermit | PlanWait | None = None

    @property
    def is_decided(self) -> bool:
        """Whether it waits at Permit and has been allowed or rejected."""
        return isinstance(self.waits, AwaitPermit) and self.waits.waiting.decided

    @property
    def deadline_s(self) -> float | None:
        """When the patience with what it waits for ends."""
        if isinstance(self.waits, PlanWait):
            return self.waits.deadline_s
        if self.waits is not None and not self.waits.waiting.decided:
            return self.waits.waiting.deadline
        return None
