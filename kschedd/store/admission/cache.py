"""A bounded cache of admission outcomes that drops entries which were not used recently.

The cache has two generations. A lookup or an addition puts the entry into the younger generation. When the younger
generation is full, it replaces the older generation, which is dropped. A lookup of an entry that is already in the
younger generation moves no entry. Entries in use stay in the cache, and entries used only once are dropped soon.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

import attrs

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@attrs.define(eq=False)
class AdmissionCache(Generic[K, V]):
    """A cache of at most `most` entries (2 or more); `most_kept` is the largest number of entries so far."""

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
        """Add an outcome for a key that is not in the cache."""
        if len(self._younger) >= self.most // 2:
            self._younger, self._older = {}, self._younger
        self._younger[key] = outcome
        self.most_kept = max(self.most_kept, len(self))

    def clear(self) -> None:
        self._younger.clear()
        self._older.clear()
