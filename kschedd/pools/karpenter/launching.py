"""Launches of one node: the pool and the instance types that can hold a set of pods together.

Pods with pod affinity, topology spread, volumes, host ports, several node affinity terms or preferences, and pools with
limits, raise LaunchUnsupported: their rules are not part of this module.

Source: sigs.k8s.io/karpenter, pkg/controllers/provisioning/scheduling (nodeclaim.go, nodeclaimtemplate.go) and
pkg/cloudprovider/types.go (WorstLaunchPrice).
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from kschedd.api.pods import Pod
from kschedd.pools.karpenter.instance_types import InstanceType, Offering, cheapest_first
from kschedd.pools.karpenter.node_pools import NodePool
from kschedd.pools.karpenter.requirements import (
    CAPACITY_TYPE,
    NODE_POOL,
    WELL_KNOWN,
    NodeRequirement,
    Requirements,
    combined,
    compatible,
    of_labels,
    requirements_of,
)

SPOT: Final = "spot"
ON_DEMAND: Final = "on-demand"
#: capacity types in the order in which a provider prefers them
CAPACITY_TYPES: Final = ("reserved", SPOT, ON_DEMAND)
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class LaunchUnsupported(Exception):
    """The error for pods and pools for which no launch can be computed."""


@attrs.frozen
class Launch:
    """A node that can be launched: its pool, its requirements, and the instance types that remain, by price."""

    pool: NodePool
    requirements: Requirements
    types: Sequence[InstanceType]

    def offerings(self, each: InstanceType) -> list[Offering]:
        return [offering for offering in each.offered_with(self.requirements) if offering.available]

    def cheapest_price(self) -> float:
        """Return the lowest price at which the first type is offered."""
        return min((offering.price for offering in self.offerings(self.types[0])), default=0.0)

    def worst_price(self, each: InstanceType) -> float:
        """Return the highest price of the type with the capacity type that a provider would use."""
        for kind in CAPACITY_TYPES:
            prices = [
                offering.price
                for offering in self.offerings(each)
                if kind in getattr(offering.requirements.get(CAPACITY_TYPE), "values", ())
            ]
            if prices:
                return max(prices)
        return math.inf

    def allows(self, capacity_type: str) -> bool:
        stated = self.requirements.get(CAPACITY_TYPE)
        return stated is None or stated.allows(capacity_type)

    def with_types(self, types: Iterable[InstanceType]) -> "Launch | None":
        """Return the launch with only these types, or None if none is left or minValues do not hold."""
        kept = list(types)
        if not kept or not _has_min_values(self.requirements, kept):
            return None
        return attrs.evolve(self, types=kept)

    def only(self, capacity_type: str) -> "Launch":
        own = NodeRequirement.of(CAPACITY_TYPE, "In", (capacity_type,))
        return attrs.evolve(self, requirements=combined([*self.requirements.values(), own]))


def plan_launch(pods: Sequence[Pod], pools: Iterable[NodePool], types: Sequence[InstanceType]) -> Launch | None:
    """Return the launch of one node for all the pods, or None. Raises LaunchUnsupported."""
    stated = [_required(pod) for pod in pods]
    for pool in sorted(sorted(pools, key=lambda each: each.name, reverse=True), key=lambda each: -each.weight):
        if pool.limits:
            raise LaunchUnsupported(f"NodePool {pool.name} has limits")
        if not pool.static and (launch := _launch(pool, pods, stated, types)) is not None:
            return launch
    return None


def _launch(
    pool: NodePool, pods: Sequence[Pod], stated: Sequence[Requirements], types: Sequence[InstanceType]
) -> Launch | None:
    own = [*pool.requirements, *of_labels({**pool.labels, NODE_POOL: pool.name}).values()]
    requirements = combined(own)
    offered = WELL_KNOWN | {key for each in types for key in each.requirements}
    for pod, required in zip(pods, stated, strict=True):
        tolerations = pod.pod_spec.tolerations
        hard = [taint for taint in pool.taints if taint.effect != "PreferNoSchedule"]
        if not all(any(toleration.tolerates(taint) for toleration in tolerations) for taint in hard):
            return None
        if not compatible(requirements, required, offered):
            return None
        requirements = combined([*requirements.values(), *required.values()])
    requested: dict[str, int] = {"pods": len(pods)}
    for pod in pods:
        for resource, number in pod.requests.items():
            requested[resource] = requested.get(resource, 0) + number
    launch = Launch(pool, requirements, ())
    fitting = [
        each
        for each in types
        if all(number <= each.allocatable.get(resource, 0) for resource, number in requested.items() if number)
        and _intersect(each.requirements, requirements)
        and launch.offerings(each)
    ]
    return launch.with_types(cheapest_first(fitting, requirements))


def _intersect(one: Requirements, other: Requirements) -> bool:
    return compatible(one, {key: each for key, each in other.items() if key in one})


def _has_min_values(requirements: Requirements, types: Sequence[InstanceType]) -> bool:
    for key, each in requirements.items():
        if each.min_values is not None:
            values = {value for one in types if key in one.requirements for value in one.requirements[key].values}
            if sum(each.allows(value) for value in values) < each.min_values:
                return False
    return True


def _required(pod: Pod) -> Requirements:
    """Return the requirements of the pod's node selector and node affinity."""
    spec = pod.spec
    affinity = spec.get("affinity") or {}
    of_nodes = affinity.get("nodeAffinity") or {}
    terms = (of_nodes.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    ports = any(port.get("hostPort") for each in spec.get("containers") or () for port in each.get("ports") or ())
    preferred = of_nodes.get("preferredDuringSchedulingIgnoredDuringExecution")
    others = affinity.get("podAffinity") or affinity.get("podAntiAffinity") or spec.get("topologySpreadConstraints")
    if len(terms) > 1 or ports or preferred or others or spec.get("volumes"):
        raise LaunchUnsupported(f"pod {pod.key} has requirements for other pods, volumes or host ports, or preferences")
    own = [*of_labels(spec.get("nodeSelector") or {}).values()]
    for term in terms:
        own += requirements_of(term.get("matchExpressions") or ()).values()
    return combined(own)
