"""PodGroups in the scheduling queue, with the rule `groups_queued`: the pods of a group are one entry.

    PodGroup unknown ──▶ incomplete_group      group in its cycle ──▶ pending_group
    else: a member of the group's entry, which is in one sub-queue as a whole, at its PreEnqueue plugins' mercy as well

During the group's cycle, its members are in flight individually. Pods that fail, and pods that are added during the
cycle, wait until `attempted` creates a new entry for the group. The entry backs off after a cycle that placed no pod,
and is active immediately after any other cycle.

The object stores the entries of groups and the pods that wait for their group; the queue moves the entries. Source:
Kubernetes v1.37, scheduler/backend/queue/scheduling_queue.go, pod_group_member_pods.go, workload_forest.go;
scheduler/framework/types.go (QueuedPodGroupInfo).
"""

from bisect import insort
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.pod_groups import priority_of
from kschedd.framework import events
from kschedd.framework.events import ClusterEvent
from kschedd.framework.status import Code
from kschedd.queue.entry import POD_GROUP, QueuedGroup, QueuedPod, SubQueue
from kschedd.queue.hints import AFTER_BACKOFF, SKIP, HintTable, RequeueDecision, Strategy
from kschedd.queue.snapshot import EntryCopies, GroupsSnapshot

_IMMEDIATELY = RequeueDecision(Strategy.IMMEDIATELY)
_BY_PLACE = {SubQueue.ACTIVE: _IMMEDIATELY, SubQueue.BACKOFF: AFTER_BACKOFF, SubQueue.ERROR_BACKOFF: AFTER_BACKOFF}

_WAITING = (SubQueue.PENDING_GROUP, SubQueue.INCOMPLETE_GROUP)

Waiting = dict[str, dict[str, QueuedPod]]
"""Pods by their PodGroup, then by key."""


def order_in_group(entry: QueuedPod) -> tuple[int, int, int, str]:
    """Return the sort key of a pod in its PodGroup: priority, attempts, time and name."""
    return -entry.pod.priority, -entry.attempts, entry.timestamp, entry.pod.name


class Entries(Protocol):
    """The operations of the scheduling queue on entries of pods and of groups."""

    @property
    def hints(self) -> HintTable: ...

    def nominate(self, entry: QueuedPod, label: str) -> None: ...

    def saw(self, event: ClusterEvent, old: Any, new: Any, now: int) -> None: ...

    def begin(self, entry: QueuedPod, label: str, now: int, entity: str) -> bool: ...

    def take_out(self, entry: QueuedPod) -> None: ...

    def put(self, entry: QueuedPod, place: SubQueue, label: str, now: int) -> None: ...

    def lodge(self, entry: QueuedPod, place: SubQueue, label: str, now: int) -> None: ...

    def requeue(self, entry: QueuedPod, decision: RequeueDecision, label: str, now: int) -> SubQueue: ...

    def to_active(self, entry: QueuedPod, label: str, now: int, decision: RequeueDecision) -> SubQueue: ...


