"""FilterPass: the rows that pass the filters called so far; rejections are computed on demand.

A filter is called only on the rows that no earlier filter rejected, so later filters see fewer rows. A filter's codes
are stored without processing, because most pods find a node and their rejections are never read.

Shapes: places are ascending indices into `rows`.
"""

import attrs
import numpy as np
from numpy import count_nonzero  # several times faster than `all` and `any` of a boolean array

from kschedd.cache.table import Ints, Rows
from kschedd.scheduling.verdicts import PASSED, Places


@attrs.define(eq=False)
class FilterPass:
    """A pass of filters over `rows`.

    `places` contains the positions that have passed so far; None means all positions.
    """

    rows: Rows
    places: Ints | None = None
    _codes: list[tuple[int, Ints | None, Ints]] = attrs.field(factory=list)  # (index of filter, its places, its codes)
    _passing: Rows | None = attrs.field(default=None, init=False)  # None until requested

    @property
    def passing(self) -> Rows:
        """The rows that have passed so far."""
        if self._passing is None:
            self._passing = self.rows if self.places is None else self.rows[self.places]
        return self._passing

    def reject(self, who: int, codes: Ints) -> None:
        """Apply a filter's codes to the passing rows; code 0 lets a row pass."""
        passed = codes == 0
        count = count_nonzero(passed)
        if count == len(codes):
            return
        self._codes.append((who, self.places, codes))
        places = passed.nonzero()[0]
        self.places = places if self.places is None else self.places[places]
        self._passing = None

    def columns(self) -> tuple[Places, Ints]:
        """Return for each row the index of the rejecting filter (PASSED if none) and the code of that filter."""
        failed = np.full(len(self.rows), PASSED, dtype=np.int16)
        codes = np.zeros(len(failed), dtype=np.int64)
        for who, places, found in self._codes:
            rejected = found.nonzero()[0]
            where = rejected if places is None else places[rejected]
            failed[where] = who
            codes[where] = found[rejected]
        return failed, codes
