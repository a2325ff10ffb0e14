"""Tests of significance: an exact rank test, corrected for the number of rows, and an interval for the ratio."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.bench.noise import FASTER, NOISE, SLOWER, UNKNOWN, bootstrap_ratio, holm, least_p, mann_whitney, verdicts

FAST = [110.0, 112, 111, 113, 114]
SLOW = [100.0, 99, 101, 98, 102]
MIXED = [100.0, 113, 99, 112, 105]


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        pytest.param(FAST, SLOW, 2 / 252, id="apart"),
        pytest.param([1.0, 2, 3], [4.0, 5, 6], 0.1, id="three-each-cannot-be-less"),
        pytest.param([1.0], [2.0], 1.0, id="one-each-says-nothing"),
        pytest.param([1.0, 1, 1], [1.0, 1, 1], 1.0, id="equal"),
        pytest.param([], [1.0], 1.0, id="none"),
    ],
)
def test_mann_whitney_is_exact(first, second, p) -> None:
    assert mann_whitney(first, second) == pytest.approx(p)
    assert mann_whitney(second, first) == pytest.approx(p)


@given(st.integers(1, 4), st.integers(1, 4), st.randoms(use_true_random=False))
def test_mann_whitney_counts_the_splits_that_are_as_uneven(n, m, random) -> None:
    values = random.sample(range(1000), n + m)

    def won(chosen) -> int:
        others = [value for value in values if value not in chosen]
        return sum(a > b for a in chosen for b in others)

    here = won(values[:n])
    splits = [won(chosen) for chosen in itertools.combinations(values, n)]
    as_uneven = [each for each in splits if min(each, n * m - each) <= min(here, n * m - here)]
    if here * 2 == n * m:
        as_uneven = splits
    assert mann_whitney(values[:n], values[n:]) == pytest.approx(len(as_uneven) / len(splits))


def test_four_runs_each_can_tell() -> None:
    assert least_p(3, 3) == pytest.approx(0.1)
    assert least_p(4, 4) == pytest.approx(2 / 70)


def test_holm_takes_the_number_of_rows_into_account() -> None:
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_the_interval_holds_the_ratio_and_is_the_same_each_time() -> None:
    low, high = bootstrap_ratio(FAST, SLOW)
    assert 1.05 < low < 112 / 100 < high < 1.2
    assert bootstrap_ratio(FAST, SLOW) == (low, high)


@pytest.mark.parametrize(
    ("later", "earlier", "kind", "words"),
    [
        pytest.param(FAST, SLOW, FASTER, "faster by 12.0 % (", id="faster"),
        pytest.param(SLOW, FAST, SLOWER, "slower by 10.7 % (", id="slower"),
        pytest.param(MIXED, SLOW, NOISE, "within noise (", id="overlapping"),
        pytest.param(
            FAST[:3], SLOW[:3], UNKNOWN, "not enough runs: 3 and 3 runs, at least 4 each (--runs)", id="too-few"
        ),
        pytest.param([110.0], [100.0], UNKNOWN, "not enough runs: 1 and 1 runs", id="single"),
    ],
)
def test_a_verdict_is_said_in_words(later, earlier, kind, words) -> None:
    (verdict,) = verdicts([(later, earlier)])
    assert verdict.kind == kind
    assert verdict.text.startswith(words)


def test_among_many_rows_one_uneven_split_is_chance() -> None:
    quiet = [(SLOW, SLOW)] * 9
    (first, *_) = verdicts([(FAST, SLOW), *quiet])
    assert first.kind == NOISE
    (alone,) = verdicts([(FAST, SLOW)])
    assert alone.kind == FASTER


def test_rows_that_cannot_tell_do_not_weigh_on_the_others() -> None:
    single = [([1.0], [1.0])] * 9
    (first, *_) = verdicts([(FAST, SLOW), *single])
    assert first.kind == FASTER
