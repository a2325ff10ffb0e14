"""The metrics method; metrics are collected from the actors."""

import os
from functools import cache, partial
from importlib.metadata import version
from typing import Any, Final

import attrs
import trio

from kschedd.config.model import Config
from kschedd.config.versions.feature_gates import ALL_OF_STAGE
from kschedd.log.log import Log
from kschedd.metrics import catalogue
from kschedd.metrics.instruments import Labels, MetricFamily
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.service.cluster import ClusterBackend, Queue
from kschedd.service.daemon.answers import TextAnswer
from kschedd.service.params import Param
from kschedd.service.table import Call, Methods, method
from kschedd.telemetry.exporter import TelemetryExporter
from kschedd.threads import in_thread


@attrs.frozen(eq=False)
class MetricsMethods(Methods):
    _cluster: ClusterBackend

    @method(
        "metrics.get",
        (Param("prefix", "string", False, "", "only metrics whose names begin with this"),),
        reads=True,
        doc="Returns kube-scheduler's metrics and additional ones (`kschedd_…`), like /metrics over HTTP.",
        returns="in Prometheus' text format",
        answer=TextAnswer,
    )
    async def get(self, call: Call) -> Any:
        families = await scheduler_metrics(self._cluster)
        wanted = [each for each in families if each.metric.name.startswith(call["prefix"])]
        return TextAnswer(await call.services.workers.run(call.client, lambda given_up: _text_of(wanted, False)))


async def scheduler_metrics(cluster: ClusterBackend) -> list[MetricFamily]:
    """Return the metrics of the scheduler, its queue, and the components that execute its writes."""
    of_driver, config = await cluster.scheduler.query(_of_driver)
    return [
        *of_driver,
        *await cluster.queue.query(_of_queue),
        *await cluster.log.query(Log.move_metrics),
        *cluster.api_call_metrics(config.feature_gates),
        *_of_config(config),
    ]


async def text_of(families: list[MetricFamily], process: bool = False) -> str:
    """Return the metric families in Prometheus' text format.

    Call this function in a thread, because the text may be long.
    """
    return await in_thread(partial(_text_of, families, process))


def _text_of(families: list[MetricFamily], process: bool) -> str:
    from kschedd.metrics import exposition  # imported on first use

    return exposition.text_of(families, process)


def _of_driver(driver: SchedulingDriver) -> tuple[list[MetricFamily], Config]:
    return driver.metrics(), driver.machine.config


@cache
def _installed() -> str:
    return version("kschedd")  # reads it from disk


def _of_config(config: Config) -> list[MetricFamily]:
    gates = config.version.gates
    enabled: dict[Labels, float] = {
        (name, "" if gates[name].stage == "GA" else gates[name].stage): float(on)
        for name, on in config.feature_gates.items()
    }
    for name, stage in ALL_OF_STAGE.items():
        enabled[name, stage] = float(
            all(config.feature_gates[one] for one, gate in gates.items() if gate.stage == stage)
        )
    build: dict[Labels, float] = {(_installed(), config.version.name): 1.0}
    return [MetricFamily(catalogue.FEATURE_ENABLED, enabled), MetricFamily(catalogue.BUILD_INFO, build)]


def _of_queue(owner: Queue) -> list[MetricFamily]:
    return owner.metrics()


_EVERY_S: Final = 60.0
_INTERVAL: Final = "OTEL_METRIC_EXPORT_INTERVAL"  # environment variable for the interval in milliseconds


async def push_metrics(cluster: ClusterBackend, exporter: TelemetryExporter) -> None:
    """Push the metrics to a collector at intervals until the task is cancelled."""
    given = os.environ.get(_INTERVAL, "")
    every_s = int(given) / 1000 if given.isascii() and given.isdigit() and int(given) else _EVERY_S
    while True:
        exporter.metrics(await scheduler_metrics(cluster))
        await trio.sleep(every_s)
