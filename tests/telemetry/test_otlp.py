"""Tests of spans and metrics as an HTTP server receives them over OTLP."""

import gzip
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from kschedd.metrics.instruments import Counter, Histogram, Metric
from kschedd.telemetry.exporter import AttemptTrace, TelemetryExporter
from kschedd.telemetry.otlp import TelemetryError, otlp_collector

STEPS = (("PreFilter", 0.1), ("Filter", 0.2))
TRACE = AttemptTrace("default/p", "default-scheduler", 2, "error", "", 10_000_000_000, 0.5, STEPS)


@contextmanager
def receiver(status: int = 200) -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """Yield the address of a server that answers each request with this status, and the received requests."""
    came: list[tuple[str, bytes]] = []

    class Receiving(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            came.append((self.path, body))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Receiving) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", came
        finally:
            server.shutdown()
            thread.join()


def test_an_attempt_is_a_span_with_a_child_for_each_extension_point() -> None:
    with receiver() as (address, came):
        collector = otlp_collector(address, "1.2")
        assert collector.send_traces([TRACE])
        collector.close()
    [(path, body)] = came
    assert path == "/v1/traces"
    [resource] = ExportTraceServiceRequest.FromString(body).resource_spans
    attributes = {each.key: each.value.string_value for each in resource.resource.attributes}
    assert (attributes["service.name"], attributes["service.version"]) == ("kschedd", "1.2")
    whole, *children = resource.scope_spans[0].spans
    assert (whole.name, whole.start_time_unix_nano, whole.end_time_unix_nano) == (
        "scheduling attempt",
        9_500_000_000,
        10_000_000_000,
    )
    assert {each.key: each.value.string_value for each in whole.attributes}["k8s.pod"] == "default/p"
    assert whole.status.code == whole.status.STATUS_CODE_ERROR
    assert [(child.name, child.start_time_unix_nano) for child in children] == [
        ("PreFilter", 9_500_000_000),
        ("Filter", 9_600_000_000),
    ]
    assert {child.parent_span_id for child in children} == {whole.span_id}


def test_metrics_keep_their_names_labels_and_buckets() -> None:
    counter = Counter(Metric("c_total", "counter", "C.", ("of",)))
    counter.add("a", amount=3)
    histogram = Histogram(Metric("h_seconds", "histogram", "H.", (), (1.0, 2.0)))
    for value in (0.5, 1.5, 9.0):
        histogram.observe(value)
    with receiver() as (address, came):
        collector = otlp_collector(address, "1.2")
        assert collector.send_metrics([counter.family(), histogram.family()])
        collector.close()
    [(path, body)] = came
    assert path == "/v1/metrics"
    [resource] = ExportMetricsServiceRequest.FromString(body).resource_metrics
    of_counter, of_histogram = resource.scope_metrics[0].metrics
    [point] = of_counter.sum.data_points
    assert (of_counter.name, of_counter.sum.is_monotonic, point.as_double or point.as_int) == ("c_total", True, 3)
    assert [(each.key, each.value.string_value) for each in point.attributes] == [("of", "a")]
    [buckets] = of_histogram.histogram.data_points
    assert (list(buckets.bucket_counts), list(buckets.explicit_bounds), buckets.sum) == ([1, 1, 1], [1.0, 2.0], 11.0)


def test_a_collector_that_refuses_costs_what_was_sent_to_it() -> None:
    with receiver(status=400) as (address, came):
        collector = otlp_collector(address, "1.2")
        exporter = TelemetryExporter(lambda: collector, end_s=60.0)
        exporter.note(TRACE)
        exporter.start()
        exporter.close()
    assert (len(came), exporter.dropped, exporter.sent) == (1, 1, 0)


def test_without_the_extra_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.metric_exporter", None)
    with pytest.raises(TelemetryError, match=r"pip install 'kschedd\[otel\]'"):
        otlp_collector("http://127.0.0.1:4318", "1.2")
