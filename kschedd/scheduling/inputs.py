"""Inputs of the scheduling driver: all its events in sequence, as values.

`SchedulingDriver.step(input, now)` processes an input. A recording is a list of inputs, a replay steps through it, and
a debugger stops between two inputs. Each class documents the result of `step` for the input. Actions that follow from
an input are effects of the driver (`take_effects`).

Within an attempt, the answers of plugins and extenders are sent to the generator that `BeginAttempt` returns. The
generator depends only on values: the pod, the cluster, the random state, and the user's changes by stop point. A fork
or a replay reaches the same stop point by repeating the attempt (`kschedd.scheduling.snapshots.fork`).
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
from kschedd.scheduling.debug.debugger import Intervention
from kschedd.scheduling.debug.work import Work
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.gangs.trial import MemberDone
from kschedd.store.objects.log import WatchEvent
from kschedd.values import fast_frozen

T = TypeVar("T")

# -- the cluster and the queue -----------------------------------------------------------------------------------


@fast_frozen(eq=False)
class Observe:
    """Watch events, which are applied first to the caches and then to the queue."""

    events: Sequence[WatchEvent]


@fast_frozen(eq=False)
class PodsPopped:
    """Pods popped from the queue.

    Pods that sort before pods popped earlier are attempted first.
    """

    entries: Sequence[QueuedPod]


@fast_frozen(eq=False)
class PodsNominated:
    """Pods in the active queue whose status contains a nominated node."""

    pods: Sequence[Pod]


# -- attempts ----------------------------------------------------------------------------------------------------


@fast_frozen(eq=False)
class BeginAttempt:
    """The start of an attempt. Returns the attempt for the pod's current version.

    Returns None if the pod is skipped; the pod is then no longer in flight.
    """

    entry: QueuedPod


@fast_frozen(eq=False)
class BeginGroupCycle:
    """The input that starts the PodGroup cycle of a popped pod.

    Returns the cycle, which must run to its end before any other work begins. `clock` returns the time in seconds.
    `on_result` is called with each pod's result before the result is applied.
    """

    entry: QueuedPod
    clock: Callable[[], float]
    on_result: MemberDone = lambda entry, result: None


@fast_frozen(eq=False)
class BreakOff:
    """An exception that ended an attempt.

    Returns the result of the attempt: an error for this pod.
    """

    entry: QueuedPod
    fault: Exception


@fast_frozen(eq=False)
class CompleteAttempt:
    """The input that ends an attempt: it starts the binding cycle or requeues the pod.

    Returns the assumed or failed pod.
    """

    entry: QueuedPod
    result: ScheduleResult | FitError
    took_s: float = 0.0


@fast_frozen(eq=False)
class CompleteRun:
    """The input that completes the results of `begin_run`; each attempt took `took_s` seconds."""

    run: AttemptRun
    took_s: float


@fast_frozen(eq=False)
class Intervene:
    """A user's change to the outcome of the stopped attempt."""

    change: Intervention


# -- bindings and preemptions ------------------------------------------------------------------------------------


@fast_frozen(eq=False)
class PlansExecuted:
    """The result of executed plans: for each, the pod's uid and the Status of the first rejected write, or None."""

    plans: Sequence[tuple[str, Status | None]]


@fast_frozen(eq=False)
class PluginCalled:
    """The answer to a binding cycle's call of a plugin or an extender."""

    uid: str
    answer: Plan | Status | None


@fast_frozen(eq=False)
class EvictionFailed:
    """A failed eviction.

    Returns a preemptor to the active queue, because the eviction of its victims failed.
    """

    pod: Pod


@fast_frozen(eq=False)
class Tick:
    """The passage of time. Rejects the pods at Permit that have timed out."""


@fast_frozen(eq=False)
class Resume:
    """The input that continues a binding cycle if its wait has ended. Returns whether it is."""

    cycle: BindingCycle


@fast_frozen(eq=False)
class ResumeDecided:
    """The input that continues the binding cycles whose pods were allowed or rejected at Permit."""


@fast_frozen(eq=False)
class ResumeReady:
    """The input that continues the binding cycles whose plan is ready or has timed out."""


@fast_frozen(eq=False)
class ResumeStopped:
    """The input that continues the stopped binding cycles, until the debugger stops one of these cycles again."""


@fast_frozen(eq=False)
class Allow:
    """A user's approval of a pod at Permit on behalf of a plugin.

    Returns False if no pod with this uid waits at Permit.
    """

    uid: str
    plugin: str


@fast_frozen(eq=False)
class Reject:
    """A user's rejection of a pod at Permit on behalf of a plugin.

    Returns False if no pod with this uid waits at Permit.
    """

    uid: str
    plugin: str
    reason: str


# -- the configuration -------------------------------------------------------------------------------------------


@fast_frozen(eq=False)
class Reconfigure:
    """A new configuration, which applies from the next attempt on.

    Returns the previous configuration. Raises PluginLoadError.
    """

    config: Config


@fast_frozen(eq=False)
class ChangeConfig:
    """A `Reconfigure` that can be undone. Returns the ConfigChange."""

    config: Config
    what: str


@fast_frozen(eq=False)
class UndoConfigChange:
    """The input that undoes the latest change of the configuration. Returns that change. Raises NothingToUndo."""


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
    """An observer of all inputs and effects of a driver, such as a recording."""

    def given(self, given: Input, now: float, step: Callable[[Any, float], T]) -> T:
        """Run the step, and return its result."""

    def completing(self, work: Work[T], now: float, took_s: float) -> Work[T]:
        """Wrap work that completes a step-by-step attempt, so that the listener observes it."""

    def taken(self, effects: Effects) -> None:
        """Receive the effects that the caller has taken from the driver."""
