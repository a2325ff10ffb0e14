"""Observers of a run: they receive attempts, events of pods, moves in the queue, and the moments without work.

They change nothing. A run without observers has no additional cost.
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
        """Record that all work at this point in virtual time is done, before time advances."""


def both(first: Callable[P, None] | None, second: Callable[P, None]) -> Callable[P, None]:
    """Return a function that calls both functions, or only the second function if the first is None."""
    if first is None:
        return second

    def call(*args: P.args, **named: P.kwargs) -> None:
        first(*args, **named)
        second(*args, **named)

    return call
