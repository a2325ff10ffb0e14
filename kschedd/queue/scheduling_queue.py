"""The scheduling queue: every pending pod, in exactly one sub-queue, and the operations that move pods between them.

    add, update ─▶ active ◀──────────── backoff, error backoff
                   │   ▲                     ▲  (backoff expired, or popped early)
               pop │   │ Activate, event     │ event while still backing off
                   ▼   │                     │
               in flight ── add_unschedulable_if_not_present ─▶ unschedulable, gated

The queue is a state machine without I/O, clock or randomness. `now` is an argument of every operation, in integer
nanoseconds of the caller's clock, and must not decrease. The caller must call `flush_backoff` at every whole second and
`flush_unschedulable_leftover` every 30 s. In virtual time, it calls them at the times given by `next_flush` and
`next_leftover`. `pop` returns None where upstream's `pop` would block; `ready` predicts this.

A PreEnqueue plugin that raises an exception gates its pod with an Error status, and a hint that raises is treated as
Queue. Exceptions of plugins and hints are reported to `on_fault`. `recorder` is called with every move. `on_nominated`
is called with each added or updated pod that becomes active with a nominated node in its status.

Source: Kubernetes v1.34, scheduler/backend/queue/scheduling_queue.go, active_queue.go. One difference is intentional:
after an update has moved a pod to backoffQ, further events of the update are not evaluated for this pod. (Upstream
evaluates them if SchedulerPopFromBackoffQ is off, and may leave the pod in two sub-queues.)
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import attrs

from kschedd.api.pods import Pod
from kschedd.api.resources import ResizeRules
from kschedd.framework import events
from kschedd.framework.events import ClusterEvent
from kschedd.queue.backoff import BackoffQueue, SortKey
from kschedd.queue.entry import NO_PLUGINS, POD, POD_GROUP, SECOND, Move, QueuedGroup, QueuedPod, SubQueue
from kschedd.queue.evictions import PendingEvictions
from kschedd.queue.gating import Gating, PreEnqueue
from kschedd.queue.groups import GroupQueue
from kschedd.queue.hints import SKIP, FaultReport, HintTable, Registrations, RequeueDecision, Strategy
from kschedd.queue.in_flight import InFlight
from kschedd.queue.keyed_heap import KeyedHeap
from kschedd.queue.snapshot import EntryCopies, EntryStates, QueueSnapshot
from kschedd.queue.times import QueueTimes
from kschedd.queue.unschedulable import PreCheck, UnschedulablePods

Recorder = Callable[[Move], None]
# Arguments: event, old, new, now; called for every event, even if it moves no pod
EventListener = Callable[[ClusterEvent, Any, Any, int], None]

LEFTOVER_FLUSH = 30 * SECOND

_NOMINATING = (events.UNSCHEDULED_POD_ADD.label, events.UNSCHEDULED_POD_UPDATE.label)
_WAITING = (SubQueue.BACKOFF, SubQueue.ERROR_BACKOFF)
_OUT_OF_ACTIVE = (SubQueue.UNSCHEDULABLE, SubQueue.GATED)
_NOT_TO_ACTIVATE = (SubQueue.ACTIVE, SubQueue.PENDING_GROUP, SubQueue.INCOMPLETE_GROUP)
_POD_POPPED = "PodPopped"  # upstream's name for the pop of a pod, which upstream counts as a stored event
_NO_HINT = RequeueDecision(Strategy.AFTER_BACKOFF)


def by_priority(entry: QueuedPod) -> tuple[int, int]:
    """Return PrioritySort's key: higher priority first, then earlier timestamp."""
    return -entry.priority, entry.timestamp


@attrs.frozen
class QueueSettings:
    initial_backoff: int = 1 * SECOND
    max_backoff: int = 10 * SECOND
    pop_from_backoff_q: bool = True  # feature gate SchedulerPopFromBackoffQ
    max_in_unschedulable: int = 300 * SECOND
    # The version rules of these names (`kschedd.config.versions.rules`):
    bound_nominees_wake_none: bool = False
    gated_pods_flushed: bool = False
    gated_nominations_kept: bool = False
    groups_queued: bool = False
    # Rules for counting requests if the rule resizes_preempt is on; None if it is off
    resizing: ResizeRules | None = None


