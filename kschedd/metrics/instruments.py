"""Instruments: counters and histograms as plain numbers, and the metric families that they return.

An instrument belongs to one task and has no lock: this task writes to it, and returns a copy (`family`) on request. A
write takes a tenth of a microsecond if the caller stores the series (`series`). Observations are sorted into their
buckets in batches: when the histogram is read, or when enough observations have accumulated.

A family with labels has a sample for each combination that has occurred; a family without labels always has one sample.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import accumulate
from operator import mul
from typing import Final, Literal

import attrs
import numpy as np

Labels = tuple[str, ...]
Kind = Literal["counter", "gauge", "histogram"]
Stability = Literal["", "ALPHA", "BETA", "STABLE"]

MOST_SERIES: Final = 1_000
"""The maximum number of label combinations per family; further ones are counted under OTHERS."""
OTHERS: Final = "others"
MOST_UNSORTED: Final = 1_024
"""The maximum number of observations that are not in their buckets yet."""
_FEW: Final = 16  # number of observations below which numpy takes more time than it saves


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return `count` upper bounds of buckets, each `factor` times the previous one.

    Each bound is computed from the previous bound, as in kube-scheduler.
    """
    return tuple(accumulate([start] + [factor] * (count - 1), mul))


@attrs.frozen
class Metric:
    """The name and the meaning of a metric family.

    `bounds` are the ascending upper bounds of a histogram's buckets; `stability` is Kubernetes' stability level, or ""
    for metrics that are not part of Kubernetes.
    """

    name: str
    kind: Kind
    help: str
    labels: Labels = ()
    bounds: tuple[float, ...] = ()
    stability: Stability = ""


@attrs.frozen
class Distribution:
    """The sample of a histogram: observations in each bucket (the last one is above all bounds), and their sum."""

    counts: tuple[int, ...]
    sum: float

    @property
    def count(self) -> int:
        return sum(self.counts)


@attrs.frozen
class MetricFamily:
    """A metric and its samples by label values."""

    metric: Metric
    samples: Mapping[Labels, float | Distribution]


class Counter:
    """A counter for each combination of labels."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.counts: dict[Labels, float] = {} if metric.labels else {(): 0}

    def add(self, *labels: str, amount: float = 1) -> None:
        counts = self.counts
        try:
            counts[labels] += amount
        except KeyError:
            if len(counts) >= MOST_SERIES:
                labels = (OTHERS,) * len(labels)
            counts[labels] = counts.get(labels, 0) + amount

    def family(self) -> MetricFamily:
        return MetricFamily(self.metric, dict(self.counts))


class HistogramSeries:
    """The observations of a histogram for one combination of labels."""

    __slots__ = ("_bounds", "_counts", "_sum", "_unsorted")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0
        self._unsorted: list[float] = []

    def observe(self, value: float) -> None:
        unsorted = self._unsorted
        unsorted.append(value)
        if len(unsorted) >= MOST_UNSORTED:
            self._sort()

    def observe_all(self, values: Iterable[float]) -> None:
        self._unsorted += values
        if len(self._unsorted) >= MOST_UNSORTED:
            self._sort()

    def observe_many(self, value: float, times: int) -> None:
        """Record one value `times` times."""
        self._counts[bisect_left(self._bounds, value)] += times
        self._sum += value * times

    @property
    def distribution(self) -> Distribution:
        """The distribution of all observations."""
        self._sort()
        return Distribution(tuple(self._counts), self._sum)

    def _sort(self) -> None:
        values, self._unsorted = self._unsorted, []
        self._sum = sum(values, self._sum)
        if len(values) < _FEW:
            for value in values:
                self._counts[bisect_left(self._bounds, value)] += 1
            return
        more = np.bincount(np.searchsorted(self._bounds, values), minlength=len(self._counts))
        self._counts = [count + added for count, added in zip(self._counts, more.tolist(), strict=True)]


class Histogram:
    """The distribution of the observations for each combination of labels."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self._series: dict[Labels, HistogramSeries] = {}

    def series(self, *labels: str) -> HistogramSeries:
        """Return the series with these labels; frequent writers should store it."""
        found = self._series.get(labels)
        if found is None:
            if len(self._series) >= MOST_SERIES:
                labels = (OTHERS,) * len(labels)
            found = self._series.setdefault(labels, HistogramSeries(self.metric.bounds))
        return found

    def observe(self, value: float, *labels: str) -> None:
        self.series(*labels).observe(value)

    def family(self) -> MetricFamily:
        """Return the family; a histogram with labels omits series without observations."""
        if not self.metric.labels:
            self.series()
        shown = {labels: each.distribution for labels, each in self._series.items()}
        return MetricFamily(self.metric, {labels: each for labels, each in shown.items() if each.count or not labels})
