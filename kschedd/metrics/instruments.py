"""Instruments: counters and histograms as plain numbers, and what of them is shown: families of samples.

An instrument belongs to one task and has no lock: its owner writes to it, and answers with a copy (`family`) when it is
asked. Writing costs a tenth of a microsecond where the series is kept at hand (`series`): observations are put into
their buckets many at once, when somebody looks or when enough of them have come together.
A family that has labels shows a sample for each combination that has occurred, one without labels always.
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
"""Combinations of labels that a family keeps; what comes after them is counted under OTHERS."""
OTHERS: Final = "others"
MOST_UNSORTED: Final = 1_024
"""Observations that are not in their buckets yet: so many are kept, at most."""
_FEW: Final = 16  # observations for which numpy costs more than it saves


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """`count` upper bounds of buckets, each `factor` times the one before: multiplied in turn, as upstream does."""
    return tuple(accumulate([start] + [factor] * (count - 1), mul))


@attrs.frozen
class Metric:
    """What a family is called, and what it means. `bounds`: the upper bounds of a histogram's buckets, ascending;
    `stability`: how far Kubernetes promises the metric, "" for those that are not its."""

    name: str
    kind: Kind
    help: str
    labels: Labels = ()
    bounds: tuple[float, ...] = ()
    stability: Stability = ""


@attrs.frozen
class Distribution:
    """A histogram's sample: the observations in each bucket, those above all bounds last; and their sum."""

    counts: tuple[int, ...]
    sum: float

    @property
    def count(self) -> int:
        return sum(self.counts)


@attrs.frozen
class MetricFamily:
    """A metric and its samples, by the values of its labels."""

    metric: Metric
    samples: Mapping[Labels, float | Distribution]


class Counter:
    """A count for each combination of labels."""

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
    """The observations of a histogram with one combination of labels."""

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
        """The same value, so many times."""
        self._counts[bisect_left(self._bounds, value)] += times
        self._sum += value * times

    @property
    def distribution(self) -> Distribution:
        """All that was observed."""
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
    """The distribution of what is observed, for each combination of labels."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self._series: dict[Labels, HistogramSeries] = {}

    def series(self, *labels: str) -> HistogramSeries:
        """The series of these labels, to be kept where it is written to often."""
        found = self._series.get(labels)
        if found is None:
            if len(self._series) >= MOST_SERIES:
                labels = (OTHERS,) * len(labels)
            found = self._series.setdefault(labels, HistogramSeries(self.metric.bounds))
        return found

    def observe(self, value: float, *labels: str) -> None:
        self.series(*labels).observe(value)

    def family(self) -> MetricFamily:
        """Of a histogram with labels, without the series in which nothing was observed yet."""
        if not self.metric.labels:
            self.series()
        shown = {labels: each.distribution for labels, each in self._series.items()}
        return MetricFamily(self.metric, {labels: each for labels, each in shown.items() if each.count or not labels})
