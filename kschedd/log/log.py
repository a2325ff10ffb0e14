"""Log: the history of a cluster, oldest entry first, up to a maximum length.

Entries are appended and never change. Entries are stored in chunks. When there are more entries than allowed, the
oldest chunk is deleted, together with its index of pods and the series of Events that ended in it. Only the totals of
deleted entries remain. Appending an entry is as cheap as for a list: entries are counted and moved into chunks in
batches, and always before a read.

The log contains the entries and calls no other component. Times are seconds since the epoch, except the times of moves.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, Protocol

import attrs

from kschedd.log.events import SeriesByEvent
from kschedd.metrics.instruments import MetricFamily
from kschedd.queue.entry import Move
from kschedd.queue.metrics import MoveMetrics
from kschedd.scheduling.records import AttemptRecord, Happened

KEPT: Final = 100_000  # maximum number of entries; a pod that is scheduled in its first attempt causes five
_CHUNK: Final = 1_000
_LEAST_CHUNKS: Final = 16
_RATE_S: Final = 5  # number of seconds over which the attempts per second are averaged

Entry = Happened | Move


class Subscriber(Protocol):
    """A reader of new Events."""

    closed: bool

    def ring(self) -> None: ...

    def close(self) -> None:
        """End the subscription."""


@attrs.define(eq=False)
class _Chunk:
    """A group of entries that are deleted together.

    `last_event` is the number of the last Event when the chunk was completed.
    """

    entries: list[Entry] = attrs.field(factory=list)
    last_event: int = 0
    _by_pod: dict[str, list[Entry]] | None = None

    def of(self, pod: str) -> Sequence[Entry]:
        """Return the entries about this pod in the chunk, which must be complete."""
        if self._by_pod is None:
            self._by_pod = {}
            for entry in self.entries:
                self._by_pod.setdefault(entry.pod, []).append(entry)
        return self._by_pod.get(pod, ())


class Log:
    """The log of a cluster. `instance` identifies the log, because event numbers are valid in one log only."""

    def __init__(self, most: int = KEPT, instance: str = "") -> None:
        self._most = most
        self._size = max(min(_CHUNK, most // _LEAST_CHUNKS), 1)
        self._chunks: deque[_Chunk] = deque([_Chunk()])
        self._fresh: list[Entry] = []  # entries that were appended but not yet counted and moved into a chunk
        self._series = SeriesByEvent(instance)
        self._failed = 0
        self._moves = MoveMetrics()
        # pairs of a second and the number of attempts in it, for the last few seconds
        self._attempts: deque[tuple[float, int]] = deque()
        self._rung = 0  # number of the last Event at the time when subscribers were notified
        self.subscribers: set[Subscriber] = set()  # subscribers, which the component that contains the log notifies
        self.append = self._fresh.append

    def extend(self, entries: Iterable[Entry]) -> None:
        """Append these entries, which are in the order of their times."""
        self._fresh.extend(entries)
        if len(self._fresh) >= self._size:
            self._flush()

    # -- reading ------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        self._flush()
        return (len(self._chunks) - 1) * self._size + len(self._chunks[-1].entries)

    def __iter__(self) -> Iterator[Entry]:
        """Return the entries, oldest first."""
        self._flush()
        return chain.from_iterable(chunk.entries for chunk in self._chunks)

    def of(self, pod: str) -> Iterator[Entry]:
        """Yield the entries about the pods with this key (`namespace/name`), including past pods, oldest first."""
        self._flush()
        last = self._chunks[-1]
        for chunk in self._chunks:
            if chunk is not last:
                yield from chunk.of(pod)
        yield from [entry for entry in last.entries if entry.pod == pod]

    def moves(self, pod: str) -> list[Move]:
        """Return the moves in the queue of the pods with this key."""
        return [entry for entry in self.of(pod) if isinstance(entry, Move)]

    def attempts(
        self, pod: str | None = None, limit: int | None = None, namespace: str | None = None
    ) -> list[AttemptRecord]:
        """Return the latest attempts for this pod (None means any pod of the namespace), oldest first."""
        if pod is not None:
            found = [entry for entry in self.of(pod) if isinstance(entry, AttemptRecord)]
            return found if limit is None else found[max(len(found) - limit, 0) :]
        found = []
        for entry in self._backwards():
            if limit is not None and len(found) >= limit:
                break
            if isinstance(entry, AttemptRecord) and namespace in (None, entry.pod.partition("/")[0]):
                found.append(entry)
        return found[::-1]

    def _backwards(self) -> Iterator[Entry]:
        self._flush()
        return chain.from_iterable(reversed(chunk.entries) for chunk in reversed(self._chunks))

    @property
    def events(self) -> SeriesByEvent:
        """The Events that were created from the entries."""
        self._flush()
        return self._series

    def ring(self) -> None:
        """Notify the subscribers if there are new Events."""
        number = self.events.number
        if number != self._rung:
            self._rung = number
            self.subscribers = {subscriber for subscriber in self.subscribers if not subscriber.closed}
            for subscriber in self.subscribers:
                subscriber.ring()

    # -- totals -------------------------------------------------------------------------------------------------

    @property
    def failed(self) -> int:
        """The number of attempts and bindings that have failed since the start."""
        self._flush()
        return self._failed

    def rate(self, now_s: float) -> float:
        """Return the number of attempts per second, over the last few seconds that had attempts."""
        self._flush()
        recent = [(second, count) for second, count in self._attempts if second > now_s - _RATE_S]
        if not recent:
            return 0.0
        return sum(count for _, count in recent) / max(now_s - recent[0][0], 1.0)

    def move_metrics(self) -> list[MetricFamily]:
        """Return the metrics of moves in the queue since the start."""
        self._flush()
        return self._moves.families()

    # -- storing and deleting -------------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Move new entries into chunks, count them, and delete the oldest entries beyond the maximum."""
        fresh = self._fresh[:]
        self._fresh.clear()
        start = 0
        while start < len(fresh):
            room = self._size - len(self._chunks[-1].entries)
            if room == 0:
                self._begin_chunk()
                continue
            part = fresh[start : start + room]
            start += room
            self._chunks[-1].entries += part
            self._count_all(part)

    def _begin_chunk(self) -> None:
        """Complete the newest chunk, and delete the oldest chunks to make room for a new one."""
        self._chunks[-1].last_event = self._series.number
        while self._chunks and len(self._chunks) * self._size + self._size > self._most:
            self._series.forget(self._chunks.popleft().last_event)
        self._chunks.append(_Chunk())

    def _count_all(self, entries: Iterable[Entry]) -> None:
        seconds, noted, moves = self._attempts, self._series.note, []
        for entry in entries:
            if isinstance(entry, Move):
                moves.append(entry)
                continue
            if isinstance(entry, AttemptRecord):
                second = entry.at_s // 1
                if seconds and seconds[-1][0] == second:
                    seconds[-1] = second, seconds[-1][1] + 1
                else:
                    seconds.append((second, 1))
                    while seconds[0][0] < second - _RATE_S:
                        seconds.popleft()
                if entry.node:
                    continue
                self._failed += 1
            noted(entry)
        self._moves.moved(moves)
