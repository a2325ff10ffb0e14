"""Inputs of the scheduling queue, as values, and `QueueOperations.step`, their only entry point.

Most inputs are operations that the scheduling driver requests; the driver never calls the queue itself. The queue's
task applies the operations in order: the queue actor in the daemon, the scheduling loop in a simulation. All other
inputs come from the queue's task, which pops pods, advances the time, and executes a user's moves. Events reach the
queue only after the caches have applied them. A pod requeued by an event is attempted in a state that includes this
event.

`nominated` contains the pods that were added with a nominated node since the last `take_nominated`. Source: Kubernetes
v1.34, scheduler/schedule_one.go (handleSchedulingFailure, handleBindingCycleError).
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
    """Events that were already applied to the caches, with the uids of assumed and rejected pods."""

    events: Sequence[WatchEvent]
    assumed: frozenset[str]  # uids
    rejected: frozenset[str]  # uids of pods that were rejected at Permit because of the event
    number: int = 0  # number of the cache update, from 1; 0 if attempts may not have used the events


@attrs.frozen(eq=False)
class AttemptFailed:
    """A failed scheduling or binding cycle. `pod` is the latest version of the pod."""

    entry: QueuedPod
    pod: Pod
    unschedulable_plugins: frozenset[str]
    pending_plugins: frozenset[str]
    evicting: bool = False  # true if the pod must not become active before its victims are evicted
    victims: frozenset[str] = frozenset()  # uids of the victims that must be gone before the pod becomes active
    seen: int = 0  # number of the last cache update that the attempt used


@attrs.frozen(eq=False)
class GroupAttempted:
    """The end of a PodGroup's cycle; its failed pods have returned to the queue.

    `evicting` is the uid of a group whose victims are selected but not evicted yet; else "".
    """

    group: str
    outcome: Code
    evicting: str = ""
    victims: frozenset[str] = frozenset()  # uids


@attrs.frozen(eq=False)
class EvictionEnded:
    """The failure of an eviction: these preemptors, a pod and its PodGroup, need not wait for their victims."""

    preemptors: Sequence[str]  # uids


@attrs.frozen(eq=False)
class AssumedPodForgotten:
    """The removal of an assumed pod; with `for_itself`, the freed resources may also requeue this pod."""

    pod: Pod
    for_itself: bool


@attrs.frozen(eq=False)
class Activate:
    """Move these pods to the active queue (upstream's PodsToActivate)."""

    pods: Sequence[Pod]


@attrs.frozen(eq=False)
class Reconfigured:
    """A new configuration of the queue.

    `out_of_tree` is true if the configuration has out-of-tree plugins, whose calls may be slow.
    """

    out_of_tree: bool
    scheduler_names: frozenset[str]
    settings: QueueSettings
    sort_key: Any
    pre_enqueue: PreEnqueue
    hints: Registrations

    def new_queue(self) -> SchedulingQueue:
        return SchedulingQueue(self.settings, sort_key=self.sort_key, pre_enqueue=self.pre_enqueue, hints=self.hints)

    def new_operations(self, queue: SchedulingQueue) -> "QueueOperations":
        """Return the object that applies operations to a queue with this configuration."""
        return QueueOperations(queue, EventHandlers(queue, self.scheduler_names))


@attrs.frozen(eq=False)
class AtThisPoint:
    """A function to run after all earlier operations and before all later operations."""

    work: "Callable[[QueueOperations], None]"


QueueOperation = (
    EventsObserved
    | AttemptFailed
    | GroupAttempted
    | EvictionEnded
    | AssumedPodForgotten
    | Activate
    | Reconfigured
    | AtThisPoint
)
"""Operations that the scheduling driver requests."""


@fast_frozen(eq=False)
class PodDone:
    """The operation that ends a pod's in-flight state."""

    uid: str


@fast_frozen(eq=False)
class Pop:
    """The operation that pops the next pod to schedule. Returns the pod, or None if no pod is ready."""


@fast_frozen(eq=False)
class PopOthersOfGroup:
    """The operation that pops the other pods of a popped pod's PodGroup.

    Returns the popped pods (`SchedulingQueue.pop_others_of_group`).
    """

    popped: QueuedPod


@fast_frozen(eq=False)
class FlushBackoff:
    """The operation that activates at most `most` pods whose backoff has expired.

    Returns the pods that became active.
    """

    most: int | None = None


@fast_frozen(eq=False)
class FlushLeftover:
    """The operation that requeues pods that have been unschedulable for longer than the timeout.

    Returns the pods that became active.
    """


@fast_frozen(eq=False)
class MoveToActive:
    """A user's move of these pods to the active queue. Returns the pods that entered the active queue."""

    pods: Sequence[Pod]


@fast_frozen(eq=False)
class Force:
    """A user's move of a pod to this sub-queue. Returns False if an attempt of the pod is in progress."""

    key: str
    place: SubQueue


@fast_frozen(eq=False)
class TakeNominated:
    """The operation that returns the pods that entered the active queue with a nominated node since its last use.

    Returns them.
    """


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
    """An observer of all inputs of a queue, such as a recording."""

    def given(self, given: QueueInput, now: int, step: Callable[[Any, int], T]) -> T:
        """Run the step, and return its result."""


@attrs.define(eq=False)
class QueueOperations:
    """The operations on one queue. Code in the queue's task may read `queue`."""

    queue: SchedulingQueue
    handlers: EventHandlers
    listener: QueueListener | None = attrs.field(default=None, init=False)
    nominated: list[Pod] = attrs.field(factory=list, init=False)
    _evicting: str = attrs.field(default="", init=False)  # uid of the preemptor that is being requeued

    _steps: dict[type[QueueInput], Callable[[Any, int], Any]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.queue.on_nominated = self.nominated.append
        queue = self.queue
        self._steps = {
            EventsObserved: self._events_observed,
            AttemptFailed: self._attempt_failed,
            GroupAttempted: self._group_attempted,
            EvictionEnded: lambda given, now: queue.evictions.end(*given.preemptors),
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
        """Process an input and return the result that the input's class documents.

        `now` is in nanoseconds since the epoch.
        """
        step = self._steps[type(given)]
        return step(given, now) if self.listener is None else self.listener.given(given, now, step)

    def evicting(self, uid: str) -> bool:
        """Return whether a pod or PodGroup waits for the eviction of its victims.

        The preemptor is being requeued after the attempt that selected the victims, or some victims still exist. Until
        the deletion of the victims, no other event may make the pod or PodGroup active.
        """
        return uid == self._evicting or uid in self.queue.evictions

    def leaving(self, key: str) -> bool:
        """Return whether a pod of this PodGroup is being removed, but must still be counted as part of its group.

        kube-scheduler's cache of PodGroups processes a deletion later than its queue.
        """
        return key == self.queue.groups.leaving

    def _take_nominated(self) -> tuple[Pod, ...]:
        taken = tuple(self.nominated)
        self.nominated.clear()
        return taken

    def _events_observed(self, given: EventsObserved, now: int) -> None:
        queue, handlers = self.queue, self.handlers
        queue.evictions.observe(given.events)
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
        self.queue.evictions.begin(given.pod.uid, given.victims)
        self.queue.add_unschedulable_if_not_present(entry, now, given.seen)
        self._evicting = ""

    def _group_attempted(self, given: GroupAttempted, now: int) -> None:
        self._evicting = given.evicting
        if given.evicting:
            self.queue.evictions.begin(given.evicting, given.victims)
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
    # without this pre-check, the resources that the pod frees would immediately requeue the pod itself
    return lambda pod: pod.uid != uid
