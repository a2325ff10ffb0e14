"""unschedulablePods: pods that wait for an event, kept so that an event looks only at those it may help.

Pods stand in groups of equal profile, rejecting plugins and gating plugin, and within a group in heaps of equal
shape. An event passes over a group none of whose plugins waits for it, and asks hints that speak for a whole shape
once per shape. What comes out is exactly what asking for every single pod gives; `decide_each` is that plain rule.

Beside that, pods stand in the order of their timestamps, so that those left too long are found at once. Gated pods
whose gating plugin does not wait for everything stand apart there: the timeout never moves them.

Source: Kubernetes v1.34, scheduler/backend/queue/unschedulable_pods.go and scheduling_queue.go
(movePodsToActiveOrBackoffQueue). Owns the index, not the entries. Called by SchedulingQueue.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Any

import attrs

from kschedd.api.pods import Pod, PodShape
from kschedd.framework.events import UNSCHEDULABLE_TIMEOUT, ClusterEvent, QueueingHint
from kschedd.queue.entry import QueuedPod
from kschedd.queue.hints import AFTER_BACKOFF, Asked, Decision, HintTable, Strategy
from kschedd.queue.keyed_heap import KeyedHeap

PreCheck = Callable[[Pod], bool]
"""Which pods an event is for at all."""

_GroupKey = tuple[str, frozenset[str], frozenset[str], str]
_Shape = dict[str, QueuedPod]  # by key


@attrs.define(eq=False)
class UnschedulablePods:
    hints: HintTable
    _groups: dict[_GroupKey, dict[PodShape, _Shape]] = attrs.field(factory=dict, init=False)
    _spots: dict[str, tuple[_GroupKey, PodShape]] = attrs.field(factory=dict, init=False)
    _by_age: KeyedHeap[QueuedPod] = attrs.field(factory=KeyedHeap, init=False)
    _unmoved_by_age: KeyedHeap[QueuedPod] = attrs.field(factory=KeyedHeap, init=False)
    _gated: int = attrs.field(default=0, init=False)

    def __len__(self) -> int:
        """All pods in here, gated ones included."""
        return len(self._spots)

    def __iter__(self) -> Iterator[QueuedPod]:
        return (entry for shapes in self._groups.values() for pods in shapes.values() for entry in pods.values())

    def kinds(self) -> Iterator[Collection[QueuedPod]]:
        """The pods that are not gated; those of one shape that the same plugins rejected come together."""
        for (_, _, _, gating), shapes in self._groups.items():
            if not gating:
                for pods in shapes.values():
                    yield pods.values()

    @property
    def gated(self) -> int:
        return self._gated

    def add(self, entry: QueuedPod) -> None:
        pod = entry.pod
        shape = pod.shape
        group = (
            shape.spec.scheduler_name,
            entry.unschedulable_plugins,
            entry.pending_plugins,
            entry.gating_plugin,
        )
        self._spots[entry.key] = (group, shape)
        self._groups.setdefault(group, {}).setdefault(shape, {})[entry.key] = entry
        if not entry.gating_plugin:
            self._by_age.put(entry.key, entry.timestamp, entry)
        else:
            self._gated += 1
            moved = self.hints.reaches(entry.gating_plugin, UNSCHEDULABLE_TIMEOUT)
            (self._by_age if moved else self._unmoved_by_age).put(entry.key, entry.timestamp, entry)

    def remove(self, key: str) -> None:
        """Take the pod out from where it was put, whatever was changed in its entry since."""
        group, shape = self._spots.pop(key)
        shapes = self._groups[group]
        pods = shapes[shape]
        del pods[key]
        if not pods:
            del shapes[shape]
            if not shapes:
                del self._groups[group]
        if group[3]:
            self._gated -= 1
        if self._by_age.remove(key) is None:
            self._unmoved_by_age.remove(key)

    def rebuild(self, hints: HintTable) -> None:
        """Take new registrations."""
        entries = list(self)
        for entry in entries:
            self.remove(entry.key)
        self.hints = hints
        for entry in entries:
            self.add(entry)

    def left_since(self, time: int) -> tuple[list[QueuedPod], bool]:
        """The pods the timeout moves whose timestamp is before `time`, and whether there is any at all before it."""
        left = []
        while (head := self._by_age.peek()) is not None and head[0] < time:
            left.append(head[1])
            self._by_age.take()
        for entry in left:
            self._by_age.put(entry.key, entry.timestamp, entry)
        unmoved = self._unmoved_by_age.peek()
        return left, bool(left) or (unmoved is not None and unmoved[0] < time)

    def oldest(self) -> int | None:
        """The timestamp of the pod the timeout moves next."""
        head = self._by_age.peek()
        return None if head is None else int(head[0])

    def _reached(self, gating_plugin: str, event: ClusterEvent) -> bool:
        """False for gated pods whose gating plugin does not wait for this event: nothing is asked then."""
        return not gating_plugin or self.hints.reaches(gating_plugin, event)

    def decide_each(
        self, event: ClusterEvent, old: Any, new: Any, pre_check: PreCheck | None
    ) -> list[tuple[QueuedPod, Decision]]:
        """The pods the event moves; every pod asked for itself."""
        moved = []
        for entry in self:
            if not self._reached(entry.gating_plugin, event):
                continue
            if pre_check is not None and not pre_check(entry.pod):
                continue
            decision = self.hints.decide(entry, event, old, new)
            if decision.strategy is not Strategy.SKIP:
                moved.append((entry, decision))
        return moved

    def decide(
        self, event: ClusterEvent, old: Any, new: Any, pre_check: PreCheck | None
    ) -> list[tuple[QueuedPod, Decision]]:
        """The same as `decide_each` but for the order, in work only over pods the event may help."""
        moved: list[tuple[QueuedPod, Decision]] = []
        # What a hint may know of the pod the event is about, it need not know of others of that shape.
        own = self._about(old, new)
        if own is not None and self._reached(own.gating_plugin, event):
            decision = self.hints.decide(own, event, old, new)
            if decision.strategy is not Strategy.SKIP:
                moved.append((own, decision))
        for (profile, unschedulable, pending, gating), shapes in self._groups.items():
            if not self._reached(gating, event):
                continue
            relevant: tuple[Asked, ...] | None = None
            if unschedulable or pending:
                if event.wildcard:
                    if new is not None:
                        continue
                else:
                    relevant = self.hints.relevant(profile, unschedulable, pending, event)
                    if relevant == ():
                        continue
            if relevant is None:
                for pods in shapes.values():
                    moved.extend((entry, AFTER_BACKOFF) for entry in pods.values() if entry is not own)
            elif all(asked.by_signature or asked.hint is None for asked in relevant):
                for pods in shapes.values():
                    some = next(iter(pods.values()))
                    if some is own:
                        others = [entry for entry in pods.values() if entry is not own]
                        if not others:
                            continue
                        some = others[0]
                    decision = self.hints.combine(some, relevant, old, new, None)
                    if decision.strategy is not Strategy.SKIP:
                        moved.extend((entry, decision) for entry in pods.values() if entry is not own)
            else:
                answers: dict[tuple[int, PodShape], QueueingHint] = {}
                for pods in shapes.values():
                    for entry in pods.values():
                        if entry is own:
                            continue
                        decision = self.hints.combine(entry, relevant, old, new, answers)
                        if decision.strategy is not Strategy.SKIP:
                            moved.append((entry, decision))
        if pre_check is None:
            return moved
        return [(entry, decision) for entry, decision in moved if pre_check(entry.pod)]

    def _about(self, old: Any, new: Any) -> QueuedPod | None:
        """The entry of the pod the event itself is about, if it waits in here."""
        for subject in (new, old):
            if not isinstance(subject, Pod):
                continue
            spot = self._spots.get(subject.key)
            if spot is not None:
                entry = self._groups[spot[0]][spot[1]][subject.key]
                if entry.pod.uid == subject.uid:
                    return entry
        return None
