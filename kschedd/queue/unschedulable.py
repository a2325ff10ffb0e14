"""unschedulablePods: pods that wait for an event, indexed so that an event visits only the pods it may affect.

Pods are grouped by profile, rejecting plugins and gating plugin, and within a group by pod signature. An event skips a
group if none of the group's plugins is registered for the event. A hint whose result is valid for a whole signature is
called once per signature. The results equal those of calling the hints for every single pod; `decide_each` is this
reference rule.

A second index orders pods by timestamp, to find pods whose timeout has passed. Gated pods whose gating plugin is not
registered for every event are in a separate heap, because the timeout does not move them. With the rule
gated_pods_flushed (`flushes_gated`), the timeout moves these pods, too. The separate heap then contains the pods that
were still gated after their timeout. Pods in the separate heap cause no further flush, but each flush tries them again.

Source: Kubernetes v1.34 and v1.37, scheduler/backend/queue/unschedulable_pods.go and scheduling_queue.go
(movePodsToActiveOrBackoffQueue). Only SchedulingQueue calls this class.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import attrs

from kschedd.api.pods import Pod, PodSignature
from kschedd.framework.events import UNSCHEDULABLE_TIMEOUT, ClusterEvent, QueueingHint
from kschedd.queue.entry import QueuedPod
from kschedd.queue.hints import AFTER_BACKOFF, HintTable, MatchedRegistration, RequeueDecision, Strategy
from kschedd.queue.keyed_heap import KeyedHeap
from kschedd.queue.snapshot import EntryCopies, UnschedulableSnapshot

PreCheck = Callable[[Pod], bool]
"""Returns whether an event applies to a pod at all; called before the pod is requeued."""

_GroupKey = tuple[str, frozenset[str], frozenset[str], str]
_Shape = dict[str, QueuedPod]  # by key


@attrs.define(eq=False)
class UnschedulablePods:
    hints: HintTable
    flushes_gated: bool = False
    # Returns the entry of the pod's PodGroup if the group is gated, else the pod's entry
    whole_of: Callable[[QueuedPod], QueuedPod] = lambda entry: entry
    _groups: dict[_GroupKey, dict[PodSignature, _Shape]] = attrs.field(factory=dict, init=False)
    # by pod key: the group to which the pod was added Modified only here.
    spots: dict[str, tuple[_GroupKey, PodSignature]] = attrs.field(factory=dict, init=False)
    _by_age: KeyedHeap[QueuedPod] = attrs.field(factory=KeyedHeap, init=False)
    _unmoved_by_age: KeyedHeap[QueuedPod] = attrs.field(factory=KeyedHeap, init=False)
    _gated: int = attrs.field(default=0, init=False)

    def __len__(self) -> int:
        """Return the number of unschedulable pods, including gated pods."""
        return len(self.spots)

    def __iter__(self) -> Iterator[QueuedPod]:
        return (
            entry for signatures in self._groups.values() for pods in signatures.values() for entry in pods.values()
        )

    def snapshot(self) -> UnschedulableSnapshot:
        groups = {
            group: {signature: pods.copy() for signature, pods in signatures.items()}
            for group, signatures in self._groups.items()
        }
        return UnschedulableSnapshot(
            groups, self.spots.copy(), self._by_age.items(), self._unmoved_by_age.items(), self._gated
        )

    def restore(self, snapshot: UnschedulableSnapshot, copies: EntryCopies) -> None:
        """Restore the content of another instance with the same event registrations."""
        self._groups = copies.groups(snapshot.groups)
        self.spots = dict(snapshot.spots)
        self._by_age = KeyedHeap.of(copies.heap(snapshot.by_age))
        self._unmoved_by_age = KeyedHeap.of(copies.heap(snapshot.unmoved_by_age))
        self._gated = snapshot.gated

    def kinds(self) -> Iterator[Collection[QueuedPod]]:
        """Yield the pods that are not gated, grouped by pod signature and rejecting plugins."""
        for (_, _, _, gating), signatures in self._groups.items():
            if not gating:
                for pods in signatures.values():
                    yield pods.values()

    @property
    def gated(self) -> int:
        return self._gated

    def _whole(self, entry: QueuedPod) -> QueuedPod:
        return self.whole_of(entry) if entry.pod.signature.spec.pod_group_name else entry

    def add(self, entry: QueuedPod) -> None:
        pod = entry.pod
        signature = pod.signature
        whole = self._whole(entry)
        gating = whole.gating_plugin
        group = signature.spec.scheduler_name, entry.unschedulable_plugins, entry.pending_plugins, gating
        self.spots[entry.key] = (group, signature)
        self._groups.setdefault(group, {}).setdefault(signature, {})[entry.key] = entry
        if not gating:
            self._by_age.put(entry.key, whole.timestamp, entry)
        else:
            self._gated += 1
            moved = self.flushes_gated or self.hints.is_registered_for(gating, UNSCHEDULABLE_TIMEOUT)
            (self._by_age if moved else self._unmoved_by_age).put(entry.key, whole.timestamp, entry)

    def remove(self, key: str) -> None:
        """Remove the pod from the group to which it was added, even if its entry has changed since then."""
        group, signature = self.spots.pop(key)
        signatures = self._groups[group]
        pods = signatures[signature]
        del pods[key]
        if not pods:
            del signatures[signature]
            if not signatures:
                del self._groups[group]
        if group[3]:
            self._gated -= 1
        if self._by_age.remove(key) is None:
            self._unmoved_by_age.remove(key)

    def rebuild(self, hints: HintTable, flushes_gated: bool) -> None:
        """Replace the event registrations, and index all pods again."""
        entries = list(self)
        for entry in entries:
            self.remove(entry.key)
        self.hints, self.flushes_gated = hints, flushes_gated
        for entry in entries:
            self.add(entry)

    def left_since(self, time: int) -> tuple[list[QueuedPod], bool]:
        """Return the pods older than `time` that the timeout moves, and whether any pod is older than `time`."""
        left = []
        while (head := self._by_age.peek()) is not None and head[0] < time:
            left.append(head[1])
            self._by_age.take()
        for entry in left:
            self._by_age.put(entry.key, self._whole(entry).timestamp, entry)
        unmoved = self._unmoved_by_age.peek()
        if self.flushes_gated and unmoved is not None and unmoved[0] < time:
            left += [entry for entry in self._unmoved_by_age.ordered() if self._whole(entry).timestamp < time]
        return left, bool(left) or (unmoved is not None and unmoved[0] < time)

    def stayed_gated(self, entry: QueuedPod) -> None:
        """Record that a pod is still gated after its timeout; it then causes no further flush."""
        if self._by_age.remove(entry.key) is not None:
            self._unmoved_by_age.put(entry.key, self._whole(entry).timestamp, entry)

    def oldest(self) -> int | None:
        """Return the timestamp of the pod that the timeout moves next; None if there is none."""
        head = self._by_age.peek()
        return None if head is None else int(head[0])

    def _reached(self, gating_plugin: str, event: ClusterEvent) -> bool:
        """Return whether the event can call hints.

        Gated pods are omitted if their gating plugin is not registered for the event.
        """
        return not gating_plugin or self.hints.is_registered_for(gating_plugin, event)

    def decide_each(
        self, event: ClusterEvent, old: Any, new: Any, pre_check: PreCheck | None
    ) -> list[tuple[QueuedPod, RequeueDecision]]:
        """Return the pods that the event moves, calling hints for every pod separately."""
        moved = []
        for entry in self:
            if not self._reached(self.spots[entry.key][0][3], event):
                continue
            if pre_check is not None and not pre_check(entry.pod):
                continue
            decision = self.hints.decide(entry, event, old, new)
            if decision.strategy is not Strategy.SKIP:
                moved.append((entry, decision))
        return moved

    def decide(
        self, event: ClusterEvent, old: Any, new: Any, pre_check: PreCheck | None
    ) -> list[tuple[QueuedPod, RequeueDecision]]:
        """Return the pods that the event moves, visiting only the affected groups.

        Their order may differ from that of `decide_each`.
        """
        moved: list[tuple[QueuedPod, RequeueDecision]] = []
        # A hint may treat the event's own pod differently from other pods with its signature, so this pod is decided
        # separately.
        own = self._about(old, new)
        if own is not None and self._reached(self.spots[own.key][0][3], event):
            decision = self.hints.decide(own, event, old, new)
            if decision.strategy is not Strategy.SKIP:
                moved.append((own, decision))
        for (profile, unschedulable, pending, gating), signatures in self._groups.items():
            if not self._reached(gating, event):
                continue
            relevant: tuple[MatchedRegistration, ...] | None = None
            if unschedulable or pending:
                if event.wildcard:
                    if new is not None:
                        continue
                else:
                    relevant = self.hints.relevant(profile, unschedulable, pending, event)
                    if relevant == ():
                        continue
            if relevant is None:
                for pods in signatures.values():
                    moved.extend((entry, AFTER_BACKOFF) for entry in pods.values() if entry is not own)
            elif all(registration.by_signature or registration.hint is None for registration in relevant):
                for pods in signatures.values():
                    some = next(iter(pods.values()))
                    if some is own:
                        others = [entry for entry in pods.values() if entry is not own]
                        if not others:
                            continue
                        some = others[0]
                    decision = self.hints.combine(some, relevant, event, old, new, None)
                    if decision.strategy is not Strategy.SKIP:
                        moved.extend((entry, decision) for entry in pods.values() if entry is not own)
            else:
                answers: dict[tuple[int, PodSignature], QueueingHint] = {}
                for signature, pods in signatures.items():
                    for entry in _concerned(relevant, signature, pods, old, new):
                        if entry is own:
                            continue
                        decision = self.hints.combine(entry, relevant, event, old, new, answers)
                        if decision.strategy is not Strategy.SKIP:
                            moved.append((entry, decision))
        if pre_check is None:
            return moved
        return [(entry, decision) for entry, decision in moved if pre_check(entry.pod)]

    def _about(self, old: Any, new: Any) -> QueuedPod | None:
        """Return the entry of the pod to which the event applies, if it is unschedulable."""
        for subject in (new, old):
            if not isinstance(subject, Pod):
                continue
            spot = self.spots.get(subject.key)
            if spot is not None:
                entry = self._groups[spot[0]][spot[1]][subject.key]
                if entry.pod.uid == subject.uid:
                    return entry
        return None


def _concerned(
    relevant: Sequence[MatchedRegistration], signature: PodSignature, pods: _Shape, old: Any, new: Any
) -> Collection[QueuedPod]:
    """Return the pods of the signature, in order, for which some hint may return Queue."""
    keys: set[str] = set()
    for registration in relevant:
        concerned = registration.concerned(signature, old, new)
        if concerned is None:
            return pods.values()
        keys.update(concerned)
    if len(keys) > 1:
        return [entry for key, entry in pods.items() if key in keys]
    return [pods[key] for key in keys if key in pods]
