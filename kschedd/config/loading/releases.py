"""The formats of kube-scheduler's configuration, with the defaults of the last release that read each format.

Several releases read the same format, and a file does not name the release. Missing fields therefore get the defaults
of the last of these releases. Up to v1beta2, the defaults are one list for each extension point; v1beta3 and v1 have
one list for MultiPoint.

Source: Kubernetes v1.18, scheduler/algorithmprovider/registry.go, kube-scheduler/config/v1alpha1 and v1alpha2/types.go;
v1.22, apis/config/v1beta1; v1.27, apis/config/v1beta2; v1.28, apis/config/v1beta3 (each: defaults.go,
default_plugins.go, and kube-scheduler/config/.../types.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from kschedd.config.in_tree import default_plugins
from kschedd.config.loading.plugin_sets import (
    FIELD_OF_POINT,
    MULTI_POINT,
    OF_GROUPS,
    PluginEntry,
    PluginSet,
    PluginSets,
)
from kschedd.config.versions.rules import Rules

_Defaults = Mapping[str, tuple[str | tuple[str, int], ...]]

_LIMITS: Final = ("EBSLimits", "GCEPDLimits", "NodeVolumeLimits", "AzureDiskLimits")

_V1ALPHA2: Final[_Defaults] = {
    "pre_enqueue": ("SchedulingGates",),
    "queue_sort": ("PrioritySort",),
    "pre_filter": ("NodeResourcesFit", "NodePorts", "InterPodAffinity", "PodTopologySpread"),
    "filter": (
        *("NodeUnschedulable", "NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity", "VolumeRestrictions"),
        *("TaintToleration", *_LIMITS, "VolumeBinding", "VolumeZone", "InterPodAffinity", "PodTopologySpread"),
    ),
    "post_filter": ("DefaultPreemption",),
    "pre_score": ("InterPodAffinity", "SelectorSpread", "TaintToleration", "PodTopologySpread"),
    "score": (
        *(("NodeResourcesBalancedAllocation", 1), ("ImageLocality", 1), ("InterPodAffinity", 1)),
        *(("NodeResourcesLeastAllocated", 1), ("NodeAffinity", 1), ("NodePreferAvoidPods", 10000)),
        *(("SelectorSpread", 1), ("TaintToleration", 1), ("PodTopologySpread", 2)),
    ),
    "reserve": ("VolumeBinding",),
    "pre_bind": ("VolumeBinding",),
    "bind": ("DefaultBinder",),
}
"""The defaults of v1alpha2.

