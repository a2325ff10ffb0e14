"""Lazy sequences of manifests, which are built on access.

As plain dicts, 100,000 nodes or a million pods would take gigabytes. A Series stores only its length and a function
that builds element i. Iterating twice builds equal elements twice. Equal parts of elements (a whole
pod spec, a resources dict) are the same Python object in all elements. Many elements therefore need little memory, and
comparing identities is a cheap first test of equality. Manifests must not be modified.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

Raw = dict[str, Any]
"""A manifest as sent to the API server."""


class Series(Sequence[Raw]):
    """A sequence of `length` manifests.

    `at(i)` builds the manifest with this index; the optional `walk()` builds all manifests in order at lower cost.
    """

    __slots__ = ("_at", "_length", "_walk")

    def __init__(self, length: int, at: Callable[[int], Raw], walk: Callable[[], Iterator[Raw]] | None = None) -> None:
        self._length = length
        self._at = at
        self._walk = walk

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Raw]:
        if self._walk is not None:
            return self._walk()
        return map(self._at, range(self._length))

    @overload
    def __getitem__(self, index: int) -> Raw: ...
    @overload
    def __getitem__(self, index: slice) -> list[Raw]: ...
    def __getitem__(self, index: int | slice) -> Raw | list[Raw]:
        if isinstance(index, slice):
            return [self._at(i) for i in range(self._length)[index]]
        return self._at(range(self._length)[index])

    def __repr__(self) -> str:
        return f"<Series of {self._length}>"
