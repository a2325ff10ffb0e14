"""Pushes the metrics to a collector, at intervals."""

import os
from typing import Final

import trio

from kschedd.service.cluster import ClusterBackend
from kschedd.service.daemon.metrics import scheduler_metrics
from kschedd.telemetry.exporter import TelemetryExporter

_EVERY_S: Final = 60.0
_INTERVAL: Final = "OTEL_METRIC_EXPORT_INTERVAL"  # in the environment: milliseconds


async def push_metrics(cluster: ClusterBackend, exporter: TelemetryExporter) -> None:
    """Until it is cancelled."""
    given = os.environ.get(_INTERVAL, "")
    every_s = int(given) / 1000 if given.isascii() and given.isdigit() and int(given) else _EVERY_S
    while True:
        exporter.metrics(await scheduler_metrics(cluster))
        await trio.sleep(every_s)
