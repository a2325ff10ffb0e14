"""Exporter: sends attempts and metrics to a collector, from a separate thread.

Receives: `note`, one call per attempt, and `metrics`, from the daemon's loop; neither method waits or raises
an exception. Sends: batches to a `Collector`, which may block for any time.

Owns: a thread, and the unsent data: up to MOST_TRACES attempts and the latest metrics. Data beyond these limits, and
data that the collector does not accept, is dropped and counted. The start and the end of a period in which data is
dropped are logged.

Ends: `close` sends the remaining data and waits at most `end_s` seconds; the thread never delays the daemon's shutdown.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

import attrs

from kschedd.lazy_log import LazyLogger
from kschedd.metrics.instruments import MetricFamily

log = LazyLogger("kschedd.telemetry")

MOST_TRACES: Final = 4096
_BATCH: Final = 512
_EVERY_S: Final = 2.0
_END_S: Final = 2.0


@attrs.frozen
class AttemptTrace:
    """One attempt.

    `ended_ns` is the time since the epoch; `steps` are the extension points in order, with their durations in seconds.
    """

    pod: str
    profile: str
    attempt: int
    result: str
    node: str
    ended_ns: int
    took_s: float
    steps: Sequence[tuple[str, float]]


class Collector(Protocol):
    """The receiver of the data. An exception or False means that the collector did not accept the data."""

    def send_traces(self, traces: Sequence[AttemptTrace]) -> bool: ...

    def send_metrics(self, families: Sequence[MetricFamily]) -> bool: ...

    def close(self) -> None: ...


class TelemetryExporter:
    """Sends attempts and metrics to a collector.

    `every_s` is the pause in seconds between two batches; `end_s` is the maximum wait in `close`.
    """

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
        """Send these metrics next, instead of earlier metrics that were not sent yet."""
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
        why = "the collector did not accept the data"
        try:
            taken = send()
        except Exception as fault:  # log the error, which is an error of the collector or of the network
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
