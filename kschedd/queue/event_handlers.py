"""Event handlers: translate object changes into cluster events and queue operations.

The handlers cover assigned pods, pending pods of this scheduler, nodes, and every other kind for which a plugin may
have registered. The caller updates the caches first and then calls `changed`, once per change, in watch order.
`assumed` contains the uids of changed pods that are assumed; `rejected` contains the uids of pods that were rejected at
Permit because of the change. Terminated pods are treated as deleted. An exception raised for a change does not
propagate: it is recorded in `faults` under the changed object.

Source: Kubernetes v1.34, scheduler/eventhandlers.go and newPodInformer in scheduler/scheduler.go.
"""

from collections.abc import Container, Iterable
from typing import Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.pod_groups import KIND as POD_GROUP
from kschedd.framework import events
from kschedd.object_faults import FaultLedger, ObjectRef
from kschedd.queue.entry import SECOND
from kschedd.queue.scheduling_queue import SchedulingQueue
from kschedd.queue.times import QueueTimes
from kschedd.queue.unschedulable import PreCheck
from kschedd.store.objects.log import DELETED, WatchEvent

_ASSIGNED_ADD: Final = events.ASSIGNED_POD_ADD.label
_ASSIGNED_UPDATE: Final = events.ASSIGNED_POD_UPDATE.label
_ASSIGNED_DELETE: Final = events.ASSIGNED_POD_DELETE.label
_UNSCHEDULED_ADD: Final = events.UNSCHEDULED_POD_ADD.label
_UNSCHEDULED_UPDATE: Final = events.UNSCHEDULED_POD_UPDATE.label
_UNSCHEDULED_DELETE: Final = events.UNSCHEDULED_POD_DELETE.label


