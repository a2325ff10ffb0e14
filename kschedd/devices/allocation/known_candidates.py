"""Results of earlier searches for each candidate device, so that later searches can skip candidates.

For each request and candidate, the results state whether every search rejects the candidate, and whether allocating it
first leaves no solution. The results are valid until the used devices in the candidate's pool change (`forget`). A
candidate that no search has examined has no result, because examining it may raise an exception.

Each kind of result is a bytearray with one byte, 0 or 1, per candidate; `bytearray.find` finds the next candidate
whose byte is 1.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Self

import attrs

from kschedd.devices.pools.inventory import PoolKey
from kschedd.devices.pools.on_node import DeviceCandidates

RequestPlace = tuple[int, int, int]
"""Index of the claim, of its request, and of the alternative in the request."""


@attrs.define(eq=False)
class CandidatesOfRequest:
    unseen: bytearray  # candidates that no search has examined
    possible: bytearray  # candidates that some search may accept
    first: bytearray  # possible candidates not known to fail as the first device of all claims

    @classmethod
    def unknown(cls, count: int) -> Self:
        marks = b"\1" * count
        return cls(bytearray(marks), bytearray(marks), bytearray(marks))

    def refuse(self, at: int) -> None:
        """Mark a candidate that every search rejects, whatever other devices the search has taken."""
        self.unseen[at] = self.possible[at] = self.first[at] = 0

    def possible_from(self, start: int) -> Iterator[int]:
        at = start - 1
        while (at := _next_marked(self.possible, at + 1)) < len(self.possible):
            yield at

    def alike_from(self, start: int, alike: Sequence[int]) -> Iterator[int]:
        """Yield the positions of possible candidates in `alike`, and of all unexamined candidates."""
        at = start - 1
        while (at := min(_next_marked(self.unseen, at + 1), self._next_alike(at + 1, alike))) < len(self.possible):
            yield at

    def _next_alike(self, start: int, alike: Sequence[int]) -> int:
        place = bisect_left(alike, start)
        while place < len(alike):
            at = _next_marked(self.possible, alike[place])
            if at == alike[place]:
                return at
            place = bisect_left(alike, at, place)
        return len(self.possible)

    def forget(self, span: range) -> None:
        for known in (self.unseen, self.possible, self.first):
            known[span.start : span.stop] = b"\1" * len(span)


@attrs.define(eq=False)
class KnownCandidates:
    """Results of earlier searches about the candidates, for all requests of some claims."""

    candidates: DeviceCandidates
    _of: dict[RequestPlace, CandidatesOfRequest] = attrs.field(factory=dict)

    def of(self, place: RequestPlace) -> CandidatesOfRequest:
        known = self._of.get(place)
        if known is None:
            known = self._of[place] = CandidatesOfRequest.unknown(len(self.candidates.in_order))
        return known

    def forget(self, pool: PoolKey) -> None:
        """Drop the results for a pool after a change of its used devices."""
        for known in self._of.values():
            known.forget(self.candidates.spans[pool])


def _next_marked(marks: bytearray, start: int) -> int:
    """Return the first position from `start` on with a 1, or else the length."""
    at = marks.find(1, start)
    return at if at >= 0 else len(marks)
