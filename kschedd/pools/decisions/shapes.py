"""The nodes that pools can launch for some pods: each combination of pool, instance type and offering.

A label for which a pool allows several values has the value that a pod requires, as in Karpenter. Startup taints are
omitted, because ready nodes do not have them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from kschedd.api.pods import Pod
from kschedd.pools.cluster import NodeLaunch, PooledCluster
from kschedd.pools.decisions.autoscaler import launch_of, sized_groups
from kschedd.pools.decisions.karpenter import first, launch_offers, node_launch
from kschedd.pools.karpenter.instance_types import InstanceType, Offering
from kschedd.pools.karpenter.launching import Launch, LaunchOffers
from kschedd.pools.karpenter.node_pools import NodePool
from kschedd.pools.reading import Pools


@attrs.frozen(eq=False)
class LaunchShape:
    """A node that can be launched. `usage` are the amounts of limits that such a node uses."""

    launch: NodeLaunch
    usage: Mapping[str, float]


@attrs.frozen(eq=False)
class LaunchShapes:
    """The nodes that can be launched, and the limits that they share."""

    shapes: Sequence[LaunchShape]
    limits: Mapping[str, float]


def launch_shapes(cluster: PooledCluster, pools: Pools, pods: Iterable[Pod]) -> LaunchShapes:
    """Return the nodes that can be launched for the pods, within what the limits of the pools leave."""
    limits: dict[str, float] = {}
    found = []
    for group in sized_groups(cluster, pools):
        limits[group.name] = float(max(group.maximum - group.target, 0))
        found.append(LaunchShape(launch_of(group, group.template, group.name, ()), {group.name: 1.0}))
    offers = launch_offers(cluster, attrs.evolve(pools, groups=()))
    distinct = {pod.signature.id: pod for pod in pods}.values()
    for pool in offers.pools_in_order():
        left = offers.left.get(pool.name, {})
        limits |= {f"{pool.name} {name}": float(number) for name, number in left.items()}
        for launch, kind, offering in _offered(offers, pool, distinct):
            used = {**kind.capacity, "nodes": 1}
            usage = {f"{pool.name} {name}": float(used.get(name, 0)) for name in left}
            if offering.reserved is not None:
                key = f"reservation {sorted(map(sorted, offering.reservation or ()))}"
                limits[key], usage[key] = float(offering.reserved), 1.0
            found.append(LaunchShape(launch, usage))
    return LaunchShapes(found, limits)


def _offered(
    offers: LaunchOffers, pool: NodePool, pods: Iterable[Pod]
) -> Iterator[tuple[NodeLaunch, InstanceType, Offering]]:
    """Yield the nodes of a pool, each distinct one once."""
    opened = offers.opened(pool)
    seen = set[Any]()
    if opened is None:
        return
    for pod in pods:
        for demand in offers.demands(pod, preferences=False):
            grown = offers.added(opened, demand)
            for each in () if grown is None else grown.types:
                assert grown is not None, "it has types"
                for offering in grown.offerings(each):
                    one = _launch(grown, each, offering)
                    key = (one.type, offering.reservation, *sorted(one.raw["metadata"]["labels"].items()))
                    if key not in seen:
                        seen.add(key)
                        yield one, each, offering


def _launch(grown: Launch, each: InstanceType, offering: Offering) -> NodeLaunch:
    only = attrs.evolve(each, offerings=[offering])
    return node_launch(attrs.evolve(grown, types=[only], pods=()), grown.pool.name, first)
