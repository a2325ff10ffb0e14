"""What admission came to lately, by what it was asked: a bounded number of outcomes, the latest used of them.

There are two halves. What is found or added goes into the younger one; once that is full, the older one is dropped, and
it becomes the older one. So most lookups move nothing, what is in use stays, and what came once goes soon.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

import attrs

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@attrs.define(eq=False)
class AdmissionCache(Generic[K, V]):
    """`most`: how many are kept, from 2 on; `most_kept`: how many there were at most."""

    most: int
    most_kept: int = attrs.field(default=0, init=False)
    _younger: dict[K, V] = attrs.field(factory=dict, init=False)
    _older: dict[K, V] = attrs.field(factory=dict, init=False)

    def __len__(self) -> int:
        return len(self._younger) + len(self._older)

    def get(self, key: K) -> V | None:
        found = self._younger.get(key)
        if found is None:
            found = self._older.pop(key, None)
            if found is not None:
                self.add(key, found)
        return found

    def add(self, key: K, outcome: V) -> None:
        """Keep the outcome of what is not here yet."""
        if len(self._younger) >= self.most // 2:
            self._younger, self._older = {}, self._younger
        self._younger[key] = outcome
        self.most_kept = max(self.most_kept, len(self))

    def clear(self) -> None:
        self._younger.clear()
        self._older.clear()
