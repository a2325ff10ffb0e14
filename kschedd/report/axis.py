"""A time axis with columns of equal width; its memory does not grow with the length of the run.

A run begins with columns of one second each. When all columns are in use, neighboring columns are merged into wider
ones, whose width is the next of `WIDTHS_S`. Data per column is registered with the axis, so that the axis can merge it.

`Levels` stores amounts that last for some time (a node's utilization, the number of pending pods): for each column the
amount multiplied by its seconds, so that a mean is weighted by time. `Counts` stores numbers of occurrences, and
`Examples` the first few occurrences.

Units: seconds since the start of the run. Shapes: the rows of `sums` and `counts` are series, their columns times.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from kschedd.cache.table import Ints

T = TypeVar("T")
N = TypeVar("N", np.float64, np.int64)
Floats = npt.NDArray[np.float64]

MOST_COLUMNS: Final = 300
#: widths in seconds; each is a multiple of the width before it
WIDTHS_S: Final = (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 21_600, 43_200, 86_400, 604_800, 2_419_200)


class TimeAxis:
    def __init__(self) -> None:
        self.width_s: int = WIDTHS_S[0]
        self._merged: list[Callable[[int], None]] = []

    def on_merge(self, merge: Callable[[int], None]) -> None:
        """`merge` is called with the number of old columns per new column; old column n becomes part of n // number."""
        self._merged.append(merge)

    def column(self, time_s: float) -> int:
        """Return the column of a time, after merging columns if the time is beyond the last column."""
        while time_s >= self.width_s * MOST_COLUMNS:
            wider = next((width for width in WIDTHS_S if width > self.width_s), self.width_s * 2)
            number = wider // self.width_s
            self.width_s = wider
            for merge in self._merged:
                merge(number)
        return int(time_s // self.width_s)


def _merged(columns: npt.NDArray[N], number: int) -> npt.NDArray[N]:
    """Return an array of the same width; each element is the sum of this many neighboring columns."""
    things, count = columns.shape
    full = -(-count // number)
    padded = np.zeros((things, full * number), dtype=columns.dtype)
    padded[:, :count] = columns
    merged = np.zeros_like(columns)
    merged[:, :full] = padded.reshape(things, full, number).sum(axis=2)
    return merged


class Levels:
    """Amounts of several items over time.

    The items are numbered from 0. The amount of an item that was never set is always 0.
    """

    def __init__(self, axis: TimeAxis) -> None:
        self._axis = axis
        self._values: list[float] = []
        self._since: list[float] = []
        self._sums: Floats = np.zeros((8, MOST_COLUMNS))
        axis.on_merge(self._merge)

    def set(self, things: Iterable[int], values: Iterable[float], now_s: float) -> None:
        """Set the amounts of items from the given time on.

        A loop is used, because few items change at a time, so that numpy would not be faster.
        """
        for thing, value in zip(things, values, strict=True):
            self.set_one(thing, value, now_s)

    def set_one(self, thing: int, value: float, now_s: float) -> None:
        self._grow(thing + 1)
        self._hold(thing, now_s)
        self._values[thing] = value

    def value(self, thing: int) -> float:
        return self._values[thing] if thing < len(self._values) else 0.0

    def sums(self, count: int, until_s: float) -> Floats:
        """Return amount times seconds by column for the first `count` items, up to the given time."""
        self._grow(count)
        for thing in range(count):
            self._hold(thing, until_s)
        return self._sums[:count]

    def _hold(self, thing: int, now_s: float) -> None:
        """Add the item's amount multiplied by the seconds since its last change."""
        value, since = self._values[thing], self._since[thing]
        self._since[thing] = now_s
        if not value or since >= now_s:
            return
        last = self._axis.column(now_s)  # call `column` first, because it may merge columns
        width = self._axis.width_s
        first = int(since // width)
        if first == last:
            self._sums[thing, last] += value * (now_s - since)
            return
        row = self._sums[thing]
        row[first] += value * ((first + 1) * width - since)
        row[first + 1 : last] += value * width
        row[last] += value * (now_s - last * width)

    def _grow(self, count: int) -> None:
        more = count - len(self._values)
        if more > 0:
            self._values += [0.0] * more
            self._since += [0.0] * more
            have = len(self._sums)
            if count > have:
                self._sums = np.pad(self._sums, ((0, max(count, 2 * have) - have), (0, 0)))

    def _merge(self, number: int) -> None:
        self._sums = _merged(self._sums, number)


class Counts:
    """Number of occurrences of each item in each column."""

    def __init__(self, axis: TimeAxis, names: Sequence[str]) -> None:
        self._axis = axis
        self.names = {name: number for number, name in enumerate(names)}
        self.counts: Ints = np.zeros((len(names), MOST_COLUMNS), dtype=np.int64)
        axis.on_merge(self._merge)

    def add(self, name: str, time_s: float, count: int = 1) -> None:
        column = self._axis.column(time_s)  # call `column` first, because merging replaces the array of counts
        self.counts[self.names[name], column] += count

    def of(self, name: str) -> Ints:
        found: Ints = self.counts[self.names[name]]
        return found

    def _merge(self, number: int) -> None:
        self.counts = _merged(self.counts, number)


class Examples(Generic[T]):
    """The first few items of each column."""

    def __init__(self, axis: TimeAxis, most: int) -> None:
        self._axis = axis
        self._most = most
        self._kept: dict[int, list[T]] = {}
        axis.on_merge(self._merge)

    def wants(self, time_s: float) -> bool:
        """Return whether the column has room for one more item."""
        return len(self._kept.get(self._axis.column(time_s), ())) < self._most

    def add(self, time_s: float, example: T) -> None:
        self._kept.setdefault(self._axis.column(time_s), []).append(example)

    def of(self, column: int) -> Sequence[T]:
        return self._kept.get(column, ())

    def __iter__(self) -> Iterator[T]:
        for column in sorted(self._kept):
            yield from self._kept[column]

    def _merge(self, number: int) -> None:
        merged: dict[int, list[T]] = {}
        for column in sorted(self._kept):
            kept = merged.setdefault(column // number, [])
            kept += self._kept[column][: self._most - len(kept)]
        self._kept = merged
