"""Reasons why no NodePool launches a node for a pod: for each pool, the first rule that rejects the pod."""

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from kschedd.api.amounts import amount
from kschedd.api.pods import Pod
from kschedd.pools.cluster import PoolRefusal
from kschedd.pools.karpenter.launching import (
    Launch,
    LaunchOffers,
    PodDemand,
    ports_taken,
    total_requests,
    unmet_min_values,
)
from kschedd.pools.karpenter.node_pools import NodePool
from kschedd.pools.karpenter.requirements import (
    WELL_KNOWN,
    NodeRequirement,
    Requirements,
    combined,
    compatible,
)
from kschedd.pools.karpenter.topology import RoundTopology

_HOSTNAME: Final = "kubernetes.io/hostname"
_MOST_VALUES: Final = 4


def why_no_launch(offers: LaunchOffers, pod: Pod, topology: RoundTopology) -> list[PoolRefusal]:
    """Return a reason for each pool, or one for all pools. The pod is judged without its preferences."""
    if why := offers.volumes.why_left_out(pod):
        return [PoolRefusal("", "volumes", why)]
    *_, demand = offers.demands(pod, preferences=False)
    return [PoolRefusal(pool.name, *_rule(offers, pool, demand, topology)) for pool in offers.pools_in_order()]


def _rule(offers: LaunchOffers, pool: NodePool, demand: PodDemand, topology: RoundTopology) -> tuple[str, str]:
    launch = offers.opened(pool, "new-node")
    if launch is None:
        return "limits", _limits_text(offers, pool)
    for taint in pool.taints:
        if not demand.tolerates([taint]):
            return "taint", f"the pod does not tolerate its taint {taint.shown}"
    offered = {*WELL_KNOWN, *(key for each in launch.types for key in each.requirements)} - {_HOSTNAME}
    for key, wanted in demand.requirements.items():
        if not compatible(launch.requirements, {key: wanted}, offered):
            stated = launch.requirements.get(key)
            own = "the pool does not define this label" if stated is None else f"the pool has {_text(stated)}"
            return "requirement", f"the pod needs {key} {_text(wanted)}, and {own}"
    requirements: Requirements = combined([*launch.requirements.values(), *demand.requirements.values()])
    if demand.volumes:
        possible = [each for each in demand.volumes if compatible(requirements, each, offered)]
        if not possible:
            return "volumes", f"the pod's volumes need {_volumes_text(demand.volumes)}"
        requirements = combined([*requirements.values(), *possible[0].values()])
    narrowed = topology.narrowed(demand.pod, demand.terms, demand.strict, requirements)
    if narrowed is None:
        return "topology", _topology_text(demand, topology, requirements)
    return _of_types(offers, launch, demand, narrowed)


def _of_types(offers: LaunchOffers, launch: Launch, demand: PodDemand, requirements: Requirements) -> tuple[str, str]:
    grown = Launch(launch.pool, requirements, launch.types, [demand.pod])
    meeting = [
        each
        for each in launch.types
        if compatible(each.requirements, {key: one for key, one in requirements.items() if key in each.requirements})
    ]
    if not meeting:
        return "instance type", "no instance type meets the requirements of the pod and the pool"
    available = [each for each in meeting if grown.offerings(each)]
    if not available:
        return "offering", f"none of {len(meeting)} suitable instance types is offered with these requirements"
    needed = {each.name: total_requests([demand.pod, *offers.daemons_on(each, grown)]) for each in available}
    for resource in demand.pod.requests:
        if all(needed[each.name].get(resource, 0) > each.allocatable.get(resource, 0) for each in available):
            largest = max(available, key=lambda each: each.allocatable.get(resource, 0))
            want, has = needed[largest.name][resource], largest.allocatable.get(resource, 0)
            return "resources", (
                f"{resource}: the pod, and DaemonSets, need {amount(resource, want)}; the largest instance type has "
                f"{amount(resource, has)}"
            )
    fitting = [
        each
        for each in available
        if all(number <= each.allocatable.get(name, 0) for name, number in needed[each.name].items() if number)
    ]
    if not fitting:
        return "resources", "no instance type has room for all resources of the pod and of DaemonSets"
    if any(ports_taken(demand.pod, offers.daemons_on(each, grown)) for each in fitting):
        return "host port", "a DaemonSet uses a host port of the pod"
    if unmet := unmet_min_values(requirements, fitting):
        return "minValues", f"too few different values of {', '.join(unmet)} remain"
    if attrs.evolve(grown, types=fitting).possible_reservations():
        return (
            "reservation",
            "nodes that this round launches hold the reserved instances; the pod waits for the next round",
        )
    return "order", "a launch was possible, but pods that were planned earlier used the limits or the topology domains"


def _volumes_text(alternatives: Sequence[Requirements]) -> str:
    texts = [" and ".join(f"{key} {_text(each)}" for key, each in one.items()) for one in alternatives]
    return ", or ".join(texts)


def _limits_text(offers: LaunchOffers, pool: NodePool) -> str:
    left = offers.left.get(pool.name)
    if left is None:
        return "there are no instance types"
    if left.get("nodes", 1) < 1:
        return f"its limit of {pool.limits['nodes']} nodes is reached"
    rest = ", ".join(f"{name} {amount(name, max(0, number))}" for name, number in left.items() if name != "nodes")
    return f"no instance type fits into the rest of its limits ({rest})"


def _topology_text(demand: PodDemand, topology: RoundTopology, requirements: Requirements) -> str:
    for term in demand.terms:
        if topology.narrowed(demand.pod, [term], demand.strict, requirements) is None:
            return f"{term.kind.value} over {term.key} allows no domain of the pool"
    return "pod anti-affinity of another pod, or several constraints together, allow no domain of the pool"


def _text(requirement: NodeRequirement) -> str:
    return " and ".join(_parts(requirement)) or requirement.operator


def _parts(requirement: NodeRequirement) -> Iterator[str]:
    if requirement.values or not requirement.complement:
        yield f"{requirement.operator} {_listed(sorted(requirement.values))}".rstrip()
    if requirement.at_least is not None:
        yield f">= {requirement.at_least}"
    if requirement.at_most is not None:
        yield f"<= {requirement.at_most}"


def _listed(values: Sequence[str]) -> str:
    more = ", ..." if len(values) > _MOST_VALUES else ""
    return f"({', '.join(values[:_MOST_VALUES])}{more})" if values else ""
