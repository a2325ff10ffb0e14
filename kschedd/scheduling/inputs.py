"""Inputs of the scheduling driver: everything that happens to it, as values, one after the other.

`SchedulingDriver.step(input, now)` is the one way in. A recording is the list of these inputs; a replay steps through
it; a debugger stops between two of them. Each class says what `step` returns; what is to be done then is among the
driver's effects (`take_effects`).

Within an attempt, what plugins and extenders answer is sent to the generator that `BeginAttempt` returns: an attempt is
the one state that cannot be copied, and begins again in a fork (`kschedd.scheduling.snapshots.fork`).
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from kschedd.api.pods import Pod
from kschedd.config.model import Config
from kschedd.framework.status import Status
from kschedd.framework.writes import Plan
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.binding.cycle import BindingCycle
from kschedd.scheduling.binding.run import AttemptRun
from kschedd.scheduling.debug.stepper import Intervention
from kschedd.scheduling.debug.work import Work
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.gangs.trial import MemberDone
from kschedd.store.objects.log import WatchEvent
from kschedd.values import fast_frozen

T = TypeVar("T")

# -- the cluster and the queue -----------------------------------------------------------------------------------


@fast_frozen(eq=False)
class Observe:
    """Watch events, for the caches first and then for the queue."""

    events: Sequence[WatchEvent]


@fast_frozen(eq=False)
class PodsPopped:
    """The queue handed out these pods. Those that sort before pods handed out earlier are attempted first."""

    entries: Sequence[QueuedPod]


@fast_frozen(eq=False)
class PodsNominated:
    """These pods entered the active queue with a nomination in their own status."""

    pods: Sequence[Pod]


# -- attempts ----------------------------------------------------------------------------------------------------


@fast_frozen(eq=False)
class BeginAttempt:
    """Returns the attempt for the pod's current version; None if the pod is skipped, and then no longer in flight."""

    entry: QueuedPod


@fast_frozen(eq=False)
class BeginGroupCycle:
    """Returns the cycle of a popped pod's PodGroup, to be run to its end before anything else is begun.

    `clock` returns the time. `told` is called with the result of each pod before it is acted on, while the pods before
    it are on their nodes.
    """

    entry: QueuedPod
    clock: Callable[[], float]
    told: MemberDone = lambda entry, result: None


@fast_frozen(eq=False)
class BreakOff:
    """An exception aborted the attempt. Returns its result: an error for this pod, whichever code raised it."""

    entry: QueuedPod
    fault: Exception


@fast_frozen(eq=False)
class CompleteAttempt:
    """Start the binding cycle, or hand the pod back to the queue. Returns the pod as assumed, or as failed."""

    entry: QueuedPod
    result: ScheduleResult | FitError
    took_s: float = 0.0


@fast_frozen(eq=False)
class CompleteRun:
    """Act on the results of `begin_run`, each of which took so long."""

    run: AttemptRun
    took_s: float


@fast_frozen(eq=False)
class Intervene:
    """A user changes the outcome of the stopped attempt."""

    change: Intervention


# -- bindings and preemptions ------------------------------------------------------------------------------------


@fast_frozen(eq=False)
class PlansExecuted:
    """The writes of these plans were done: the pod's uid, and the refusal of the first write that was refused."""

    plans: Sequence[tuple[str, Status | None]]


@fast_frozen(eq=False)
class PluginCalled:
    """A plugin or an extender answered the call of a binding cycle."""

    uid: str
    answer: Plan | Status | None


@fast_frozen(eq=False)
class EvictionFailed:
    """Requeue the preemptor at once: no deletion of its victims will wake it."""

    pod: Pod


@fast_frozen(eq=False)
class Tick:
    """Reject the pods at Permit whose timeout has passed."""


@fast_frozen(eq=False)
class Resume:
    """Continue this binding cycle if its wait is over. Returns whether it is."""

    cycle: BindingCycle


@fast_frozen(eq=False)
class ResumeDecided:
    """Continue the binding cycles whose wait at Permit was decided."""


@fast_frozen(eq=False)
class ResumeReady:
    """Continue the binding cycles whose plan is ready, or has waited too long."""


@fast_frozen(eq=False)
class ResumeStopped:
    """Continue the binding cycles that the debugger stopped, until one is stopped again."""


@fast_frozen(eq=False)
class Allow:
    """A user allows a pod at Permit in the place of a plugin. Returns False if no such pod waits."""

    uid: str
    plugin: str


@fast_frozen(eq=False)
class Reject:
    """A user rejects a pod at Permit in the place of a plugin. Returns False if no such pod waits."""

    uid: str
    plugin: str
    reason: str


# -- the configuration -------------------------------------------------------------------------------------------


@fast_frozen(eq=False)
class Reconfigure:
    """Use this configuration from the next attempt on. Returns the previous one. Raises PluginLoadError."""

    config: Config


@fast_frozen(eq=False)
class ChangeConfig:
    """As `Reconfigure`, as a change that can be undone. Returns the ConfigChange."""

    config: Config
    what: str


@fast_frozen(eq=False)
class UndoConfigChange:
    """Go back to the configuration before the latest change. Returns that change. Raises NothingToUndo."""


Input = (
    Observe
    | PodsPopped
    | PodsNominated
    | BeginAttempt
    | BeginGroupCycle
    | BreakOff
    | CompleteAttempt
    | CompleteRun
    | Intervene
    | PlansExecuted
    | PluginCalled
    | EvictionFailed
    | Tick
    | Resume
    | ResumeDecided
    | ResumeReady
    | ResumeStopped
    | Allow
    | Reject
    | Reconfigure
    | ChangeConfig
    | UndoConfigChange
)


class InputListener(Protocol):
    """Is told of all that a driver is given, such as a recording."""

    def given(self, given: Input, now: float, step: Callable[[Any, float], T]) -> T:
        """Do the step, and return what it returns."""

    def completing(self, work: Work[T], now: float, took_s: float) -> Work[T]:
        """Return the same work, of the completion of an attempt that is run step by step."""

    def taken(self, effects: Effects) -> None:
        """The driver's effects were taken."""
