"""Normalizing makes the highest raw score 100 and keeps the proportions, truncated."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.framework.normalize import default_normalize, highest, lowest


def _plain(scores: list[int], reverse: bool) -> list[int]:
    most = max(scores, default=0)
    if most == 0:
        return [100 if reverse else score for score in scores]
    return [100 - score * 100 // most if reverse else score * 100 // most for score in scores]


@given(st.lists(st.integers(0, 300) | st.just(0)), st.booleans())
def test_columns_are_normalized_as_one_by_one(scores: list[int], reverse: bool) -> None:
    assert default_normalize(np.array(scores, dtype=np.int64), reverse).tolist() == _plain(scores, reverse)


@pytest.mark.parametrize(
    ("scores", "reverse", "normalized"),
    [
        pytest.param([0, 0], False, [0, 0], id="all-zero"),
        pytest.param([0, 0], True, [100, 100], id="all-zero-reversed"),
        pytest.param([3, 1, 0], False, [100, 33, 0], id="truncated"),
        pytest.param([3, 1, 0], True, [0, 67, 100], id="truncated-before-it-is-reversed"),
    ],
)
def test_the_highest_raw_score_becomes_100(scores: list[int], reverse: bool, normalized: list[int]) -> None:
    assert default_normalize(np.array(scores, dtype=np.int64), reverse).tolist() == normalized


def test_the_lowest_and_the_highest_score() -> None:
    scores = np.array([3, -1, 7, 7, 0])
    assert (lowest(scores), highest(scores)) == (-1, 7)
