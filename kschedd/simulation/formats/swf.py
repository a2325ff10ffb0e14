"""Jobs in the Standard Workload Format (version 2.2) of the Parallel Workloads Archive.

Each line is a job of 18 numbers: job number, submit time, wait time, run time, allocated processors, CPU time, used
memory, requested processors, requested time, requested memory (KiB for each processor), status, user, group,
executable, queue, partition, and two more. -1 means unknown; lines that begin with `;` are comments.

A job becomes one pod that requests a CPU for each processor. The pod ends at submit + wait + run time. Jobs without
processors, or with an unknown run time, did not run and are omitted.
"""

from math import isfinite
from pathlib import Path
from typing import Final

from kschedd.simulation.formats.making import PodShape, made_pod, requests
from kschedd.simulation.formats.tables import TraceFault, text_of
from kschedd.simulation.workloads.trace import TracePod

FIELDS: Final = 18
_KIB_OF_GIB: Final = 1 << 20


def read_pods(path: Path, faults: list[TraceFault]) -> list[TracePod]:
    """Read the jobs that ran."""
    found, file = [], str(path)
    seen: dict[int, int] = {}
    for number, line in enumerate((text_of(path, faults) or "").splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith(";"):
            continue
        try:
            fields = [float(each) for each in text.split()]
        except ValueError:
            fields = []
        if len(fields) != FIELDS or not all(map(isfinite, fields)):
            faults.append(TraceFault(file, number, "", None, f"must be {FIELDS} numbers; comments begin with ;"))
            continue
        job, submitted, waited, ran = int(fields[0]), fields[1], max(0.0, fields[2]), fields[3]
        if job in seen:
            faults.append(TraceFault(file, number, "job", str(job), f"must be unique, line {seen[job]} has it too"))
        seen.setdefault(job, number)
        if submitted < 0:
            faults.append(TraceFault(file, number, "submit time", text.split()[1], "must be seconds, 0 or more"))
        processors = fields[4] if fields[4] > 0 else fields[7]
        if processors <= 0 or ran < 0:
            continue
        memory = max(fields[9], fields[6], 0.0) * processors / _KIB_OF_GIB
        labels = {"user": _id(fields[11]), "group": _id(fields[12]), "queue": _id(fields[14])}
        shape = PodShape(requests(processors, memory))
        found.append(made_pod(f"job-{job}", shape, labels, submitted, submitted + waited + ran, submitted + waited))
    return found


def _id(value: float) -> str:
    return "" if value < 0 else str(int(value))
