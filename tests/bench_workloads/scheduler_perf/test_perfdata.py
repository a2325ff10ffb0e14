"""Tests that data items are as scheduler_perf writes them: summaries of rates and histograms, with thresholds."""

import json

import pytest

from kschedd.bench.scheduler_perf.cases import MetricsCollectorConfig, ThresholdMetricSelector
from kschedd.bench.scheduler_perf.collectors import interval, rates
from kschedd.bench.scheduler_perf.perfdata import as_json, histograms, missed_thresholds, quantile, since, throughput
from kschedd.metrics.instruments import Histogram, Metric

METRIC = Metric("attempt_seconds", "histogram", "", ("result", "profile"), (0.001, 0.002, 0.004))


@pytest.mark.parametrize(
    ("share", "counts", "expected"),
    [
        pytest.param(0.5, (4, 0, 0, 0), 0.0005, id="evenly-within-the-first"),
        pytest.param(0.5, (1, 2, 1, 0), 0.0015, id="within-the-second"),
        pytest.param(0.99, (1, 0, 0, 9), 0.004, id="above-all-bounds-is-the-highest"),
        pytest.param(1.0, (2, 0, 2, 0), 0.004, id="all"),
    ],
)
def test_quantiles_are_as_prometheus_has_them(share, counts, expected) -> None:
    assert quantile(share, counts, METRIC.bounds) == pytest.approx(expected)


def observed(*values: tuple[float, str, str]) -> Histogram:
    histogram = Histogram(METRIC)
    for value, result, profile in values:
        histogram.observe(value, result, profile)
    return histogram


def test_a_histogram_is_summed_over_the_labels_that_are_not_named() -> None:
    histogram = observed((0.0005, "scheduled", "a"), (0.0015, "scheduled", "b"), (0.003, "error", "a"))
    config = MetricsCollectorConfig(
        metrics={
            "attempt_seconds": [{"label": "result", "values": ["scheduled", "error", "unschedulable"]}],
            "none": None,
        }
    )
    items = histograms("w", config, [histogram.family()])
    assert [item.labels["result"] for item in items] == ["scheduled", "error"]
    assert items[0].data["Average"] == pytest.approx(1.0)
    assert items[0].unit == "ms"
    (whole,) = histograms("w", MetricsCollectorConfig(metrics={"attempt_seconds": None}), [histogram.family()])
    assert whole.data["Average"] == pytest.approx(5 / 3)


def test_only_what_was_observed_in_between_counts() -> None:
    histogram = observed((0.5, "scheduled", "a"))
    before = [histogram.family()]
    histogram.observe(0.001, "scheduled", "a")
    config = MetricsCollectorConfig(metrics={"attempt_seconds": None})
    (item,) = histograms("w", config, since([histogram.family()], before))
    assert item.data["Average"] == pytest.approx(1.0)


def test_a_measurement_has_ten_intervals_at_least() -> None:
    assert [interval(took) for took in (60.0, 9.0, 0.25)] == [1.0, pytest.approx(0.1), pytest.approx(0.01)]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        pytest.param([0.5, 1.5, 2.5, 2.6], [1.0, 2.0], id="the-first-interval-is-left-out"),
        pytest.param([0.5, 3.5], [pytest.approx(1 / 3)] * 3, id="a-pause-is-spread-over-its-intervals"),
        pytest.param([1.5, 2.5], [1.0], id="before-the-first-pod-nothing-is-sampled"),
        pytest.param([], [], id="no-pod"),
    ],
)
def test_rates(times, expected) -> None:
    assert rates(times, 0.0, 4.0, 1.0) == expected


def test_pods_within_one_interval_are_over_the_whole_time() -> None:
    assert rates([0.1, 0.2], 0.0, 0.2, 1.0) == [pytest.approx(10.0)]


@pytest.mark.parametrize(
    ("selector", "limit", "missed"),
    [
        pytest.param(ThresholdMetricSelector(data_bucket="Average"), 15, False, id="above"),
        pytest.param(ThresholdMetricSelector(data_bucket="Average"), 20, True, id="equal-is-missed"),
        pytest.param(ThresholdMetricSelector(data_bucket="Average", expect_lower=True), 25, False, id="expected-lower"),
        pytest.param(ThresholdMetricSelector(data_bucket="Average", expect_lower=True), 5, True, id="too-high"),
        pytest.param(ThresholdMetricSelector(data_bucket="Perc42"), 5, True, id="no-such-figure"),
        pytest.param(ThresholdMetricSelector(data_bucket="Average"), 0, False, id="no-threshold"),
        pytest.param(ThresholdMetricSelector(name="other", data_bucket="Average"), 99, False, id="another-metric"),
    ],
)
def test_thresholds(selector, limit, missed) -> None:
    item = throughput("w", [10.0, 30.0])
    answer = missed_thresholds([item], limit, selector)
    assert bool(answer) is missed
    assert (f"{selector.data_bucket}Threshold" in item.data) is bool(limit and selector.name != "other")


def test_perfdash_finds_every_label_in_every_item() -> None:
    (attempt,) = histograms(
        "w",
        MetricsCollectorConfig(metrics={"attempt_seconds": [{"label": "result", "values": ["error"]}]}),
        [observed((0.1, "error", "a")).family()],
    )
    written = json.loads(as_json([throughput("w", [10.0, 30.0]), attempt, throughput("empty", [])]))
    assert written["version"] == "v1"
    rate, other = written["dataItems"]
    assert rate == {
        "data": {"Average": 20.0, "Perc50": 10.0, "Perc90": 30.0, "Perc95": 30.0, "Perc99": 30.0},
        "unit": "pods/s",
        "labels": {"Metric": "SchedulingThroughput", "Name": "w", "result": "not applicable"},
    }
    assert other["labels"]["result"] == "error"
