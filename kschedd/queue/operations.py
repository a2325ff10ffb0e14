"""Queue operations requested by the scheduling driver, as values, and their application to the queue.

The driver never touches the queue itself; the owner of the queue applies the operations in order: the queue actor in
the daemon, the scheduling loop in a simulation. Events are passed on only after the caches have applied them, so a pod
requeued by an event is attempted against a state that includes it.

Owns: the given queue and its event handlers; `nominated`, pods that were added with a nominated node already set,
since the last `take_nominated`.
Source: Kubernetes v1.34, scheduler/schedule_one.go (handleSchedulingFailure, handleBindingCycleError).
"""

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from kschedd.api.pods import Pod
from kschedd.queue.entry import QueuedPod
from kschedd.queue.event_handlers import EventHandlers
from kschedd.queue.gating import PreEnqueue
from kschedd.queue.hints import Registrations
from kschedd.queue.scheduling_queue import QueueSettings, SchedulingQueue
from kschedd.store.log import WatchEvent
from kschedd.values import fast_frozen


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


QueueOperation = EventsObserved | AttemptFailed | AssumedPodForgotten | Activate | Reconfigured | AtThisPoint


@attrs.define(eq=False, slots=False)  # a recording takes it over: see `kschedd.recording.queue.take_over`
class QueueOperations:
    """See the module. `queue` may be read by code that runs in its owner's task."""

    queue: SchedulingQueue
    handlers: EventHandlers
    nominated: list[Pod] = attrs.field(factory=list, init=False)
    _evicting: str = attrs.field(default="", init=False)  # uid of the preemptor being requeued right now

    def __attrs_post_init__(self) -> None:
        self.queue.on_nominated = self.nominated.append

    def evicting(self, uid: str) -> bool:
        """Whether the pod is being requeued by the attempt that chose its victims, none of which is evicted yet.

        Events observed during that attempt must not requeue the pod; the deletion of its victims will.
        """
        return uid == self._evicting

    def take_nominated(self) -> tuple[Pod, ...]:
        """The pods that entered the active queue with a nominated node already set, since the last call."""
        taken = tuple(self.nominated)
        self.nominated.clear()
        return taken

    def apply(self, operation: QueueOperation, now: int) -> None:
        queue = self.queue
        match operation:
            case EventsObserved(events, assumed, rejected, number):
                handlers = self.handlers
                handlers.assumed, handlers.rejected = assumed, rejected
                queue.observation = number
                handlers.observed(events, now)
                queue.observation = 0
            case AttemptFailed(entry, pod, unschedulable, pending, evicting, seen):
                entry.pod = pod
                entry.unschedulable_plugins = unschedulable
                entry.pending_plugins = pending
                self._evicting = pod.uid if evicting else ""
                queue.add_unschedulable_if_not_present(entry, now, seen)
                self._evicting = ""
            case AssumedPodForgotten(pod, for_itself):
                queue.assigned_pod_deleted(pod, now, None if for_itself else _all_but(pod.uid))
            case Activate(pods):
                queue.activate(pods, now)
            case Reconfigured(_, names, settings, sort_key, pre_enqueue, hints):
                self.handlers.scheduler_names = names
                queue.reconfigure(settings, sort_key=sort_key, pre_enqueue=pre_enqueue, hints=hints)
                queue.activate(queue.ungated(), now)
            case AtThisPoint(work):
                work(self)


def _all_but(uid: str) -> Callable[[Pod], bool]:
    # Without this pre-check the resources that the pod itself frees would requeue it at once.
    return lambda pod: pod.uid != uid
