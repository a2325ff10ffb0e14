"""Each pod's moves between sub-queues: time, source, target, event, and the plugin whose hint decided.

A recorder for SchedulingQueue, called with each Move. Memory is bounded: a pod keeps its first and its latest moves,
fewer the more pods there are, and only the latest `most_gone` pods that left the queue are kept.
Owns the recorded moves; calls nothing. Lives as long as its queue.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from kschedd.queue.entry import SECOND, Move, SubQueue

_FIRST_KEPT = 2
_FEWEST = 6


@attrs.define(eq=False)
class _Way:
    moves: list[Move] = attrs.field(factory=list)
    dropped: int = 0


@attrs.define(eq=False)
class History:
    most_moves: int = 200_000  # of all pods together; exceeded only because each pod may keep `_FEWEST`
    most_of_a_pod: int = 64
    most_gone: int = 10_000  # pods that left the queue and whose moves are kept
    _ways: dict[str, _Way] = attrs.field(factory=dict, init=False)
    _gone: OrderedDict[str, None] = attrs.field(factory=OrderedDict, init=False)

    def __call__(self, move: Move) -> None:
        key = move.key
        way = self._ways.get(key)
        if way is None:
            way = self._ways[key] = _Way()
        moves = way.moves
        moves.append(move)
        if len(moves) > _FEWEST and len(moves) > min(self.most_of_a_pod, self.most_moves // len(self._ways)):
            del moves[_FIRST_KEPT]
            way.dropped += 1
        if move.target is SubQueue.OUTSIDE:
            self._gone[key] = None
            self._gone.move_to_end(key)
            if len(self._gone) > self.most_gone:
                oldest, _ = self._gone.popitem(last=False)
                del self._ways[oldest]
        elif self._gone and key in self._gone:
            del self._gone[key]

    def of(self, key: str) -> Sequence[Move]:
        """The moves of the pods that had this key (`namespace/name`), oldest first; empty if none is known."""
        way = self._ways.get(key)
        return () if way is None else tuple(way.moves)

    def dropped(self, key: str) -> int:
        """How many moves between the first and the latest ones were dropped."""
        way = self._ways.get(key)
        return 0 if way is None else way.dropped

    def __len__(self) -> int:
        """How many pods have recorded moves."""
        return len(self._ways)


def as_data(moves: Sequence[Move]) -> list[dict[str, Any]]:
    """Moves as plain maps, for the socket and for printing; times in seconds of the queue's clock."""
    return [
        {
            "time_s": move.when / SECOND,
            "from": move.source.value,
            "to": move.target.value,
            "event": move.event,
            "plugin": move.plugin,
            "seen": move.seen,
        }
        for move in moves
    ]


def both(first: Callable[[Move], None] | None, second: Callable[[Move], None]) -> Callable[[Move], None]:
    """A recorder that calls `first`, if given, and then `second`."""
    if first is None:
        return second
    known = first

    def tell(move: Move) -> None:
        known(move)
        second(move)

    return tell
