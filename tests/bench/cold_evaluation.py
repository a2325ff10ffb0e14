"""Benchmark of the first decisions for a new pod template by cluster size, and of the time that threads could save.

`python -m tests.bench.cold_evaluation [--nodes N ...] [--times N] [--percentage N]` prints for each size the median and
minimum CPU time of the first three decisions for a new template. The first decision evaluates only as many nodes as it
needs; the second evaluates all nodes and caches the result; the third uses the cache. Threads could share the part of
the time that grows with the number of nodes. The wall time for passing two pieces of work to threads and receiving the
results is measured as well.
"""

import argparse
import gc
from statistics import median
from time import perf_counter, process_time

import numpy as np
import trio

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.bench.workloads import workload
from kschedd.config.changing.changes import with_percentage
from kschedd.config.loading.load import default_config
from kschedd.scheduling.attempt.outcome import ScheduleResult
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.sdk.objects import pod


def decide(machine: SchedulingMachine, wanted: Pod) -> float:
    began = process_time()
    result = drive(machine.begin(wanted, {}))
    took = process_time() - began
    assert isinstance(result, ScheduleResult), "the nodes are empty"
    machine.cluster.assume(wanted, result.node_name)
    return took * 1000


async def hand_over(times: int) -> float:
    """Return the milliseconds for passing two pieces of work to threads and receiving both results."""
    took = []
    row = np.zeros(1)
    for _ in range(times):
        began = perf_counter()
        async with trio.open_nursery() as both:
            both.start_soon(trio.to_thread.run_sync, row.sum)
            both.start_soon(trio.to_thread.run_sync, row.sum)
        took.append((perf_counter() - began) * 1000)
    return median(took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[5_000, 20_000, 100_000])
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--percentage", type=int, default=0, help="percentageOfNodesToScore; 0: adaptive")
    options = parser.parse_args()
    config = with_percentage(default_config(), options.percentage) if options.percentage else default_config()
    print(f"{'NODES':>8} " + " ".join(f"{which:>9} {'LEAST':>8}" for which in ("FIRST MS", "SECOND MS", "THIRD MS")))
    for nodes in options.nodes:
        machine = SchedulingMachine(config, seed=1)
        for raw in workload("SchedulingBasic", nodes).nodes:
            machine.cluster.put(parse(raw))
        gc.collect()
        gc.freeze()
        took: tuple[list[float], ...] = ([], [], [])
        for number in range(options.times):
            for turn, found in enumerate(took):
                name = f"p{number}-{turn}"
                raw = pod(name, cpu=f"{100 + number}m", memory=f"{64 + number}Mi")
                raw["metadata"]["uid"] = name
                found.append(decide(machine, Pod.from_raw(raw)))
        print(f"{nodes:>8,} " + " ".join(f"{median(found):>9.3f} {min(found):>8.3f}" for found in took), flush=True)
    print(f"two shards to threads and back: {trio.run(hand_over, 200):.3f} ms on the wall")


if __name__ == "__main__":
    main()
