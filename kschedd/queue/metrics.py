"""Metrics of the scheduling queue: kube-scheduler's names and labels, and additional metrics.

`MoveMetrics` counts moves; the log calls it with many moves together. `queue_metrics` returns the queue's current
state. Metrics named `kschedd_…` do not exist upstream.

Source: Kubernetes v1.34 and v1.37, scheduler/metrics/metrics.go.
"""

from collections import Counter as Tally
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from kschedd.framework.events import POP_FROM_BACKOFF_Q
from kschedd.metrics import catalogue
from kschedd.metrics.instruments import Counter, Histogram, MetricFamily
from kschedd.queue.entry import POD, POD_GROUP, SECOND, Move, SubQueue
from kschedd.queue.requeue_stats import RequeueStats
from kschedd.queue.scheduling_queue import SchedulingQueue

#: upstream's metric label of each sub-queue; only `pending_pods` distinguishes gated from unschedulable pods
_QUEUES: Final = {
    SubQueue.ACTIVE: "active",
    SubQueue.BACKOFF: "backoff",
    SubQueue.ERROR_BACKOFF: "backoff",
    SubQueue.UNSCHEDULABLE: "unschedulable",
    SubQueue.GATED: "gated",
    SubQueue.PENDING_GROUP: "pending",
    SubQueue.INCOMPLETE_GROUP: "incomplete",
}
_OF_GROUPS: Final = (SubQueue.PENDING_GROUP, SubQueue.INCOMPLETE_GROUP)
_NO_ENTRIES: Final = frozenset(_QUEUES[place] for place in _OF_GROUPS)
_NOT_ENTERED: Final = (SubQueue.OUTSIDE, SubQueue.IN_FLIGHT)
_APART: Final = (SubQueue.UNSCHEDULABLE, SubQueue.GATED)
_kind = attrgetter("source", "target", "event", "entity")


class MoveMetrics:
    """The counts of all moves since the start."""

    def __init__(self) -> None:
        self._incoming = Counter(catalogue.INCOMING_PODS)
        self._entities = Counter(catalogue.INCOMING_ENTITIES)
        self._waited = Histogram(catalogue.QUEUE_WAIT)
        self._requeues = RequeueStats()

    def moved(self, moves: Sequence[Move]) -> None:
        """Count these moves."""
        kinds = Tally(map(_kind, moves))
        self._requeues.observe(moves, {(source, event) for source, _, event, _ in kinds})
        for place in {source for source, _, _, _ in kinds}.difference(_NOT_ENTERED):
            stayed = [move.stayed / SECOND for move in moves if move.source is place]
            self._waited.series(_QUEUES[place]).observe_all(stayed)
        for (source, target, event, entity), amount in kinds.items():
            if (queue := _entered(source, target, event)) is not None:
                self._incoming.add(queue, event, amount=amount)
                if entity:
                    self._entities.add(queue, event, entity, amount=amount)

    def families(self) -> list[MetricFamily]:
        requeued: dict[tuple[str, ...], float] = {}
        for (plugin, event), outcome in self._requeues.counts.items():
            requeued[plugin, event, "scheduled"] = outcome.helped
            requeued[plugin, event, "unschedulable"] = outcome.in_vain
        counted = [self._incoming.family(), self._entities.family(), self._waited.family()]
        return [MetricFamily(catalogue.REQUEUED, requeued), *counted]


def _entered(source: SubQueue, target: SubQueue, event: str) -> str | None:
    """Return the metric label of the queue that a move enters; None if the move is not counted."""
    if event == POP_FROM_BACKOFF_Q:
        return "active"  # upstream counts pods that are popped early as if they came from the active queue
    # Upstream stores gated and unschedulable pods together, and does not count pods that wait for their group.
    if target in (*_NOT_ENTERED, *_OF_GROUPS) or (source in _APART and target in _APART):
        return None
    return "unschedulable" if target in _APART else _QUEUES[target]


def queue_metrics(queue: SchedulingQueue) -> list[MetricFamily]:
    """Return the metrics of the queue's current content."""
    shown = [place for place in _QUEUES if queue.settings.groups_queued or place not in _OF_GROUPS]
    pending: Tally[tuple[str, ...]] = Tally({(_QUEUES[place],): 0 for place in shown})
    for place, count in queue.counts().items():
        if place in shown:
            pending[_QUEUES[place],] += count
    entities: Tally[tuple[str, ...]] = Tally(
        {(label, POD): count for (label,), count in pending.items() if label not in _NO_ENTRIES}
    )
    for group in queue.groups.queued.values():
        entities[_QUEUES[group.place], POD] -= len(group.members)
        entities[_QUEUES[group.place], POD_GROUP] += 1
    rejected: Tally[tuple[str, ...]] = Tally()
    for kind in queue.unschedulable_kinds():
        entry = next(iter(kind))
        for plugin in entry.unschedulable_plugins | entry.pending_plugins:
            rejected[plugin, entry.pod.scheduler_name] += len(kind)
    held: dict[tuple[str, ...], float] = {(event,): count for event, count in queue.in_flight_events().items()}
    return [
        MetricFamily(catalogue.PENDING_PODS, dict(pending)),
        MetricFamily(catalogue.QUEUED_ENTITIES, dict(entities)),
        MetricFamily(catalogue.UNSCHEDULABLE_PODS, dict(rejected)),
        MetricFamily(catalogue.IN_FLIGHT_EVENTS, held),
    ]
