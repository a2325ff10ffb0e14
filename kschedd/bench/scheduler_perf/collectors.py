"""The figures collected during a measurement: scheduling throughput, and the scheduler's own histograms.

Upstream counts the bound pods once a second, drops the first sample, and averages an interval without bindings with the
next one. kschedd often schedules all measured pods within a second. The intervals are then shorter, so that a
measurement has at least ten intervals, and the result includes their length.
"""

from collections.abc import Sequence
from typing import Final

import attrs

from kschedd.bench.scheduler_perf.cases import MetricsCollectorConfig
from kschedd.bench.scheduler_perf.perfdata import DataItem, histograms, since, throughput
from kschedd.bench.scheduler_perf.pod_tracker import PodTracker
from kschedd.metrics.instruments import MetricFamily

SAMPLE_S: Final = 1.0
_FEWEST: Final = 10


@attrs.frozen(eq=False)
class Collection:
    """A measurement in progress, with the values at its beginning.

    `began` is the start time in seconds, `first` the number of bindings, `families` the metrics.
    """

    name: str
    namespaces: tuple[str, ...]
    selector: dict[str, str]
    config: MetricsCollectorConfig
    began: float
    first: int
    families: Sequence[MetricFamily]


@attrs.frozen(eq=False)
class Collected:
    items: list[DataItem]
    pods: int
    took_s: float
    sample_s: float  # length of an interval


def collected(begun: Collection, tracker: PodTracker, now: float, families: Sequence[MetricFamily]) -> Collected:
    times = [each.at for each in tracker.bound_since(begun.first, begun.namespaces, begun.selector)]
    # A measurement ends with its last pod: upstream polls for the end, and does not count the time of polling either.
    end = max(times, default=now)
    sample_s = interval(end - begun.began)
    items = [throughput(begun.name, rates(times, begun.began, end, sample_s))]
    items += histograms(begun.name, begun.config, since(families, begun.families))
    return Collected(items, len(times), end - begun.began, sample_s)


def interval(took_s: float) -> float:
    """Return the interval in seconds: 1, as upstream, or a smaller power of ten if too few intervals of 1 s fit."""
    length = SAMPLE_S
    while took_s < _FEWEST * length and length > 1e-6:
        length /= 10
    return length


def rates(times: Sequence[float], began: float, end: float, sample_s: float) -> list[float]:
    """Return the pods per second in each interval between the first pod and the end."""
    if not times:
        return []
    ordered = sorted(times)
    found: list[float] = []
    place, last_count, last_at, skipped, started = 0, 0, began, 0, False
    for number in range(1, int((end - began) / sample_s + 1e-9) + 1):
        at = began + number * sample_s
        while place < len(ordered) and ordered[place] <= at:
            place += 1
        if not place:
            continue
        if not started:
            started, last_count, last_at = True, place, at
        elif place == last_count:
            skipped += 1
        else:
            rate = (place - last_count) / (at - last_at)
            found += [rate] * (skipped + 1)
            last_count, last_at, skipped = place, at, 0
    if not found:  # all pods were bound within one interval
        return [len(ordered) / max(end - began, 1e-9)]
    return found
