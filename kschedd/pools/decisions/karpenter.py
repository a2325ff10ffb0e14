"""Karpenter's decisions for a whole cluster: launches for pending pods, and removals of nodes."""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import parse, with_fields
from kschedd.api.pods import Pod
from kschedd.api.quantity import format_milli
from kschedd.api.resources import Resources, amounts
from kschedd.api.selecting.terms import Taint
from kschedd.api.text.times import seconds, stamp
from kschedd.pools.cluster import (
    NodeLaunch,
    PooledCluster,
    Removal,
    RemovalVerdict,
    ScaleDown,
    ScaleUp,
    difference,
)
from kschedd.pools.karpenter.candidates import ManagedNode, is_recent
from kschedd.pools.karpenter.disruption import DisruptionCommand, DisruptionRound, DisruptionUnsupported
from kschedd.pools.karpenter.instance_types import without_used
from kschedd.pools.karpenter.launching import Launch, LaunchOffers, demands_of, launched_node
from kschedd.pools.karpenter.node_pools import NodePool
from kschedd.pools.karpenter.provisioning import UNREGISTERED, ExistingNode, planning
from kschedd.pools.karpenter.refusals import why_no_launch
from kschedd.pools.karpenter.removals import ConsolidatedCluster
from kschedd.pools.karpenter.requirements import CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL, ZONE
from kschedd.pools.reading import Pools, pool_name
from kschedd.values import in_parts, run_steps

INITIALIZED: Final = "karpenter.sh/initialized"
REGISTERED: Final = "karpenter.sh/registered"
DISRUPTED: Final = Taint("karpenter.sh/disrupted", "", "NoSchedule")
_CORDONED: Final = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")

_PART: Final = 20  # nodes that are read between two pauses

Choose = Callable[[Sequence[Any]], Any]


def first(equal: Sequence[Any]) -> Any:
    return equal[0]


def plan_launches(cluster: PooledCluster, pools: Pools, choose: Choose = first) -> ScaleUp:
    """Return the launches for the pending pods; `choose` selects one of several equally cheap offerings."""
    return run_steps(launching(cluster, pools, choose))


def launching(cluster: PooledCluster, pools: Pools, choose: Choose = first) -> Generator[None, None, ScaleUp]:
    """Return the launches of `plan_launches`, with pauses."""
    pods = cluster.pending
    offers = launch_offers(cluster, pools)
    existing = existing_nodes(cluster, pools)
    plan = yield from planning(
        pods,
        existing,
        offers,
        namespaces=cluster.namespaces,
        preferences=pools.settings.preferences,
        reserving=True,
    )
    by_uid = {pod.uid: pod for pod in pods}
    taken: list[str] = []
    launches = []
    for launch in plan.launches:
        name = next(cluster.free_names(launch.pool.name, taken))
        taken.append(name)
        launches.append(node_launch(launch, name, choose))
    left = attrs.evolve(offers, left=plan.left)
    return ScaleUp(
        launches,
        [(by_uid[uid], name) for uid, name in plan.placed.items()],
        [(pod, why_no_launch(left, pod, plan.topology)) for pod in plan.failed],
    )


def launch_offers(cluster: PooledCluster, pools: Pools) -> LaunchOffers:
    """Return what can be launched within the limits that the cluster's nodes leave."""
    own, labels = pools.karpenter_pools(), [node.labels for node in cluster.nodes]
    return LaunchOffers(
        own,
        without_used(pools.types, labels),
        cluster.daemons,
        {pool.name: _left(cluster.nodes, pool) for pool in own if pool.limits},
        pools.settings.strict_min_values,
        {name: without_used(types, labels) for name, types in pools.types_by_pool.items()},
        cluster.volumes,
    )


def _left(nodes: Sequence[Node], pool: NodePool) -> Resources:
    own = [node for node in nodes if pool_name(node) == pool.name]
    used: Resources = {"nodes": len(own)}
    for node in own:
        for name, number in amounts(node.status.get("capacity") or node.status.get("allocatable")).items():
            used[name] = used.get(name, 0) + number
    return {name: limit - used.get(name, 0) for name, limit in pool.limits.items()}


def existing_nodes(cluster: PooledCluster, pools: Pools) -> list[ExistingNode]:
    """Return the nodes as provisioning reads them, with the DaemonSets that do not run there yet."""
    startup = {pool.name: pool.startup_taints for pool in pools.node_pools}
    return [_existing(node, cluster, startup.get(pool_name(node), ())) for node in cluster.nodes]


