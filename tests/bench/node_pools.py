"""CPU time of removal decisions for node pools, and their longest turn: 1,000 nodes with 10,000 pods.

    python -m tests.bench.node_pools [--nodes N]

For each autoscaler: a scan with a verdict on each node, and a whole loop of the controller with its turns.
"""

import argparse
import time
from collections import Counter
from collections.abc import Generator
from random import Random
from typing import Any, TypeVar

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.config.loading.load import default_config
from kschedd.controllers.scaling.node_pools import STEPS
from kschedd.garbage_collection import tune_gc
from kschedd.pools.cluster import PooledCluster, ScaleDown
from kschedd.pools.decisions import autoscaler, karpenter
from kschedd.pools.decisions.loops import RemovalLoop
from kschedd.pools.reading import PoolFile, Pools, read_pools
from kschedd.scheduling.trial_cluster import TrialCluster

T = TypeVar("T")
POOLS = """
pools:
- {name: small, shape: "cpu=4,memory=16Gi", price: 0.2}
- {name: large, shape: "cpu=16,memory=64Gi", price: 0.7}
autoscaler: {name: %s}
"""
CREATED, NOW_S = "2025-01-01T00:00:00Z", 1735776000.0
PODS_OF_NODE = 10


def objects(count: int) -> list[Object]:
    random, found = Random(1), list[Object]()
    for number in range(count):
        pool, factor = ("large", 4) if number % 2 else ("small", 1)
        name = f"{pool}-{number}"
        room = {"cpu": str(4 * factor), "memory": f"{16 * factor}Gi", "pods": "110"}
        labels = {"kschedd.io/pool": pool, "node.kubernetes.io/instance-type": pool, "kubernetes.io/hostname": name}
        status = {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]}
        meta = {"name": name, "uid": name, "creationTimestamp": CREATED, "labels": labels}
        found.append(Node.from_raw({"metadata": meta, "status": status}))
        for place in range(PODS_OF_NODE):
            found.append(pod(f"{name}-{place}", name, random.choice((100, 200, 300)) * factor, number % 200))
    return found


def pod(name: str, node: str, milli: int, app: int) -> Pod:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"a{app}", "uid": f"a{app}", "controller": True}
    meta = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": CREATED}
    container = {"name": "c", "resources": {"requests": {"cpu": f"{milli}m", "memory": "256Mi"}}}
    raw: dict[str, Any] = {"metadata": {**meta, "labels": {"app": f"a{app}"}, "ownerReferences": [owner]}}
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": CREATED}
    return Pod.from_raw(
        {**raw, "spec": {"nodeName": node, "containers": [container]}, "status": {"conditions": [scheduled]}}
    )


def scanned(pools: Pools, cluster: PooledCluster, every: list[Object]) -> ScaleDown:
    if pools.autoscaler == "karpenter":
        return karpenter.plan_removal(cluster, pools, scan=True)
    return autoscaler.plan_removal(cluster, pools, TrialCluster.of(default_config(), every), scan=True)


def timed(steps: Generator[Any, None, T], spent: list[float]) -> T:
    """Run the steps, and add the CPU time of each."""
    while True:
        began = time.thread_time()
        try:
            next(steps)
        except StopIteration as end:
            value: T = end.value
            return value
        finally:
            spent.append(time.thread_time() - began)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=1000)
    every = objects(parser.parse_args().nodes)
    default_config()  # imports the plugins
    tune_gc()
    for name in ("karpenter", "cluster-autoscaler"):
        pools = read_pools([PoolFile("pools", POOLS % name)])
        spent = list[float]()
        cluster = timed(PooledCluster.in_steps(every, NOW_S), spent)
        trials = timed(TrialCluster.in_steps(every), spent) if name != "karpenter" else None
        timed(RemovalLoop(pools).step(cluster, trials, frozenset()), spent)
        turns = [sum(spent[place : place + STEPS]) * 1000 for place in range(0, len(spent), STEPS)]
        print(f"{name}: loop {sum(spent):.2f} s of CPU in {len(turns):,} turns, the longest {max(turns):.1f} ms")
        began = time.process_time()
        found = scanned(pools, cluster, every)
        counts = Counter(verdict.verdict for verdict in found.verdicts)
        print(f"{name}: scan {time.process_time() - began:.1f} s of CPU; {dict(counts)}")


if __name__ == "__main__":
    main()
