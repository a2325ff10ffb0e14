"""Karpenter's decisions for a whole cluster: launches for pending pods.

Volumes are not supported (`kschedd.pools.karpenter.launching`): a pod with volumes gets no launch.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.quantity import format_milli
from kschedd.api.resources import Resources, amounts
from kschedd.api.selecting.terms import Taint
from kschedd.pools.cluster import NodeLaunch, PooledCluster, PoolRefusal, ScaleUp
from kschedd.pools.karpenter.launching import Launch, LaunchOffers, LaunchUnsupported, demands_of, launched_node
from kschedd.pools.karpenter.node_pools import NodePool
from kschedd.pools.karpenter.provisioning import UNREGISTERED, ExistingNode, plan_round
from kschedd.pools.karpenter.refusals import why_no_launch
from kschedd.pools.karpenter.requirements import CAPACITY_TYPE, NODE_POOL, ZONE
from kschedd.pools.reading import Pools, pool_name

INITIALIZED: Final = "karpenter.sh/initialized"
REGISTERED: Final = "karpenter.sh/registered"
_CORDONED: Final = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")

Choose = Callable[[Sequence[Any]], Any]


def first(equal: Sequence[Any]) -> Any:
    return equal[0]


def plan_launches(cluster: PooledCluster, pools: Pools, choose: Choose = first) -> ScaleUp:
    """Return the launches for the pending pods; `choose` selects one of several equally cheap offerings."""
    pods, unsupported = supported(cluster.pending)
    offers = launch_offers(cluster, pools)
    existing = existing_nodes(cluster)
    plan = plan_round(pods, existing, offers, namespaces=cluster.namespaces, preferences=pools.settings.preferences)
    by_uid = {pod.uid: pod for pod in pods}
    taken: list[str] = []
    launches = []
    for launch in plan.launches:
        name = next(cluster.free_names(launch.pool.name, taken))
        taken.append(name)
        launches.append(node_launch(launch, name, choose))
    left = attrs.evolve(offers, left=plan.left)
    refused = [(pod, why_no_launch(left, pod, plan.topology)) for pod in plan.failed]
    return ScaleUp(
        launches,
        [(by_uid[uid], name) for uid, name in plan.placed.items()],
        [*refused, *((pod, [PoolRefusal("", "volumes", why)]) for pod, why in unsupported)],
    )


def supported(pods: Sequence[Pod]) -> tuple[list[Pod], list[tuple[Pod, str]]]:
    """Return the pods for which launches can be computed, and the other pods with the reason."""
    kept, others = [], []
    for pod in pods:
        try:
            next(demands_of(pod))
        except LaunchUnsupported as lack:
            others.append((pod, f"{lack}: kschedd plans no launches for such pods"))
        else:
            kept.append(pod)
    return kept, others


def launch_offers(cluster: PooledCluster, pools: Pools) -> LaunchOffers:
    """Return what can be launched within the limits that the cluster's nodes leave."""
    own = pools.karpenter_pools()
    return LaunchOffers(
        own,
        pools.types,
        supported(cluster.daemons)[0],
        {pool.name: _left(cluster.nodes, pool) for pool in own if pool.limits},
        pools.settings.strict_min_values,
        pools.types_by_pool(),
    )


def _left(nodes: Sequence[Node], pool: NodePool) -> Resources:
    own = [node for node in nodes if pool_name(node) == pool.name]
    used: Resources = {"nodes": len(own)}
    for node in own:
        for name, number in amounts(node.status.get("capacity") or node.status.get("allocatable")).items():
            used[name] = used.get(name, 0) + number
    return {name: limit - used.get(name, 0) for name, limit in pool.limits.items()}


def existing_nodes(cluster: PooledCluster) -> list[ExistingNode]:
    """Return the nodes as provisioning reads them, with the DaemonSets that do not run there yet."""
    daemons = supported(cluster.daemons)[0]
    return [_existing(node, cluster.pods.get(node.name, ()), daemons) for node in cluster.nodes]


def _existing(node: Node, pods: Sequence[Pod], daemons: Sequence[Pod]) -> ExistingNode:
    taints = list(node.taints)
    if node.unschedulable and not any(taint.key == _CORDONED.key for taint in taints):
        taints.append(_CORDONED)
    own = ExistingNode(
        node.name,
        {"kubernetes.io/hostname": node.name, **node.labels},
        node.allocatable,
        taints,
        (),
        is_initialized(node),
        pods,
    )
    there = {(pod.namespace, owner.name) for pod in pods if (owner := pod.owner) and owner.kind == "DaemonSet"}
    missing = [pod for pod in daemons if (pod.namespace, pod.name) not in there]
    if not missing:
        return own
    empty = attrs.evolve(own, pods=())
    coming = [pod for pod in missing if any(empty.admits(each) for each in demands_of(pod, preferences=False))]
    return attrs.evolve(own, daemons=coming)


def is_initialized(node: Node) -> bool:
    """Return whether Karpenter has initialized the node; nodes of other origin count as initialized."""
    return REGISTERED not in node.labels or node.labels.get(INITIALIZED) == "true"


def node_launch(launch: Launch, name: str, choose: Choose) -> NodeLaunch:
    """Return the launch of the cheapest offering, as a ready node without startup taints."""
    made, pool = launched_node(launch, name, choose), launch.pool
    labels = {**made.labels, "kschedd.io/pool": pool.name, NODE_POOL: pool.name}
    labels |= {REGISTERED: "true", INITIALIZED: "true"}
    raw: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": dict(pool.annotations)},
        "spec": {"taints": [_raw_taint(taint) for taint in pool.taints]} if pool.taints else {},
        "status": {
            "capacity": _quantities(made.type.capacity),
            "allocatable": _quantities(made.type.allocatable),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    zone, kind = made.labels.get(ZONE, ""), made.labels.get(CAPACITY_TYPE, "")
    return NodeLaunch(pool.name, raw, made.type.name, made.offering.price, launch.pods, zone, kind)


def starting(launch: NodeLaunch, startup_taints: Sequence[Taint]) -> dict[str, Any]:
    """Return the launched node while it starts: not ready, with its startup taints, and not yet registered."""
    raw = dict(launch.raw)
    meta, spec, status = raw["metadata"], raw["spec"], raw["status"]
    labels = {key: text for key, text in meta["labels"].items() if key not in (REGISTERED, INITIALIZED)}
    taints = [*(spec.get("taints") or ()), *map(_raw_taint, [*startup_taints, UNREGISTERED])]
    raw["metadata"] = {**meta, "labels": labels}
    raw["spec"] = {**spec, "taints": taints}
    raw["status"] = {**status, "conditions": [{"type": "Ready", "status": "False"}]}
    return raw


def _raw_taint(taint: Taint) -> dict[str, str]:
    return {"key": taint.key, **({"value": taint.value} if taint.value else {}), "effect": taint.effect}


def _quantities(resources: Mapping[str, int]) -> dict[str, str]:
    return {name: format_milli(number) if name == "cpu" else str(number) for name, number in resources.items()}