def _existing(node: Node, cluster: PooledCluster, startup_taints: Sequence[Taint]) -> ExistingNode:
    pods = cluster.pods.get(node.name, ())
    taints = list(node.taints)
    if node.unschedulable and not any(taint.key == _CORDONED.key for taint in taints):
        taints.append(_CORDONED)
    own = ExistingNode(
        node.name,
        {"kubernetes.io/hostname": node.name, **node.labels},
        node.allocatable,
        taints,
        startup_taints,
        is_initialized(node),
        pods,
        volume_limits=cluster.volumes.limits_of(node.name),
    )
    there = {(pod.namespace, owner.name) for pod in pods if (owner := pod.owner) and owner.kind == "DaemonSet"}
    missing = [pod for pod in cluster.daemons if (pod.namespace, pod.name) not in there]
    if not missing:
        return own
    empty = attrs.evolve(own, pods=())
    coming = [pod for pod in missing if any(empty.admits(each) for each in demands_of(pod, preferences=False))]
    return attrs.evolve(own, daemons=coming)


def is_initialized(node: Node) -> bool:
    """Return whether Karpenter has initialized the node; nodes of other origin count as initialized."""
    if UNREGISTERED in node.taints:
        return False
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
    """Return the launched node while it starts: with its startup taints, and not yet registered."""
    raw = dict(launch.raw)
    meta, spec = raw["metadata"], raw["spec"]
    labels = {key: text for key, text in meta["labels"].items() if key not in (REGISTERED, INITIALIZED)}
    taints = [*(spec.get("taints") or ()), *map(_raw_taint, [*startup_taints, UNREGISTERED])]
    raw["metadata"] = {**meta, "labels": labels}
    raw["spec"] = {**spec, "taints": taints}
    return raw


def resumed_launch(node: Node, startup_taints: Sequence[Taint]) -> NodeLaunch:
    """Return the launch of a node that registered before a restart, as a ready node without startup taints."""
    left = [_raw_taint(taint) for taint in node.taints if taint not in (*startup_taints, UNREGISTERED)]
    meta = {**node.metadata, "labels": {**node.labels, REGISTERED: "true", INITIALIZED: "true"}}
    raw = {**node.raw, "metadata": meta, "spec": {**node.spec, "taints": left}}
    return NodeLaunch(pool_name(node), raw, node.labels.get(INSTANCE_TYPE, ""), None, ())


def _raw_taint(taint: Taint) -> dict[str, str]:
    return {"key": taint.key, **({"value": taint.value} if taint.value else {}), "effect": taint.effect}


def _quantities(resources: Mapping[str, int]) -> dict[str, str]:
    return {name: format_milli(number) if name == "cpu" else str(number) for name, number in resources.items()}


# -- removals -------------------------------------------------------------------------------------------------------


def plan_removal(
    cluster: PooledCluster,
    pools: Pools,
    names: Sequence[str] | None = None,
    *,
    scan: bool = False,
    check: Callable[[], None] = lambda: None,
) -> ScaleDown:
    """Return the next command of disruption.

    With `names`, only these nodes are removed, each by itself, although other nodes may come first. With `scan`, there
    is a verdict about each node. `check` is called between two nodes.
    """
    now = disruption_round(cluster, pools)
    prices = _prices(cluster, pools)
    verdicts: list[RemovalVerdict] = []
    chosen: DisruptionCommand | None = None
    managed = {each.name: each for each in now.nodes}
    examined = [node.name for node in cluster.nodes] if scan and names is None else names or ()
    for name in examined:
        check()
        found = now.removal(managed[name]) if name in managed else ("no pool", "the node belongs to no NodePool")
        own = RemovalVerdict(name, _pool_of(managed, name), prices.get(name), len(cluster.pods.get(name, ())), "keep")
        if isinstance(found, tuple):
            verdicts.append(attrs.evolve(own, rule=found[0], why=found[1]))
            continue
        saved = _removal(found, cluster, prices).saved
        verb = "delete" if found.launch is None else "replace"
        verdicts.append(attrs.evolve(own, verdict=verb, rule=found.reason.value, saved=saved))
        chosen = chosen or found
    if names is None:
        chosen = _command(now)
    return ScaleDown(verdicts, None if chosen is None else _removal(chosen, cluster, prices))


def _command(now: DisruptionRound) -> DisruptionCommand | None:
    try:
        return run_steps(now.command())
    except DisruptionUnsupported:
        return None


def _pool_of(managed: Mapping[str, ManagedNode], name: str) -> str:
    return (managed[name].pool or "") if name in managed else ""


