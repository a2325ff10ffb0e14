"""Metrics of the scheduling queue: kube-scheduler's, by its names and labels, and some more.

Written with each move; the owner of the queue owns them. Those named `kschedd_…` upstream has not.
Source: Kubernetes v1.34, scheduler/metrics/metrics.go.
"""

from collections import Counter as Tally
from typing import Final

from kschedd.metrics.instruments import Counter, Histogram, Metric, MetricFamily, exponential
from kschedd.queue.entry import SECOND, Move, SubQueue
from kschedd.queue.requeue_stats import RequeueStats
from kschedd.queue.scheduling_queue import SchedulingQueue

_PENDING = Metric("scheduler_pending_pods", "gauge", "Pods that wait, by their place in the queue.", ("queue",))
_INCOMING = Metric(
    "scheduler_queue_incoming_pods_total",
    "counter",
    "Pods that got to a place of the queue, by the event that moved them.",
    ("queue", "event"),
)
_UNSCHEDULABLE = Metric(
    "scheduler_unschedulable_pods",
    "gauge",
    "Unschedulable pods by plugin: each counts for every plugin that rejected it.",
    ("plugin", "profile"),
)
_IN_FLIGHT = Metric(
    "scheduler_inflight_events", "gauge", "Events that are held for pods whose attempt is under way.", ("event",)
)
_WAITED = Metric(
    "kschedd_queue_wait_seconds",
    "histogram",
    "How long pods stayed at a place of the queue.",
    ("queue",),
    exponential(0.001, 4, 12),
)
_REQUEUED = Metric(
    "kschedd_requeued_pods_total",
    "counter",
    "Pods that an event woke, by the plugin whose hint decided, and whether the next attempt found a node.",
    ("plugin", "event", "result"),
)
#: upstream's label of each place; the first two of unschedulablePods differ in `pending_pods` only
_QUEUES: Final = {
    SubQueue.ACTIVE: "active",
    SubQueue.BACKOFF: "backoff",
    SubQueue.ERROR_BACKOFF: "backoff",
    SubQueue.UNSCHEDULABLE: "unschedulable",
    SubQueue.GATED: "gated",
}
_NOT_ENTERED: Final = (SubQueue.OUTSIDE, SubQueue.IN_FLIGHT)
_APART: Final = (SubQueue.UNSCHEDULABLE, SubQueue.GATED)


class QueueMetrics:
    """See the module."""

    def __init__(self) -> None:
        self._incoming = Counter(_INCOMING)
        self._waited = Histogram(_WAITED)
        self._requeues = RequeueStats()
        self._since: dict[str, int] = {}  # uid -> when the pod got to where it is

    def moved(self, move: Move) -> None:
        """A pod has moved."""
        self._requeues(move)
        source, target = move.source, move.target
        since = self._since.pop(move.uid, None)
        if since is not None:
            self._waited.observe((move.when - since) / SECOND, _QUEUES[source])
        if target in _NOT_ENTERED:
            return
        self._since[move.uid] = move.when
        if not (source in _APART and target in _APART):  # upstream has one place for both
            queue = "unschedulable" if target in _APART else _QUEUES[target]
            self._incoming.add(queue, move.event)

    @property
    def pods_known(self) -> int:
        """Of how many pods it is known since when they are where they are."""
        return len(self._since)

    def families(self, queue: SchedulingQueue) -> list[MetricFamily]:
        """All of them; `queue` is the one whose moves were told."""
        pending: Tally[tuple[str, ...]] = Tally({(name,): 0 for name in _QUEUES.values()})
        for place, count in queue.counts().items():
            if place in _QUEUES:
                pending[_QUEUES[place],] += count
        rejected: Tally[tuple[str, ...]] = Tally()
        for kind in queue.unschedulable_kinds():
            entry = next(iter(kind))
            for plugin in entry.unschedulable_plugins | entry.pending_plugins:
                rejected[plugin, entry.pod.scheduler_name] += len(kind)
        held: dict[tuple[str, ...], float] = {(event,): count for event, count in queue.in_flight_events().items()}
        requeued: dict[tuple[str, ...], float] = {}
        for (plugin, event), outcome in self._requeues.counts.items():
            requeued[plugin, event, "scheduled"] = outcome.helped
            requeued[plugin, event, "unschedulable"] = outcome.in_vain
        return [
            MetricFamily(_PENDING, dict(pending)),
            MetricFamily(_UNSCHEDULABLE, dict(rejected)),
            MetricFamily(_IN_FLIGHT, held),
            MetricFamily(_REQUEUED, requeued),
            self._incoming.family(),
            self._waited.family(),
        ]
