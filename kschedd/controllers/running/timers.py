"""Deadlines of a controller's later reconciles, by key."""

import heapq
from collections.abc import Container, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Timers(Generic[K]):
    """A map with one time for each key; setting a key again replaces its time."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, K]] = []
        self._at: dict[K, float] = {}
        self._count = 0  # tie-break for keys with equal times, in order of insertion

    def set(self, key: K, at: float) -> None:
        if self._at.get(key) != at:
            self._at[key] = at
            self._count += 1
            heapq.heappush(self._heap, (at, self._count, key))

    def __contains__(self, key: K) -> bool:
        return key in self._at

    def at(self, key: K) -> float | None:
        return self._at.get(key)

    def clear(self, key: K) -> None:
        self._at.pop(key, None)

    @property
    def next(self) -> float | None:
        while self._heap and self._at.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def next_without(self, keys: Container[K]) -> float | None:
        """Return the earliest time of the keys that are not in `keys`, or None."""
        return min((at for key, at in self._at.items() if key not in keys), default=None)

    def due(self, now: float, most: int | None = None) -> list[K]:
        """Remove and return at most `most` keys with a time at or before `now`, in order of time.

        Further due keys are returned by the next call.
        """
        keys: list[K] = []
        while (at := self.next) is not None and at <= now and (most is None or len(keys) < most):
            key = heapq.heappop(self._heap)[2]
            del self._at[key]
            keys.append(key)
        return keys
