"""Sifting row after row by one filter after the other comes to what asking every filter about every row does."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kschedd.scheduling.filter_pass import FilterPass
from kschedd.scheduling.verdicts import PASSED

_ROWS = 12
_codes = st.lists(st.sampled_from([0, 0, 0, 3, 7]), min_size=_ROWS, max_size=_ROWS)


def _plain(filters: list[list[int]], most: int) -> tuple[list[int], list[tuple[int, int]]]:
    """The rows that pass and (who rejected, code) of each row looked at, up to the last of `most` that pass."""
    passing: list[int] = []
    verdicts: list[tuple[int, int]] = []
    for row in range(_ROWS):
        who = next((place for place, codes in enumerate(filters) if codes[row]), None)
        verdicts.append((PASSED, 0) if who is None else (who, filters[who][row]))
        if who is None:
            passing.append(row)
            if len(passing) == most:
                break
    return passing, verdicts


@given(st.lists(_codes, max_size=4), st.integers(1, _ROWS + 1))
def test_the_first_that_rejects_a_row_is_named(filters: list[list[int]], most: int) -> None:
    names = np.arange(100, 100 + _ROWS, dtype=np.int64)
    sifted = FilterPass(names)
    for place, codes in enumerate(filters):
        sifted.reject(place, np.array(codes, dtype=np.int64)[sifted.passing - 100])
    sifted.cut(most)
    passing, verdicts = _plain(filters, most)
    assert (sifted.passing - 100).tolist() == passing
    assert (sifted.rows - 100).tolist() == list(range(len(verdicts)))
    failed, code = sifted.columns()
    assert list(zip(failed.tolist(), code.tolist(), strict=True)) == verdicts


@given(st.lists(st.sampled_from([PASSED, 0, 2]), min_size=_ROWS, max_size=_ROWS), st.integers(1, _ROWS + 1))
def test_verdicts_that_are_there_are_cut_alike(told: list[int], most: int) -> None:
    failed = np.array(told, dtype=np.int16)
    codes = np.where(failed == PASSED, 0, failed.astype(np.int64) + 1)
    sifted = FilterPass.of_columns(np.arange(_ROWS, dtype=np.int64), failed, codes)
    sifted.cut(most)
    passing, _ = _plain([[0 if place == PASSED else 1 for place in told]], most)
    assert sifted.passing.tolist() == passing
    assert sifted.columns()[0].tolist() == told[: len(sifted.rows)]
