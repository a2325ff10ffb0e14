"""What each in-tree plugin can be told: one frozen class per plugin, with the defaults of Kubernetes v1.34.

Source: Kubernetes v1.34, kube-scheduler/config/v1 (types_pluginargs.go, defaults.go).
Only values live here; `plugin_args.py` reads and checks them, the plugins use them.  A plugin that comes
from elsewhere gets `RawArgs`, the mapping as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

StrategyType = Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]
DefaultingType = Literal["System", "List"]
WhenUnsatisfiable = Literal["DoNotSchedule", "ScheduleAnyway"]
InclusionPolicy = Literal["Honor", "Ignore"]


@attrs.frozen
class ResourceWeight:
    """A resource that counts in a score, and how much (1 to 100)."""

    name: str
    weight: int = 1


@attrs.frozen
class ShapePoint:
    """One corner of a score function: at `utilization` percent the score is `score` of 10."""

    utilization: int
    score: int


CPU_AND_MEMORY = (ResourceWeight("cpu"), ResourceWeight("memory"))


@attrs.frozen
class ScoringStrategy:
    type: StrategyType = "LeastAllocated"
    resources: tuple[ResourceWeight, ...] = CPU_AND_MEMORY
    shape: tuple[ShapePoint, ...] = ()
    """Corners in ascending utilisation; never empty for RequestedToCapacityRatio, unused otherwise."""


@attrs.frozen
class NodeResourcesFitArgs:
    ignored_resources: tuple[str, ...] = ()
    """Resources the filter leaves out; scoring is not touched by it."""
    ignored_resource_groups: tuple[str, ...] = ()
    """`example.com` leaves out every `example.com/...`."""
    scoring_strategy: ScoringStrategy = ScoringStrategy()


@attrs.frozen
class NodeResourcesBalancedAllocationArgs:
    resources: tuple[ResourceWeight, ...] = CPU_AND_MEMORY


@attrs.frozen
class NodeAffinityArgs:
    added_affinity: Mapping[str, Any] | None = None
    """A `nodeAffinity` as in a pod, laid on top of every pod's own."""


@attrs.frozen
class DefaultConstraint:
    """A topology spread constraint without a selector: the pod's Services and owners give that."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: WhenUnsatisfiable
    min_domains: int | None = None
    node_affinity_policy: InclusionPolicy = "Honor"
    node_taints_policy: InclusionPolicy = "Ignore"
    match_label_keys: tuple[str, ...] = ()

    @property
    def raw(self) -> dict[str, Any]:
        """The constraint as it would stand in a pod."""
        raw: dict[str, Any] = {
            "maxSkew": self.max_skew,
            "topologyKey": self.topology_key,
            "whenUnsatisfiable": self.when_unsatisfiable,
            "nodeAffinityPolicy": self.node_affinity_policy,
            "nodeTaintsPolicy": self.node_taints_policy,
        }
        if self.min_domains is not None:
            raw["minDomains"] = self.min_domains
        if self.match_label_keys:
            raw["matchLabelKeys"] = list(self.match_label_keys)
        return raw


SYSTEM_CONSTRAINTS = (
    DefaultConstraint(3, "kubernetes.io/hostname", "ScheduleAnyway"),
    DefaultConstraint(5, "topology.kubernetes.io/zone", "ScheduleAnyway"),
)


@attrs.frozen
class PodTopologySpreadArgs:
    default_constraints: tuple[DefaultConstraint, ...] = ()
    """As configured; empty for System."""
    defaulting_type: DefaultingType = "System"

    @property
    def constraints(self) -> tuple[DefaultConstraint, ...]:
        """What applies to a pod that brings no constraint of its own."""
        return SYSTEM_CONSTRAINTS if self.defaulting_type == "System" else self.default_constraints


@attrs.frozen
class InterPodAffinityArgs:
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


@attrs.frozen
class DefaultPreemptionArgs:
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


@attrs.frozen
class VolumeBindingArgs:
    bind_timeout_s: int = 600
    """0 means no waiting."""
    shape: tuple[ShapePoint, ...] = ()
    """Empty: no score.  Only with the feature gate StorageCapacityScoring."""


@attrs.frozen
class DynamicResourcesArgs:
    filter_timeout_s: float = 10.0
    """Per node; 0 means no limit."""


@attrs.frozen
class RawArgs:
    """What was written for a plugin whose arguments are its own business."""

    values: Mapping[str, Any] = attrs.field(factory=dict)


PluginArgs = (
    NodeResourcesFitArgs
    | NodeResourcesBalancedAllocationArgs
    | NodeAffinityArgs
    | PodTopologySpreadArgs
    | InterPodAffinityArgs
    | DefaultPreemptionArgs
    | VolumeBindingArgs
    | DynamicResourcesArgs
    | RawArgs
)

TYPED_ARGS: Mapping[str, type[Any]] = {
    "NodeResourcesFit": NodeResourcesFitArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeAffinity": NodeAffinityArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "DefaultPreemption": DefaultPreemptionArgs,
    "VolumeBinding": VolumeBindingArgs,
    "DynamicResources": DynamicResourcesArgs,
}
"""The plugins whose arguments have a type here."""


def default_args(plugin: str, gates: Mapping[str, bool]) -> PluginArgs:
    """What a plugin gets when nothing was written for it."""
    if plugin == "VolumeBinding" and gates.get("StorageCapacityScoring", False):
        return VolumeBindingArgs(shape=CAPACITY_SHAPE)
    made: PluginArgs = TYPED_ARGS.get(plugin, RawArgs)()
    return made


CAPACITY_SHAPE = (ShapePoint(0, 10), ShapePoint(100, 0))
"""The less of a volume's capacity a node would use, the better: the default once capacity is scored."""
