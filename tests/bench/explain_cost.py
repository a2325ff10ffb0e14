"""Benchmark of an explanation at 5,000 nodes and 50,000 pods: its part on the event loop, and its part in a thread.

`python -m tests.bench.explain_cost [--nodes N] [--pods N] [--times N]` prints for several kinds of pods the first and
the median time of both parts, and the CPU time of the second part.
"""

import argparse
from collections.abc import Mapping
from statistics import median
from time import perf_counter, thread_time
from typing import Any, Final

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.explain.explain import begin, finish
from kschedd.garbage_collection import freeze_gc
from kschedd.sdk.objects import node, pod
from kschedd.simulation.engine import Engine

ZONE: Final = "topology.kubernetes.io/zone"
OF_APP: Final = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "a1"}}}
APART: Final = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [OF_APP]}}
SPREAD: Final = [{**OF_APP, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]
KINDS: Final[Mapping[str, dict[str, Any]]] = {
    "fits": pod("x", cpu="1"),
    "fits nowhere": pod("x", cpu="64"),
    "anti-affinity over zones": pod("x", labels={"app": "a1"}, spec={"affinity": APART}),
    "spread": pod("x", labels={"app": "a1"}, spec={"topologySpreadConstraints": SPREAD}),
    "preempts": pod("x", cpu="14", spec={"priority": 100}),
}


def cluster(nodes: int, pods: int) -> Engine:
    engine = Engine(None, seed=1)
    cache = engine.machine.cluster
    for number in range(nodes):
        cache.put(parse(node(f"n{number}", cpu="16", memory="64Gi", labels={ZONE: f"z{number % 3}"})))
    for number in range(pods):
        labels = {"app": f"a{number % 20}"}
        raw = pod(f"p{number}", cpu="500m", memory="256Mi", node_name=f"n{number % nodes}", labels=labels)
        cache.put(parse({**raw, "metadata": {**raw["metadata"], "uid": f"p{number}"}}))
    return engine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--times", type=int, default=9)
    options = parser.parse_args()
    engine = cluster(options.nodes, options.pods)
    freeze_gc()  # as the daemon does
    print(f"{'POD':<24} {'LOOP MS':>8} {'MEDIAN':>7} {'THREAD MS':>10} {'MEDIAN':>7} {'CPU MS':>7} {'MEDIAN':>7}")
    for kind, raw in KINDS.items():
        requests = Pod.from_raw({**raw, "metadata": {**raw["metadata"], "uid": "x"}})
        loop, thread, cpu = [], [], []
        for _ in range(options.times):
            began = perf_counter()
            fork = begin(engine.machine, requests, {})
            forked, ran = perf_counter(), thread_time()
            finish(fork)
            loop.append((forked - began) * 1e3)
            thread.append((perf_counter() - forked) * 1e3)
            cpu.append((thread_time() - ran) * 1e3)
        columns = [value for times in (loop, thread, cpu) for value in (times[0], median(times))]
        print(f"{kind:<24} {{:>8.1f}} {{:>7.1f}} {{:>10.1f}} {{:>7.1f}} {{:>7.1f}} {{:>7.1f}}".format(*columns))


if __name__ == "__main__":
    main()
