"""Exposition: metric families in Prometheus' text format."""

import heapq
from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as PrometheusFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from kschedd.metrics.instruments import Distribution, MetricFamily
from kschedd.values import in_parts

__all__ = ["CONTENT_TYPE", "text_of"]

_RUN = 2_000  # samples per sort


def text_of(families: Iterable[MetricFamily], process: bool = False) -> str:
    """Return the families sorted by name, each with its samples sorted by their labels.

    With `process`, append the metrics of the process, `process_…`, with the names that all Prometheus clients use.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(sorted(families, key=lambda family: family.metric.name)))
    if process:
        ProcessCollector(registry=registry)
    return generate_latest(registry).decode()


class _Collected(Collector):
    def __init__(self, families: Iterable[MetricFamily]) -> None:
        self._families = families

    def collect(self) -> Iterator[PrometheusFamily]:
        return map(_family, self._families)


def _family(family: MetricFamily) -> PrometheusFamily:
    metric = family.metric
    help_text = f"[{metric.stability}] {metric.help}" if metric.stability else metric.help
    # Sorting 200,000 samples in one step would block all threads.
    samples = heapq.merge(*map(sorted, in_parts(family.samples.items(), _RUN)))
    if metric.kind == "histogram":
        histogram = HistogramMetricFamily(metric.name, help_text, labels=metric.labels)
        bounds = [*map(_bound, metric.bounds), "+Inf"]
        for labels, sample in samples:
            assert isinstance(sample, Distribution), "a histogram has distributions"
            histogram.add_metric(labels, list(zip(bounds, accumulate(sample.counts), strict=True)), sample.sum)
        return histogram
    family_of = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    plain = family_of(metric.name, help_text, labels=metric.labels)
    for labels, sample in samples:
        assert not isinstance(sample, Distribution), "only a histogram has distributions"
        plain.add_metric(labels, sample)
    return plain


def _bound(number: float) -> str:
    """Return the bound in the text format."""
    written: str = floatToGoString(number)  # type: ignore[no-untyped-call]  # prometheus_client has no type for it
    return written
