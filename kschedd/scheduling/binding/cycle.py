"""The binding cycle: the stages from an assumed pod to a bound pod, and the effect for which each stage waits.

    stage       does                                               effects                              then
    NOMINATE    writes the node to the pod's status, if required   ExecutePlan                          PERMIT
    PERMIT      waits until the Permit plugins have decided        AwaitPermit, ReleaseInFlight         PRE_BIND
    PRE_BIND    calls the PreBind plugins, one after the other     CallPlugin, ExecutePlan, StopPoint   EXTENDER
    EXTENDER    calls the first extender that binds the pod        CallExtender                         POST_BIND
                                                                   (if none binds it)                   BIND
    BIND        calls the Bind plugins until one binds the pod     CallPlugin, ExecutePlan, StopPoint   POST_BIND
    POST_BIND   calls the PostBind plugins                         CallPlugin, ExecutePlan, StopPoint   bound

Any stage except POST_BIND may end the cycle with a failure. `BindingSteps.next` makes the transitions. The whole state
of a cycle is in the BindingCycle, so that a fork can copy it. If only the Bind plugin has work for a pod, the binding
cycle consists of that plugin's plan and has no stages. An in-tree plugin is called directly, because it only computes a
plan. An out-of-tree plugin may be slow, so its call is a separate effect, during which other work continues.

Source: Kubernetes v1.34, scheduler/schedule_one.go (bindingCycle).
"""

from collections.abc import Callable
from enum import Enum, auto
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
from kschedd.scheduling.debug.stepper import Stepper
from kschedd.scheduling.profiles.profile import Framework
from kschedd.values import fast_frozen


@fast_frozen(eq=False)
class AssumedPod:
    """The pod assumed on `result.node_name`; `waiting` is set if a Permit plugin returned Wait."""

    entry: QueuedPod
    pod: Pod  # the assumed pod, with its node
    result: ScheduleResult
    waiting: WaitingPod | None
    binder: BindPlugin | None = None  # set if the binding cycle consists of this plugin only (`Framework.bound_by`)

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
    """A call of `queue.done`; if the binding fails later, `undo` requeues the pod."""


@fast_frozen(eq=False)
class ExecutePlan:
    """A plan with writes to execute, followed by a wait until the plan is ready.

    The answer is None if the plan succeeded, or the Status of the failure.
    """

    uid: str  # uid of the pod that is being bound
    plan: Plan


@fast_frozen(eq=False)
class CallPlugin:
    """A call of an out-of-tree plugin, which may take long; the answer is the result of `run`."""

    uid: str  # uid of the pod that is being bound
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
    """A call of an extender that binds the pod; the answer is None, or the Status of a failure."""

    uid: str  # uid of the pod that is being bound
    call: ExtenderCall
    binding: Bind  # the write that the extender makes

    def answered(self, answer: str | ExtenderFailure) -> Status | None:
        """Convert the extender's answer to a Status, or to None if the call succeeded."""
        return error(str(answer)) if str(answer) else None


@fast_frozen(eq=False)
class Ended:
    """The end of a binding cycle: the answer is None if the pod is bound."""

    failure: Status | None


BindingEffect = AwaitPermit | ReleaseInFlight | ExecutePlan | CallPlugin | CallExtender | StopPoint


@attrs.frozen
class PlanWait:
    """A plan whose writes are done: the binding continues when the plan is ready, or fails at the deadline."""

    plan: Plan
    deadline_s: float


class Stage(Enum):
    """The stage of a binding cycle."""

    NOMINATE = auto()
    PERMIT = auto()
    PRE_BIND = auto()
    EXTENDER = auto()
    BIND = auto()
    POST_BIND = auto()


class StageStep(Enum):
    """The latest step of a stage or of one of its plugins."""

    NONE = auto()
    STOPPED = auto()  # stopped at the stop point before the plugin
    CALLED = auto()  # the next answer comes from the plugin or extender
    WAITED = auto()  # waiting at Permit, or for the execution of the plan; the next answer is the Status of the wait


@attrs.define(eq=False)
class BindingProgress:
    """The stage and step that a binding cycle has reached."""

    stage: Stage = Stage.NOMINATE
    place: int = 0  # index of the stage's next plugin or extender
    step: StageStep = StageStep.NONE
    has_work: bool = True  # False only if PreBind was checked and has no work
    cancelled: Status | None = None  # reason why the binding must not continue with Bind
    began_s: float = 0.0  # start of the stage in seconds, on the clock that times plugins
    called_s: float | None = None  # time in seconds of the call of the out-of-tree plugin, on the same clock

    @property
    def in_pre_bind(self) -> bool:
        """True while PreBind plugins are called, or their writes are being executed."""
        return self.stage is Stage.PRE_BIND and self.has_work

    @property
    def awaits_permit(self) -> bool:
        """True if the pod has not passed Permit yet."""
        return self.stage in (Stage.NOMINATE, Stage.PERMIT)

    def enter(self, stage: Stage, began_s: float = 0.0) -> None:
        """Begin a stage."""
        self.stage, self.place, self.step, self.began_s = stage, 0, StageStep.NONE, began_s

    def passed(self) -> None:
        """Proceed to the stage's next plugin or extender."""
        self.place, self.step = self.place + 1, StageStep.NONE


NOTHING_DONE: Final = BindingProgress()
"""The progress of a binding cycle that is one plan; never modified."""


@attrs.define(eq=False)
class BindingCycle:
    """A pod with a selected node that is not bound yet, and the current step of its binding."""

    uid: str
    number: int  # in order of start
    assumed: AssumedPod
    plan: Plan | None = None  # the plan being executed
    is_one_plan: bool = False  # `plan` is the only step
    stepper: Stepper | None = None  # stepper of the attempt, if the attempt and its binding cycle run step by step
    call: CallPlugin | CallExtender | None = None  # the call being made
    waits: AwaitPermit | PlanWait | None = None
    progress: BindingProgress = attrs.field(factory=BindingProgress)
    stopped_at: StopPoint | None = None  # set if a debugger has stopped the cycle
    began_s: float = 0.0  # end of its attempt
    attempt_s: float = 0.0  # duration of that attempt
    # For a binding with one plan: time in seconds of the call of the Bind plugin, on the clock that times plugins
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
