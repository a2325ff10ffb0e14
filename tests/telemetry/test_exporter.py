"""Tests that telemetry is sent from a thread, and that a failing collector loses only the data to be sent."""

import threading
from collections.abc import Sequence

import attrs
from structlog.testing import capture_logs

from kschedd.metrics.instruments import MetricFamily
from kschedd.telemetry.exporter import MOST_TRACES, AttemptTrace, TelemetryExporter

PATIENCE_S = 60.0
TRACE = AttemptTrace("default/p", "default-scheduler", 1, "scheduled", "n", 1_000, 0.5, (("Filter", 0.2),))


@attrs.define(eq=False)
class Fake:
    """A collector; `fails`: the number of batches that it rejects, `blocks`: it does not answer before this event."""

    fails: int = 0
    blocks: threading.Event | None = None
    traces: list[AttemptTrace] = attrs.field(factory=list)
    families: list[MetricFamily] = attrs.field(factory=list)
    closed: bool = False

    def send_traces(self, traces: Sequence[AttemptTrace]) -> bool:
        if self.blocks is not None:
            self.blocks.wait()
        if self.fails:
            self.fails -= 1
            raise ConnectionError("nobody there")
        self.traces += traces
        return True

    def send_metrics(self, families: Sequence[MetricFamily]) -> bool:
        self.families += families
        return False

    def close(self) -> None:
        self.closed = True


def test_what_was_noted_is_sent_by_the_end() -> None:
    fake = Fake()
    exporter = TelemetryExporter(lambda: fake, end_s=PATIENCE_S)
    exporter.start()
    for _ in range(1200):
        exporter.note(TRACE)
    exporter.close()
    assert (len(fake.traces), exporter.sent, exporter.dropped, fake.closed) == (1200, 1200, 0, True)


def test_what_there_is_no_room_for_is_dropped_and_counted() -> None:
    exporter = TelemetryExporter(Fake)
    for _ in range(MOST_TRACES + 7):
        exporter.note(TRACE)
    assert exporter.dropped == 7


def test_a_collector_that_is_away_for_a_while_is_logged_twice() -> None:
    fake = Fake(fails=2)
    exporter = TelemetryExporter(lambda: fake, end_s=PATIENCE_S)
    for _ in range(1100):  # three batches
        exporter.note(TRACE)
    with capture_logs() as logs:
        exporter.start()
        exporter.close()
    assert (exporter.dropped, exporter.sent) == (1024, 76)
    assert [line["event"] for line in logs] == ["telemetry_not_taken", "telemetry_taken_again", "telemetry_dropped"]
    assert logs[0]["why"] == "ConnectionError: nobody there"


def test_metrics_that_are_refused_are_counted_as_dropped() -> None:
    fake = Fake()
    exporter = TelemetryExporter(lambda: fake, end_s=PATIENCE_S)
    exporter.metrics([])
    exporter.start()
    exporter.close()
    assert exporter.dropped == 1


def test_a_collector_that_never_answers_holds_up_neither_those_who_note_nor_the_end() -> None:
    let_go = threading.Event()
    fake = Fake(blocks=let_go)
    exporter = TelemetryExporter(lambda: fake, end_s=0.0)
    exporter.note(TRACE)
    exporter.start()
    for _ in range(10):
        exporter.note(TRACE)
    exporter.close()
    assert fake.traces == []
    let_go.set()
