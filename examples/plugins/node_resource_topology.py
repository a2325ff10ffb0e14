"""NodeResourceTopologyMatch: guaranteed pods run only on nodes with one NUMA zone that has room for them.

    apiVersion: topology.node.k8s.io/v1alpha2
    kind: NodeResourceTopology                      # its CustomResourceDefinition: examples/plugins/crds.yaml
    metadata: {name: node-1}
    attributes: [{name: topologyManagerPolicy, value: single-numa-node}, {name: topologyManagerScope, value: pod}]
    zones:
      - {name: node-0, type: Node, resources: [{name: cpu, allocatable: "16"}, {name: memory, allocatable: 64Gi}]}
      - {name: node-1, type: Node, resources: [{name: cpu, allocatable: "16"}, {name: memory, allocatable: 64Gi}]}

The remaining resources of the zones are computed from the guaranteed pods of the node, in the order of their arrival:
each is in the first zone with room for it, as the kubelet's topology manager would align it. With scope `container`,
each container is aligned separately. Nodes without such an object, or with another policy, accept every pod. The score
prefers nodes whose used zones have the most free resources afterwards (LeastAllocated), or the least (MostAllocated).

    pluginConfig:
      - {name: NodeResourceTopologyMatch, args: {scoringStrategy: LeastAllocated}}

Source: kubernetes-sigs/scheduler-plugins, pkg/noderesourcetopology (the behaviour, not the code).
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Self

import attrs

from kschedd.plugin import (
    MAX_NODE_SCORE,
    ActionType,
    ClusterEventWithHint,
    CustomResource,
    CycleState,
    EventResource,
    Handle,
    NodeInfo,
    Pod,
    QuantityError,
    RawArgs,
    Status,
    amounts,
    on,
    unschedulable,
)

KIND: Final = "NodeResourceTopology"
STRATEGIES: Final = ("LeastAllocated", "MostAllocated")

Zone = dict[str, int]  # its free resources


@attrs.frozen
class Topology:
    zones: tuple[Mapping[str, int], ...]
    by_container: bool


@attrs.define(eq=False)
class NodeResourceTopologyMatch:
    name: ClassVar = "NodeResourceTopologyMatch"
    _handle: Handle
    _most: bool

    @classmethod
    def from_args(cls, args: RawArgs, handle: Handle) -> Self:
        strategy = args.values.get("scoringStrategy", "LeastAllocated")
        if strategy not in STRATEGIES:
            raise ValueError(f"scoringStrategy: {strategy!r}: must be one of {', '.join(STRATEGIES)}")
        return cls(handle, strategy == "MostAllocated")

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        topology = self._topology(node.name) if guaranteed(pod) else None
        if topology is None:
            return None
        left = zones_left(topology, node.pods)
        for name, wanted in demands(pod, topology):
            if _align(left, wanted) is None:
                return unschedulable(f"cannot align {name}")
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        topology = self._topology(node.name) if guaranteed(pod) else None
        if topology is None:
            return 0
        left = zones_left(topology, node.pods)
        shares = []
        for _, wanted in demands(pod, topology):
            zone = _align(left, wanted)
            if zone is not None:
                shares += [left[zone][name] / max(topology.zones[zone][name], 1) for name in wanted if wanted[name]]
        share = min(shares, default=0.0)
        return round(MAX_NODE_SCORE * (1 - share if self._most else share)) if shares else 0

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return [
            on(EventResource.POD, ActionType.DELETE),
            on(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE),
            on(CustomResource(KIND), ActionType.ADD | ActionType.UPDATE),
        ]

    def _topology(self, node_name: str) -> Topology | None:
        found = self._handle.cluster.get(KIND, node_name)
        if found is None:
            return None
        attributes = {str(each.get("name")): each.get("value") for each in _maps(found.raw.get("attributes"))}
        if attributes.get("topologyManagerPolicy") != "single-numa-node":
            return None
        zones = tuple(_zone(zone) for zone in _maps(found.raw.get("zones")) if zone.get("type") == "Node")
        return Topology(zones, attributes.get("topologyManagerScope", "container") == "container")


def _maps(found: object) -> list[Mapping[str, Any]]:
    """Return the maps in a list; the objects that this plugin reads have no schema that excludes other items."""
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, Sequence) else []


def _zone(zone: Mapping[str, Any]) -> Mapping[str, int]:
    """Return the allocatable resources of a zone, with 0 for a quantity that is invalid."""
    found: dict[str, int] = {}
    for resource in _maps(zone.get("resources")):
        name = str(resource.get("name"))
        try:
            found |= amounts({name: resource.get("allocatable", "0")})
        except QuantityError:
            found[name] = 0
    return found


def guaranteed(pod: Pod) -> bool:
    """Return whether every container has CPU and memory limits and equal requests."""
    for each in _containers(pod):
        resources = each.get("resources") or {}
        limits, requests = amounts(resources.get("limits")), amounts(resources.get("requests"))
        if not all(limits.get(name) and requests.get(name, limits[name]) == limits[name] for name in ("cpu", "memory")):
            return False
    return True


def demands(pod: Pod, topology: Topology) -> list[tuple[str, dict[str, int]]]:
    """Return the requests that must be aligned together, each with a name for messages.

    Resources that no zone has are omitted.
    """
    known = {name for zone in topology.zones for name in zone}
    if topology.by_container:
        parts = [
            (f"container: {each.get('name')}", amounts((each.get("resources") or {}).get("limits")))
            for each in _containers(pod)
        ]
    else:
        parts = [("pod", dict(pod.requests))]
    return [(name, {one: amount for one, amount in wanted.items() if one in known}) for name, wanted in parts]


def zones_left(topology: Topology, pods: Sequence[Pod]) -> list[Zone]:
    """Subtract the node's guaranteed pods from its zones; one that fits into no single zone is taken from several."""
    left = [dict(zone) for zone in topology.zones]
    for pod in pods:
        for _, wanted in demands(pod, topology) if guaranteed(pod) else ():
            if _align(left, wanted) is None:
                _spill(left, wanted)
    return left


def _align(left: list[Zone], wanted: Mapping[str, int]) -> int | None:
    """Subtract the request from the first zone that has enough for it; return None if no zone has."""
    for number, zone in enumerate(left):
        if all(zone.get(name, 0) >= amount for name, amount in wanted.items()):
            for name, amount in wanted.items():
                zone[name] -= amount
            return number
    return None


def _spill(left: list[Zone], wanted: Mapping[str, int]) -> None:
    for name, amount in wanted.items():
        for zone in left:
            taken = min(zone.get(name, 0), amount)
            if taken:
                zone[name] -= taken
                amount -= taken


def _containers(pod: Pod) -> Sequence[Mapping[str, Any]]:
    return pod.spec.get("containers") or ()
