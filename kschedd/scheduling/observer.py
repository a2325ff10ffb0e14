"""Observer: applies watch events to the caches and to the pending pods, and then passes the events to the queue.

The observer stores the version up to which the caches contain all writes. An exception while processing an event is
recorded as a fault of the event's object, and processing is retried later.

Source: Kubernetes v1.34, scheduler/eventhandlers.go.
"""

from functools import partial
from typing import Final

from kschedd.api.pods import Pod
from kschedd.object_faults import ObjectRef
from kschedd.queue.operations import AssumedPodForgotten, EventsObserved
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.inputs import Observe
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.nominations.pending import PendingPods
from kschedd.store.objects.log import DELETED, WatchEvent

_PENDING: Final = "pending"  # name of the step that is retried after a failed update of a pending pod


class Observer:
    """The observer of watch events, which updates the caches and the pending pods."""

    def __init__(self, machine: SchedulingMachine, pending: PendingPods, effects: Effects) -> None:
        self._machine = machine
        self._pending = pending
        self._effects = effects
        self.version = 0  # store version up to which the caches contain all writes
        self.count = 0  # number of observations so far

    def observe(self, given: Observe, now: float) -> None:
        """Update the caches from watch events, and add the events and their consequences to the queue's operations."""
        events, told_at = given.events, len(self._effects.queue)
        machine = self._machine
        observe, faults = machine.observe_each, machine.faults
        if events:
            self.version = events[-1].version
        assumed: set[str] = set()
        rejected: set[str] = set()
        if faults.by_object:
            faults.retry(now)
        last, resizing = len(events) - 1, machine.handle.rules.resizes_preempt
        for place, event in enumerate(events):
            # Skip events that are followed by the object's deletion; a pod is updated before it is deleted, when it is
            # marked for deletion.
            if place == last or events[place + 1].type != DELETED or events[place + 1].old is not event.new:
                observe(event, now)
            pod, old = event.new, event.old
            if not isinstance(pod, Pod):
                continue
            if resizing and (machine.resizes(pod) or (isinstance(old, Pod) and machine.resizes(old))):
                self._follow_resize(event, pod)
                continue
            if pod.node_name and isinstance(old, Pod) and old.node_name and not faults.by_object:
                continue  # already observed with a node, so the pod is no longer pending
            try:
                self._follow_pending(event, pod, assumed, rejected)
            except Exception as fault:  # a fault of this pod
                again = partial(self._follow_again, event, pod)
                faults.note(ObjectRef("Pod", pod.namespace, pod.name), again, fault, now, _PENDING)
            else:
                if faults.by_object:
                    faults.strike_off(ObjectRef("Pod", pod.namespace, pod.name), _PENDING)
        machine.cluster.table.trim()
        self.count += 1
        observed = EventsObserved(events, frozenset(assumed), frozenset(rejected), self.count)
        self._effects.queue.insert(told_at, observed)

    def _follow_resize(self, event: WatchEvent, pod: Pod) -> None:
        """Process a change of a running pod; while its resize is deferred, the pod is in the queue."""
        if event.type != DELETED and self._machine.resizes(pod) and not pod.finished:
            self._pending.put(pod)
        else:
            self._pending.gone(pod)

    def _follow_pending(self, event: WatchEvent, pod: Pod, assumed: set[str], rejected: set[str]) -> None:
        if event.type == DELETED or pod.node_name or pod.finished:
            self._no_longer_pending(pod, rejected)
        else:
            self._pending_changed(event, pod, assumed)

    def _follow_again(self, event: WatchEvent, pod: Pod, now: float) -> None:
        """Retry processing a pod's change, unless a newer event of the pod has arrived."""
        self._follow_pending(event, pod, set(), set())

    def _no_longer_pending(self, pod: Pod, rejected: set[str]) -> None:
        self._pending.gone(pod)
        self._let_go(pod)
        waiting = self._machine.waiting
        if pod.uid in waiting.pods and waiting.reject(pod.uid, "", "removed"):
            rejected.add(pod.uid)

    def _pending_changed(self, event: WatchEvent, pod: Pod, assumed: set[str]) -> None:
        self._pending.put(pod)
        if isinstance(event.old, Pod):
            if self._machine.cluster.is_assumed(pod):
                assumed.add(pod.uid)
                if pod.deletion_timestamp and not event.old.deletion_timestamp:
                    self._let_go(pod)
            elif self._machine.responsible(pod.scheduler_name):
                self._pending.updated(event.old, pod)

    def _let_go(self, pod: Pod) -> None:
        """Release an assumed pod that is deleted or being deleted, so that other pods may use its resources.

        Requires the rule `assumed_pods_forgotten`.

        Source: Kubernetes v1.36, scheduler/eventhandlers.go (handleAssumedPodDeletion).
        """
        cluster, waiting = self._machine.cluster, self._machine.waiting
        if not self._machine.handle.rules.assumed_pods_forgotten or not cluster.is_assumed(pod):
            return
        assumed = cluster.pod(pod.uid)
        assert assumed is not None, "what is assumed is there"
        # if the pod does not wait at Permit, it is forgotten when its binding ends
        if not waiting.reject(pod.uid, "", "removed"):
            cluster.forget(assumed)
        self._effects.queue.append(AssumedPodForgotten(assumed, for_itself=True))
