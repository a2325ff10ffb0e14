"""Tests of instruments and their text format."""

import pytest

from kschedd.metrics.exposition import text_of
from kschedd.metrics.instruments import (
    MOST_SERIES,
    MOST_UNSORTED,
    OTHERS,
    Counter,
    Distribution,
    Histogram,
    Metric,
    MetricFamily,
    exponential,
)

SECONDS = Metric("x_seconds", "histogram", "How long x took.", ("of",), (0.5, 1.0))


@pytest.mark.parametrize(
    ("value", "counts"),
    [
        pytest.param(0.1, (1, 0, 0), id="below-the-first-bound"),
        pytest.param(0.5, (1, 0, 0), id="at-a-bound-it-is-below-it"),
        pytest.param(0.75, (0, 1, 0), id="between"),
        pytest.param(7.0, (0, 0, 1), id="above-all"),
    ],
)
def test_an_observation_is_in_one_bucket(value: float, counts: tuple[int, ...]) -> None:
    histogram = Histogram(SECONDS)
    histogram.observe(value, "a")
    assert histogram.family().samples == {("a",): Distribution(counts, value)}


@pytest.mark.parametrize("count", [3, MOST_UNSORTED - 1, 3 * MOST_UNSORTED + 5])
def test_observations_that_are_sorted_together_are_where_each_of_them_belongs(count: int) -> None:
    values = [(0.1, 0.5, 0.75, 1.0, 7.0)[number % 5] for number in range(count)]
    one_by_one, together = Histogram(SECONDS), Histogram(SECONDS)
    for value in values:
        one_by_one.observe(value, "a")
        one_by_one.family()
    together.series("a").observe_all(values[:7])
    together.series("a").observe_all(values[7:])
    assert together.family().samples["a",].counts == one_by_one.family().samples["a",].counts
    assert together.family().samples["a",].sum == pytest.approx(sum(values))


def test_a_series_at_hand_that_saw_nothing_is_not_shown() -> None:
    histogram = Histogram(SECONDS)
    histogram.series("a")
    assert histogram.family().samples == {}


def test_bounds_are_those_of_upstream_to_the_last_digit() -> None:
    """Compare the text of `le`, by which other tools match series; 0.00001 · 1.5 is not 0.000015 in floating point."""
    assert exponential(0.00001, 1.5, 3) == (1e-05, 1.5000000000000002e-05, 2.2500000000000005e-05)


def test_labels_that_strangers_choose_do_not_grow_without_end() -> None:
    counter = Counter(Metric("c_total", "counter", "c", ("reason",)))
    for number in range(MOST_SERIES + 10):
        counter.add(f"reason {number}")
    samples = counter.family().samples
    assert (len(samples), samples[OTHERS,]) == (MOST_SERIES + 1, 10)


def test_the_text_is_ordered_escaped_and_cumulative() -> None:
    histogram = Histogram(SECONDS)
    for value in (0.1, 0.75, 9.0):
        histogram.observe(value, 'a "b"\n')
    gauge = MetricFamily(Metric("a_size", "gauge", "Sizes."), {(): 3})
    assert text_of([histogram.family(), gauge]).splitlines() == [
        "# HELP a_size Sizes.",
        "# TYPE a_size gauge",
        "a_size 3.0",
        "# HELP x_seconds How long x took.",
        "# TYPE x_seconds histogram",
        'x_seconds_bucket{le="0.5",of="a \\"b\\"\\n"} 1.0',
        'x_seconds_bucket{le="1.0",of="a \\"b\\"\\n"} 2.0',
        'x_seconds_bucket{le="+Inf",of="a \\"b\\"\\n"} 3.0',
        'x_seconds_count{of="a \\"b\\"\\n"} 3.0',
        'x_seconds_sum{of="a \\"b\\"\\n"} 9.85',
    ]
