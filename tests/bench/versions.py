"""Benchmark of a decision in two Kubernetes versions, on every workload: `python -m tests.bench.versions [A B]`.

Each pod is scheduled by both versions, one after the other, in two equal clusters, and the CPU time of this thread is
measured. Other work on the machine therefore affects both versions equally. It prints a table in Markdown: the medians,
and the ratio of the sums without the slowest hundredth.
"""

import argparse
import os
import statistics
import time
from typing import Final

from kschedd.api.pods import Pod
from kschedd.bench.algo import _place, _preempt, load
from kschedd.bench.workloads import WORKLOADS, default_sizes, workload
from kschedd.config.loading.load import default_config
from kschedd.config.versions.kube_versions import kube_version
from kschedd.garbage_collection import freeze_gc
from kschedd.scheduling.machine import SchedulingMachine

_FASTEST: Final = 0.99  # share of the decisions to sum; the others were interrupted


def measured(name: str, versions: list[str], nodes: int, most: int) -> list[list[float]]:
    """Return the seconds of each decision for each version."""
    sizes = default_sizes(name, nodes, 0, 0.0)
    made = workload(name, nodes, init_pods=sizes.init_pods, pods=sizes.pods, pending=sizes.pending or None)
    made = made.measured_in("algo")
    machines = [SchedulingMachine(default_config(version=kube_version(one)), seed=1) for one in versions]
    for machine in machines:
        for _ in load(machine, made):
            pass
    freeze_gc()
    decide = _preempt if name == "PreemptionBasic" else _place
    taken: list[list[float]] = [[] for _ in machines]
    for number, raw in enumerate(made.pods):
        if number >= most:
            break
        turns = list(enumerate(machines))
        for at, machine in turns if number % 2 else reversed(turns):
            pod = Pod.from_raw(raw)
            began = time.thread_time()
            decide(machine, pod)
            taken[at].append(time.thread_time() - began)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", default=["1.34.1", "1.36"])
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=1_000, help="of each workload at most")
    options = parser.parse_args()
    a, b = options.versions
    print(f"{options.nodes:,} nodes, {options.pods:,} pods at most; load {os.getloadavg()[0]:.0f}\n")
    print(f"| workload | {a}, us | {b}, us | ratio |\n|---|---|---|---|")
    for name in WORKLOADS:
        taken = measured(name, [a, b], options.nodes, options.pods)
        sums = [sum(sorted(each)[: max(1, int(len(each) * _FASTEST))]) for each in taken]
        medians = [statistics.median(each) * 1e6 for each in taken]
        print(f"| {name} | {medians[0]:,.0f} | {medians[1]:,.0f} | {sums[1] / sums[0]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
