"""Reading of traces: the format is determined by the suffix of a file or by the columns of its header line."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from kschedd.simulation.formats import dlrm, google, gpu_2023, lines, simkube, spot_gpu, swf
from kschedd.simulation.formats.mapped import ColumnMapping
from kschedd.simulation.formats.mapped import read_pods as read_mapped
from kschedd.simulation.formats.tables import TraceError, TraceFault, heading_of
from kschedd.simulation.workloads.trace import Trace, TracePod

ReadPods = Callable[[Path, list[TraceFault]], list[TracePod]]

#: formats of pods in CSV files, with their columns
_TABLES: Final[Mapping[str, tuple[tuple[str, ...], ReadPods]]] = {
    "alibaba-gpu-2023": (gpu_2023.POD_COLUMNS, gpu_2023.read_pods),
    "alibaba-spot-gpu-2026": (spot_gpu.POD_COLUMNS, spot_gpu.read_pods),
    "alibaba-dlrm-2025": (dlrm.POD_COLUMNS, dlrm.read_pods),
    "google-2019": (google.POD_COLUMNS, google.read_pods),
}
#: formats of pods, by suffix of the file name
_SUFFIXES: Final[Mapping[str, tuple[str, ReadPods]]] = {
    ".swf": ("swf", swf.read_pods),
    ".jsonl": ("kschedd", lines.read_pods),
}
FORMATS: Final = (*_TABLES, *(name for name, _ in _SUFFIXES.values()))
_PRIORITY: Final = "priority-"


def read_trace(nodes: Path | None, pods: Path | None, mapping: ColumnMapping | None = None) -> Trace:
    """Read both files, or one of them. Raises TraceError with all faults of both files."""
    faults: list[TraceFault] = []
    found_nodes = () if nodes is None else tuple(_nodes(nodes, faults))
    found_pods: tuple[TracePod, ...] = ()
    if pods is not None and mapping is not None:
        found_pods = tuple(read_mapped(pods, mapping, faults))
    elif pods is not None and (known := _format(pods, faults)) is not None:
        found_pods = tuple(known[1](pods, faults))
    if faults:
        raise TraceError(tuple(faults))
    return Trace(found_nodes, found_pods, _priorities(found_pods))


def format_of(pods: Path) -> str:
    """Return the name of a file's format. Raises TraceError."""
    faults: list[TraceFault] = []
    known = _format(pods, faults)
    if known is None:
        raise TraceError(tuple(faults))
    return known[0]


def _format(path: Path, faults: list[TraceFault]) -> tuple[str, ReadPods] | None:
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if simkube.is_simkube(path):
        why = "is a SimKube trace, which has workloads and no list of pods; `simulate --pods` and sweeps read it"
        faults.append(TraceFault(str(path), 0, "", None, why))
        return None
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    heading = set(heading_of(path))
    fits = {name: len(heading & set(columns)) / len(columns) for name, (columns, _) in _TABLES.items()}
    best = max(fits, key=lambda name: fits[name])
    if heading and not fits[best]:
        allowed = (
            f"has the columns of no known format ({', '.join(FORMATS)}); `workload convert --mapping` reads others"
        )
        faults.append(TraceFault(str(path), 1, "", None, allowed))
        return None
    return best, _TABLES[best][1]


def _nodes(path: Path, faults: list[TraceFault]) -> list[dict[str, Any]]:
    if set(spot_gpu.NODE_COLUMNS) <= set(heading_of(path)):
        return spot_gpu.read_nodes(path, faults)
    return gpu_2023.read_nodes(path, faults)


def _priorities(pods: tuple[TracePod, ...]) -> tuple[int, ...]:
    """Return the pods' priorities; equal specs are one object, so each is parsed once."""
    specs = {id(pod.raw["spec"]): pod.raw["spec"] for pod in pods}
    names = {str(spec.get("priorityClassName", "")) for spec in specs.values()}
    values = [name.removeprefix(_PRIORITY) for name in names if name.startswith(_PRIORITY)]
    return tuple(sorted(int(value) for value in values if value.isascii() and value.isdigit()))
