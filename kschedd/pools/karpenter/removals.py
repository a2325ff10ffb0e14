"""Consolidation: which candidates are deleted, or replaced by one cheaper node.

The pods of the removed nodes are planned onto the other nodes, as in a round of provisioning. If some pods of the
removed nodes fit on no other node, all these pods must fit on one new node. The functions are generators, which pause
after each planned pod.

Source: sigs.k8s.io/karpenter, pkg/controllers/disruption (consolidation.go, multinodeconsolidation.go,
singlenodeconsolidation.go, helpers.go). The time limits are not applied.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Final

import attrs

from kschedd.api.pods import Pod
from kschedd.pools.karpenter.candidates import ManagedNode
from kschedd.pools.karpenter.launching import ON_DEMAND, SPOT, Launch, LaunchOffers
from kschedd.pools.karpenter.provisioning import ExistingNode, planning
from kschedd.pools.karpenter.requirements import CAPACITY_TYPE, INSTANCE_TYPE

#: largest number of nodes that one command removes
MOST_NODES: Final = 100
_SPOT_TYPES: Final = 15  # number of cheaper types that the replacement of one spot node by another needs


@attrs.frozen(eq=False)
class ConsolidatedCluster:
    """The parts of a cluster that consolidation reads.

    `existing` are the nodes that may receive pods; no command relies on those in `barred`. `prices` are those of the
    nodes by name. With `spot_to_spot`, spot nodes replace spot nodes.
    """

    existing: Sequence[ExistingNode]
    barred: frozenset[str]
    pending: Sequence[Pod]
    offers: LaunchOffers
    prices: Mapping[str, float]
    spot_to_spot: bool = False


@attrs.frozen(eq=False)
class NodeRemoval:
    """Nodes to remove, and the node that replaces them."""

    nodes: Sequence[ManagedNode]
    launch: Launch | None = None


Approve = Callable[[NodeRemoval], bool]
Steps = Generator[None, None, NodeRemoval | None]
"""A decision with pauses: the removal, or None."""


def remove_several(candidates: Sequence[ManagedNode], cluster: ConsolidatedCluster, approve: Approve) -> Steps:
    """Return the removal of the longest prefix of at least two candidates that a binary search finds."""
    best = None
    low, high = 2, min(len(candidates), MOST_NODES)
    while low <= high:
        middle = (low + high) // 2
        found = yield from removal_of(candidates[:middle], cluster)
        if found is not None and found.launch is not None:
            launch = _without_types_of(found.launch, found.nodes, cluster.prices)
            found = None if launch is None else attrs.evolve(found, launch=launch)
        if found is not None and approve(found):
            best, low = found, middle + 1
        else:
            high = middle - 1
    return best


def remove_one(candidates: Sequence[ManagedNode], cluster: ConsolidatedCluster, approve: Approve) -> Steps:
    """Return the removal of the first candidate that can be removed."""
    for each in candidates:
        found = yield from removal_of([each], cluster)
        if found is not None and approve(found):
            return found
    return None


def removal_of(removed: Sequence[ManagedNode], cluster: ConsolidatedCluster) -> Steps:
    """Return the removal of these nodes, or None if it is impossible or not cheaper."""
    found = yield from replacement_of(removed, cluster)
    if found is None or found.launch is None:
        return found
    cheaper = _cheaper(found.launch, removed, cluster)
    return None if cheaper is None else NodeRemoval(removed, cheaper)


def replacement_of(removed: Sequence[ManagedNode], cluster: ConsolidatedCluster) -> Steps:
    """Return the removal of these nodes at any price, or None if their pods need more than one new node."""
    moved = [pod for each in removed for pod in each.reschedulable]
    names = {each.name for each in removed}
    left = [node for node in cluster.existing if node.name not in names]
    plan = yield from planning([*moved, *cluster.pending], left, cluster.offers)
    own = {pod.uid for pod in moved}
    # A pending pod that no node can hold does not matter.
    if not own.isdisjoint(pod.uid for pod in plan.failed) or len(plan.launches) > 1:
        return None
    if any(name in cluster.barred for uid, name in plan.placed.items() if uid in own):
        return None
    return NodeRemoval(removed, next(iter(plan.launches), None))


def _cheaper(launch: Launch, removed: Sequence[ManagedNode], cluster: ConsolidatedCluster) -> Launch | None:
    """Return the launch with only the types that are cheaper than the removed nodes, or None."""
    price = sum(cluster.prices.get(each.name, 0.0) for each in removed)
    only_spot = all(each.labels.get(CAPACITY_TYPE) == SPOT for each in removed)
    if only_spot and launch.allows(SPOT):
        if not cluster.spot_to_spot:
            return None
        launch = launch.only(SPOT)
    found = launch.with_types(each for each in launch.types if launch.worst_price(each) < price)
    if found is None:
        return None
    if only_spot and found.allows(SPOT) and len(removed) == 1:
        # Otherwise the next consolidation would replace the new spot node again.
        return found.with_types(found.types[:_SPOT_TYPES]) if len(found.types) >= _SPOT_TYPES else None
    priced_by_kind = any(CAPACITY_TYPE in one.requirements for each in found.types for one in each.offerings)
    pinned = priced_by_kind and found.allows(SPOT) and found.allows(ON_DEMAND)
    return found.only(SPOT) if pinned else found


def _without_types_of(launch: Launch, removed: Sequence[ManagedNode], prices: Mapping[str, float]) -> Launch | None:
    """Return the launch without types as expensive as the cheapest removed node of a type that is still allowed.

    Such a node need not be replaced: it can stay.
    """
    allowed = {each.name for each in launch.types}
    own = [prices.get(each.name, 0.0) for each in removed if each.labels.get(INSTANCE_TYPE) in allowed]
    if not own:
        return launch
    return launch.with_types(each for each in launch.types if launch.worst_price(each) < min(own))
