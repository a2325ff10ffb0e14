"""Instance events of the Google cluster trace of 2019 (version 3), as a CSV file that the user exports from BigQuery.

    SELECT time, type, collection_id, instance_index, priority, resource_request.cpus AS cpus,
           resource_request.memory AS memory FROM instance_events ORDER BY time

`time` is in microseconds; 600 s means before the start of the trace, and the largest 64-bit number means after its end.
Type 0 submits an instance; 4 (evict), 5 (fail), 6 (finish), 7 (kill) and 8 (lost) end it. Types 1, 2, 3, 9 and 10 are
ignored. An instance that is submitted again is treated as another pod. Requests are shares of the largest machine, for
which `CORES` cores and `GIB` GiB are assumed.
"""

from pathlib import Path
from typing import Final

from kschedd.simulation.formats.making import PodShape, made_pod, requests
from kschedd.simulation.formats.tables import TraceFault, TraceRecord, records
from kschedd.simulation.workloads.trace import TracePod

POD_COLUMNS: Final = ("time", "type", "collection_id", "instance_index", "priority", "cpus", "memory")
CORES: Final = 64
GIB: Final = 256
_BEFORE_US: Final = 600_000_000
_AFTER: Final = str(2**63 - 1)
_SUBMIT: Final = 0
_ENDS: Final = (4, 5, 6, 7, 8)


def read_pods(path: Path, faults: list[TraceFault]) -> list[TracePod]:
    """Read the events; return a pod for each submission."""
    open_: dict[tuple[str, str], TracePod] = {}
    found: dict[str, TracePod] = {}
    times: dict[tuple[str, str], int] = {}
    for record in records(path, POD_COLUMNS, faults):
        cells = record.cells
        kind = record.whole("type", most=10)
        if cells["time"] == _AFTER:
            continue
        time_s = max(0, record.whole("time", most=10**13) - _BEFORE_US) / 1e6
        instance = cells["collection_id"], cells["instance_index"]
        if kind == _SUBMIT and instance not in open_:
            times[instance] = times.get(instance, 0) + 1
            open_[instance] = _submitted(record, time_s, times[instance])
        elif kind in _ENDS and (pod := open_.pop(instance, None)) is not None:
            found[pod.key] = TracePod(pod.key, pod.raw, pod.created_s, max(time_s, pod.created_s), None, "Succeeded")
    pods = [*found.values(), *open_.values()]
    return sorted(pods, key=lambda pod: (pod.created_s, pod.key))


def _submitted(record: TraceRecord, time_s: float, time: int) -> TracePod:
    cells = record.cells
    number, index = record.whole("collection_id", most=10**13), record.whole("instance_index")
    name = f"collection-{number}-{index}" + (f"-{time}" if time > 1 else "")
    cpus, memory = record.number("cpus", most=1), record.number("memory", most=1)
    shape = PodShape(requests(cpus * CORES, memory * GIB), record.whole("priority", most=1000))
    return made_pod(name, shape, {"job": f"collection-{cells['collection_id']}"}, time_s, None)
