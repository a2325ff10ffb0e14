"""Instances of inference services in the Alibaba cluster-trace-gpu-v2025 (disaggregated DLRM).

    instance_sn, role CN (CPU node) or HN (GPU node), app_name, cpu_request in cores, gpu_request, rdma_request percent
    of a network card, memory_request and disk_request in GiB, max_instance_per_node (-1: any), creation_time,
    scheduled_time and deletion_time in seconds (empty: before the trace, or after it)

The trace has no nodes. `rdma_request` becomes the resource `alibabacloud.com/rdma-percent`. `max_instance_per_node` is
checked but not used: Kubernetes can only express the limit 1.
"""

from pathlib import Path
from typing import Final

from kschedd.simulation.formats.making import PodShape, made_pod, requests
from kschedd.simulation.formats.tables import TraceFault, TraceRecord, records, unique_name
from kschedd.simulation.workloads.trace import TracePod

POD_COLUMNS: Final = (
    *("instance_sn", "role", "app_name", "cpu_request", "gpu_request", "rdma_request", "memory_request"),
    *("disk_request", "max_instance_per_node", "creation_time", "scheduled_time", "deletion_time"),
)
RDMA: Final = "alibabacloud.com/rdma-percent"


def read_pods(path: Path, faults: list[TraceFault]) -> list[TracePod]:
    """Read the instances."""
    seen: dict[str, int] = {}
    return [_instance(record, seen) for record in records(path, POD_COLUMNS, faults)]


def _instance(record: TraceRecord, seen: dict[str, int]) -> TracePod:
    cells = record.cells
    for column in ("creation_time", "scheduled_time", "deletion_time"):
        cells[column] = "" if cells[column] == "NaN" else cells[column]
    cells["instance_sn"] = cells["instance_sn"].replace("_", "-")
    rdma, disk = record.whole("rdma_request", most=100), record.number("disk_request")
    more = {"ephemeral-storage": f"{round(disk)}Gi" if disk else "", RDMA: str(rdma) if rdma else ""}
    asks = requests(
        record.number("cpu_request"), record.number("memory_request"), record.number("gpu_request", most=1000), **more
    )
    if cells["max_instance_per_node"] != "-1":
        record.whole("max_instance_per_node", least=1)
    created, ended = record.seconds_or_empty("creation_time") or 0.0, record.seconds_or_empty("deletion_time")
    if ended is not None and ended < created:
        record.refuse("deletion_time", f"must not be before creation_time ({cells['creation_time']})")
    return made_pod(
        unique_name(record, "instance_sn", seen),
        PodShape(asks),
        {"app": cells["app_name"], "role": record.one_of("role", ("CN", "HN"))},
        created,
        ended,
        record.seconds_or_empty("scheduled_time"),
    )
