"""In-flight pods (popped, being scheduled or bound), and the cluster events observed since their pop.

A pod in flight is in no sub-queue, so an event cannot requeue it directly. Instead, an event is stored until every pod
that was in flight at its arrival has left. When an attempt fails, the pod is checked against all events since its pop.
Because of this check, no wake-up is lost, whatever the order of events. (If every hint returns Queue, the result is
equivalent to upstream's older rule, which sent the pod to backoffQ after any move request since its pop.) Events that
the caches had observed before the pod's attempt began are skipped.

Events are numbered in order of arrival. A pod stores the number of the first event after its pop. Events older than the
oldest pod's number are dropped.

Source: Kubernetes v1.34, scheduler/backend/queue/active_queue.go (inFlightPods, inFlightEvents).
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import attrs

from kschedd.framework.events import ClusterEvent
from kschedd.queue.entry import QueuedPod
from kschedd.queue.snapshot import EntryCopies, InFlightSnapshot

# smallest number of dropped events that are removed from the list together
_BATCH = 256


@attrs.frozen(eq=False)
class Happened:
    """An event observed while some pod was in flight.

    `observation` is the number of the cache update that contains the event; 0 if there is none.
    """

    event: ClusterEvent
    old: Any
    new: Any
    observation: int


@attrs.define(eq=False)
class InFlight:
    # by uid, oldest first: number of the first event after the pod's pop, and the pod's entry Modified only here.
    pods: OrderedDict[str, tuple[int, QueuedPod]] = attrs.field(factory=OrderedDict, init=False)
    _events: list[Happened] = attrs.field(factory=list, init=False)
    _first: int = attrs.field(default=0, init=False)  # the number of _events[0]

    def __len__(self) -> int:
        return len(self.pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self.pods

    def __iter__(self) -> Iterator[QueuedPod]:
        return (entry for _, entry in self.pods.values())

    def events(self) -> list[Happened]:
        """Return the stored events, oldest first."""
        kept = self.events_kept
        return self._events[len(self._events) - kept :] if kept else []

    @property
    def events_kept(self) -> int:
        """The number of events stored for pods in flight."""
        if not self.pods:
            return 0
        return self._first + len(self._events) - next(iter(self.pods.values()))[0]

    def snapshot(self) -> InFlightSnapshot:
        return InFlightSnapshot(
            [(uid, number, entry) for uid, (number, entry) in self.pods.items()], self._events.copy(), self._first
        )

    def restore(self, snapshot: InFlightSnapshot, copies: EntryCopies) -> None:
        self.pods = OrderedDict((uid, (number, copies.of(entry))) for uid, number, entry in snapshot.pods)
        self._events, self._first = snapshot.events.copy(), snapshot.first

    def begin(self, entry: QueuedPod) -> None:
        assert entry.uid not in self.pods, f"{entry.key} is in flight already"
        self.pods[entry.uid] = (self._first + len(self._events), entry)

    def happened(self, event: ClusterEvent, old: Any, new: Any, observation: int) -> None:
        """Store the event if any pod is in flight."""
        if self.pods:
            self._events.append(Happened(event, old, new, observation))

    def since_pop(self, uid: str, seen: int) -> Iterator[Happened]:
        """Return the events since the pod was popped, oldest first.

        Events of cache updates up to number `seen` are omitted.
        """
        start = self.pods[uid][0] - self._first
        return (happened for happened in self._events[start:] if not 0 < happened.observation <= seen)

    def get(self, uid: str) -> QueuedPod | None:
        found = self.pods.get(uid)
        return None if found is None else found[1]

    def done(self, uid: str) -> QueuedPod | None:
        """Remove the pod, and the events stored only for it."""
        found = self.pods.pop(uid, None)
        if found is None:
            return None
        if not self.pods:
            self._events.clear()
        elif self._events:
            unwanted = next(iter(self.pods.values()))[0] - self._first
            if unwanted >= _BATCH and 2 * unwanted >= len(self._events):
                del self._events[:unwanted]
                self._first += unwanted
        return found[1]

    def clear(self) -> None:
        self.pods.clear()
        self._events.clear()
