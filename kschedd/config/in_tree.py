"""The plugins kube-scheduler v1.34 is built with: where each takes part, and which are on by default.

Source: Kubernetes v1.34, framework/plugins/registry.go, the interfaces each plugin declares, and
apis/config/v1/default_plugins.go.
"""

from __future__ import annotations

from collections.abc import Mapping

Catalogue = Mapping[str, frozenset[str]]
"""Name of a plugin -> the extension points it has methods for."""

_FILTERS = frozenset({"pre_filter", "filter"})
_FILTERS_AND_SCORES = _FILTERS | {"pre_score", "score"}

IN_TREE: Catalogue = {
    "SchedulingGates": frozenset({"pre_enqueue"}),
    "PrioritySort": frozenset({"queue_sort"}),
    "NodeUnschedulable": frozenset({"filter"}),
    "NodeName": frozenset({"filter"}),
    "TaintToleration": frozenset({"filter", "pre_score", "score"}),
    "NodeAffinity": _FILTERS_AND_SCORES,
    "NodePorts": _FILTERS,
    "NodeResourcesFit": _FILTERS_AND_SCORES,
    "VolumeRestrictions": _FILTERS,
    "NodeVolumeLimits": _FILTERS,
    "VolumeBinding": _FILTERS_AND_SCORES | {"reserve", "pre_bind"},
    "VolumeZone": _FILTERS,
    "PodTopologySpread": _FILTERS_AND_SCORES,
    "InterPodAffinity": _FILTERS_AND_SCORES,
    # Scores only from 1.35 on.
    "DynamicResources": _FILTERS | {"pre_enqueue", "post_filter", "reserve", "pre_bind"},
    # Holds a pod back while its victims are still being deleted, hence PreEnqueue.
    "DefaultPreemption": frozenset({"pre_enqueue", "post_filter"}),
    "NodeResourcesBalancedAllocation": frozenset({"pre_score", "score"}),
    "ImageLocality": frozenset({"score"}),
    "DefaultBinder": frozenset({"bind"}),
}

# A weight of 0 is one not given; a plugin that scores then gets 1.
_DEFAULTS: tuple[tuple[str, int], ...] = (
    ("SchedulingGates", 0),
    ("PrioritySort", 0),
    ("NodeUnschedulable", 0),
    ("NodeName", 0),
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodePorts", 0),
    ("NodeResourcesFit", 1),
    ("VolumeRestrictions", 0),
    ("NodeVolumeLimits", 0),
    ("VolumeBinding", 0),
    ("VolumeZone", 0),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    # Before DefaultPreemption: giving back an idle claim hurts less than evicting a pod.
    ("DynamicResources", 0),
    ("DefaultPreemption", 0),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
    ("DefaultBinder", 0),
)

REMOVED = frozenset(
    {
        "AzureDiskLimits",
        "CinderLimits",
        "EBSLimits",
        "GCEPDLimits",
        "NodeLabel",
        "NodePreferAvoidPods",
        "NodeResourcesLeastAllocated",
        "NodeResourcesMostAllocated",
        "RequestedToCapacityRatio",
        "SelectorSpread",
        "ServiceAffinity",
    }
)
"""Plugins that older releases had and v1.34 no longer has."""


def default_plugins(gates: Mapping[str, bool]) -> tuple[tuple[str, int], ...]:
    """The default MultiPoint list: names and weights, in order."""
    if gates.get("DynamicResourceAllocation", True):
        return _DEFAULTS
    return tuple(item for item in _DEFAULTS if item[0] != "DynamicResources")
