"""The binding cycle: the steps from an assumed pod to a bound one, and what each step waits for.

    assumed, reserved ─▶ AwaitPermit ─▶ ReleaseInFlight ─▶ PreBind, plugin by plugin; Bind; PostBind ─▶ bound
                                                           (each: CallPlugin, then ExecutePlan)

`BindingSteps.run` is a generator that yields these steps; the driver keeps one BindingCycle for each pod that is being
bound. If only the Bind plugin has work for a pod, there is no generator: the binding cycle is that plugin's plan. An
in-tree plugin is called at once, since it only makes a plan; an out-of-tree one may be slow, so its call is a separate
step (`CallPlugin`), during which everything else continues. An extender that binds is called instead of the Bind
plugins (`CallExtender`). A binding cycle that a debugger stops yields the StopPoint.

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
    """The pod assumed on `result.node_name`; `waiting` is set if a Permit plugin returned Wait."""

    entry: QueuedPod
    pod: Pod  # as assumed: with its node
    result: ScheduleResult
    waiting: WaitingPod | None
    binder: BindPlugin | None = None  # set if only this plugin takes part in the binding cycle (`Framework.bound_by`)

    @property
    def framework(self) -> Framework:
        """The framework (plugin instances) of the pod's scheduling cycle."""
        return self.result.framework


@attrs.frozen(eq=False)
class AwaitPermit:
    """A wait until the Permit plugins have allowed or rejected the pod."""

    waiting: WaitingPod


@attrs.frozen(eq=False)
class ReleaseInFlight:
    """A call of `queue.done`; later failures requeue through `undo`."""


@fast_frozen(eq=False)
class ExecutePlan:
    """A plan whose writes are executed, followed by a wait until it is ready.

    The answer is None, or the Status of the failure.
    """

    uid: str  # of the pod that is being bound
    plan: Plan


@fast_frozen(eq=False)
class CallPlugin:
    """A call of an out-of-tree plugin, which may take long; the answer is what `run` returns."""

    uid: str  # of the pod that is being bound
    plugin: str
    guard: PluginGuard
    method: str
    pod: Pod
    limit_s: float
    call: Callable[[], Plan | Status | None]

    def run(self) -> Plan | Status | None:
        """Return the plugin's result, or the Status of its fault."""
        try:
            return self.call()
        except Exception as fault:  # a plugin's exception fails the binding, not the daemon
            return self.failed(fault)

    def failed(self, fault: Exception) -> Status:
        """Return the answer for a call that failed."""
        return error(fault_text(fault)).by(self.plugin)


@fast_frozen(eq=False)
class CallExtender:
    """A call of an extender that binds the pod; the answer is None, or the Status of the failure."""

    uid: str  # of the pod that is being bound
    call: ExtenderCall
    binding: Bind  # the write that the extender makes

    def answered(self, said: str | ExtenderFailure) -> Status | None:
        """Return the Status for the extender's answer; None if it succeeded."""
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
    """The completed steps of a binding; a binding that is continued elsewhere starts after them."""

    pre_binds: int = 0  # number of PreBind plugins
    nominated: bool = False  # nominatedNodeName was written, or did not have to be
    has_work: bool = True  # False only if PreBind was checked and has no work
    in_pre_bind: bool = False
    cancelled: Status | None = None  # the reason why the binding must not continue with Bind


NOTHING_DONE: Final = BindingProgress()
"""The progress of a binding cycle that is one plan; never modified."""


@attrs.define(eq=False)
class BindingCycle:
    """A pod with a selected node that is not bound yet, and the step its binding has reached."""

    uid: str
    number: int  # in order of start
    assumed: AssumedPod
    binding: Binding | None  # None: `plan` is the only step
    plan: Plan | None = None  # the plan being executed
    call: CallPlugin | CallExtender | None = None  # the call being made
    waits: AwaitPermit | PlanWait | None = None
    progress: BindingProgress = attrs.field(factory=BindingProgress)
    stopped_at: StopPoint | None = None  # set if a debugger has stopped it
    began_s: float = 0.0  # end of its attempt
    attempt_s: float = 0.0  # duration of that attempt
    # if `plan` is the only step: when the Bind plugin was called, on the clock that times plugins
    bind_began_s: float = 0.0

    @property
    def is_decided(self) -> bool:
        """True if the pod waited at Permit and has been allowed or rejected."""
        return isinstance(self.waits, AwaitPermit) and self.waits.waiting.decided

    @property
    def deadline_s(self) -> float | None:
        """The time at which the current wait times out (seconds since the epoch)."""
        if isinstance(self.waits, PlanWait):
            return self.waits.deadline_s
        if self.waits is not None and not self.waits.waiting.decided:
            return self.waits.waiting.deadline
        return None
