"""An amount per node, and its sums by topology domain, updated incrementally.

A `DomainCounter` receives every change (`add`) and returns columns: by row, or by the values of a label key. A column
is updated in place from its first request until labels change; then it is rebuilt on the next request.

Returned columns are read-only, and valid only within the scheduling cycle. Shapes: a column by row has an int64 for
each row of the table. A column by domain has an int64 for each value of the label: the index is the value's id. Rows
without the label have the id -1, which is the index of an additional last element that stays 0.
"""

import attrs
import numpy as np

from kschedd.cache.table import Bools, Ints, LabelColumn, NodeTable
from kschedd.cache.versions import LABELS

FEW_DOMAINS = 64  # with at most this number of domains, comparing counts takes no measurable time
_DOMAINS_LIMIT = 64
_DENSE = 16  # one row in this many


@attrs.frozen(eq=False)
class RowSet:
    """A set of rows.

    Two sets have the same id if and only if they are equal and the rows have not changed between their creation.
    """

    number: int
    mask: Bools


@attrs.define(eq=False)
class TopologyPairCounts:
    """Sums by the values of one topology key over some rows.

    The minimum is updated as sums change. A new search for the minimum is needed only if the last domain with the
    minimum gets more pods.
    """

    column: LabelColumn
    included: Bools | None  # None: every row
    counts: Ints
    total: int
    _least: int | None = None
    _having_least: int = 0

    def add(self, row: int, amount: int) -> None:
        # skip rows that are not in `included`, which is the most frequent case
        if (self.included is not None and not self.included.item(row)) or (number := self.column.ids.item(row)) < 0:
            return
        before = self.counts.item(number)
        self.counts[number] = after = before + amount
        if self._least is not None:
            self._follow(before, after, self._least)
        self.total += amount

    def least(self, values: Ints | None) -> int:
        """Return the minimum sum among these values (None: all); `values` must be all values of the rows."""
        if self._least is None:
            sums = self.counts[:-1] if values is None else self.counts[values]
            self._least = int(sums.min())
            self._having_least = int(np.count_nonzero(sums == self._least))
        return self._least

    def _follow(self, before: int, after: int, least: int) -> None:
        if after < least:
            self._least, self._having_least = after, 1
        elif after == least:
            self._having_least += 1
        elif before == least:
            self._having_least -= 1
            if not self._having_least:
                self._least = None


@attrs.define(eq=False)
class DomainCounter:
    table: NodeTable
    by_row: dict[int, int] = attrs.field(factory=dict)
    dropped: bool = False  # true if this counter is no longer updated
    _stamp: int = 0  # version stamp at which `_domains` was computed
    _domains: dict[tuple[str, int], TopologyPairCounts] = attrs.field(factory=dict)
    _column: Ints | None = None

    def add(self, row: int, amount: int) -> None:
        total = self.by_row.get(row, 0) + amount
        if total:
            self.by_row[row] = total
        else:
            self.by_row.pop(row, None)
        if self._domains:
            if self.table.versions.at[LABELS] > self._stamp:
                self._domains.clear()
            else:
                for domains in self._domains.values():
                    domains.add(row, amount)
        if self._column is not None and row < len(self._column):  # otherwise `rows` replaces the column
            self._column[row] += amount

    def rows(self) -> Ints:
        """Return the amounts as a column."""
        column = self._column
        if column is None or len(column) < self.table.capacity:
            column = self._column = np.zeros(self.table.capacity, dtype=np.int64)
            rows, amounts = self._listed()
            column[rows] = amounts
        return column

    def by_domain(self, key: str, among: RowSet | None = None) -> TopologyPairCounts:
        """Return the sums by value id of `key` over the rows in `among` (None: every row)."""
        table = self.table
        if table.versions.at[LABELS] > self._stamp:
            self._domains.clear()
        if not self._domains:
            self._stamp = table.versions.now
        place = (key, 0 if among is None else among.number)
        domains = self._domains.get(place)
        if domains is None:
            if len(self._domains) >= _DOMAINS_LIMIT:
                self._domains.clear()
            column = table.label(key)
            counts = self._summed(column, among)
            mask = None if among is None else among.mask
            domains = self._domains[place] = TopologyPairCounts(column, mask, counts, int(counts.sum()))
        return domains

    def _summed(self, column: LabelColumn, among: RowSet | None) -> Ints:
        rows, amounts = self._arrays()
        numbers = column.ids[rows]
        chosen = numbers >= 0
        if among is not None:
            chosen &= among.mask[rows]
        counts = np.zeros(len(column.values) + 1, dtype=np.int64)
        np.add.at(counts, numbers[chosen], amounts[chosen])
        return counts

    def _arrays(self) -> tuple[Ints, Ints]:
        """Return the rows with a nonzero amount, with their amounts."""
        if len(self.by_row) * _DENSE < self.table.capacity:
            return self._listed()
        # use a full column, which now takes at most as much memory as the sparse form, and is several times faster to
        # read
        column = self.rows()
        there = column.nonzero()[0]
        return there, column[there]

    def _listed(self) -> tuple[Ints, Ints]:
        size = len(self.by_row)
        rows = np.fromiter(self.by_row.keys(), dtype=np.int64, count=size)
        return rows, np.fromiter(self.by_row.values(), dtype=np.int64, count=size)