class GroupQueue:
    """The PodGroups of one queue."""

    def __init__(self, queue: Entries) -> None:
        self._queue = queue
        self.known: dict[str, int] = {}  # PodGroup -> its priority
        self.queued: dict[str, QueuedGroup] = {}
        self.in_cycle: dict[str, QueuedGroup] = {}
        self.leaving = ""  # PodGroup from which a deleted pod is being removed
        self._pending: Waiting = {}
        self._incomplete: Waiting = {}

    def holder(self, entry: QueuedPod) -> QueuedPod:
        """Return the group's entry that contains the pod, or else the pod's own entry."""
        if not self.queued or entry.place in _WAITING:
            return entry
        return self.queued.get(entry.pod.pod_group, entry)

    # -- pods -------------------------------------------------------------------------------------------------

    def add(self, entry: QueuedPod, label: str, now: int) -> SubQueue:
        """Add a pod to its group; return the pod's sub-queue."""
        queue, key = self._queue, entry.pod.pod_group
        queue.nominate(entry, label)
        group = self.queued.get(key)
        if key not in self.known:
            self._wait(entry, SubQueue.INCOMPLETE_GROUP, label, now)
        elif group is not None:
            decision = _BY_PLACE.get(group.place, SKIP)
            queue.take_out(group)
            insort(group.members, entry, key=order_in_group)
            group.pod = group.members[0].pod
            queue.requeue(group, decision, label, now)
        elif key in self.in_cycle:
            self._wait(entry, SubQueue.PENDING_GROUP, label, now)
        else:
            group = QueuedGroup(entry.pod, f"podgroup/{key}", entry.timestamp, initial_attempt=entry.initial_attempt)
            group.group, group.group_priority, group.members = key, self.known[key], [entry]
            queue.to_active(group, label, now, AFTER_BACKOFF)
        return entry.place

    def _wait(self, entry: QueuedPod, place: SubQueue, label: str, now: int) -> None:
        waiting = self._pending if place is SubQueue.PENDING_GROUP else self._incomplete
        waiting.setdefault(entry.pod.pod_group, {})[entry.key] = entry
        self._queue.lodge(entry, place, label, now)

    def update(self, entry: QueuedPod, old: Pod, new: Pod, now: int) -> SubQueue:
        """Replace the pod by a new version, which may ungate its group. Return the pod's sub-queue."""
        queue, group = self._queue, self.holder(entry)
        if not isinstance(group, QueuedGroup) or group.place in _BY_PLACE:
            entry.pod = new
            return entry.place
        place = group.place
        queue.take_out(group)
        entry.pod = new
        queue.put(group, place, "", now)
        for event in events.pod_events(old, new):
            queue.saw(event, old, new, now)
            decision = _best(queue.hints.decide(member, event, old, new) for member in group.members)
            if decision.strategy is not Strategy.SKIP and queue.requeue(group, decision, event.label, now) in _BY_PLACE:
                break
        return entry.place

    def delete(self, entry: QueuedPod, now: int, bound: bool) -> None:
        """Remove a pod from its group. With `bound`, the pod got a node and stays in the group."""
        queue, key, label = self._queue, entry.pod.pod_group, events.UNSCHEDULED_POD_DELETE.label
        group = self.holder(entry)
        if isinstance(group, QueuedGroup):
            decision = _BY_PLACE.get(group.place, SKIP)
            queue.take_out(group)
            group.members.remove(entry)
            if not group.members:
                del self.queued[key]
            else:
                group.pod = group.members[0].pod
                self.leaving = "" if bound else key
                queue.requeue(group, decision, label, now)
                self.leaving = ""
        else:
            for waiting in (self._pending, self._incomplete):
                waiting.get(key, {}).pop(entry.key, None)
        queue.lodge(entry, SubQueue.OUTSIDE, label, now)

    # -- cycles -----------------------------------------------------------------------------------------------

    def begin(self, group: QueuedGroup, label: str, now: int) -> QueuedPod | None:
        """Begin the cycle of a group that has left its sub-queue. Return the pod that is tried first."""
        del self.queued[group.group]
        group.attempts += 1
        early = group.popped_early
        for member in group.members:
            member.popped_early = early
        group.members = [
            member
            for place, member in enumerate(group.members)
            if self._queue.begin(member, label, now, "" if place else POD_GROUP)
        ]
        group.place = SubQueue.IN_FLIGHT
        if not group.members:
            return None
        self.in_cycle[group.group] = group
        return group.members[0]

    def attempted(self, key: str, outcome: Code, now: int) -> None:
        """End the cycle of a group; its waiting pods, if any, get a new entry."""
        group, waiting = self.in_cycle.pop(key, None), self._pending.pop(key, None)
        if group is None or not waiting:
            return
        tried = {member.uid for member in group.members}
        group.members = sorted(waiting.values(), key=order_in_group)
        group.pod, group.group_priority = group.members[0].pod, self.known[key]
        group.backoff_expiration = 0
        label = events.SCHEDULE_ATTEMPT_FAILURE
        if outcome is Code.SUCCESS:
            group.consecutive_errors = group.unschedulable_count = 0
            if not any(member.uid in tried for member in group.members):
                group.timestamp = now
            self._queue.to_active(group, label, now, AFTER_BACKOFF)
            return
        if outcome is Code.ERROR:
            group.consecutive_errors += 1
        else:
            group.unschedulable_count += 1
            group.consecutive_errors = 0
        group.timestamp = now
        self._queue.requeue(group, AFTER_BACKOFF, label, now)

    # -- events -----------------------------------------------------------------------------------------------

    def changed(self, old: Object | None, new: Object | None, now: int) -> None:
        """Process a change of a PodGroup; its pods wait while the PodGroup does not exist."""
        if new is not None:
            self.known[new.key] = priority_of(new)
            for entry in self._incomplete.pop(new.key, {}).values():
                self.add(entry, _label(old), now)
            if (group := self.queued.get(new.key)) is not None:
                group.group_priority = self.known[new.key]
            return
        assert old is not None, "a change is of an object"
        self.known.pop(old.key, None)
        group, left = self.queued.pop(old.key, None), self._pending.pop(old.key, {})
        if group is not None:
            self._queue.take_out(group)
            left = {member.key: member for member in group.members}
        for entry in left.values():
            self._wait(entry, SubQueue.INCOMPLETE_GROUP, events.UNSCHEDULED_POD_UPDATE.label, now)

    def joined(
        self, decided: Iterable[tuple[QueuedPod, RequeueDecision]]
    ) -> Sequence[tuple[QueuedPod, RequeueDecision]]:
        """Return one decision for each entry: a group's entry gets the strongest decision among its pods."""
        found: dict[str, tuple[QueuedPod, RequeueDecision]] = {}
        for entry, decision in decided:
            whole = self.holder(entry)
            known = found.get(whole.key)
            if known is None or decision.strategy > known[1].strategy:
                found[whole.key] = whole, decision
        return list(found.values())

    # -- views ------------------------------------------------------------------------------------------------

    def waiting(self, place: SubQueue) -> list[QueuedPod]:
        """Return the pods in this sub-queue, which is one of the two for pods that wait for a group."""
        waiting = self._pending if place is SubQueue.PENDING_GROUP else self._incomplete
        return [entry for of_group in waiting.values() for entry in of_group.values()]

    def beside(self) -> dict[SubQueue, int]:
        """Return the number of pods in each sub-queue that have no entry of their own in the queue."""
        counts = {place: len(self.waiting(place)) for place in _WAITING}
        found = {place: count for place, count in counts.items() if count}
        for group in self.queued.values():
            if group.place in _BY_PLACE:
                found[group.place] = found.get(group.place, 0) + len(group.members) - 1
        return found

    def snapshot(self) -> GroupsSnapshot:
        """Return the current state."""
        waiting = [entry for place in _WAITING for entry in self.waiting(place)]
        return GroupsSnapshot(self.known.copy(), list(self.queued.values()), list(self.in_cycle.values()), waiting)

    def entries(self) -> list[QueuedGroup]:
        """Return the entries of all groups, in sub-queues and in a cycle."""
        return [*self.queued.values(), *self.in_cycle.values()]

    def restore(self, snapshot: GroupsSnapshot, copies: EntryCopies) -> None:
        """Restore the state of another queue."""
        self.known = dict(snapshot.known)
        self.queued = {group.group: copies.of_group(group) for group in snapshot.queued}
        self.in_cycle = {group.group: copies.of_group(group) for group in snapshot.in_cycle}
        for entry in map(copies.of, snapshot.waiting):
            waiting = self._pending if entry.place is SubQueue.PENDING_GROUP else self._incomplete
            waiting.setdefault(entry.pod.pod_group, {})[entry.key] = entry

    def dissolve(self) -> list[QueuedPod]:
        """Dissolve all groups, because the pods will be queued individually.

        Return their pods, which are then in no sub-queue.
        """
        pods = [entry for place in _WAITING for entry in self.waiting(place)]
        for group in self.queued.values():
            self._queue.take_out(group)
            pods += group.members
        for entry in pods:
            entry.place = SubQueue.OUTSIDE
        for held in (self.queued, self.in_cycle, self._pending, self._incomplete):
            held.clear()
        return pods


def _label(old: Object | None) -> str:
    return "PodGroupAdd" if old is None else "PodGroupUpdate"


def _best(decisions: Iterable[RequeueDecision]) -> RequeueDecision:
    return max(decisions, key=lambda decision: decision.strategy, default=SKIP)
