"""Lists of nodes and pods of the Alibaba cluster-trace-gpu-v2023.

    nodes   sn name, cpu_milli, memory_mib, gpu whole GPUs, model of them
    pods    name, cpu_milli, memory_mib, num_gpu, gpu_milli thousandths of each GPU, gpu_spec models allowed
            with `|` between them (empty: any), qos, pod_phase, creation_time, deletion_time and
            scheduled_time in seconds

The rows become Kubernetes manifests: cpu and memory as requests; GPUs in thousandths as an extended resource (which the
API server requires as a limit too); model as a node label, gpu_spec as required node affinity on that label; qos as a
pod label. Defaults for data that the trace lacks: pods are in namespace `default`, a node's allocatable is 110 pods,
and a pod has no grace period, because deletion_time is the time of its removal. pod_phase and scheduled_time record the
results of the original cluster; they are checked and stored, but do not influence the simulation.
"""

from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from kschedd.api.selecting.names import label_value
from kschedd.simulation.formats.making import PodShape, made_node, spec_of
from kschedd.simulation.formats.tables import TraceFault, TraceRecord, records, unique_name
from kschedd.simulation.workloads.trace import GPU_MILLI, GPU_MODEL, NAMESPACE, TracePod

Raw = dict[str, Any]

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = (
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "qos",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)
# The lists named "multigpu" contain only pod names and requests. Their pods arrive at the start and never end.
_DEFAULTS: Final = {
    "gpu_spec": "",
    "qos": "",
    "pod_phase": "Pending",
    "creation_time": "0",
    "deletion_time": "",
    "scheduled_time": "",
}
QOS = ("LS", "Burstable", "BE", "Guaranteed")
PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
MOST_GPUS = 8
_cells_of_spec: Final = itemgetter("cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec")


def read_nodes(path: Path, faults: list[TraceFault]) -> list[Raw]:
    """Read the nodes."""
    seen: dict[str, int] = {}
    return [_node(record, seen) for record in records(path, NODE_COLUMNS, faults)]


def _node(record: TraceRecord, seen: dict[str, int]) -> Raw:
    name = unique_name(record, "sn", seen)
    cpu, memory, gpus = record.whole("cpu_milli"), record.whole("memory_mib"), record.whole("gpu", most=1000)
    has = _requests(cpu, memory, gpus * 1000)
    model = _model(record, "model", record.cells["model"])
    return made_node(name, has, {GPU_MODEL: model} if model else {})


def read_pods(path: Path, faults: list[TraceFault]) -> list[TracePod]:
    """Read the pods."""
    seen: dict[str, int] = {}
    specs: dict[tuple[str, ...], Raw] = {}
    return [_pod(record, seen, specs) for record in records(path, POD_COLUMNS, faults, _DEFAULTS)]


def _pod(record: TraceRecord, seen: dict[str, int], specs: dict[tuple[str, ...], Raw]) -> TracePod:
    """Return the pod of a row.

    `specs` caches pod specs by table cells, because most rows repeat the requests of another row.
    """
    name = unique_name(record, "name", seen)
    requested = _cells_of_spec(record.cells)
    spec = specs.get(requested)
    if spec is None:
        known_faults = len(record.faults)
        spec = _spec_of(record)
        if len(record.faults) == known_faults:
            specs[requested] = spec
    created, deleted = record.seconds("creation_time"), record.seconds_or_empty("deletion_time")
    if created is not None and deleted is not None and deleted < created:
        allowed = f"must not be before creation_time ({record.cells['creation_time']}); empty: never deleted"
        record.refuse("deletion_time", allowed)
    return TracePod(
        key=f"{NAMESPACE}/{name}",
        raw={
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "labels": _labels(record.one_of("qos", QOS) if record.cells["qos"] else ""),
            },
            "spec": spec,
        },
        created_s=created or 0.0,
        deleted_s=deleted,
        scheduled_s=record.seconds_or_empty("scheduled_time"),
        phase=record.one_of("pod_phase", PHASES),
    )


def _spec_of(record: TraceRecord) -> Raw:
    """Return the pod spec of the row; errors are added to the faults."""
    cpu, memory = record.whole("cpu_milli"), record.whole("memory_mib")
    gpus = record.whole("num_gpu", most=MOST_GPUS)
    return spec_of(PodShape(_requests(cpu, memory, gpus * _share(record, gpus)), gpu_models=_models(record)))


def _share(record: TraceRecord, gpus: int) -> int:
    """Return the thousandths of each GPU that the pod requests; a fraction is allowed only for a request of one GPU."""
    if gpus == 1:
        return record.whole("gpu_milli", least=1, most=1000)
    share = record.whole("gpu_milli", most=1000)
    if gpus > 1 and share != 1000:
        record.refuse("gpu_milli", f"must be 1000 where num_gpu is {gpus}: GPUs are shared one at a time")
    return share


def _models(record: TraceRecord) -> tuple[str, ...]:
    spec = record.cells["gpu_spec"]
    if not spec:
        return ()
    models = spec.split("|")
    if not all(models):
        record.refuse("gpu_spec", "must be GPU models with | between them, or empty: any")
    return tuple(dict.fromkeys(_model(record, "gpu_spec", model) for model in models))


def _model(record: TraceRecord, column: str, model: str) -> str:
    for fault in label_value(model):
        record.refuse(column, f"is no value for the label {GPU_MODEL}: {fault}")
    return model


@lru_cache(16)
def _labels(qos: str) -> Raw:
    """Return the labels; pods with equal labels share one mapping."""
    return {"qos": qos} if qos else {}


def _requests(cpu_milli: int, memory_mib: int, gpu_milli: int) -> tuple[tuple[str, str], ...]:
    """Return the quantities of a pod or a node. CPU and memory are included even if the amount is 0."""
    found = (("cpu", f"{cpu_milli}m"), ("memory", f"{memory_mib}Mi"))
    return (*found, (GPU_MILLI, str(gpu_milli))) if gpu_milli else found
