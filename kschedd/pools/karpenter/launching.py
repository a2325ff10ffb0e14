"""Launches: which pool and which instance types can hold a set of pods on one new node.

A pod joins a launch if its node selector, node affinity and tolerations allow the pool, the topology allows a domain of
the new node, and at least one instance type still holds all pods. `kschedd.pools.volumes` has the rules of volumes.

Source: sigs.k8s.io/karpenter, pkg/controllers/provisioning/scheduling (nodeclaim.go, nodeclaimtemplate.go,
preferences.go) and pkg/cloudprovider/types.go (WorstLaunchPrice).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.node_fit import ports_conflict
from kschedd.api.pods import Pod
from kschedd.api.resources import Resources
from kschedd.api.selecting.terms import Taint
from kschedd.pools.karpenter.instance_types import InstanceType, Offering, Reservation, cheapest_first
from kschedd.pools.karpenter.node_pools import NodePool
from kschedd.pools.karpenter.requirements import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    NODE_POOL,
    WELL_KNOWN,
    NodeRequirement,
    Requirements,
    alternatives,
    combined,
    compatible,
    intersect,
    of_labels,
    requirements_of,
)
from kschedd.pools.karpenter.topology import RoundTopology, TopologyKind, TopologyTerm
from kschedd.pools.volumes import NO_VOLUMES, ClaimedVolumes

Raw = Mapping[str, Any]
RESERVED: Final = "reserved"
SPOT: Final = "spot"
ON_DEMAND: Final = "on-demand"
#: capacity types in the order in which a provider prefers them
CAPACITY_TYPES: Final = (RESERVED, SPOT, ON_DEMAND)
_HOSTNAME: Final = "kubernetes.io/hostname"


@attrs.frozen(eq=False)
class PodDemand:
    """A pod with one form of its requirements, in which some alternatives and preferences were given up.

    `strict` are the requirements without preferences. `terms` are the requirements for other pods. `volumes` are the
    alternative requirements of the pod's volumes; without items, its volumes can be attached to every node.
    """

    pod: Pod
    requirements: Requirements
    strict: Requirements
    terms: Sequence[TopologyTerm] = ()
    tolerates_preferences: bool = False  # true: taints with effect PreferNoSchedule are tolerated
    volumes: Sequence[Requirements] = ()

    def tolerates(self, taints: Iterable[Taint]) -> bool:
        tolerations = self.pod.pod_spec.tolerations
        return all(
            (self.tolerates_preferences and taint.effect == "PreferNoSchedule")
            or any(toleration.tolerates(taint) for toleration in tolerations)
            for taint in taints
        )


def demands_of(pod: Pod, *, preferences: bool = True, volumes: Sequence[Requirements] = ()) -> Iterator[PodDemand]:
    """Yield the forms of the pod's requirements, from all of them to the fewest.

    A form gives up one more part than the form before it: an alternative of the node affinity, the heaviest preferred
    pod affinity, anti-affinity or node affinity, or a spread constraint that allows scheduling anyway.
    """
    spec, signature = pod.spec, pod.signature
    of_nodes = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = of_nodes.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = [_expressions(term) for term in required.get("nodeSelectorTerms") or ()]
    preferred = of_nodes.get("preferredDuringSchedulingIgnoredDuringExecution") or () if preferences else ()
    by_weight = sorted(preferred, key=lambda each: -each["weight"])
    nodes = [_expressions(each["preference"]) for each in by_weight]
    near = sorted(signature.preferred_affinity, key=lambda each: -each.weight) if preferences else []
    apart = sorted(signature.preferred_anti_affinity, key=lambda each: -each.weight) if preferences else []
    spread = [each for each in signature.spread_constraints if each.when_unsatisfiable == "DoNotSchedule"]
    anyway = [each for each in signature.spread_constraints if each not in spread] if preferences else []
    own = list(of_labels(spec.get("nodeSelector") or {}).values())
    affinity, anti = TopologyKind.AFFINITY, TopologyKind.ANTI_AFFINITY

    def form(*, tolerates: bool = False) -> PodDemand:
        strict = combined([*own, *(terms[0] if terms else ())])
        alternatives = [combined([*own, *term]) for term in terms] or [combined(own)]
        wanted = [
            *(TopologyTerm.of_spread(pod, each, alternatives) for each in (*spread, *anyway)),
            *(TopologyTerm.of_affinity(affinity, each) for each in signature.required_affinity),
            *(TopologyTerm.of_affinity(affinity, each.term) for each in near),
            *(TopologyTerm.of_affinity(anti, each) for each in signature.required_anti_affinity),
            *(TopologyTerm.of_affinity(anti, each.term) for each in apart),
        ]
        requirements = combined([*strict.values(), *(nodes[0] if nodes else ())])
        return PodDemand(pod, requirements, strict, wanted, tolerates, volumes)

    yield form()
    while len(terms) > 1:
        del terms[0]
        yield form()
    for optional in (near, apart, nodes, anyway):
        while optional:
            del optional[0]
            yield form()
    yield form(tolerates=True)


def _expressions(term: Raw) -> list[NodeRequirement]:
    return list(requirements_of(term.get("matchExpressions") or ()).values())


@attrs.frozen
class Launch:
    """A node that can be launched: its pool, its requirements, its pods, and the types that remain, by price.

    With `reservations`, other reserved instances must not be used.
    """

    pool: NodePool
    requirements: Requirements
    types: Sequence[InstanceType]
    pods: Sequence[Pod] = ()
    reservations: frozenset[Reservation] | None = None

    def offerings(self, each: InstanceType) -> list[Offering]:
        return [
            offering
            for offering in each.offered_with(self.requirements)
            if offering.available and (self.reservations is None or self._may_use(offering))
        ]

    def _may_use(self, offering: Offering) -> bool:
        return offering.reservation is None or offering.reservation in (self.reservations or ())

    def possible_reservations(self) -> frozenset[Reservation]:
        """Return the reservations of the offerings that the launch may use."""
        offered = [offering.reservation for each in self.types for offering in self.offerings(each)]
        return frozenset(each for each in offered if each is not None)

    def reserved(self, reservations: frozenset[Reservation]) -> "Launch":
        """Return the launch that uses one of these reservations; without items, it uses no reserved instance."""
        own = self.only(RESERVED) if reservations else self
        return attrs.evolve(own, reservations=reservations)

    def cheapest_price(self) -> float:
        """Return the lowest price at which the first type is offered."""
        return min((offering.price for offering in self.offerings(self.types[0])), default=0.0)

    def worst_price(self, each: InstanceType) -> float:
        """Return the highest price of the type with the capacity type that a provider would use.

        Offerings without a capacity type are used last.
        """
        offered = [(offering.requirements.get(CAPACITY_TYPE), offering.price) for offering in self.offerings(each)]
        for kind in CAPACITY_TYPES:
            prices = [price for stated, price in offered if stated is not None and kind in stated.values]
            if prices:
                return max(prices)
        return max((price for stated, price in offered if stated is None), default=math.inf)

    def allows(self, capacity_type: str) -> bool:
        stated = self.requirements.get(CAPACITY_TYPE)
        return stated is None or stated.allows(capacity_type)

    def with_types(self, types: Iterable[InstanceType]) -> "Launch | None":
        """Return the launch with only these types, or None if none is left or minValues do not hold."""
        kept = list(types)
        if not kept or unmet_min_values(self.requirements, kept):
            return None
        return attrs.evolve(self, types=kept)

    def only(self, capacity_type: str) -> "Launch":
        own = NodeRequirement.of(CAPACITY_TYPE, "In", (capacity_type,))
        return attrs.evolve(self, requirements=combined([*self.requirements.values(), own]))


@attrs.frozen(eq=False)
class LaunchedNode:
    """The node that a provider launches: the instance type, its offering, and the labels of the node."""

    type: InstanceType
    offering: Offering
    labels: Mapping[str, str]


def launched_node(
    launch: Launch, name: str, choose: Callable[[Sequence[Any]], Any] = lambda equal: equal[0]
) -> LaunchedNode:
    """Return the node of the cheapest offering; `choose` selects one of several offerings with this price.

    Upstream selects randomly. Of several possible values of a label, the first is used.
    """
    offered = [(each, offering) for each in launch.types for offering in launch.offerings(each)]
    lowest = min(offering.price for _, offering in offered)
    chosen, offering = choose([each for each in offered if each[1].price == lowest])
    labels = {**launch.pool.labels}
    for requirements in (launch.requirements, chosen.requirements, offering.requirements):
        for key, each in requirements.items():
            if (value := _one_value(each, launch.requirements.get(key))) is not None:
                labels[key] = value
    labels |= {NODE_POOL: launch.pool.name, INSTANCE_TYPE: chosen.name, _HOSTNAME: name}
    return LaunchedNode(chosen, offering, labels)


def _one_value(own: NodeRequirement, wanted: NodeRequirement | None) -> str | None:
    if own.complement:
        return str(own.at_least or 0)
    values = [value for value in sorted(own.values) if wanted is None or wanted.allows(value)]
    return values[0] if values else None


@attrs.frozen(eq=False)
class LaunchOffers:
    """What can be launched: pools, instance types, and the pods that each DaemonSet would add to a new node.

    `types_by_pool` contains the types of pools whose types are not `types`. `left` maps a pool to the resources that
    its limits leave; a pool without limits is missing. With `minimum_is_strict`, minValues must hold.
    """

    pools: Sequence[NodePool]
    types: Sequence[InstanceType]
    daemons: Sequence[Pod] = ()
    left: Mapping[str, Resources] = attrs.field(factory=dict)
    minimum_is_strict: bool = True
    types_by_pool: Mapping[str, Sequence[InstanceType]] = attrs.field(factory=dict)
    volumes: ClaimedVolumes = NO_VOLUMES

    def demands(self, pod: Pod, *, preferences: bool = True) -> Iterator[PodDemand]:
        """Yield the forms of the pod's requirements with those of its volumes."""
        return demands_of(pod, preferences=preferences, volumes=alternatives(self.volumes.node_terms(pod)))

    def types_of(self, pool: NodePool) -> Sequence[InstanceType]:
        return self.types_by_pool.get(pool.name, self.types)

    def reservations(self) -> dict[Reservation, int]:
        """Return the number of unused instances of each reservation."""
        types = [each for pool in self.pools for each in self.types_of(pool)]
        return {one.reservation: one.reserved or 0 for each in types for one in each.offerings if one.reservation}

    def pools_in_order(self) -> list[NodePool]:
        """Return the pools by descending weight, then by descending name; static pools launch no further nodes."""
        by_name = sorted((pool for pool in self.pools if not pool.static), key=lambda pool: pool.name, reverse=True)
        return sorted(by_name, key=lambda pool: -pool.weight)

    def opened(self, pool: NodePool, hostname: str = "") -> Launch | None:
        """Return an empty launch of a pool within its limits, or None. The hostname is a domain of topology."""
        named = [NodeRequirement(_HOSTNAME, frozenset((hostname,)))] if hostname else []
        own = [*named, *pool.requirements, *of_labels({**pool.labels, NODE_POOL: pool.name}).values()]
        left = self.left.get(pool.name)
        if left is not None and left.get("nodes", 1) < 1:
            return None
        kept = [each for each in self.types_of(pool) if left is None or _within_limits(each.capacity, left)]
        return Launch(pool, combined(own), kept) if kept else None

    def domains(self) -> dict[str, dict[str, list[Sequence[Taint]]]]:
        """Return the domains of each topology key, each with the taints of the pools that offer it."""
        found: dict[str, dict[str, list[Sequence[Taint]]]] = {}
        for pool in self.pools:
            own = [*pool.requirements, *of_labels(pool.labels).values()]
            offered: dict[str, set[str]] = {}
            for each in self.types_of(pool):
                for key, requirement in combined([*own, *each.requirements.values()]).items():
                    offered.setdefault(key, set()).update(() if requirement.complement else requirement.values)
            for key, requirement in combined(own).items():
                offered.setdefault(key, set()).update(() if requirement.complement else requirement.values)
            for key, values in offered.items():
                for value in values:
                    found.setdefault(key, {}).setdefault(value, []).append(pool.taints)
        return found

    def added(self, launch: Launch, demand: PodDemand, topology: RoundTopology | None = None) -> Launch | None:
        """Return the launch with another pod, or None if the pod does not fit."""
        offered = {*WELL_KNOWN, *(key for each in launch.types for key in each.requirements)} - {_HOSTNAME}
        if not demand.tolerates(launch.pool.taints) or ports_taken(demand.pod, launch.pods):
            return None
        if not compatible(launch.requirements, demand.requirements, offered):
            return None
        own = combined([*launch.requirements.values(), *demand.requirements.values()])
        for volumes in demand.volumes or ({},):
            requirements = combined([*own.values(), *volumes.values()])
            if compatible(own, volumes, offered) and (grown := self._grown(launch, demand, requirements, topology)):
                return grown
        return None

    def _grown(
        self, launch: Launch, demand: PodDemand, requirements: Requirements, topology: RoundTopology | None
    ) -> Launch | None:
        """Return the launch with another pod and these requirements, or None if no instance type fits."""
        if topology is not None:
            narrowed = topology.narrowed(demand.pod, demand.terms, demand.strict, requirements)
            if narrowed is None:
                return None
            requirements = narrowed
        grown = attrs.evolve(launch, requirements=requirements, pods=[*launch.pods, demand.pod])
        fitting = [each for each in launch.types if self._fits(each, grown)]
        if self.minimum_is_strict:
            return grown.with_types(cheapest_first(fitting, requirements))
        return attrs.evolve(grown, types=cheapest_first(fitting, requirements)) if fitting else None

    def _fits(self, each: InstanceType, launch: Launch) -> bool:
        if not intersect(each.requirements, launch.requirements) or not launch.offerings(each):
            return False
        daemons = self.daemons_on(each, launch)
        if any(ports_taken(daemon, launch.pods) for daemon in daemons):
            return False
        return _within(total_requests([*launch.pods, *daemons]), each.allocatable)

    def daemons_on(self, each: InstanceType, launch: Launch) -> list[Pod]:
        """Return the pods of DaemonSets that run on a node of this type."""
        return [pod for pod in self.daemons if self._runs_on(pod, each, launch)]

    def _runs_on(self, pod: Pod, each: InstanceType, launch: Launch) -> bool:
        offered = {*WELL_KNOWN, *each.requirements, _HOSTNAME}
        for demand in demands_of(pod, preferences=False):
            own = {key: one for key, one in demand.requirements.items() if key != _HOSTNAME}
            both = combined([*launch.requirements.values(), *own.values()])
            if (
                demand.tolerates(launch.pool.taints)
                and compatible(launch.requirements, own, offered)
                and intersect(each.requirements, both)
            ):
                return True
        return False


