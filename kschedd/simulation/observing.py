"""Observers of a run: they receive attempts, pod events, moves in the queue, and the idle moments.

They change nothing. Without observers, a run has no additional cost.
"""

from collections.abc import Callable, Sequence
from typing import ParamSpec, Protocol

from kschedd.queue.entry import Move, QueuedPod
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.records import Happened

P = ParamSpec("P")


class RunObserver(Protocol):
    def attempted(self, entry: QueuedPod, result: ScheduleResult | FitError) -> None:
        """Record the result of an attempt before the result takes effect."""

    def happened(self, entries: Sequence[Happened]) -> None: ...

    def moved(self, move: Move) -> None: ...

    def idle(self) -> None:
        """Record that no work is left at this point in virtual time, before time advances."""


def both(first: Callable[P, None] | None, second: Callable[P, None]) -> Callable[P, None]:
    """Return a function that calls both functions; the first may be None."""
    if first is None:
        return second

    def call(*args: P.args, **named: P.kwargs) -> None:
        first(*args, **named)
        second(*args, **named)

    return call
