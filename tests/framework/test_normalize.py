"""Normalizing the scores of several attempts at once comes to what each comes to by itself."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kschedd.framework.normalize import default_normalize, default_normalize_each

_SCORES = st.integers(1, 5).flatmap(
    lambda size: st.lists(st.lists(st.integers(0, 300) | st.just(0), min_size=size, max_size=size), min_size=1)
)


@given(_SCORES, st.booleans())
def test_each_row_is_normalized_by_itself(scores: list[list[int]], reverse: bool) -> None:
    matrix = np.array(scores, dtype=np.int64)
    expected = [default_normalize(row, reverse).tolist() for row in matrix]
    assert default_normalize_each(matrix, reverse).tolist() == expected
