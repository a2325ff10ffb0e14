"""Nodes and jobs of the Alibaba cluster-trace-v2026-spot-gpu.

    nodes   node_name, gpu_model, gpu_capacity_num, cpu_num
    jobs    job_name, organization, gpu_model, cpu_request and gpu_request of each worker, worker_num, submit_time and
            duration in seconds, job_type HP (high priority) or Spot

A job consists of `worker_num` pods with the label `job`, on nodes with its GPU model. Jobs of high priority have
priority 1000.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from kschedd.simulation.formats.making import PodShape, made_node, made_pod, requests
from kschedd.simulation.formats.tables import TraceFault, TraceRecord, records, unique_name
from kschedd.simulation.workloads.trace import GPU_MODEL, TracePod

NODE_COLUMNS: Final = ("node_name", "gpu_model", "gpu_capacity_num", "cpu_num")
POD_COLUMNS: Final = (
    *("job_name", "organization", "gpu_model", "cpu_request", "gpu_request", "worker_num", "submit_time", "duration"),
    "job_type",
)
HIGH_PRIORITY: Final = 1000
_PRIORITIES: Final = {"HP": HIGH_PRIORITY, "Spot": 0}
_MOST_WORKERS: Final = 100_000


def read_nodes(path: Path, faults: list[TraceFault]) -> list[dict[str, Any]]:
    """Read the nodes."""
    seen: dict[str, int] = {}
    return [
        made_node(
            unique_name(record, "node_name", seen, "node-"),
            requests(record.number("cpu_num"), gpus=record.whole("gpu_capacity_num", most=1000)),
            {GPU_MODEL: record.cells["gpu_model"]},
        )
        for record in records(path, NODE_COLUMNS, faults)
    ]


def read_pods(path: Path, faults: list[TraceFault]) -> list[TracePod]:
    """Read the jobs; return their pods."""
    seen: dict[str, int] = {}
    return [pod for record in records(path, POD_COLUMNS, faults) for pod in _job(record, seen)]


def _job(record: TraceRecord, seen: dict[str, int]) -> Iterator[TracePod]:
    cells = record.cells
    name = unique_name(record, "job_name", seen, "job-")
    kind = record.one_of("job_type", tuple(_PRIORITIES))
    submitted, duration = record.seconds("submit_time") or 0.0, record.seconds("duration") or 0.0
    model = ((GPU_MODEL, cells["gpu_model"]),) if cells["gpu_model"] else ()
    asks = requests(record.number("cpu_request"), gpus=record.number("gpu_request", most=1000))
    shape = PodShape(asks, _PRIORITIES.get(kind, 0), model)
    labels = {"job": name, "organization": cells["organization"], "job-type": kind}
    for worker in range(record.whole("worker_num", least=1, most=_MOST_WORKERS)):
        yield made_pod(f"{name}-{worker}", shape, labels, submitted, submitted + duration)
