"""The binding cycle: the steps from an assumed pod to a bound one, and what each step waits for.

    assumed, reserved ─▶ AwaitPermit ─▶ ReleaseInFlight ─▶ PreBind, plugin by plugin; Bind; PostBind ─▶ bound
                                                           (each: CallPlugin, then ExecutePlan)

`BindingSteps.run` is a generator that yields these steps; the driver keeps one BindingCycle for each pod in
one. A pod for which only the Bind plugin has anything to do has no generator: its binding cycle is that plugin's plan.
An in-tree plugin is called at once, since it only makes a plan; an out-of-tree one may take its time, so its call
is a step of its own (`CallPlugin`), during which everything else goes on. An extender that binds is asked instead of
the Bind plugins (`CallExtender`). A binding cycle that a debugger stops yields the StopPoint.

Source: Kubernetes v1.34, scheduler/schedule_one.go (bindingCycle).
"""

from collections.abc import Callable, Generator
from typing import Final

import attrs

from kschedd.api.pods import Pod
from kschedd.extenders.calls import ExtenderCall, ExtenderFailure
from kschedd.framework.guard import PluginGuard
from kschedd.framework.interface import BindPlugin
from kschedd.framework.status import Status, error, fault_text
from kschedd.framework.writes import Bind, Plan
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.attempt.outcome import ScheduleResult
from kschedd.scheduling.binding.waiting import WaitingPod
from kschedd.scheduling.debug.breakpoints import StopPoint
from kschedd.scheduling.profiles.profile import Framework
from kschedd.values import fast_frozen


@fast_frozen(eq=False)
class AssumedPod:
    """The pod is assumed on `result.node_name`; `waiting` is set if a Permit plugin returned Wait."""

    entry: QueuedPod
    pod: Pod  # as assumed: with its node
    result: ScheduleResult
    waiting: WaitingPod | None
    binder: BindPlugin | None = None  # where it alone takes part in the binding cycle (`Framework.bound_by`)

    @property
    def framework(self) -> Framework:
        """The framework (plugin instances) that its scheduling cycle used."""
        return self.result.framework


@attrs.frozen(eq=False)
class AwaitPermit:
    """Wait until the Permit plugins have allowed or rejected the waiting pod."""

    waiting: WaitingPod


@attrs.frozen(eq=False)
class ReleaseInFlight:
    """Call `queue.done`; later failures requeue through `undo`."""


@fast_frozen(eq=False)
class ExecutePlan:
    """Do a plan's writes and wait until it is ready; answered with None, or the Status of the failure."""

    uid: str  # of the pod that is being bound
    plan: Plan


@fast_frozen(eq=False)
class CallPlugin:
    """Run `call`, which calls an out-of-tree plugin and may take long; answered with what `run` returns."""

    uid: str  # of the pod that is being bound
    plugin: str
    guard: PluginGuard
    method: str
    pod: Pod
    limit_s: float
    call: Callable[[], Plan | Status | None]

    def run(self) -> Plan | Status | None:
        """What the plugin returned, or the Status of its fault."""
        try:
            return self.call()
        except Exception as fault:  # a plugin's fault ends here, not in the daemon
            return self.failed(fault)

    def failed(self, fault: Exception) -> Status:
        """The answer where the call came to nothing."""
        return error(fault_text(fault)).by(self.plugin)


@fast_frozen(eq=False)
class CallExtender:
    """Have an extender bind the pod; answered with None, or the Status of the failure."""

    uid: str  # of the pod that is being bound
    call: ExtenderCall
    binding: Bind  # the write that it makes

    def answered(self, said: str | ExtenderFailure) -> Status | None:
        """The answer where the extender said this."""
        return error(str(said)) if str(said) else None


BindingEffect = AwaitPermit | ReleaseInFlight | ExecutePlan | CallPlugin | CallExtender | StopPoint
Binding = Generator[BindingEffect, Plan | Status | None, Status | None]


@attrs.frozen
class PlanWait:
    """A plan whose writes are done: the binding continues when the plan is ready, or fails at the deadline."""

    plan: Plan
    deadline_s: float


@attrs.define(eq=False)
class BindingProgress:
    """What is done: whoever goes on with the binding elsewhere begins after it."""

    pre_binds: int = 0  # PreBind plugins
    nominated: bool = False  # the pod was told where it is going, or did not have to be
    has_work: bool = True  # PreBind may have, unless it was asked and has none
    in_pre_bind: bool = False
    cancelled: Status | None = None  # why it must not go on to Bind


NOTHING_DONE: Final = BindingProgress()
"""That of a binding cycle that is one plan, which nobody changes."""


@attrs.define(eq=False)
class BindingCycle:
    """A pod with a selected node that is not bound yet, and the step its binding has reached."""

    uid: str
    number: int  # in order of start
    assumed: AssumedPod
    binding: Binding | None  # None: `plan` is all there is to do
    plan: Plan | None = None  # the plan being executed
    call: CallPlugin | CallExtender | None = None  # the call being made
    waits: AwaitPermit | PlanWait | None = None
    progress: BindingProgress = attrs.field(factory=BindingProgress)
    stopped_at: StopPoint | None = None  # where a debugger has stopped it
    began_s: float = 0.0  # when its attempt had ended
    attempt_s: float = 0.0  # how long that attempt took
    bind_began_s: float = 0.0  # where `plan` is all, when the Bind plugin was called, on the clock that times plugins

    @property
    def is_decided(self) -> bool:
        """Whether the pod waited at Permit and has been allowed or rejected."""
        return isinstance(self.waits, AwaitPermit) and self.waits.waiting.decided

    @property
    def deadline_s(self) -> float | None:
        """When the current wait times out (seconds since the epoch)."""
        if isinstance(self.waits, PlanWait):
            return self.waits.deadline_s
        if self.waits is not None and not self.waits.waiting.decided:
            return self.waits.waiting.deadline
        return None
