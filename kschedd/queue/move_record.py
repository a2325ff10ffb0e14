"""MoveRecord: the latest moves of all pods between sub-queues, and the metrics of all moves ever made.

A recorder for SchedulingQueue. A pod that is scheduled at once moves three times, so a move costs one call here; moves
are kept and counted many at a time, and whatever is read is up to date. Memory: `most` moves.
Owns the moves and their counts; calls nothing.
"""

from collections import deque

from kschedd.metrics.instruments import MetricFamily
from kschedd.queue.entry import Move
from kschedd.queue.metrics import QueueMetrics
from kschedd.queue.scheduling_queue import SchedulingQueue

_MOST_FRESH = 1_000  # moves that are kept and counted at a time


class MoveRecord:
    """See the module."""

    def __init__(self, most: int) -> None:
        self._moves: deque[Move] = deque(maxlen=most)
        self._metrics = QueueMetrics()
        self._fresh: list[Move] = []  # neither kept nor counted yet

    def __call__(self, move: Move) -> None:
        """A pod has moved."""
        fresh = self._fresh
        fresh.append(move)
        if len(fresh) >= _MOST_FRESH:
            self._flush()

    @property
    def latest(self) -> deque[Move]:
        """The latest moves, the newest last."""
        self._flush()
        return self._moves

    def families(self, queue: SchedulingQueue) -> list[MetricFamily]:
        """The queue's metrics; `queue` is the one whose moves were told."""
        self._flush()
        return self._metrics.families(queue)

    def _flush(self) -> None:
        fresh, self._fresh = self._fresh, []
        self._moves.extend(fresh)
        self._metrics.moved(fresh)
