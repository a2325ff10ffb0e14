"""A long run of manifests that exist only while somebody looks at them.

A hundred thousand nodes or a million pods as plain dicts are gigabytes. A Series knows its length and how
to build element i; nothing is kept. Iterating twice builds twice, and gives equal dicts. Whatever two
elements have in common (a whole pod spec, a resources dict) is one and the same object in both, so that
holding many costs little and identity is a cheap first test of sameness. Nobody may change a manifest once
it is made.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

Raw = dict[str, Any]
"""A manifest as it goes over the wire."""


class Series(Sequence[Raw]):
    """`length` manifests; `at(i)` builds one, `walk()` all of them in order where that is cheaper."""

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
