"""Tests that filtering rows by one filter after the other gives the same result as calling all filters for all rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kschedd.scheduling.filter_pass import FilterPass
from kschedd.scheduling.verdicts import PASSED

_ROWS = 12
_codes = st.lists(st.sampled_from([0, 0, 0, 3, 7]), min_size=_ROWS, max_size=_ROWS)


@given(st.lists(_codes, max_size=4))
def test_the_first_that_rejects_a_row_is_named(filters: list[list[int]]) -> None:
    names = np.arange(100, 100 + _ROWS, dtype=np.int64)
    sifted = FilterPass(names)
    for place, codes in enumerate(filters):
        sifted.reject(place, np.array(codes, dtype=np.int64)[sifted.passing - 100])
    expected = []
    for row in range(_ROWS):
        who = next((place for place, codes in enumerate(filters) if codes[row]), None)
        expected.append((PASSED, 0) if who is None else (who, filters[who][row]))
    failed, code = sifted.columns()
    assert list(zip(failed.tolist(), code.tolist(), strict=True)) == expected
    assert (sifted.passing - 100).tolist() == [row for row, (who, _) in enumerate(expected) if who == PASSED]
