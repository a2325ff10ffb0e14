"""The way of every pod through the queue: when, from where to where, because of which event, by whose hint.

A recorder for SchedulingQueue: it is called with each Move. Memory is bounded. A pod keeps its first moves and its
latest ones; how many depends on how many pods there are. Of pods that have left the queue the latest are remembered.
Owns what it recorded; talks to nobody. Ends with its queue.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from kschedd.queue.entry import SECOND, Move, Place

_FIRST_KEPT = 2
_FEWEST = 6


@attrs.define(eq=False)
class _Way:
    moves: list[Move] = attrs.field(factory=list)
    dropped: int = 0


@attrs.define(eq=False)
class History:
    most_moves: int = 200_000  # of all pods together, as long as each has its fewest
    most_of_a_pod: int = 64
    most_gone: int = 10_000  # pods that left the queue and are remembered
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
        if move.target is Place.OUTSIDE:
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
        """How many moves between the first and the latest ones are no longer there."""
        way = self._ways.get(key)
        return 0 if way is None else way.dropped

    def __len__(self) -> int:
        """How many pods are remembered."""
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
    """One recorder that tells two; the first may be missing."""
    if first is None:
        return second
    known = first

    def tell(move: Move) -> None:
        known(move)
        second(move)

    return tell
