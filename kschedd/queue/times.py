"""Times of the queue's work: of handling a change of an object, and of a plugin's queueing hints.

The queue is given `QueueTimes`, which has the clock, where somebody counts; otherwise it looks at none. Owned by the
owner of the queue.
Source: Kubernetes v1.34, scheduler/eventhandlers.go (EventHandlingLatency), backend/queue/scheduling_queue.go.
"""

from collections.abc import Callable, Mapping, Sequence

from kschedd.metrics import catalogue
from kschedd.metrics.instruments import Histogram, MetricFamily


class QueueTimes:
    """See the module. `start`: seconds of a clock that only goes forward."""

    def __init__(self, start: Callable[[], float]) -> None:
        self.start = start
        self._events = Histogram(catalogue.EVENT_DURATION)
        self._hints = Histogram(catalogue.HINT_DURATION)

    def handled(self, took_s: Mapping[str, Sequence[float]]) -> None:
        """So long it took to handle each of the changes that came down to these events."""
        for event, each_s in took_s.items():
            self._events.series(event).observe_all(each_s)

    def hint(self, plugin: str, event: str, answer: str, began_s: float) -> None:
        """A plugin's hint was asked about the event, and has answered."""
        self._hints.observe(self.start() - began_s, plugin, event, answer)

    def families(self) -> list[MetricFamily]:
        return [self._events.family(), self._hints.family()]
