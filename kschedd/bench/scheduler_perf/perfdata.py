"""Results in the format of scheduler_perf and perfdash, and the comparison with thresholds.

A data item has a unit, figures, and labels (Name, Metric, and the metric's own labels): Average, Perc50, Perc90,
Perc95, Perc99. Histograms are summarized from their buckets, as by Prometheus; seconds are converted to milliseconds.

Source: Kubernetes v1.34, test/integration/scheduler_perf/{scheduler_perf,util}.go (DataItems, collectHistogramVec,
applyThreshold); component-base/metrics/testutil (Quantile).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Final

import attrs

from kschedd.bench.scheduler_perf.cases import MetricsCollectorConfig, ThresholdMetricSelector
from kschedd.metrics.instruments import Distribution, MetricFamily

_PERCENTS: Final = (50, 90, 95, 99)
_NOT_APPLICABLE: Final = "not applicable"
_RESULTS: Final = ("scheduled", "unschedulable", "error")
_POINTS: Final = (
    *("QueueSort", "PreEnqueue", "PreFilter", "Filter", "PreFilterExtensionAddPod", "PreFilterExtensionRemovePod"),
    *("PostFilter", "PreScore", "Score", "ScoreExtensionNormalize"),
    *("PreBind", "Bind", "PostBind", "Reserve", "Unreserve", "Permit"),
)

DEFAULT_COLLECTOR: Final = MetricsCollectorConfig(
    metrics={
        "scheduler_framework_extension_point_duration_seconds": [{"label": "extension_point", "values": _POINTS}],
        "scheduler_scheduling_attempt_duration_seconds": [{"label": "result", "values": _RESULTS}],
        "scheduler_pod_scheduling_sli_duration_seconds": None,
    }
)


@attrs.define
class DataItem:
    labels: dict[str, str]
    unit: str
    data: dict[str, float]

    def as_raw(self) -> dict[str, Any]:
        return {"data": self.data, "unit": self.unit, "labels": self.labels}


def throughput(name: str, rates: Sequence[float]) -> DataItem:
    """Return the pods per second in the intervals of a measurement; only labels if there are no intervals."""
    labels = {"Name": name, "Metric": "SchedulingThroughput"}
    if not rates:
        return DataItem(labels, "pods/s", {})
    ordered = sorted(rates)
    data = {"Average": sum(ordered) / len(ordered)}
    data |= {f"Perc{percent}": ordered[-(-len(ordered) * percent // 100) - 1] for percent in _PERCENTS}
    return DataItem(labels, "pods/s", data)


def histograms(name: str, config: MetricsCollectorConfig, families: Iterable[MetricFamily]) -> list[DataItem]:
    """Return a data item for each configured histogram and combination of label values."""
    known = {family.metric.name: family for family in families if family.metric.kind == "histogram"}
    items = []
    for metric, wanted in config.metrics.items():
        family = known.get(metric)
        for labels in _combinations(wanted) if family is not None else ():
            assert family is not None, "only a family that is there has combinations"
            distribution = _matching(family, labels)
            if distribution is not None:
                data = _summary(distribution, family.metric.bounds)
                items.append(DataItem({"Name": name, "Metric": metric, **labels}, "ms", data))
    return items


def _combinations(wanted: Any) -> Iterable[dict[str, str]]:
    if not wanted:
        return [{}]
    lists = [wanted] if isinstance(wanted, Mapping) else wanted
    labels = [each["label"] for each in lists]
    return [dict(zip(labels, values, strict=True)) for values in product(*(each["values"] for each in lists))]


def _matching(family: MetricFamily, labels: Mapping[str, str]) -> Distribution | None:
    """Return the sum of the samples with these labels; None if there was no observation."""
    places = {name: place for place, name in enumerate(family.metric.labels)}
    if not labels.keys() <= places.keys():
        return None
    found = [
        sample
        for values, sample in family.samples.items()
        if isinstance(sample, Distribution) and all(values[places[name]] == value for name, value in labels.items())
    ]
    counts = tuple(map(sum, zip(*(each.counts for each in found), strict=True)))
    return Distribution(counts, sum(each.sum for each in found)) if sum(counts) else None


def since(now: Iterable[MetricFamily], before: Iterable[MetricFamily]) -> list[MetricFamily]:
    """Return the observations of the histograms between two readings."""
    then = {family.metric.name: family.samples for family in before}
    grown = []
    for family in now:
        old = then.get(family.metric.name, {})
        samples = {labels: _less(sample, old.get(labels)) for labels, sample in family.samples.items()}
        grown.append(MetricFamily(family.metric, samples))
    return grown


def _less(sample: float | Distribution, before: float | Distribution | None) -> float | Distribution:
    if not isinstance(sample, Distribution) or not isinstance(before, Distribution):
        return sample
    counts = tuple(now - then for now, then in zip(sample.counts, before.counts, strict=True))
    return Distribution(counts, sample.sum - before.sum)


def _summary(distribution: Distribution, bounds: Sequence[float]) -> dict[str, float]:
    data = {f"Perc{percent}": 1e3 * quantile(percent / 100, distribution.counts, bounds) for percent in _PERCENTS}
    return {"Average": 1e3 * distribution.sum / distribution.count, **data}


def quantile(share: float, counts: Sequence[int], bounds: Sequence[float]) -> float:
    """Return a quantile, assuming that a bucket's observations are spread evenly.

    Above all bounds, return the highest bound.
    """
    rank = share * sum(counts)
    below = 0
    for place, bound in enumerate(bounds):
        if below + counts[place] >= rank and counts[place]:
            lower = bounds[place - 1] if place else 0.0
            return lower + (bound - lower) * (rank - below) / counts[place]
        below += counts[place]
    return bounds[-1]


def missed_thresholds(items: Iterable[DataItem], limit: float, selector: ThresholdMetricSelector) -> list[str]:
    """Add the threshold to the items to which it applies. Return a message for each missed threshold.

    The messages are those of upstream.
    """
    if not limit:
        return []
    missed = []
    for item in items:
        labels = item.labels
        if labels["Metric"] != selector.name or any(labels.get(key) != value for key, value in selector.labels.items()):
            continue
        bucket = selector.data_bucket
        value = item.data.get(bucket)
        item.data[f"{bucket}Threshold"] = limit
        if value is None:
            missed.append(f'{labels["Name"]}: no data present for "{selector.name}" metric "{bucket}" bucket')
        elif (value >= limit) if selector.expect_lower else (value <= limit):
            side = "lower" if selector.expect_lower else "higher"
            missed.append(
                f'{labels["Name"]}: expected "{selector.name}" "{bucket}" to be {side}: got {value:f}, want {limit:f}'
            )
    return missed


def as_json(items: Iterable[DataItem]) -> str:
    """Return the items as JSON.

    A label that only other items have is added as "not applicable", because perfdash does not show items with missing
    labels.
    """
    kept = [item for item in items if item.data]
    names = sorted({name for item in kept for name in item.labels})
    raws = [
        {**item.as_raw(), "labels": {name: item.labels.get(name, _NOT_APPLICABLE) for name in names}} for item in kept
    ]
    return json.dumps({"version": "v1", "dataItems": raws}, indent=2)
