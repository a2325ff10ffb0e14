"""Durations of the queue's work: processing object changes, and calling plugins' queueing hints.

`QueueTimes`, which reads a clock, is passed to the queue if metrics are on. Without metrics, the queue reads no clock.

Source: Kubernetes v1.34, scheduler/eventhandlers.go (EventHandlingLatency), backend/queue/scheduling_queue.go.
"""

from collections.abc import Callable, Mapping, Sequence

from kschedd.metrics import catalogue
from kschedd.metrics.instruments import Histogram, MetricFamily


class QueueTimes:
    """The timers of one queue. `start` returns the seconds of a monotonic clock."""

    def __init__(self, start: Callable[[], float]) -> None:
        self.start = start
        self._events = Histogram(catalogue.EVENT_DURATION)
        self._hints = Histogram(catalogue.HINT_DURATION)

    def handled(self, took_s: Mapping[str, Sequence[float]]) -> None:
        """Record the durations of handling changes, by event."""
        for event, each_s in took_s.items():
            self._events.series(event).observe_all(each_s)

    def hint(self, plugin: str, event: str, answer: str, began_s: float) -> None:
        """Record a call of a plugin's hint for the event, and its result."""
        self._hints.observe(self.start() - began_s, plugin, event, answer)

    def families(self) -> list[MetricFamily]:
        return [self._events.family(), self._hints.family()]
