"""Benchmark of a start with a large state directory: CPU time and memory.

    python -m tests.bench.large_state write DIR [--nodes N] [--pods N]
    python -m tests.bench.large_state load DIR

`write` creates the journal of a daemon with this number of nodes and pods. `load` reads it in a separate process, fills
the scheduler's caches as the first watch does, and makes a decision. Not a test: times vary.
"""

import argparse
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.config.loading.load import default_config
from kschedd.garbage_collection import collection_paused
from kschedd.scheduling.attempt.outcome import ScheduleResult
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.inputs import Observe
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.sdk.objects import node, pod
from kschedd.store.journal.journal import Journal
from kschedd.store.journal.offline import JOURNAL
from kschedd.store.objects.log import ADDED, WatchEvent
from kschedd.store.prototypes.pod_strategy import intern_pod
from kschedd.store.store import Store

BORN: Final = "2026-01-01T00:00:00Z"
APPS: Final = 1_000
AT_ONCE: Final = 10_000  # events


def objects(nodes: int, pods: int) -> Iterator[Object]:
    version = 0

    def stored(raw: dict[str, Any]) -> dict[str, Any]:
        nonlocal version
        version += 1
        uid = f"00000000-0000-4000-8000-{version:012}"
        return {**raw, "metadata": {**raw["metadata"], "uid": uid, "resourceVersion": str(version)}}

    for number in range(nodes):
        name = f"node-{number}"
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"}
        yield parse(stored(node(name, cpu="32", memory="128Gi", labels=labels)))
    for number in range(pods):
        app = f"app-{number % APPS}"
        raw = stored(pod(f"{app}-{number}", cpu="500m", memory="1Gi", node_name=f"node-{number % nodes}"))
        raw["metadata"].update(creationTimestamp=BORN, labels={"app": app}, generateName=f"{app}-")
        conditions = [
            {"type": kind, "status": "True", "lastTransitionTime": BORN} for kind in ("PodScheduled", "Ready")
        ]
        address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        raw["status"] = {"phase": "Running", "podIP": address, "startTime": BORN, "conditions": conditions}
        made = parse(raw)
        assert isinstance(made, Pod)
        yield intern_pod(made)


def write(folder: Path, nodes: int, pods: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / JOURNAL
    with collection_paused():
        store = Store(objects=objects(nodes, pods), version=nodes + pods)
        journal = Journal(file)
        journal._db.execute("PRAGMA synchronous=OFF")  # this measures reading
        journal.snapshot(store)
        journal.compact()
        journal.close()
    print(f"{file}: {file.stat().st_size / 1e6:,.0f} MB")


def load(folder: Path) -> None:
    began = time.perf_counter()
    with collection_paused():
        before = time.process_time()
        journal = Journal(folder / JOURNAL)
        store = journal.load()
        assert store is not None
        loaded = time.process_time()
        machine = SchedulingMachine(default_config(), seed=1)
        driver = SchedulingDriver(machine)
        count = 0
        for kind in store.kinds():
            found = store.list(kind)
            for start in range(0, len(found), AT_ONCE):
                some = found[start : start + AT_ONCE]
                driver.step(Observe([WatchEvent(ADDED, None, obj, store.version) for obj in some]))
                driver.take_effects()
                count += len(some)
        known = time.process_time()
    wanted = parse(pod("one-more", cpu="100m", memory="64Mi"))
    assert isinstance(wanted, Pod)
    result = drive(machine.begin(wanted, {}))
    assert isinstance(result, ScheduleResult), "the nodes have room"
    decided = time.process_time()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{count:,} objects: journal {loaded - before:.1f} s CPU, scheduler's caches {known - loaded:.1f}", end="")
    print(f", first decision {decided - known:.2f}; {time.perf_counter() - began:.0f} s on the wall, {most:,.0f} MiB")
    journal.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("write", "load"))
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--pods", type=int, default=1_000_000)
    options = parser.parse_args()
    if options.what == "load":
        load(options.folder)
    else:
        write(options.folder, options.nodes, options.pods)


if __name__ == "__main__":
    main()
