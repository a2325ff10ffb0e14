"""Tests of columns of time: merged columns have the same sums as their entries, even for late entries."""

import random
from itertools import pairwise

import numpy as np
import pytest

from kschedd.report.axis import MOST_COLUMNS, WIDTHS_S, Counts, Examples, Levels, TimeAxis


def test_each_width_is_a_multiple_of_the_one_before() -> None:
    assert all(wider % narrower == 0 for narrower, wider in pairwise(WIDTHS_S))


def test_a_day_has_columns_of_five_minutes_and_half_a_year_of_a_day() -> None:
    axis = TimeAxis()
    assert (axis.column(299.9), axis.width_s) == (299, 1)
    assert (axis.column(86_399), axis.width_s) == (287, 300)
    assert (axis.column(180 * 86_400), axis.width_s) == (180, 86_400)


def test_beyond_the_last_width_columns_double() -> None:
    axis = TimeAxis()
    far = WIDTHS_S[-1] * MOST_COLUMNS * 3
    assert axis.column(far) < MOST_COLUMNS
    assert axis.width_s == WIDTHS_S[-1] * 4


@pytest.mark.parametrize("seed", range(10))
def test_levels_add_up_to_the_integral_of_what_was_set(seed: int) -> None:
    """Compare with the plain rule: the sum over all seconds of the amount set at that second."""
    rng = random.Random(seed)
    axis = TimeAxis()
    levels = Levels(axis)
    end = rng.choice((250, 2_000, 9_000))
    plain = np.zeros((3, end))
    now = 0
    while now < end:
        thing, value = rng.randrange(3), float(rng.randrange(5))
        levels.set_one(thing, value, float(now))
        plain[thing, now:] = value
        now += rng.choice((0, 1, 1, 7, 300))
    sums = levels.sums(3, float(end))
    axis.column(end)
    width = axis.width_s
    expected = [[row[at : at + width].sum() for at in range(0, end, width)] for row in plain]
    assert sums[:, : len(expected[0])] == pytest.approx(np.array(expected))
    assert sums[:, len(expected[0]) :].sum() == 0


def test_a_part_of_a_second_counts_for_its_part() -> None:
    axis = TimeAxis()
    levels = Levels(axis)
    levels.set_one(0, 2.0, 0.25)
    levels.set_one(0, 0.0, 1.5)
    assert levels.sums(1, 3.0)[0, :3].tolist() == [1.5, 1.0, 0.0]


def test_counts_and_examples_are_merged_along() -> None:
    axis = TimeAxis()
    counts, examples = Counts(axis, ("a", "b")), Examples[int](axis, 2)
    for second in range(600):
        counts.add("b", second)
        if examples.wants(second):
            examples.add(second, second)
    assert axis.width_s == 5
    assert counts.of("a").sum() == 0
    assert counts.of("b")[:120].tolist() == [5] * 120
    assert list(examples.of(0)) == [0, 1]
    assert list(examples.of(119)) == [595, 596]
    assert not examples.wants(3)
