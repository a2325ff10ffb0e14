"""Benchmark of heartbeats, and of the loss of many nodes: `python -m tests.bench.node_outage --help`.

heartbeats   A live cluster schedules pods while the kubelet of every node renews its Lease. The output contains the
             share of the time that the controllers for heartbeats and node lifecycle take, and the time for reading
             all Leases.
outage       In virtual time, all nodes of a zone that runs all pods fail. The nodes become Unknown and are tainted at
             the default rate. The pods are evicted, recreated by their ReplicaSets, and scheduled to other zones.
"""

import argparse
import resource
import time
from collections.abc import Sequence
from typing import Any

import trio

from kschedd.actors.clock import Clock
from kschedd.controllers.embedded import embedded_controllers
from kschedd.controllers.kubelets.heartbeats import NODE_LEASES, Heartbeats
from kschedd.controllers.kubelets.state import KUBELET
from kschedd.controllers.nodes.nodelifecycle import NodeLifecycle
from kschedd.controllers.nodes.tainteviction import TaintEviction
from kschedd.controllers.running.controller import Controller
from kschedd.daemon import cluster_actors
from kschedd.simulation.engine import Engine
from kschedd.store.cluster_api import ClusterReader

ZONE = "topology.kubernetes.io/zone"
REPLICAS = 50  # replicas of a Deployment; the time of a ReplicaSet's sync is proportional to its pods


def node(name: str, zone: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {ZONE: zone}},
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
    }


def deployment(name: str, replicas: int) -> dict[str, Any]:
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
        },
    }


class Timed:
    """A controller whose reconciles are timed."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.spent_s = 0.0
        self.turns = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.controller, name)

    def __deepcopy__(self, memo: Any) -> "Timed":
        return self

    def reconcile(self, *given: Any) -> Any:
        began = time.thread_time()
        try:
            return self.controller.reconcile(*given)
        finally:
            self.spent_s += time.thread_time() - began
            self.turns += 1


async def heartbeats(nodes: int, pods: int) -> None:
    controllers = [Timed(each) for each in embedded_controllers()]
    of_nodes = [t for t in controllers if isinstance(t.controller, Heartbeats | NodeLifecycle | TaintEviction)]
    wired: Any = controllers
    async with cluster_actors(controllers=wired, clock=Clock.started(), seed=1) as cluster:
        await cluster.store.create_many([node(f"node-{number}", f"zone-{number % 5}") for number in range(nodes)])

        def leases(store: ClusterReader) -> bool:
            return store.count("Lease") == nodes

        while not await cluster.store.do(leases):  # noqa: ASYNC110 - a look costs less than following each write
            await trio.sleep(0.1)
        await trio.sleep(15)  # until every controller has processed these events
        print(f"{nodes} nodes registered")
        for timed in controllers:
            timed.spent_s, timed.turns = 0.0, 0
        began, cpu = time.perf_counter(), time.process_time()
        for number in range(-(-pods // REPLICAS)):
            await cluster.store.create(deployment(f"app-{number}", min(REPLICAS, pods - number * REPLICAS)))

        def running(store: ClusterReader) -> bool:
            # cheap checks are first
            return store.count("Pod") == pods and all(
                pod.raw["status"].get("phase") == "Running" for pod in store.list("Pod")
            )

        while not await cluster.store.do(running):  # noqa: ASYNC110 - likewise
            await trio.sleep(2)
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
        print(f"{pods} pods made, scheduled and running in {took:.1f} s ({cpu:.1f} s of CPU)")
        for timed in of_nodes:
            spent = f"{timed.spent_s * 1e3:.0f} ms in {timed.turns} turns, {timed.spent_s / cpu:.2%} of the CPU"
            print(f"  {timed.controller.name}: {spent}")
        idle_cpu = time.process_time()
        await trio.sleep(20)
        print(f"idle, two renewals of each Lease: {(time.process_time() - idle_cpu) / 20:.2%} of a core")
        began = time.perf_counter()
        found = await cluster.store.do(lambda store: store.list("Lease", NODE_LEASES))
        print(f"all {len(found)} Leases read in {(time.perf_counter() - began) * 1e3:.0f} ms")


def outage(lost: int, others: int, pods: int) -> None:
    began = time.perf_counter()
    engine = Engine(seed=1, controllers=embedded_controllers())
    store = engine.store
    for number in range(lost):
        store.create(node(f"lost-{number}", "zone-a"))
    engine.run_until_idle()
    for number in range(-(-pods // REPLICAS)):
        store.create(deployment(f"app-{number}", min(REPLICAS, pods - number * REPLICAS)))
        engine.run_until_idle()
    for number in range(others):
        store.create(node(f"node-{number}", f"zone-{'bcde'[number % 4]}"))
    engine.run_until_idle()
    began = _said(f"{lost + others} nodes, {store.count('Pod')} pods on {lost} of them", began, engine)
    for number in range(lost):
        store.merge_patch("Node", "", f"lost-{number}", {"metadata": {"annotations": {KUBELET: "stopped"}}})
    engine.advance(engine.now + 60)
    began = _said("all lost nodes Unknown, their pods not Ready", began, engine)
    engine.run_to_rest(10 * 24 * 3600)
    there = [pod for pod in store.list("Pod") if not pod.deleting]
    again = sum(str(pod.spec.get("nodeName", "")).startswith("node-") for pod in there)
    _said(
        f"at rest: {store.count('Pod') - len(there)} pods left, {again} of {len(there)} placed elsewhere", began, engine
    )


def _said(what: str, began: float, engine: Engine) -> float:
    now = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what}: {now - began:.1f} s, virtual time {engine.elapsed:.0f} s, peak {peak:.0f} MiB")
    return time.perf_counter()


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("heartbeats", "outage"))
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--lost", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=30_000)
    options = parser.parse_args(words)
    if options.what == "heartbeats":
        trio.run(heartbeats, options.nodes, options.pods)
    else:
        outage(options.lost, options.nodes - options.lost, options.pods)


if __name__ == "__main__":
    main()
