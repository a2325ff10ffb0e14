"""Exporter: hands what is noted of attempts, and the metrics, to a collector, from a thread of its own.

Receives: `note`, one call an attempt, and `metrics`, from the daemon's loop; neither waits nor raises.  Sends: batches
to a `Collector`, which may block as long as it likes.
Owns: a thread, and what has not been sent: MOST_TRACES attempts, and the latest metrics. What there is no room for, and
what the collector did not take, is dropped, counted, and logged when that begins and when it is over.
Ends: `close` sends what is left and waits for that no longer than a little; the thread never holds up the daemon's end.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

import attrs
import structlog

from kschedd.metrics.instruments import MetricFamily

log = structlog.get_logger("kschedd.telemetry")

MOST_TRACES: Final = 4096
_BATCH: Final = 512
_EVERY_S: Final = 2.0
_END_S: Final = 2.0


@attrs.frozen
class AttemptTrace:
    """One attempt. `ended_ns`: since the epoch; `steps`: its extension points, in order, and their seconds."""

    pod: str
    profile: str
    attempt: int
    result: str
    node: str
    ended_ns: int
    took_s: float
    steps: Sequence[tuple[str, float]]


class Collector(Protocol):
    """Where things are sent. What it raises, or False, means that they were not taken."""

    def send_traces(self, traces: Sequence[AttemptTrace]) -> bool: ...

    def send_metrics(self, families: Sequence[MetricFamily]) -> bool: ...

    def close(self) -> None: ...


class TelemetryExporter:
    """See the module. `every_s`: the pause between two batches; `end_s`: how long `close` waits."""

    def __init__(self, connect: Callable[[], Collector], *, every_s: float = _EVERY_S, end_s: float = _END_S) -> None:
        self.dropped = 0  # attempts and metrics
        self.sent = 0
        self._connect = connect
        self._every_s = every_s
        self._end_s = end_s
        self._waiting: deque[AttemptTrace] = deque()
        self._families: Sequence[MetricFamily] | None = None
        self._wake = threading.Event()
        self._ending = False
        self._failing = False
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def note(self, trace: AttemptTrace) -> None:
        if len(self._waiting) >= MOST_TRACES:
            self.dropped += 1
        else:
            self._waiting.append(trace)

    def metrics(self, families: Sequence[MetricFamily]) -> None:
        """These are sent in the place of those that have not been sent yet."""
        self._families = families
        self._wake.set()

    def close(self) -> None:
        self._ending = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(self._end_s)
        if self.dropped:
            log.warning("telemetry_dropped", dropped=self.dropped, sent=self.sent)

    def _run(self) -> None:
        collector = self._connect()
        while not self._ending:
            self._wake.wait(self._every_s)
            self._wake.clear()
            self._send(collector)
        self._send(collector)
        collector.close()

    def _send(self, collector: Collector) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
            self._count(len(batch), partial(collector.send_traces, batch))
        families, self._families = self._families, None
        if families is not None:
            self._count(1, partial(collector.send_metrics, families))

    def _count(self, amount: int, send: Callable[[], bool]) -> None:
        why = "the collector did not take it"
        try:
            taken = send()
        except Exception as fault:  # the collector's, or that of what is between it and us
            taken, why = False, f"{type(fault).__name__}: {fault}"
        if taken:
            self.sent += amount
        else:
            self.dropped += amount
        if taken is self._failing:
            self._failing = not taken
            if taken:
                log.info("telemetry_taken_again", dropped=self.dropped)
            else:
                log.warning("telemetry_not_taken", why=why)


def now_ns() -> int:
    return time.time_ns()
