"""OTLP over HTTP: attempts as spans, with a child span for each extension point, and metrics as OpenTelemetry metrics.

This module imports opentelemetry, and is therefore imported only if telemetry is enabled. The `OTEL_…` environment
variables apply: headers, time limits, compression, certificates, attributes of the resource.

Raises: TelemetryError if the extra is not installed.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kschedd.errors import KscheddError
from kschedd.metrics.instruments import Distribution, MetricFamily
from kschedd.telemetry.exporter import AttemptTrace, Collector, TelemetryExporter

_SCOPE = "kschedd"
_NS = 1_000_000_000
_UNKNOWN: Any = None  # minimum and maximum of a histogram, which are optional


class TelemetryError(KscheddError):
    """Telemetry cannot be exported."""


@contextmanager
def exporting(endpoint: str, version: str) -> Iterator[TelemetryExporter]:
    """Yield an exporter to this endpoint as long as the context is open. Raises TelemetryError."""
    collector = otlp_collector(endpoint, version)
    exporter = TelemetryExporter(lambda: collector)
    exporter.start()
    try:
        yield exporter
    finally:
        exporter.close()


def otlp_collector(endpoint: str, version: str) -> Collector:
    """Return a client for OTLP over HTTP at this endpoint, such as http://localhost:4318. Raises TelemetryError."""
    try:
        return _OtlpCollector(endpoint.rstrip("/"), version)
    except ImportError as missing:
        raise TelemetryError(
            f"telemetry needs the extra `otel`: pip install 'kschedd[otel]' ({missing.name} is not installed)"
        ) from missing


class _OtlpCollector:
    def __init__(self, endpoint: str, version: str) -> None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider

        # OpenTelemetry logs every failed attempt; the exporter logs only the start and the end of a series of failures.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._resource = Resource.create({"service.name": "kschedd", "service.version": version})
        self._spans = OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces")
        self._metrics = OTLPMetricExporter(endpoint=f"{endpoint}/v1/metrics")
        self._tracer = TracerProvider(resource=self._resource, shutdown_on_exit=False).get_tracer(_SCOPE, version)
        self._version = version
        self._began_ns = time.time_ns()

    def send_traces(self, traces: Sequence[AttemptTrace]) -> bool:
        from opentelemetry.sdk.trace.export import SpanExportResult

        return bool(
            self._spans.export([span for trace in traces for span in self._of(trace)]) is SpanExportResult.SUCCESS
        )

    def send_metrics(self, families: Sequence[MetricFamily]) -> bool:
        from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData, ResourceMetrics, ScopeMetrics
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        now_ns = time.time_ns()
        scope = InstrumentationScope(_SCOPE, self._version)
        found = [_metric(family, self._began_ns, now_ns) for family in families if family.samples]
        data = MetricsData([ResourceMetrics(self._resource, [ScopeMetrics(scope, found, "")], "")])
        return bool(self._metrics.export(data) is MetricExportResult.SUCCESS)

    def close(self) -> None:
        self._spans.shutdown()  # type: ignore[no-untyped-call]  # opentelemetry has no type for it
        self._metrics.shutdown()

    def _of(self, trace: AttemptTrace) -> list[Any]:
        from opentelemetry.trace import Status, StatusCode, set_span_in_context

        began_ns = trace.ended_ns - int(trace.took_s * _NS)
        whole = self._tracer.start_span(
            "scheduling attempt",
            start_time=began_ns,
            attributes={
                "k8s.pod": trace.pod,
                "kschedd.profile": trace.profile,
                "kschedd.attempt": trace.attempt,
                "kschedd.result": trace.result,
                "k8s.node.name": trace.node,
            },
        )
        spans = [whole]
        context = set_span_in_context(whole)
        at_ns = began_ns
        for point, took_s in trace.steps:
            step = self._tracer.start_span(point, context=context, start_time=at_ns)
            at_ns += int(took_s * _NS)
            step.end(at_ns)
            spans.append(step)
        if trace.result == "error":
            whole.set_status(Status(StatusCode.ERROR))
        whole.end(trace.ended_ns)
        return spans


def _metric(family: MetricFamily, began_ns: int, now_ns: int) -> Any:
    from opentelemetry.sdk.metrics import export

    metric = family.metric
    total = export.AggregationTemporality.CUMULATIVE
    points: list[Any] = []
    for values, sample in family.samples.items():
        labels = dict(zip(metric.labels, values, strict=True))
        if isinstance(sample, Distribution):
            points.append(
                export.HistogramDataPoint(
                    labels, began_ns, now_ns, sample.count, sample.sum, sample.counts, metric.bounds, _UNKNOWN, _UNKNOWN
                )
            )
        else:
            points.append(export.NumberDataPoint(labels, began_ns, now_ns, sample))
    data: Any
    if metric.kind == "histogram":
        data = export.Histogram(points, total)
    elif metric.kind == "counter":
        data = export.Sum(points, total, is_monotonic=True)
    else:
        data = export.Gauge(points)
    return export.Metric(metric.name, metric.help, "", data)