@attrs.define(eq=False)
class EventHandlers:
    queue: SchedulingQueue
    scheduler_names: Container[str]  # scheduler names of the profiles
    assumed: Container[str] = frozenset()  # uids of the changed pods that are assumed in the cache
    rejected: Container[str] = frozenset()  # uids of changed pods that were rejected at Permit because of the change
    faults: FaultLedger[None] = attrs.field(factory=lambda: FaultLedger("scheduling queue"))
    times: QueueTimes | None = None

    def changed(self, old: Object | None, new: Object | None, now: int) -> None:
        """Process an object that was added (`old` is None), updated, or deleted (`new` is None)."""
        now_s = now / SECOND
        if self.faults.by_object:
            self.faults.retry(now_s)
        subject = new or old
        assert subject is not None, "a change is of an object"
        try:
            self._changed(old, new, now)
        except Exception as fault:  # recorded in `faults` under the changed object
            self._note(old, new, fault, now)
        else:
            if self.faults.by_object:
                self.faults.strike_off(ObjectRef(subject.kind, subject.namespace, subject.name))

    def observed(self, events: Iterable[WatchEvent], now: int) -> None:
        """Process each of these events."""
        clock = None if self.times is None else self.times.start
        took_s: dict[str, list[float]] = {}  # by label
        began_s = 0.0 if clock is None else clock()
        for event in events:
            deleted = event.type == DELETED
            old, new = (event.new, None) if deleted else (event.old, event.new)
            if self.faults.by_object:
                self.changed(old, new, now)
                continue
            try:
                label = self._changed(old, new, now)
            except Exception as fault:  # recorded in `faults` under the changed object
                self._note(old, new, fault, now)
            else:
                if clock is not None and label:
                    ended_s = clock()
                    took_s.setdefault(label, []).append(ended_s - began_s)
                    began_s = ended_s
        if self.times is not None:
            self.times.handled(took_s)

    def _note(self, old: Object | None, new: Object | None, fault: Exception, now: int) -> None:
        subject = new or old
        assert subject is not None, "a change is of an object"
        ref = ObjectRef(subject.kind, subject.namespace, subject.name)

        def again(later_s: float) -> None:
            self._changed(old, new, int(later_s * SECOND))

        self.faults.note(ref, again, fault, now / SECOND)

    def _changed(self, old: Object | None, new: Object | None, now: int) -> str:
        """Process a change.

        Return the label of the change's event, or "" if the change does not concern the scheduler.
        """
        subject = new or old
        if isinstance(subject, Pod):
            assert old is None or isinstance(old, Pod)
            assert new is None or isinstance(new, Pod)
            return self.pod_changed(old, new, now)
        if isinstance(subject, Node):
            assert old is None or isinstance(old, Node)
            assert new is None or isinstance(new, Node)
            return self.node_changed(old, new, now)
        if subject is not None and subject.kind == POD_GROUP:
            self.queue.groups.changed(old, new, now)
        event = events.object_event(old, new)
        if event is None:
            return ""
        self.queue.move_all_to_active_or_backoff(event, old, new, now)
        return event.label

    def node_changed(self, old: Node | None, new: Node | None, now: int) -> str:
        move_all = self.queue.move_all_to_active_or_backoff
        if old is None:
            move_all(events.NODE_ADD, None, new, now)
            return events.NODE_ADD.label
        if new is None:
            move_all(events.NODE_DELETE, old, None, now)
            return events.NODE_DELETE.label
        found = events.node_events(old, new)
        for event in found:
            move_all(event, old, new, now)
        return found[0].label if found else ""

    def pod_changed(self, old: Pod | None, new: Pod | None, now: int) -> str:
        old = None if old is None or old.finished else old
        new = None if new is None or new.finished else new
        bound = False
        if self.queue.settings.resizing is not None:
            self._resize_changed(old, new, now)
        # A pod that has just got its node is first added as an assigned pod, and then deleted as a pending pod.
        if new is not None and new.node_name:
            if old is not None and old.node_name:
                self.queue.assigned_pod_updated(old, new, now)
                return _ASSIGNED_UPDATE
            self.queue.move_all_to_active_or_backoff(events.ASSIGNED_POD_ADD, None, new, now)
            new, label, bound = None, _ASSIGNED_ADD, True
        elif old is not None and old.node_name:
            self.queue.assigned_pod_deleted(old, now)
            old, label = None, _ASSIGNED_DELETE
        elif old is None:
            label = "" if new is None else _UNSCHEDULED_ADD
        else:
            label = _UNSCHEDULED_DELETE if new is None else _UNSCHEDULED_UPDATE
        self._pending_changed(
            old if old is not None and old.scheduler_name in self.scheduler_names else None,
            new if new is not None and new.scheduler_name in self.scheduler_names else None,
            now,
            bound,
        )
        return label

    def _resize_changed(self, old: Pod | None, new: Pod | None, now: int) -> None:
        """Queue a running pod while its resize is deferred.

        Source: Kubernetes v1.37, scheduler/eventhandlers.go (addPod, updatePod, deletePod).
        """
        waited, waits = self._resizes(old), self._resizes(new)
        if waited is None:
            if waits is not None:
                self.queue.add(waits, now)
        elif waits is None:
            self.queue.delete(waited, now)
        else:
            self.queue.update(waited, waits, now)

    def _resizes(self, pod: Pod | None) -> Pod | None:
        if pod is None or not pod.node_name or pod.scheduler_name not in self.scheduler_names:
            return None
        return pod if pod.resize_deferred else None

    def _pending_changed(self, old: Pod | None, new: Pod | None, now: int, bound: bool) -> None:
        """Process a change of a pending pod. With `bound`, the pod is no longer pending because it has a node.

        Source: Kubernetes v1.35, scheduler/eventhandlers.go (updatePod, deletePodFromSchedulingQueue).
        """
        queue = self.queue
        if new is None:
            if old is not None:
                queue.delete(old, now, bound=bound)
                if bound and queue.settings.bound_nominees_wake_none:
                    return
                # A deleted pod that was nominated, or waited at Permit, frees resources on its node.
                if old.uid in self.rejected:
                    queue.assigned_pod_deleted(old, now)
                elif old.nominated_node_name:
                    queue.assigned_pod_deleted(old, now, _up_to(old.priority))
        elif old is None:
            queue.add(new, now)
            if new.signature.spec.pod_group_name:  # other pods of the group may wait for this pod
                queue.move_all_to_active_or_backoff(events.UNSCHEDULED_POD_ADD, None, new, now)
        else:
            if same_version(old, new) or new.uid in self.assumed:
                return
            queue.update(old, new, now)
            if old.nominated_node_name and old.nominated_node_name != new.nominated_node_name:
                queue.assigned_pod_deleted(old, now, _up_to(old.priority))


def same_version(old: Pod, new: Pod) -> bool:
    """Return whether nothing changed: a watch may deliver the same resourceVersion twice."""
    return old.raw is new.raw or bool(old.resource_version and old.resource_version == new.resource_version)


def _up_to(priority: int) -> PreCheck:
    """Return a pre-check for pods of at most this priority, the only pods whose attempts added the nominated pod."""
    return lambda pod: pod.priority <= priority