def ports_taken(pod: Pod, others: Iterable[Pod]) -> bool:
    """Return whether one of the other pods uses a host port of the pod."""
    return any(ports_conflict(pod.pod_spec.host_ports, other.pod_spec.host_ports) for other in others)


def total_requests(pods: Sequence[Pod]) -> Resources:
    """Return the sum of the pods' requests, with the number of pods."""
    total: Resources = {"pods": len(pods)}
    for pod in pods:
        for resource, number in pod.requests.items():
            total[resource] = total.get(resource, 0) + number
    return total


def _within(amounts: Mapping[str, int], limits: Mapping[str, int]) -> bool:
    """Return whether a node with these allocatable amounts holds the requests."""
    return all(number <= limits.get(resource, 0) for resource, number in amounts.items() if number)


def _within_limits(amounts: Mapping[str, int], limits: Mapping[str, int]) -> bool:
    return all(amounts.get(resource, 0) <= limit for resource, limit in limits.items() if resource != "nodes")


def unmet_min_values(requirements: Requirements, types: Sequence[InstanceType]) -> list[str]:
    """Return the labels of which the types have fewer different values than minValues demands."""
    unmet = []
    for key, each in requirements.items():
        if each.min_values is not None:
            values = {value for one in types if key in one.requirements for value in one.requirements[key].values}
            if sum(each.allows(value) for value in values) < each.min_values:
                unmet.append(key)
    return unmet
