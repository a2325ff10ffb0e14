"""Inputs of the scheduling queue, as values, and `QueueOperations.step`, the one way in for them.

Most of them are operations that the scheduling driver requests: it never touches the queue itself. The owner of the
queue applies them in order: the queue actor in the daemon, the scheduling loop in a simulation. The others come from
that owner: pods are popped, time passes, a user moves a pod. Events are passed on only after the caches have applied
them, so a pod requeued by an event is attempted against a state that includes it.

Owns: the given queue and its event handlers; `nominated`, pods that were added with a nominated node already set,
since the last `take_nominated`.
Source: Kubernetes v1.34, scheduler/schedule_one.go (handleSchedulingFailure, handleBindingCycleError).
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import attrs

from kschedd.api.pods import Pod
from kschedd.framework.status import Code
from kschedd.queue.entry import QueuedPod, SubQueue
from kschedd.queue.event_handlers import EventHandlers
from kschedd.queue.gating import PreEnqueue
from kschedd.queue.hints import Registrations
from kschedd.queue.scheduling_queue import QueueSettings, SchedulingQueue
from kschedd.store.objects.log import WatchEvent
from kschedd.values import fast_frozen

T = TypeVar("T")


@fast_frozen(eq=False)
class EventsObserved:
    """Events already applied to the caches, and facts about their pods that only the owner of the caches knows."""

    events: Sequence[WatchEvent]
    assumed: frozenset[str]  # uids
    rejected: frozenset[str]  # uids of pods that were waiting at Permit and got rejected because of the event
    number: int = 0  # of the observation, counted from 1; 0: attempts may not have seen the events


@attrs.frozen(eq=False)
class AttemptFailed:
    """A scheduling or binding cycle failed. `pod` is the latest version of the pod."""

    entry: QueuedPod
    pod: Pod
    unschedulable_plugins: frozenset[str]
    pending_plugins: frozenset[str]
    evicting: bool = False  # its victims are chosen but not yet evicted: it stays out of the active queue until then
    seen: int = 0  # the number of the last observation that the attempt saw


@attrs.frozen(eq=False)
class GroupAttempted:
    """The cycle of a PodGroup has ended; its pods that go back to the queue have come back.

    `evicting`: the uid of the group if its victims are chosen but not yet evicted; else "".
    """

    group: str
    outcome: Code
    evicting: str = ""


@attrs.frozen(eq=False)
class AssumedPodForgotten:
    """An assumed pod was forgotten; `for_itself`: the resources it frees may requeue this pod too."""

    pod: Pod
    for_itself: bool


@attrs.frozen(eq=False)
class Activate:
    """Move these pods to the active queue (upstream's PodsToActivate)."""

    pods: Sequence[Pod]


@attrs.frozen(eq=False)
class Reconfigured:
    """New configuration of the queue. `out_of_tree`: it has out-of-tree plugins, whose calls may be slow."""

    out_of_tree: bool
    scheduler_names: frozenset[str]
    settings: QueueSettings
    sort_key: Any
    pre_enqueue: PreEnqueue
    hints: Registrations

    def new_queue(self) -> SchedulingQueue:
        return SchedulingQueue(self.settings, sort_key=self.sort_key, pre_enqueue=self.pre_enqueue, hints=self.hints)

    def new_operations(self, queue: SchedulingQueue) -> "QueueOperations":
        """What applies operations to a queue of this configuration."""
        return QueueOperations(queue, EventHandlers(queue, self.scheduler_names))


@attrs.frozen(eq=False)
class AtThisPoint:
    """Do this when all operations before it have been applied, and none after it."""

    work: "Callable[[QueueOperations], None]"


QueueOperation = (
    EventsObserved | AttemptFailed | GroupAttempted | AssumedPodForgotten | Activate | Reconfigured | AtThisPoint
)
"""What the scheduling driver requests."""


@fast_frozen(eq=False)
class PodDone:
    """The pod of this uid is no longer in flight."""

    uid: str


@fast_frozen(eq=False)
class Pop:
    """Returns the next pod to schedule; None if there is none."""


@fast_frozen(eq=False)
class PopOthersOfGroup:
    """Returns the other pods of that pod's PodGroup; see `SchedulingQueue.pop_others_of_group`."""

    popped: QueuedPod


@fast_frozen(eq=False)
class FlushBackoff:
    """Move the pods whose backoff has expired, `most` of them at most. Returns those that became active."""

    most: int | None = None


@fast_frozen(eq=False)
class FlushLeftover:
    """Move the pods that have been unschedulable for too long. Returns those that became active."""


@fast_frozen(eq=False)
class MoveToActive:
    """A user moves these pods to the active queue. Returns those that entered it."""

    pods: Sequence[Pod]


@fast_frozen(eq=False)
class Force:
    """A user moves a pod to this sub-queue. Returns False if an attempt of it is under way."""

    key: str
    place: SubQueue


@fast_frozen(eq=False)
class TakeNominated:
    """Returns the pods that entered the active queue with a nominated node already set, since the last such input."""


QueueInput = (
    QueueOperation
    | PodDone
    | Pop
    | PopOthersOfGroup
    | FlushBackoff
    | FlushLeftover
    | MoveToActive
    | Force
    | TakeNominated
)


class QueueListener(Protocol):
    """Is told of all that a queue is given, such as a recording."""

    def given(self, given: QueueInput, now: int, step: Callable[[Any, int], T]) -> T:
        """Do the step, and return what it returns."""


@attrs.define(eq=False)
class QueueOperations:
    """See the module. `queue` may be read by code that runs in its owner's task."""

    queue: SchedulingQueue
    handlers: EventHandlers
    listener: QueueListener | None = attrs.field(default=None, init=False)
    nominated: list[Pod] = attrs.field(factory=list, init=False)
    _evicting: str = attrs.field(default="", init=False)  # uid of the preemptor being requeued right now

    _steps: dict[type[QueueInput], Callable[[Any, int], Any]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.queue.on_nominated = self.nominated.append
        queue = self.queue
        self._steps = {
            EventsObserved: self._events_observed,
            AttemptFailed: self._attempt_failed,
            GroupAttempted: self._group_attempted,
            AssumedPodForgotten: self._assumed_pod_forgotten,
            Activate: lambda given, now: queue.activate(given.pods, now),
            Reconfigured: self._reconfigured,
            AtThisPoint: lambda given, now: given.work(self),
            PodDone: lambda given, now: queue.done(given.uid, now),
            Pop: lambda given, now: queue.pop(now),
            PopOthersOfGroup: lambda given, now: queue.pop_others_of_group(given.popped, now),
            FlushBackoff: lambda given, now: queue.flush_backoff(now, given.most),
            FlushLeftover: lambda given, now: queue.flush_unschedulable_leftover(now),
            MoveToActive: lambda given, now: queue.activate(given.pods, now),
            Force: lambda given, now: queue.force(given.key, given.place, now),
            TakeNominated: lambda given, now: self._take_nominated(),
        }

    def step(self, given: QueueInput, now: int) -> Any:
        """Take an input; see its class for what this returns. `now`: nanoseconds since the epoch."""
        step = self._steps[type(given)]
        return step(given, now) if self.listener is None else self.listener.given(given, now, step)

    def evicting(self, uid: str) -> bool:
        """Whether the pod, or PodGroup, is being requeued by the attempt that chose its victims, none of which is
        evicted yet.

        Events observed during that attempt must not requeue it; the deletion of its victims will.
        """
        return uid == self._evicting

    def leaving(self, key: str) -> bool:
        """Return whether a pod of this PodGroup is being taken out, which the group's other pods are not to notice yet.

        Upstream's cache of PodGroups learns of a deleted pod after the queue.
        """
        return key == self.queue.groups.leaving

    def _take_nominated(self) -> tuple[Pod, ...]:
        taken = tuple(self.nominated)
        self.nominated.clear()
        return taken

    def _events_observed(self, given: EventsObserved, now: int) -> None:
        queue, handlers = self.queue, self.handlers
        handlers.assumed, handlers.rejected = given.assumed, given.rejected
        queue.observation = given.number
        handlers.observed(given.events, now)
        queue.observation = 0

    def _attempt_failed(self, given: AttemptFailed, now: int) -> None:
        entry = given.entry
        entry.pod = given.pod
        entry.unschedulable_plugins = given.unschedulable_plugins
        entry.pending_plugins = given.pending_plugins
        self._evicting = given.pod.uid if given.evicting else ""
        self.queue.add_unschedulable_if_not_present(entry, now, given.seen)
        self._evicting = ""

    def _group_attempted(self, given: GroupAttempted, now: int) -> None:
        self._evicting = given.evicting
        self.queue.groups.attempted(given.group, given.outcome, now)
        self._evicting = ""

    def _assumed_pod_forgotten(self, given: AssumedPodForgotten, now: int) -> None:
        self.queue.assigned_pod_deleted(given.pod, now, None if given.for_itself else _all_but(given.pod.uid))

    def _reconfigured(self, given: Reconfigured, now: int) -> None:
        queue = self.queue
        self.handlers.scheduler_names = given.scheduler_names
        queue.reconfigure(
            given.settings, sort_key=given.sort_key, pre_enqueue=given.pre_enqueue, hints=given.hints, now=now
        )
        queue.activate(queue.ungated(), now)


def _all_but(uid: str) -> Callable[[Pod], bool]:
    # Without this pre-check the resources that the pod itself frees would requeue it at once.
    return lambda pod: pod.uid != uid
