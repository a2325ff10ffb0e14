"""What the scheduling driver wants done to the queue: each operation as a value, and the applying of them.

The driver decides and never touches the queue; whoever owns the queue applies the operations to it, in order: the
queue actor in the daemon, the scheduling loop in a simulation. Events come as they were observed, after the caches have
taken them in, so a pod that an event wakes is tried against the state that woke it.

Owns: the queue it was given and the event handlers over it; `nominated`, the pods that came with a nomination of their
own since these were last asked for.
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
from kschedd.store.log import DELETED, WatchEvent


@attrs.frozen(eq=False)
class EventsObserved:
    """Events that the caches have seen, and what only the owner of the caches can say of the pods in them (by uid)."""

    events: Sequence[WatchEvent]
    assumed: frozenset[str]
    rejected: frozenset[str]  # waited at Permit, and were rejected because of the event


@attrs.frozen(eq=False)
class AttemptFailed:
    """An attempt or a binding failed. `pod` is the pod as it is now."""

    entry: QueuedPod
    pod: Pod
    unschedulable_plugins: frozenset[str]
    pending_plugins: frozenset[str]
    evicting: bool = False  # its victims are about to be evicted; until then it is kept out of the active queue


@attrs.frozen(eq=False)
class AssumedPodForgotten:
    """A pod that was to have a node will not; `for_itself` says whether the room it leaves may help the pod itself."""

    pod: Pod
    for_itself: bool


@attrs.frozen(eq=False)
class Activate:
    """These pods are wanted tried now."""

    pods: Sequence[Pod]


@attrs.frozen(eq=False)
class Reconfigured:
    """From now on the queue is run by this. `out_of_tree`: with plugins of others, whose calls may take their time."""

    out_of_tree: bool
    scheduler_names: frozenset[str]
    settings: QueueSettings
    sort_key: Any
    pre_enqueue: PreEnqueue
    hints: Registrations

    def new_queue(self) -> SchedulingQueue:
        return SchedulingQueue(self.settings, sort_key=self.sort_key, pre_enqueue=self.pre_enqueue, hints=self.hints)


QueueOperation = EventsObserved | AttemptFailed | AssumedPodForgotten | Activate | Reconfigured


@attrs.define(eq=False)
class QueueOperations:
    """See the module. `queue` may be read by anybody who runs where its owner runs."""

    queue: SchedulingQueue
    scheduler_names: frozenset[str]
    handlers: EventHandlers = attrs.field(init=False)
    nominated: list[Pod] = attrs.field(factory=list, init=False)
    _evicting: str = attrs.field(default="", init=False)  # uid of the preemptor that comes back just now

    def __attrs_post_init__(self) -> None:
        self.handlers = EventHandlers(self.queue, lambda name: name in self.scheduler_names)
        self.queue.on_nominated = self.nominated.append

    def evicting(self, uid: str) -> bool:
        """Whether the pod comes back from the attempt that chose its victims: nothing is evicted yet.

        What happened during the attempt must not send it back to the active queue then: the end of its victims will.
        """
        return uid == self._evicting

    def take_nominated(self) -> tuple[Pod, ...]:
        """The pods that got into the active queue with a nomination of their own, since the last time."""
        taken = tuple(self.nominated)
        self.nominated.clear()
        return taken

    def apply(self, operation: QueueOperation, now: int) -> None:
        queue = self.queue
        match operation:
            case EventsObserved(events, assumed, rejected):
                handlers = self.handlers
                handlers.assumed, handlers.rejected = assumed, rejected
                for event in events:
                    if event.type == DELETED:
                        handlers.changed(event.new, None, now)
                    else:
                        handlers.changed(event.old, event.new, now)
            case AttemptFailed(entry, pod, unschedulable, pending, evicting):
                entry.pod = pod
                entry.unschedulable_plugins = unschedulable
                entry.pending_plugins = pending
                self._evicting = pod.uid if evicting else ""
                queue.add_unschedulable_if_not_present(entry, now)
                self._evicting = ""
            case AssumedPodForgotten(pod, for_itself):
                queue.assigned_pod_deleted(pod, now, None if for_itself else _all_but(pod.uid))
            case Activate(pods):
                queue.activate(pods, now)
            case Reconfigured(_, names, settings, sort_key, pre_enqueue, hints):
                self.scheduler_names = names
                queue.reconfigure(settings, sort_key=sort_key, pre_enqueue=pre_enqueue, hints=hints)


def _all_but(uid: str) -> Callable[[Pod], bool]:
    # Woken by the room it leaves itself, the pod would come straight back.
    return lambda pod: pod.uid != uid