Preemption and the binding of volumes were no plugins in v1.18; the current plugins are listed.  Scheduling gates are
honored although pods of that time had none: a gated pod must not be scheduled, whatever the file.
"""

_V1BETA1: Final[_Defaults] = {
    "pre_enqueue": ("SchedulingGates",),
    "queue_sort": ("PrioritySort",),
    "pre_filter": (
        *("NodeResourcesFit", "NodePorts", "PodTopologySpread", "InterPodAffinity", "VolumeBinding", "NodeAffinity"),
    ),
    "filter": (
        *("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit"),
        *("VolumeRestrictions", *_LIMITS, "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity"),
    ),
    "post_filter": ("DefaultPreemption",),
    "pre_score": ("InterPodAffinity", "PodTopologySpread", "TaintToleration", "NodeAffinity"),
    "score": (
        *(("NodeResourcesBalancedAllocation", 1), ("ImageLocality", 1), ("InterPodAffinity", 1)),
        *(("NodeResourcesLeastAllocated", 1), ("NodeAffinity", 1), ("NodePreferAvoidPods", 10000)),
        *(("PodTopologySpread", 2), ("TaintToleration", 1)),
    ),
    "reserve": ("VolumeBinding",),
    "pre_bind": ("VolumeBinding",),
    "bind": ("DefaultBinder",),
}

_V1BETA2: Final[_Defaults] = {
    **_V1BETA1,
    "pre_filter": (
        *("NodeResourcesFit", "NodePorts", "VolumeRestrictions", "PodTopologySpread", "InterPodAffinity"),
        *("VolumeBinding", "VolumeZone", "NodeAffinity"),
    ),
    "score": (
        *(("NodeResourcesBalancedAllocation", 1), ("ImageLocality", 1), ("InterPodAffinity", 1)),
        *(("NodeResourcesFit", 1), ("NodeAffinity", 1), ("PodTopologySpread", 2), ("TaintToleration", 1)),
    ),
}

_V1BETA3: Final[_Defaults] = {
    MULTI_POINT: (
        *("PrioritySort", "NodeUnschedulable", "NodeName", ("TaintToleration", 3), ("NodeAffinity", 2), "NodePorts"),
        *(("NodeResourcesFit", 1), "VolumeRestrictions", *_LIMITS, "VolumeBinding", "VolumeZone"),
        *(("PodTopologySpread", 2), ("InterPodAffinity", 2), "DefaultPreemption"),
        *(("NodeResourcesBalancedAllocation", 1), ("ImageLocality", 1), "DefaultBinder", "SchedulingGates"),
    ),
}

_COMMON_FIELDS: Final = (
    *("apiVersion", "kind", "leaderElection", "clientConnection", "enableProfiling", "enableContentionProfiling"),
    *("percentageOfNodesToScore", "podInitialBackoffSeconds", "podMaxBackoffSeconds"),
)
_ADDRESSES: Final = ("healthzBindAddress", "metricsBindAddress")
_OLD_FIELDS: Final = (*_ADDRESSES, "disablePreemption", "bindTimeoutSeconds")


@attrs.frozen(eq=False)
class ConfigRelease:
    """A format of KubeSchedulerConfiguration, and the release that defines its defaults."""

    version: str
    kube: str
    fields: tuple[str, ...]
    _defaults: _Defaults | None = None
    """None: the defaults of the version in use, which depend on its rules and on feature gates."""
    replaces: bool = True
    """True if enabling a default again replaces it; before v1beta2 it was then enabled twice, an error."""
    removed: frozenset[str] = frozenset()
    """Plugins that older formats could name, but this one cannot."""

    @property
    def by_point(self) -> bool:
        """True if the defaults are one list for each extension point."""
        return self._defaults is not None and MULTI_POINT not in self._defaults

    def points(self, rules: Rules) -> tuple[str, ...]:
        """Return the extension points that a file may name, and `multi_point`."""
        unknown = {MULTI_POINT, "pre_enqueue"} if self.by_point else set()
        if self.version == "v1beta2":
            unknown.discard("pre_enqueue")
        if self.version != "v1" or not rules.fields_of_1_36:
            unknown.update(OF_GROUPS)
        return tuple(point for point in FIELD_OF_POINT if point not in unknown)

    def default_sets(self, rules: Rules, gates: Mapping[str, bool]) -> PluginSets:
        if self._defaults is None:
            listed = default_plugins(rules, gates)
            return {MULTI_POINT: PluginSet(tuple(PluginEntry(name, weight) for name, weight in listed))}
        return {point: PluginSet(tuple(map(_entry, listed))) for point, listed in self._defaults.items()}


def _entry(listed: str | tuple[str, int]) -> PluginEntry:
    return PluginEntry(listed) if isinstance(listed, str) else PluginEntry(*listed)


_RESOURCES: Final = frozenset(("NodeResourcesLeastAllocated", "NodeResourcesMostAllocated", "RequestedToCapacityRatio"))
_SINCE_V1BETA2: Final = _RESOURCES | {"NodeLabel", "ServiceAffinity", "NodePreferAvoidPods"}
_SINCE_V1BETA3: Final = _SINCE_V1BETA2 | {"SelectorSpread"}

V1: Final = ConfigRelease(
    "v1",
    "v1.34",
    (*_COMMON_FIELDS, "parallelism", "profiles", "extenders", "delayCacheUntilActive"),
    removed=_SINCE_V1BETA3 | {"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"},
)
V1ALPHA1: Final = ConfigRelease(
    "v1alpha1",
    "v1.18",
    (
        *(*_COMMON_FIELDS, *_OLD_FIELDS, "schedulerName", "algorithmSource", "hardPodAffinitySymmetricWeight"),
        *("plugins", "pluginConfig"),
    ),
    _V1ALPHA2,
    replaces=False,
)
RELEASES: Final[Mapping[str, ConfigRelease]] = {
    one.version: one
    for one in (
        V1,
        ConfigRelease(
            "v1beta3",
            "v1.28",
            (*_COMMON_FIELDS, "parallelism", "profiles", "extenders"),
            _V1BETA3,
            removed=_SINCE_V1BETA3,
        ),
        ConfigRelease(
            "v1beta2",
            "v1.27",
            (*_COMMON_FIELDS, *_ADDRESSES, "parallelism", "profiles", "extenders"),
            _V1BETA2,
            removed=_SINCE_V1BETA2,
        ),
        ConfigRelease(
            "v1beta1",
            "v1.22",
            (*_COMMON_FIELDS, *_ADDRESSES, "parallelism", "profiles", "extenders"),
            _V1BETA1,
            replaces=False,
        ),
        ConfigRelease(
            "v1alpha2", "v1.18", (*_COMMON_FIELDS, *_OLD_FIELDS, "profiles", "extenders"), _V1ALPHA2, replaces=False
        ),
        V1ALPHA1,
    )
}
"""Every format by its version, the newest first."""

RENAMED: Final[Mapping[str, str]] = {"DefaultPodTopologySpread": "SelectorSpread"}
"""Plugins with a different name in v1.18."""
