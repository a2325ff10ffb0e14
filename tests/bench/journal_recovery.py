"""Benchmark of a start after a million writes: `python -m tests.bench.journal_recovery write|read DIR`.

`write` creates the journal of a daemon that has bound 100,000 pods and updated them, up to 1,000,000 writes, with the
daemon's compactions. `read` opens and loads it, as a start does.
"""

import resource
import sys
import time
from pathlib import Path

from kschedd.actors.objects.journal import COMPACT_AFTER
from kschedd.api.objects import parse
from kschedd.store.journal.journal import Journal
from kschedd.store.objects.log import ADDED, MODIFIED, EventType, WatchEvent

PODS, WRITES, BATCH = 100_000, 1_000_000, 256


def pod(number: int, version: int) -> WatchEvent:
    kind: EventType = ADDED if version <= PODS else MODIFIED
    status = {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}]}
    raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number}",
            "namespace": "default",
            "uid": f"00000000-0000-4000-8000-{number:012}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": f"app-{number % 100}", "written": str(version)},
        },
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example/app:1",
                    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "imagePullPolicy": "IfNotPresent",
                }
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
            "enableServiceLinks": True,
            **({} if version <= PODS else {"nodeName": f"node-{number % 5000}"}),
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"} if version <= PODS else status,
    }
    return WatchEvent(kind, None, parse(raw), version)


def write(file: Path) -> None:
    began = time.perf_counter()
    journal = Journal(file)
    journal._db.execute("PRAGMA synchronous=OFF")  # this measures reading
    compacting = False
    for start in range(1, WRITES + 1, BATCH):
        versions = range(start, min(WRITES + 1, start + BATCH))
        journal.append([pod(version % PODS, version) for version in versions])
        compacting = compacting or journal.tail > COMPACT_AFTER
        if compacting:
            compacting = journal.compact_some(1000)
    while journal.shrink_some(1000):
        pass
    size = file.stat().st_size / 1e6
    print(
        f"{WRITES:,} writes, {journal.tail:,} after the snapshot, {size:,.0f} MB, {time.perf_counter() - began:.0f} s"
    )
    journal.close()


def read(file: Path) -> None:
    began, cpu = time.perf_counter(), time.process_time()
    journal = Journal(file)
    opened = time.process_time() - cpu
    store = journal.load()
    assert store is not None
    took = time.perf_counter() - began
    used = time.process_time() - cpu
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    pods = len(store.list("Pod"))
    cost = f"{took:.1f} s, {used:.1f} s of CPU ({opened:.2f} to open), {most:,.0f} MiB"
    print(f"version {store.version:,}, {pods:,} pods: {cost}")
    journal.close()


if __name__ == "__main__":
    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    {"write": write, "read": read}[sys.argv[1]](folder / "journal.db")