class SchedulingQueue:
    def __init__(
        self,
        settings: QueueSettings | None = None,
        *,
        sort_key: SortKey = by_priority,
        pre_enqueue: PreEnqueue | None = None,
        hints: Registrations | None = None,
        recorder: Recorder | None = None,
        on_fault: FaultReport | None = None,
        one_by_one: bool = False,  # true: call the hints for each pod (the reference rule) and use no index
    ) -> None:
        self.settings = settings or QueueSettings()
        self.recorder = recorder
        self.event_listener: EventListener | None = None
        self.on_fault = on_fault
        self.on_nominated: Callable[[Pod], None] | None = None
        self.scheduling_cycle = 0  # number of pods popped
        self.closed = False
        self.observation = 0  # number of the cache update that contains the next events; 0: none
        self._sort_key = sort_key
        self._gating = Gating(pre_enqueue or {}, on_fault)
        self._times: QueueTimes | None = None
        self._hints = HintTable(hints or {}, on_fault)
        self._entries: dict[str, QueuedPod] = {}  # all entries except those in flight, by pod key
        self._of_group: dict[str, dict[str, None]] = {}  # PodGroup -> keys of its pods in `_entries`, oldest first
        self._active: KeyedHeap[QueuedPod] = KeyedHeap()
        self._backoff = self._new_backoff()
        self.groups = GroupQueue(self)
        self._unschedulable = UnschedulablePods(self._hints, self.settings.gated_pods_flushed, self.groups.holder)
        self._in_flight = InFlight()
        self.evictions = PendingEvictions()
        self._one_by_one = one_by_one

    # Additions, updates, deletions and activations of pending pods.

    def add(self, pod: Pod, now: int) -> SubQueue:
        """Add a pending pod.

        Returns the pod's sub-queue: active, gated, or a sub-queue for pods that wait for their group.
        """
        entry = QueuedPod(pod, pod.key, now)
        if self._in_group(pod):
            return self.groups.add(entry, _NOMINATING[0], now)
        return self.to_active(entry, _NOMINATING[0], now, _NO_HINT)

    def update(self, old: Pod, new: Pod, now: int) -> SubQueue:
        """Update a pending pod; return its sub-queue after the update."""
        if new.uid in self._in_flight:
            # The running attempt uses the popped version. If the attempt fails, the update is evaluated.
            for event in events.pod_events(old, new, self.settings.resizing):
                self.saw(event, old, new, now)
                self._in_flight.happened(event, old, new, self.observation)
            return SubQueue.IN_FLIGHT
        entry = self._entries.get(new.key)
        if self._in_group(new):
            if entry is None:
                return self.groups.add(QueuedPod(new, new.key, now), _NOMINATING[0], now)
            return self.groups.update(entry, old, new, now)
        if entry is None:
            return self.to_active(QueuedPod(new, new.key, now), _NOMINATING[1], now, _NO_HINT)
        if entry.place not in _OUT_OF_ACTIVE:
            entry.pod = new
            if entry.place is SubQueue.ACTIVE:
                self._active.put(entry.key, self._sort_key(entry), entry)
            else:
                self._backoff.put(entry)
            return entry.place
        self._unschedulable.remove(entry.key)
        entry.pod = new
        self._unschedulable.add(entry)
        for event in events.pod_events(old, new, self.settings.resizing):
            self.saw(event, old, new, now)
            decision = self._hints.decide(entry, event, old, new)
            if decision.strategy is not Strategy.SKIP:
                place = self.requeue(entry, decision, event.label, now)
                if place not in _OUT_OF_ACTIVE:
                    return place
        return entry.place

    def delete(self, pod: Pod, now: int, *, bound: bool = False) -> None:
        """Remove a pod that was deleted, or, with `bound`, assigned to a node.

        A pod in flight is not affected; its attempt ends with `done`.
        """
        entry = self._entries.get(pod.key)
        if entry is not None:
            self._forget(entry)
            if self._in_group(entry.pod):
                self.groups.delete(entry, now, bound)
                return
            source = entry.place
            self.take_out(entry)
            self._record(now, entry, source, SubQueue.OUTSIDE, events.UNSCHEDULED_POD_DELETE.label)

    def activate(self, pods: Iterable[Pod], now: int) -> list[QueuedPod]:
        """Move these pods to the active queue regardless of backoff and hints; return the moved pods.

        A pod in flight is requeued if its attempt fails. Pods unknown to the queue are ignored.
        """
        moved = []
        label = events.FORCE_ACTIVATE.label
        for pod in pods:
            entry = self._entries.get(pod.key)
            if entry is not None and entry.place not in _NOT_TO_ACTIVATE:
                waited, whole = entry.place in _WAITING, self.groups.holder(entry)
                if self.to_active(whole, label, now, _NO_HINT, from_backoff=waited) is SubQueue.ACTIVE:
                    moved.append(entry)
                    continue
            if pod.uid in self._in_flight:
                self._in_flight.happened(events.FORCE_ACTIVATE, None, pod, self.observation)
        return moved

    def ungated(self) -> list[Pod]:
        """Return the gated pods that no event can free: their gating plugin is no longer enabled in the profile."""
        gating = self._gating.plugins
        return [
            entry.pod
            for entry in self._entries.values()
            if entry.gated and entry.gating_plugin not in gating.get(entry.pod.scheduler_name, ())
        ]

    # Attempts.

    @property
    def ready(self) -> bool:
        """True if `pop` would return a pod."""
        if self.closed:
            return False
        return len(self._active) > 0 or (self.settings.pop_from_backoff_q and len(self._backoff.rejected) > 0)

    def order_of(self, popped: QueuedPod) -> tuple[int, Any]:
        """Return the pop order: the end of the pod's backoff if it was popped early, then its sort key."""
        return popped.popped_early, self._sort_key(popped)

    def next_comes_before(self, popped: tuple[int, Any], now: int) -> bool:
        """Return whether the queue's next pod sorts before a pod that was popped with this order.

        A pod that was popped during its backoff is treated as active after the backoff has expired.
        """
        early, sort_key = popped
        if not self._backoff.expires_later(early, now):
            early = 0
        head = self._active.peek()
        if head is not None:
            return bool((0, head[0]) < (early, sort_key))
        head = self._backoff.first_early()
        return head is not None and bool(head[0] < (early, sort_key))

    def pop(self, now: int) -> QueuedPod | None:
        """Return the next pod to schedule.

        The pod is in flight until `done` or `add_unschedulable_if_not_present` is called.
        """
        while self._entries and not self.closed:
            label, early = "", 0
            entry = self._active.take()
            if entry is None:
                entry = self._backoff.pop_early()
                if entry is None:
                    return None
                label, early = events.POP_FROM_BACKOFF_Q, self._backoff.expiration(entry)
            entry.popped_early = early
            if isinstance(entry, QueuedGroup):
                first = self.groups.begin(entry, label, now)
                if first is not None:
                    return first
            elif self.begin(entry, label, now):
                return entry
        return None

    def pop_others_of_group(self, popped: QueuedPod, now: int) -> list[QueuedPod]:
        """Pop the other pods of this pod's PodGroup from all sub-queues, except gated pods."""
        group = popped.pod.pod_group
        if not group:
            return []
        if (whole := self.groups.in_cycle.get(group)) is not None:
            return [member for member in whole.members if member is not popped]
        others = [self._entries[key] for key in self._of_group.get(group, ())]
        taken = []
        for entry in others:
            if not entry.gated:
                place = entry.place
                self.take_out(entry)
                entry.place, entry.popped_early = place, popped.popped_early
                if self.begin(entry, events.POP_WITH_POD_GROUP, now):
                    taken.append(entry)
        return taken

    def begin(self, entry: QueuedPod, label: str, now: int, entity: str = POD) -> bool:
        """Mark an entry that has left its sub-queue as in flight.

        Return False if the pod of the entry is already in flight.
        """
        self._forget(entry)
        source = entry.place
        entry.attempts += 1
        if entry.pod.uid in self._in_flight:
            # If a pod has two entries, upstream drops the later one.
            entry.place = SubQueue.OUTSIDE
            self._record(now, entry, source, SubQueue.OUTSIDE, label)
            return False
        self._in_flight.begin(entry)
        self.scheduling_cycle += 1
        entry.place = SubQueue.IN_FLIGHT
        entry.unschedulable_plugins = entry.pending_plugins = NO_PLUGINS
        entry.gating_plugin, entry.gating_status = "", None
        self._record(now, entry, source, SubQueue.IN_FLIGHT, label, entity)
        return True

    def add_unschedulable_if_not_present(self, entry: QueuedPod, now: int, seen: int = 0) -> SubQueue | None:
        """Requeue a popped pod whose attempt failed. Return None if a pod with this key is already queued.

        The caller must set `unschedulable_plugins` and `pending_plugins`; if both are empty, the attempt ended in an
        error. Events since the pop decide the sub-queue, except events of cache updates up to number `seen`, which the
        attempt has used. After this call, the pod is not in flight.
        """
        try:
            if entry.key in self._entries:
                return None
            if entry.unschedulable_plugins or entry.pending_plugins:
                entry.unschedulable_count += 1
                entry.consecutive_errors = 0
            else:
                entry.consecutive_errors += 1
            entry.timestamp = now
            entry.backoff_expiration = 0
            entry.was_flushed = False
            if self._in_group(entry.pod):
                return self.groups.add(entry, events.SCHEDULE_ATTEMPT_FAILURE, now)
            decision, cause = self._decide_in_flight(entry, seen)
            return self.requeue(entry, decision, events.SCHEDULE_ATTEMPT_FAILURE, now, cause)
        finally:
            self._in_flight.done(entry.pod.uid)

    def done(self, uid: str, now: int) -> None:
        """Remove a bound, abandoned or skipped pod from the pods in flight. May be called more than once."""
        entry = self._in_flight.done(uid)
        if entry is not None and entry.place is SubQueue.IN_FLIGHT:
            entry.place = SubQueue.OUTSIDE
            self._record(now, entry, SubQueue.IN_FLIGHT, SubQueue.OUTSIDE, "")

    # Events and time.

    @property
    def heeds_events(self) -> bool:
        """Return True if events may matter: for unschedulable pods, or for pods in flight whose attempt may fail."""
        return bool(self._unschedulable.spots or self._in_flight.pods)

    def move_all_to_active_or_backoff(
        self,
        event: ClusterEvent,
        old: Any,
        new: Any,
        now: int,
        pre_check: PreCheck | None = None,
    ) -> list[QueuedPod]:
        """Requeue the pods that the event may make schedulable. Return the pods that left unschedulablePods."""
        if self.event_listener is not None:
            self.event_listener(event, old, new, now)
        if not self.heeds_events or not self._hints.of_interest(event):
            return []
        moved = []
        waiting = self._unschedulable
        if waiting.spots:
            decide = waiting.decide_each if self._one_by_one else waiting.decide
            decided = decide(event, old, new, pre_check)
            for entry, decision in self.groups.joined(decided) if self.groups.queued else decided:
                if self.requeue(entry, decision, event.label, now) not in _OUT_OF_ACTIVE:
                    moved.append(entry)
        self._in_flight.happened(event, old, new, self.observation)
        return moved

    def assigned_pod_updated(self, old: Pod, new: Pod, now: int) -> list[QueuedPod]:
        """Process an update of an assigned pod."""
        moved: list[QueuedPod] = []
        if self.event_listener is None and not self.heeds_events:
            return moved
        for event in events.pod_events(old, new, self.settings.resizing):
            moved += self.move_all_to_active_or_backoff(event, old, new, now)
        return moved

    def assigned_pod_deleted(self, pod: Pod, now: int, pre_check: PreCheck | None = None) -> list[QueuedPod]:
        """Process the deletion of an assigned pod, or the release of a nominated or assumed pod's resources."""
        return self.move_all_to_active_or_backoff(events.ASSIGNED_POD_DELETE, pod, None, now, pre_check)

    def flush_backoff(self, now: int, most: int | None = None) -> list[QueuedPod]:
        """Move at most `most` pods whose backoff has expired to the active queue.

        Return the pods that entered the active queue.
        """
        return [
            entry
            for entry in self._backoff.take_completed(now, most)
            if self.to_active(entry, events.BACKOFF_COMPLETE, now, _NO_HINT, from_backoff=True) is SubQueue.ACTIVE
        ]

    def backoff_expired(self, now: int) -> bool:
        """Return whether `flush_backoff` would move a pod."""
        return self._backoff.any_completed(now)

    def flush_unschedulable_leftover(self, now: int) -> list[QueuedPod]:
        """Requeue pods that have been unschedulable for longer than `max_in_unschedulable`."""
        event = events.UNSCHEDULABLE_TIMEOUT
        left, any_left = self._unschedulable.left_since(now - self.settings.max_in_unschedulable)
        moved = []
        for entry, decision in self.groups.joined((one, self._hints.decide(one, event, None, None)) for one in left):
            place = self.requeue(entry, decision, event.label, now)
            if place not in _OUT_OF_ACTIVE:
                moved.append(entry)
                for pod in _pods_of(entry):
                    pod.was_flushed = True
            elif place is SubQueue.GATED:
                for pod in _pods_of(entry):
                    self._unschedulable.stayed_gated(pod)
        if any_left:
            self._in_flight.happened(event, None, None, self.observation)
        return moved

    def next_flush(self) -> int | None:
        """Return the first whole second at which `flush_backoff` will move a pod; None if no pod is backing off."""
        return self._backoff.next_flush() if self._entries else None

    def next_leftover(self) -> int | None:
        """Return the time after which `flush_unschedulable_leftover` will move a pod; None if it would move none."""
        oldest = self._unschedulable.oldest() if self._entries else None
        return None if oldest is None else oldest + self.settings.max_in_unschedulable

    # Snapshots.

    def snapshot(self) -> QueueSnapshot:
        """Return the current content of the queue."""
        return QueueSnapshot(
            EntryStates.of([*self._entries.values(), *self._in_flight, *self.groups.entries()]),
            self.scheduling_cycle,
            self._entries.copy(),
            self._active.items(),
            self._backoff.rejected.items(),
            self._backoff.failed.items(),
            self._unschedulable.snapshot(),
            self._in_flight.snapshot(),
            self.groups.snapshot(),
            self.evictions.snapshot(),
        )

    def restore(self, snapshot: QueueSnapshot, copies: EntryCopies) -> None:
        """Restore the content of another queue with the same configuration into this new queue."""
        assert not self._entries, "a new queue is expected"
        self.scheduling_cycle = snapshot.scheduling_cycle
        for key, entry in snapshot.entries.items():
            self._entries[key] = copied = copies.of(entry)
            if copied.pod.signature.spec.pod_group_name:
                self._of_group.setdefault(copied.pod.pod_group, {})[key] = None
        self.groups.restore(snapshot.groups, copies)
        self._active = KeyedHeap.of(copies.heap(snapshot.active))
        self._backoff.rejected = KeyedHeap.of(copies.heap(snapshot.rejected))
        self._backoff.failed = KeyedHeap.of(copies.heap(snapshot.failed))
        self._unschedulable.restore(snapshot.unschedulable, copies)
        self._in_flight.restore(snapshot.in_flight, copies)
        self.evictions.restore(snapshot.evictions)

    def close(self) -> None:
        """Make `pop` return None from now on."""
        self._in_flight.clear()
        self.closed = True

    # Control.

    def reconfigure(
        self,
        settings: QueueSettings | None = None,
        *,
        sort_key: SortKey | None = None,
        pre_enqueue: PreEnqueue | None = None,
        hints: Registrations | None = None,
        now: int = 0,
    ) -> None:
        """Replace settings, sort key, PreEnqueue plugins or event registrations; None leaves the present value.

        No pod changes its sub-queue (`ungated` returns pods that could), unless the rule for queueing PodGroups as one
        entry changes. Backoffs that were already computed do not change.
        """
        before = self.settings
        if settings is not None:
            self.settings = settings
        if pre_enqueue is not None:
            self._gating.plugins = pre_enqueue
        if hints is not None:
            self._hints = HintTable(hints, self.on_fault, self._times)
            self._unschedulable.rebuild(self._hints, self.settings.gated_pods_flushed)
        if sort_key is not None or settings is not None:
            self._sort_key = sort_key or self._sort_key
            active, waiting = list(self._active), [*self._backoff.rejected, *self._backoff.failed]
            self._active.clear()
            self._backoff = self._new_backoff()
            for entry in active:
                self._active.put(entry.key, self._sort_key(entry), entry)
            for entry in waiting:
                self._backoff.put(entry)
        if self.settings.groups_queued != before.groups_queued:
            self._regroup(now)

    def _regroup(self, now: int) -> None:
        """Queue each PodGroup's pods as one entry if `groups_queued` is set; otherwise queue each pod by itself."""
        label = "Reconfigured"
        for entry in self.groups.dissolve():
            self.to_active(entry, label, now, _NO_HINT)
        if not self.settings.groups_queued:
            return
        for entry in [entry for entry in self._entries.values() if entry.pod.signature.spec.pod_group_name]:
            source = entry.place
            self.take_out(entry)
            entry.place = source
            self.groups.add(entry, label, now)

    def force(self, key: str, place: SubQueue, now: int) -> bool:
        """Move a queued pod to active, backoff or unschedulable on a user's request.

        Return False if the pod is not queued.
        """
        entry = self._entries.get(key)
        if entry is None:
            return False
        assert place in (SubQueue.ACTIVE, SubQueue.BACKOFF, SubQueue.UNSCHEDULABLE), f"{place} is not for hands"
        if entry.place in _NOT_TO_ACTIVATE[1:]:
            return True
        entry = self.groups.holder(entry)
        if place is SubQueue.BACKOFF:
            place = self._backoff.place_for(entry)
        if place is not SubQueue.UNSCHEDULABLE:
            entry.gating_plugin = ""
        elif entry.gated:
            place = SubQueue.GATED
        self.put(entry, place, "Forced", now)
        return True

    # Views.

    def entry(self, key: str) -> QueuedPod | None:
        """Return the entry of a pod that is queued or in flight."""
        found = self._entries.get(key)
        if found is not None:
            return found
        return next((entry for entry in self._in_flight if entry.key == key), None)

    def in_flight(self, uid: str) -> QueuedPod | None:
        return self._in_flight.get(uid)

    def in_flight_pods(self) -> list[QueuedPod]:
        return list(self._in_flight)

    def entries(self, place: SubQueue | None = None) -> list[QueuedPod]:
        """Return all queued pods, or the pods of one sub-queue; active and backoff are in pop order."""
        heap = {
            SubQueue.ACTIVE: self._active,
            SubQueue.BACKOFF: self._backoff.rejected,
            SubQueue.ERROR_BACKOFF: self._backoff.failed,
        }.get(place or SubQueue.OUTSIDE)
        if heap is not None:
            return [pod for entry in heap.ordered() for pod in _pods_of(entry)]
        if place in (SubQueue.PENDING_GROUP, SubQueue.INCOMPLETE_GROUP):
            return self.groups.waiting(place)
        if place is SubQueue.IN_FLIGHT:
            return self.in_flight_pods()
        if place is None:
            return list(self._entries.values())
        return [entry for entry in self._unschedulable if entry.place is place]

    def counts(self) -> dict[SubQueue, int]:
        gated = self._unschedulable.gated
        counts = {
            SubQueue.ACTIVE: len(self._active),
            SubQueue.BACKOFF: len(self._backoff.rejected),
            SubQueue.ERROR_BACKOFF: len(self._backoff.failed),
            SubQueue.UNSCHEDULABLE: len(self._unschedulable) - gated,
            SubQueue.GATED: gated,
            SubQueue.IN_FLIGHT: len(self._in_flight),
        }
        for place, count in self.groups.beside().items() if self.settings.groups_queued else ():
            counts[place] = counts.get(place, 0) + count
        return counts

    def unschedulable_kinds(self) -> Iterable[Collection[QueuedPod]]:
        """Return the unschedulable pods without gated ones, grouped by pod signature and rejecting plugins."""
        return self._unschedulable.kinds()

    @property
    def hints(self) -> HintTable:
        return self._hints

    def backoff_until(self, entry: QueuedPod) -> int:
        """Return the time at which the current backoff of the pod or its PodGroup expires; 0 if there is none."""
        return self._backoff.expiration(self.groups.holder(entry))

    def pending_pods(self) -> tuple[list[Pod], str]:
        """Return all queued pods, and the size of each sub-queue in the format of upstream's cache dump."""
        active, waiting = self.entries(SubQueue.ACTIVE), [pod for place in _WAITING for pod in self.entries(place)]
        kept = list(self._unschedulable)
        summary = f"activeQ:{len(active)}; backoffQ:{len(waiting)}; unschedulablePods:{len(kept)}"
        return [entry.pod for entry in (*active, *waiting, *kept)], summary

    @property
    def events_kept(self) -> int:
        """The number of events stored for pods in flight."""
        return self._in_flight.events_kept

    def in_flight_events(self) -> Mapping[str, int]:
        """Return the number of stored events of each kind for pods in flight, and the number of these pods."""
        held = Counter(event.event.label for event in self._in_flight.events())
        held[_POD_POPPED] = len(self._in_flight)
        return held

    def time(self, times: QueueTimes) -> None:
        """Start to measure the durations of all queueing hints."""
        self._times = self._hints.times = times

    # Moves between sub-queues.

    def saw(self, event: ClusterEvent, old: Any, new: Any, now: int) -> None:
        if self.event_listener is not None:
            self.event_listener(event, old, new, now)

    def _in_group(self, pod: Pod) -> bool:
        """Return whether the pod is queued together with the other pods of its PodGroup."""
        return bool(pod.signature.spec.pod_group_name) and self.settings.groups_queued and not pod.node_name

    def _new_backoff(self) -> BackoffQueue:
        settings = self.settings
        return BackoffQueue(settings.initial_backoff, settings.max_backoff, settings.pop_from_backoff_q, self._sort_key)

    def _decide_in_flight(self, entry: QueuedPod, seen: int) -> tuple[RequeueDecision, str]:
        """Return the decision based on events after the pop that the attempt has not used, and its event's label."""
        if not entry.unschedulable_plugins and not entry.pending_plugins:
            return _NO_HINT, ""
        if entry.pod.uid not in self._in_flight:
            return _NO_HINT, ""  # `close` dropped the pod's events, so the pod must not stay unschedulable
        best, cause = SKIP, ""
        for happened in self._in_flight.since_pop(entry.pod.uid, seen):
            decision = self._hints.decide(entry, happened.event, happened.old, happened.new)
            if decision.strategy > best.strategy:
                best, cause = decision, happened.event.label
                if best.strategy is Strategy.IMMEDIATELY or not entry.pending_plugins:
                    break
        return best, cause

    def requeue(self, entry: QueuedPod, decision: RequeueDecision, label: str, now: int, seen: str = "") -> SubQueue:
        """Apply a decision to a pod that is unschedulable, or whose attempt has failed."""
        if decision.strategy is Strategy.SKIP:
            self.put(entry, SubQueue.GATED if entry.gated else SubQueue.UNSCHEDULABLE, label, now, is_new=False)
            return entry.place
        if decision.strategy is Strategy.AFTER_BACKOFF and self._backoff.backing_off(entry, now):
            is_after_cycle = isinstance(entry, QueuedGroup) and label == events.SCHEDULE_ATTEMPT_FAILURE
            if self.settings.pop_from_backoff_q and not self._gating.passes(entry):
                self.put(entry, SubQueue.GATED, label, now, entry.gating_plugin, seen)
            else:
                self.put(
                    entry, self._backoff.place_for(entry), label, now, decision.plugin, seen, is_new=is_after_cycle
                )
            return entry.place
        return self.to_active(entry, label, now, decision, seen=seen)

    def to_active(
        self,
        entry: QueuedPod,
        label: str,
        now: int,
        decision: RequeueDecision,
        *,
        from_backoff: bool = False,
        seen: str = "",
    ) -> SubQueue:
        if self.settings.gated_nominations_kept:
            self.nominate(entry, label)
        # With SchedulerPopFromBackoffQ, pods in backoffQ have already passed PreEnqueue.
        if not (from_backoff and self.settings.pop_from_backoff_q) and not self._gating.passes(entry):
            present = self._entries.get(entry.key)
            if present is None or present is entry:
                self.put(entry, SubQueue.GATED, label, now, entry.gating_plugin, seen)
            return SubQueue.GATED
        if entry.initial_attempt is None:
            entry.initial_attempt = now
        present = self._entries.get(entry.key)
        if present is not None and present is not entry:
            self._forget(present)
            self.take_out(present)
        is_new = decision.strategy is not Strategy.IMMEDIATELY
        self.put(entry, SubQueue.ACTIVE, label, now, decision.plugin, seen, is_new=is_new)
        if not self.settings.gated_nominations_kept:
            self.nominate(entry, label)
        return SubQueue.ACTIVE

    def nominate(self, entry: QueuedPod, label: str) -> None:
        """Report the nomination of a pod that has just been added or updated."""
        if label in _NOMINATING and entry.pod.nominated_node_name and self.on_nominated is not None:
            if not isinstance(entry, QueuedGroup):  # a group's pods are reported individually
                self.on_nominated(entry.pod)

    def put(
        self,
        entry: QueuedPod,
        place: SubQueue,
        label: str,
        now: int,
        plugin: str = "",
        seen: str = "",
        *,
        is_new: bool = True,
    ) -> None:
        """Move an entry to a sub-queue.

        With `is_new`, the metrics count the entry as incoming. Upstream does not count an entry whose sub-queue a hint
        has chosen.
        """
        source = entry.place
        if source is not SubQueue.OUTSIDE and source is not SubQueue.IN_FLIGHT:
            self.take_out(entry)
        if isinstance(entry, QueuedGroup):
            self._put_group(entry, place, label, now, plugin, seen, is_new=is_new)
            return
        key = entry.key
        entry.place = place
        self._entries[key] = entry
        if entry.pod.signature.spec.pod_group_name:
            self._of_group.setdefault(entry.pod.pod_group, {})[key] = None
        if place is SubQueue.ACTIVE:
            self._active.put(key, self._sort_key(entry), entry)
        elif place in _WAITING:
            self._backoff.put(entry)
        else:
            self._unschedulable.add(entry)
        if source is not place:
            since, entry.since = entry.since, now
            if self.recorder is not None:
                uid, entity = entry.pod.uid, POD if is_new else ""
                self.recorder(Move(now, key, uid, source, place, label, plugin, seen, now - since, entity))

    def _put_group(
        self, group: QueuedGroup, place: SubQueue, label: str, now: int, plugin: str, seen: str, *, is_new: bool
    ) -> None:
        group.place = place
        self.groups.queued[group.group] = group
        if place is SubQueue.ACTIVE:
            self._active.put(group.key, self._sort_key(group), group)
        elif place in _WAITING:
            self._backoff.put(group)
        else:
            for member in group.members:
                self._unschedulable.add(member)
        for member in group.members:
            if place is SubQueue.ACTIVE and member.initial_attempt is None:
                member.initial_attempt = now
            moved = member.place is not place
            self.lodge(member, place, label, now, plugin, seen, POD_GROUP if is_new and moved else "")
            is_new = is_new and not moved

    def lodge(
        self,
        entry: QueuedPod,
        place: SubQueue,
        label: str,
        now: int,
        plugin: str = "",
        seen: str = "",
        entity: str = "",
    ) -> None:
        """Record the new sub-queue of a pod of a PodGroup."""
        source, since = entry.place, entry.since
        entry.place = place
        if place is not SubQueue.OUTSIDE:
            self._entries[entry.key] = entry
            self._of_group.setdefault(entry.pod.pod_group, {})[entry.key] = None
        if source is not place:
            entry.since = now
            if self.recorder is not None:
                stayed = now - since
                self.recorder(Move(now, entry.key, entry.uid, source, place, label, plugin, seen, stayed, entity))

    def _forget(self, entry: QueuedPod) -> None:
        """Remove the entry from the index; the entry has left its sub-queue."""
        del self._entries[entry.key]
        if entry.pod.signature.spec.pod_group_name:
            others = self._of_group[entry.pod.pod_group]
            del others[entry.key]
            if not others:
                del self._of_group[entry.pod.pod_group]

    def take_out(self, entry: QueuedPod) -> None:
        place = entry.place
        if place is SubQueue.ACTIVE:
            self._active.remove(entry.key)
        elif place in _WAITING:
            self._backoff.remove(entry.key)
        elif place in _OUT_OF_ACTIVE:
            for pod in _pods_of(entry):
                self._unschedulable.remove(pod.key)
        entry.place = SubQueue.OUTSIDE

    def _record(
        self, now: int, entry: QueuedPod, source: SubQueue, target: SubQueue, label: str, entity: str = ""
    ) -> None:
        since, entry.since = entry.since, now
        if self.recorder is not None:
            self.recorder(Move(now, entry.key, entry.pod.uid, source, target, label, "", "", now - since, entity))


def _pods_of(entry: QueuedPod) -> Sequence[QueuedPod]:
    """Return the entries of the pods in an entry."""
    return entry.members if isinstance(entry, QueuedGroup) else (entry,)
