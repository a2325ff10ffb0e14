"""Plugin arguments: one frozen class per in-tree plugin, with the defaults of Kubernetes v1.34.

Source: Kubernetes v1.34, kube-scheduler/config/v1 (types_pluginargs.go, defaults.go).
Only values are defined here; `plugin_args.py` parses and validates them, the plugins use them.  An out-of-tree
plugin gets `RawArgs`, the mapping as it was written.
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
    """A resource considered in a score, with its weight (1 to 100)."""

    name: str
    weight: int = 1


@attrs.frozen
class ShapePoint:
    """One point of a piecewise linear score function: at `utilization` percent the score is `score` of 10."""

    utilization: int
    score: int


CPU_AND_MEMORY = (ResourceWeight("cpu"), ResourceWeight("memory"))


@attrs.frozen
class ScoringStrategy:
    type: StrategyType = "LeastAllocated"
    resources: tuple[ResourceWeight, ...] = CPU_AND_MEMORY
    shape: tuple[ShapePoint, ...] = ()
    """Points in ascending utilisation; never empty for RequestedToCapacityRatio, unused otherwise."""


@attrs.frozen
class NodeResourcesFitArgs:
    ignored_resources: tuple[str, ...] = ()
    """Resources the filter ignores; scoring is not affected."""
    ignored_resource_groups: tuple[str, ...] = ()
    """`example.com` ignores every `example.com/...`."""
    scoring_strategy: ScoringStrategy = ScoringStrategy()


@attrs.frozen
class NodeResourcesBalancedAllocationArgs:
    resources: tuple[ResourceWeight, ...] = CPU_AND_MEMORY


@attrs.frozen
class NodeAffinityArgs:
    added_affinity: Mapping[str, Any] | None = None
    """A `nodeAffinity` as in a pod spec, applied to every pod in addition to its own."""


@attrs.frozen
class DefaultConstraint:
    """A topology spread constraint without a selector, which is deduced from the pod's Services and owners."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: WhenUnsatisfiable
    min_domains: int | None = None
    node_affinity_policy: InclusionPolicy = "Honor"
    node_taints_policy: InclusionPolicy = "Ignore"
    match_label_keys: tuple[str, ...] = ()

    @property
    def raw(self) -> dict[str, Any]:
        """The constraint as written in a pod spec."""
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
        """The constraints for a pod that states none."""
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
    """0: does not wait."""
    shape: tuple[ShapePoint, ...] = ()
    """Empty: no score.  Only with the feature gate StorageCapacityScoring."""


@attrs.frozen
class DynamicResourcesArgs:
    filter_timeout_s: float = 10.0
    """Per node; 0: no limit."""


@attrs.frozen
class RawArgs:
    """Unparsed arguments of an out-of-tree plugin."""

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
"""The plugins with typed arguments."""


def default_args(plugin: str, gates: Mapping[str, bool]) -> PluginArgs:
    """The arguments of a plugin without `pluginConfig`."""
    if plugin == "VolumeBinding" and gates.get("StorageCapacityScoring", False):
        return VolumeBindingArgs(shape=CAPACITY_SHAPE)
    made: PluginArgs = TYPED_ARGS.get(plugin, RawArgs)()
    return made


CAPACITY_SHAPE = (ShapePoint(0, 10), ShapePoint(100, 0))
"""The lower the utilisation of a volume's capacity, the better: the default with StorageCapacityScoring."""
