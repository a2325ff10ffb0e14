"""Benchmark of the cost of events while many pods wait.

Usage: `python tests/bench/queue_cost.py [--pods 100000] [--templates 1000] [-o json]`

The queue contains unschedulable pods that were rejected by various combinations of the default profile's plugins, as in
a full cluster. Then events arrive, and the benchmark measures the time for each kind of event. The first events help no
pod; later events wake a few pods or most pods. A changed taint wakes each pod that was rejected by a plugin that is
registered for new nodes but not for taints; this is upstream's rule. Pytest does not collect this file. There are no
thresholds.
"""

import argparse
import json
import resource
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import attrs

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.config.loading.load import default_config
from kschedd.framework import events
from kschedd.framework.events import ActionType, ClusterEvent, EventResource
from kschedd.queue.entry import SECOND, Move
from kschedd.queue.scheduling_queue import SchedulingQueue
from kschedd.scheduling.machine import SchedulingMachine

REJECTED_BY = (
    frozenset({"NodeResourcesFit"}),
    frozenset({"NodeResourcesFit", "TaintToleration"}),
    frozenset({"NodeAffinity", "TaintToleration"}),
    frozenset({"NodeAffinity", "NodeResourcesFit", "TaintToleration"}),
    frozenset({"PodTopologySpread", "NodeResourcesFit"}),
    frozenset({"InterPodAffinity", "NodeResourcesFit"}),
)


def pod(number: int, pod_templates: int) -> Pod:
    """Return a pod of one of these templates, which differ in size, label, toleration and selected nodes."""
    template = number % pod_templates
    cpu = 4000 + template
    spec: dict[str, Any] = {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": f"{cpu}m", "memory": "1Gi"}}}],
        "nodeSelector": {"pool": f"p{template % 20}"},
        "tolerations": [{"key": f"team-{template % 7}", "operator": "Exists"}],
    }
    app = {"matchLabels": {"app": f"a{template % 50}"}}
    if REJECTED_BY[template % len(REJECTED_BY)] & {"PodTopologySpread", "InterPodAffinity"}:
        term = {"labelSelector": app, "topologyKey": "kubernetes.io/hostname"}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        spec["topologySpreadConstraints"] = [{**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]
    meta = {"name": f"p{number}", "namespace": "default", "uid": f"u{number}", "labels": app["matchLabels"]}
    return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": spec, "status": {}})


def node(number: int, *, cpu: str = "4", pool: str = "none", taint: str = "", ready: str = "True") -> Node:
    taints = [{"key": taint, "effect": "NoSchedule"}] if taint else []
    return Node.from_raw(
        {
            "kind": "Node",
            "metadata": {
                "name": f"n{number}",
                "labels": {"kubernetes.io/hostname": f"n{number}", "pool": pool},
            },
            "spec": {"taints": taints},
            "status": {
                "allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "110"},
                "conditions": [{"type": "Ready", "status": ready}],
            },
        }
    )


@attrs.frozen
class Measured:
    what: str
    events: int
    us_per_event: float
    moved: int  # pods in all


def waiting_queue(pods: list[Pod], pod_templates: int) -> SchedulingQueue:
    machine = SchedulingMachine(default_config())
    queue = SchedulingQueue(
        sort_key=machine.sort_key(),
        pre_enqueue=machine.pre_enqueue(),
        hints=machine.registrations(),
        recorder=deque[Move](maxlen=100_000).append,
    )
    for waiting in pods:
        queue.add(waiting, 0)
    while (entry := queue.pop(0)) is not None:
        entry.unschedulable_plugins = REJECTED_BY[int(entry.pod.name[1:]) % pod_templates % len(REJECTED_BY)]
        queue.add_unschedulable_if_not_present(entry, 0)
    return queue


def measure(queue: SchedulingQueue, what: str, count: int, change: Callable[[int], tuple[Any, Any]]) -> Measured:
    """Time `count` events; moved pods are put back in between, which is not timed."""
    spent, moved = 0.0, 0
    now = 3600 * SECOND
    for number in range(count):
        old, new = change(number)
        start = time.perf_counter()
        for event in happened(old, new):
            moved += len(queue.move_all_to_active_or_backoff(event, old, new, now))
        spent += time.perf_counter() - start
        while (entry := queue.pop(now)) is not None:
            signature = entry.pod.signature
            entry.unschedulable_plugins = REJECTED_BY[(signature.spec.requests["cpu"] - 4000) % len(REJECTED_BY)]
            queue.add_unschedulable_if_not_present(entry, 0)
    return Measured(what, count, spent / count * 1e6, moved)


def happened(old: Any, new: Any) -> list[ClusterEvent]:
    subject = new if new is not None else old
    if isinstance(subject, Node):
        if old is None:
            return [events.NODE_ADD]
        return events.node_events(old, new)
    if old is None:
        return [events.ASSIGNED_POD_ADD]
    return (
        [events.ASSIGNED_POD_DELETE] if new is None else [ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE)]
    )


def assigned(number: int, cpu: str = "1") -> Pod:
    spec = {
        "nodeName": "n1",
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
    }
    meta = {"name": f"r{number}", "namespace": "other", "uid": f"r{number}", "labels": {"app": "other"}}
    return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": spec, "status": {}})


def run(pods: int, pod_templates: int) -> dict[str, Any]:
    objects = [pod(number, pod_templates) for number in range(pods)]
    before = rss_mb()
    start = time.perf_counter()
    queue = waiting_queue(objects, pod_templates)
    filled = time.perf_counter() - start
    after = rss_mb()
    kinds: list[tuple[str, int, Callable[[int], tuple[Any, Any]]]] = [
        ("node conditions", 1000, lambda n: (node(n), node(n, ready="False"))),
        ("node label that helps nobody", 200, lambda n: (node(n), node(n, pool="other"))),
        ("node a little larger, too small for all", 200, lambda n: (node(n, cpu="1"), node(n, cpu="2"))),
        ("pod bound elsewhere", 1000, lambda n: (None, assigned(n))),
        ("node label that helps one in 60", 20, lambda n: (node(n), node(n, pool="p3"))),
        ("new node, large, helps most", 3, lambda n: (None, node(n, cpu="64", pool="p3"))),
        ("new node, too small, tainted: wakes those of affinity", 3, lambda n: (None, node(n, cpu="1", taint="a"))),
        ("node taint: wakes whoever waits for nodes", 3, lambda n: (node(n, taint="a"), node(n, taint="b"))),
        ("pod gone, may help most", 3, lambda n: (assigned(n), None)),
    ]
    measured = [measure(queue, *kind) for kind in kinds]
    return {
        "pods": pods,
        "templates": pod_templates,
        "fill_us_per_pod": filled / pods * 1e6,
        "rss_mb_before": before,
        "rss_mb_after": after,
        "events": [attrs.asdict(row) for row in measured],
    }


def rss_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the cost of events while many pods wait.")
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--templates", type=int, default=1000)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    args = parser.parse_args()
    found = run(args.pods, args.templates)
    if args.output == "json":
        print(json.dumps(found))
        return
    memory = found["rss_mb_after"] - found["rss_mb_before"]
    print(f"{found['pods']} pods of {found['templates']} templates wait.")
    print(f"Each was added, popped and put back in {found['fill_us_per_pod']:.1f} us;")
    print(f"the queue takes {memory:.0f} MB beside the pods, history included.")
    for row in found["events"]:
        per_event = row["moved"] / row["events"]
        print(f"  {row['what']:54} {row['us_per_event']:10.1f} us an event, {per_event:9.1f} pods moved")


if __name__ == "__main__":
    main()
