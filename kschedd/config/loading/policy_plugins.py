"""The predicates and priorities of a Policy, and the plugins that replaced them.

Source: Kubernetes v1.19, scheduler/framework/plugins/legacy_registry.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_FIT = (("pre_filter", "NodeResourcesFit"), ("filter", "NodeResourcesFit"))
_PORTS = (("pre_filter", "NodePorts"), ("filter", "NodePorts"))
_NODE_AFFINITY = (("pre_filter", "NodeAffinity"), ("filter", "NodeAffinity"))
LABEL_PREDICATE: Final = "CheckNodeLabelPresence"
SERVICE_PREDICATE: Final = "CheckServiceAffinity"

PREDICATES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "CheckNodeUnschedulable": (("filter", "NodeUnschedulable"),),
    "GeneralPredicates": (*_FIT, ("filter", "NodeName"), *_PORTS, *_NODE_AFFINITY),
    "HostName": (("filter", "NodeName"),),
    "PodFitsHostPorts": _PORTS,
    "MatchNodeSelector": _NODE_AFFINITY,
    "PodFitsResources": _FIT,
    "NoDiskConflict": (("filter", "VolumeRestrictions"),),
    "PodToleratesNodeTaints": (("filter", "TaintToleration"),),
    LABEL_PREDICATE: (("filter", "NodeLabel"),),
    SERVICE_PREDICATE: (("pre_filter", "ServiceAffinity"), ("filter", "ServiceAffinity")),
    "MaxEBSVolumeCount": (("filter", "EBSLimits"),),
    "MaxGCEPDVolumeCount": (("filter", "GCEPDLimits"),),
    "MaxCSIVolumeCountPred": (("filter", "NodeVolumeLimits"),),
    "MaxAzureDiskVolumeCount": (("filter", "AzureDiskLimits"),),
    "MaxCinderVolumeCount": (("filter", "CinderLimits"),),
    "CheckVolumeBinding": tuple((point, "VolumeBinding") for point in ("pre_filter", "filter", "reserve", "pre_bind")),
    "NoVolumeZoneConflict": (("filter", "VolumeZone"),),
    "EvenPodsSpread": (("pre_filter", "PodTopologySpread"), ("filter", "PodTopologySpread")),
    "MatchInterPodAffinity": (("pre_filter", "InterPodAffinity"), ("filter", "InterPodAffinity")),
}
"""Predicate -> the extension points and plugins that replace it; in the order in which predicates run."""

MANDATORY: Final = ("CheckNodeUnschedulable", "PodToleratesNodeTaints")
DEFAULT_PREDICATES: Final = (
    *("NoVolumeZoneConflict", "MaxEBSVolumeCount", "MaxGCEPDVolumeCount", "MaxAzureDiskVolumeCount"),
    *("MaxCSIVolumeCountPred", "MatchInterPodAffinity", "NoDiskConflict", "GeneralPredicates"),
    *("CheckVolumeBinding", "EvenPodsSpread"),
)
RENAMED_PREDICATES: Final = {"PodFitsPorts": "PodFitsHostPorts"}

PRIORITIES: Final[Mapping[str, tuple[str, bool]]] = {
    "BalancedResourceAllocation": ("NodeResourcesBalancedAllocation", False),
    "EvenPodsSpreadPriority": ("PodTopologySpread", True),
    "ImageLocalityPriority": ("ImageLocality", False),
    "InterPodAffinityPriority": ("InterPodAffinity", True),
    "LeastRequestedPriority": ("NodeResourcesLeastAllocated", False),
    "MostRequestedPriority": ("NodeResourcesMostAllocated", False),
    "NodeAffinityPriority": ("NodeAffinity", True),
    "NodePreferAvoidPodsPriority": ("NodePreferAvoidPods", False),
    "SelectorSpreadPriority": ("SelectorSpread", True),
    "TaintTolerationPriority": ("TaintToleration", True),
}
"""Priority -> the plugin that replaces it, and whether it has a PreScore, in the order in which they score."""

RATIO: Final = "RequestedToCapacityRatioPriority"
DEFAULT_PRIORITIES: Final[Mapping[str, int]] = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
    "ImageLocalityPriority": 1,
    "EvenPodsSpreadPriority": 2,
}
RENAMED_PRIORITIES: Final = {"ServiceSpreadingPriority": "SelectorSpreadPriority"}
EQUAL: Final = "EqualPriority"
"""A priority without effect: the same for each node."""

GONE: Final = {
    "CheckNodeCondition": "node conditions are taints since v1.12: PodToleratesNodeTaints",
    "CheckNodeMemoryPressure": "node conditions are taints since v1.12: PodToleratesNodeTaints",
    "CheckNodeDiskPressure": "node conditions are taints since v1.12: PodToleratesNodeTaints",
    "CheckNodePIDPressure": "node conditions are taints since v1.12: PodToleratesNodeTaints",
    "ResourceLimitsPriority": "left out; kube-scheduler had it behind a gate until v1.19",
}
"""Predicates and priorities of releases before v1.18 that v1.18 to v1.22 ignored or rejected."""