def removal(command: DisruptionCommand, cluster: PooledCluster, pools: Pools) -> Removal:
    """Return a command with the replacement's name and the savings."""
    return _removal(command, cluster, _prices(cluster, pools))


def _removal(command: DisruptionCommand, cluster: PooledCluster, prices: Mapping[str, float]) -> Removal:
    names = [each.name for each in command.nodes]
    launch = command.launch
    replacement = None if launch is None else node_launch(launch, next(cluster.free_names(launch.pool.name)), first)
    saved = difference([prices.get(name) for name in names], replacement)
    return Removal(command.reason.value, names, replacement, saved)


def disruption_round(cluster: PooledCluster, pools: Pools) -> DisruptionRound:
    return run_steps(beginning_round(cluster, pools))


def beginning_round(
    cluster: PooledCluster,
    pools: Pools,
    changed_s: Mapping[str, float] | None = None,
    leaving: frozenset[str] = frozenset(),
) -> Generator[None, None, DisruptionRound]:
    """Return the state of the cluster for decisions about disruption, with pauses.

    `leaving` are the nodes that are being removed.

    `changed_s` maps each node to the time when a pod last came or left; without it, this is the time when the latest
    of its pods was scheduled. Nodes without NodeClaim get one by their pool.
    """
    offers = launch_offers(cluster, pools)
    by_name = {pool.name: pool for pool in offers.pools}
    managed: list[ManagedNode] = []
    existing: list[ExistingNode] = []
    for part in in_parts(cluster.nodes, _PART):
        yield
        own = [
            _managed(node, cluster, by_name[name], changed_s, leaving)
            for node in part
            if (name := pool_name(node)) in by_name
        ]
        managed += own
        deleting = {each.name for each in own if each.deleting}
        existing += existing_nodes(
            attrs.evolve(cluster, nodes=[node for node in part if node.name not in deleting]), pools
        )
    yield
    barred = {
        each.name
        for each in managed
        if not each.initialized or is_recent(each, by_name[each.pool or ""], cluster.now_s)
    }
    yield
    consolidated = ConsolidatedCluster(
        existing, frozenset(barred), cluster.pending, offers, _prices(cluster, pools), pools.settings.spot_to_spot
    )
    return DisruptionRound(managed, consolidated, cluster.budgets, cluster.now_s)


def _prices(cluster: PooledCluster, pools: Pools) -> dict[str, float]:
    """Return the price of each node whose pool offers its instance type."""
    prices = ((node.name, pools.price_of(node)) for node in cluster.nodes)
    return {name: price for name, price in prices if price is not None}


def _managed(
    node: Node,
    cluster: PooledCluster,
    pool: NodePool,
    changed_s: Mapping[str, float] | None,
    leaving: frozenset[str],
) -> ManagedNode:
    pods = cluster.pods.get(node.name, ())
    created = str(node.metadata.get("creationTimestamp") or stamp(cluster.now_s))
    if changed_s is None:
        last = max([seconds(created), *(seconds(at) for pod in pods if (at := _scheduled_at(pod)))])
    else:
        last = changed_s.get(node.name, seconds(created))
    undisturbed = pool.consolidate_after_s is not None and cluster.now_s - last >= pool.consolidate_after_s
    labels = {**node.labels, NODE_POOL: pool.name}
    if is_initialized(node):
        labels |= {REGISTERED: "true", INITIALIZED: "true"}
    grace = None if pool.termination_grace_s is None else f"{pool.termination_grace_s:g}s"
    claim = parse(
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {"name": node.name, "labels": labels, "creationTimestamp": created},
            "spec": {"terminationGracePeriod": grace} if grace else {},
            "status": {
                "nodeName": node.name,
                "lastPodEventTime": stamp(last),
                "conditions": [
                    {"type": "Initialized", "status": "True", "lastTransitionTime": created},
                    {"type": "Consolidatable", "status": "True" if undisturbed else "False"},
                ],
            },
        }
    )
    own = Node.from_raw(with_fields(node.raw, "metadata", labels=labels))
    return ManagedNode(claim, own, pods, marked=node.deleting or node.name in leaving or DISRUPTED in node.taints)


def _scheduled_at(pod: Pod) -> str:
    for each in pod.status.get("conditions") or ():
        if each.get("type") == "PodScheduled" and each.get("lastTransitionTime"):
            return str(each["lastTransitionTime"])
    return str(pod.metadata.get("creationTimestamp") or "")
