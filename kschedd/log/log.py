"""Log: what happened in a cluster, oldest first, as far back as there is room.

Entries are appended and never change. They lie in chunks; when there are more entries than allowed the oldest chunk is
forgotten, and with it its index of pods and the series of Events that ended in it. Of what is forgotten only totals
stay. Appending costs no more than a list; entries are counted and put into chunks many at a time, and whatever is read
is up to date.
Owns the entries; calls nothing. Times are seconds since the epoch, except for those of moves.
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

KEPT: Final = 100_000  # entries: a pod that is scheduled at once has five
_CHUNK: Final = 1_000
_LEAST_CHUNKS: Final = 16
_RATE_S: Final = 5  # seconds over which the rate of attempts is averaged

Entry = Happened | Move


class Follower(Protocol):
    """Someone who reads the Events as they come."""

    closed: bool

    def ring(self) -> None: ...

    def close(self) -> None:
        """There will be no more."""


@attrs.define(eq=False)
class _Chunk:
    """Entries that are forgotten together. `last_event`: the number of the last Event when it was complete."""

    entries: list[Entry] = attrs.field(factory=list)
    last_event: int = 0
    _by_pod: dict[str, list[Entry]] | None = None

    def of(self, pod: str) -> Sequence[Entry]:
        """The entries of this pod, once the chunk is complete."""
        if self._by_pod is None:
            self._by_pod = {}
            for entry in self.entries:
                self._by_pod.setdefault(entry.pod, []).append(entry)
        return self._by_pod.get(pod, ())


class Log:
    """See the module. `instance` names this log: a number of an Event of another one means nothing here."""

    def __init__(self, most: int = KEPT, instance: str = "") -> None:
        self._most = most
        self._size = max(min(_CHUNK, most // _LEAST_CHUNKS), 1)
        self._chunks: deque[_Chunk] = deque([_Chunk()])
        self._fresh: list[Entry] = []  # appended, but neither counted nor in a chunk yet
        self._series = SeriesByEvent(instance)
        self._failed = 0
        self._moves = MoveMetrics()
        self._attempts: deque[tuple[float, int]] = deque()  # (second, attempts in it), of the last few seconds
        self._rung = 0  # the number of the last Event when followers were rung
        self.followers: set[Follower] = set()  # rung by the log's owner
        self.append = self._fresh.append

    def extend(self, entries: Iterable[Entry]) -> None:
        """Append these entries, in the order in which they happened."""
        self._fresh.extend(entries)
        if len(self._fresh) >= self._size:
            self._settle()

    # -- reading ------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        self._settle()
        return (len(self._chunks) - 1) * self._size + len(self._chunks[-1].entries)

    def __iter__(self) -> Iterator[Entry]:
        """The entries, oldest first."""
        self._settle()
        return chain.from_iterable(chunk.entries for chunk in self._chunks)

    def of(self, pod: str) -> Iterator[Entry]:
        """Yield the entries of the pods that had this key (`namespace/name`), oldest first."""
        self._settle()
        last = self._chunks[-1]
        for chunk in self._chunks:
            if chunk is not last:
                yield from chunk.of(pod)
        yield from [entry for entry in last.entries if entry.pod == pod]

    def moves(self, pod: str) -> list[Move]:
        """The moves in the queue of the pods that had this key."""
        return [entry for entry in self.of(pod) if isinstance(entry, Move)]

    def attempts(self, pod: str | None = None, limit: int | None = None) -> list[AttemptRecord]:
        """The latest attempts for this pod (None: any pod), oldest first."""
        if pod is not None:
            found = [entry for entry in self.of(pod) if isinstance(entry, AttemptRecord)]
            return found if limit is None else found[max(len(found) - limit, 0) :]
        found = []
        for entry in self._backwards():
            if limit is not None and len(found) >= limit:
                break
            if isinstance(entry, AttemptRecord):
                found.append(entry)
        return found[::-1]

    def _backwards(self) -> Iterator[Entry]:
        self._settle()
        return chain.from_iterable(reversed(chunk.entries) for chunk in reversed(self._chunks))

    @property
    def events(self) -> SeriesByEvent:
        """The Events that the entries amount to."""
        self._settle()
        return self._series

    def ring(self) -> None:
        """Ring the followers if there are further Events."""
        number = self.events.number
        if number != self._rung:
            self._rung = number
            self.followers = {follower for follower in self.followers if not follower.closed}
            for follower in self.followers:
                follower.ring()

    # -- totals -------------------------------------------------------------------------------------------------

    @property
    def failed(self) -> int:
        """Attempts and bindings that failed since the start."""
        self._settle()
        return self._failed

    def rate(self, now_s: float) -> float:
        """Attempts per second, over the last few seconds that had any."""
        self._settle()
        recent = [(second, count) for second, count in self._attempts if second > now_s - _RATE_S]
        if not recent:
            return 0.0
        return sum(count for _, count in recent) / max(now_s - recent[0][0], 1.0)

    def move_metrics(self) -> list[MetricFamily]:
        """What was counted of moves in the queue since the start."""
        self._settle()
        return self._moves.families()

    # -- keeping and forgetting ---------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Put fresh entries into chunks, count them, and forget what there is no room for."""
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
        """Complete the newest chunk, and forget the oldest ones so that there is room for another one."""
        self._chunks[-1].last_event = self._series.number
        while self._chunks and len(self._chunks) * self._size + self._size > self._most:
            self._series.forget(self._chunks.popleft().last_event)
        self._chunks.append(_Chunk())

    def _count_all(self, entries: Iterable[Entry]) -> None:
        seconds, told, moves = self._attempts, self._series.told, []
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
            told(entry)
        self._moves.moved(moves)
