"""In-tree plugins: kube-scheduler's plugins in the order of the default profile, and plugins of older releases.

The module of a plugin has the plugin's name in lower case (`kschedd.plugins.nodeaffinity`), and contains a class with
the plugin's name. The class is imported on first use. A plugin's extension points are derived from its class: a plugin
takes part in an extension point by implementing its methods. To add a plugin, write its module and its test, and add a
line here.

Plugins of older releases are only in these releases' default profiles, but any profile may enable them.

A plugin added by a release after 1.34 needs a rule: `_BY_RULE` in this module, and `rule_of_point` of the plugin's
class.

Source: Kubernetes v1.34 and v1.36, framework/plugins/registry.go and apis/config/v1/default_plugins.go; v1.22 for the
older ones.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import attrs

from kschedd.config.plugin_info import PluginInfo
from kschedd.config.versions.rules import Rules

Catalogue = Mapping[str, PluginInfo]

# Plugin name -> weight in the default profile. 0 means not set: a score plugin then gets 1.
_PLUGINS: Final[Mapping[str, int]] = {
    "SchedulingGates": 0,
    "PrioritySort": 0,
    "NodeUnschedulable": 0,
    "NodeName": 0,
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodePorts": 0,
    "DeferredPodScheduling": 0,
    "NodeResourcesFit": 1,
    "VolumeRestrictions": 0,
    "NodeVolumeLimits": 0,
    "VolumeBinding": 0,
    "VolumeZone": 0,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    # This plugin precedes DefaultPreemption: deallocating an unused claim is less disruptive than evicting a pod.
    "DynamicResources": 0,
    "DefaultPreemption": 0,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "DefaultBinder": 0,
    "NodeDeclaredFeatures": 0,
    "GangScheduling": 0,
    "TopologyPlacementGenerator": 0,
    "PodGroupPodsCount": 1,
}
# Rule -> the plugins that the rule adds to the default profile, or their weights there.
_BY_RULE: Final[Mapping[str, Mapping[str, int]]] = {
    "devices_scored": {"DynamicResources": 2},
    "declared_features": {"NodeDeclaredFeatures": 0},
    "gang_scheduling": {"GangScheduling": 0},
    "groups_in_domains": {"TopologyPlacementGenerator": 0, "PodGroupPodsCount": 1},
    "resizes_preempt": {"DeferredPodScheduling": 0},
}
# plugin name -> subpackage of `kschedd.plugins` that contains the plugin's module
_ROOMS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality"), "resources"),
    **dict.fromkeys(("NodeVolumeLimits", "VolumeBinding", "VolumeRestrictions", "VolumeZone"), "volumes"),
    **dict.fromkeys(("InterPodAffinity", "PodTopologySpread", "TopologyPlacementGenerator"), "topology"),
    **dict.fromkeys(("DynamicResources", "NodeDeclaredFeatures"), "devices"),
}
_NEWER: Final = frozenset(
    (
        *("NodeDeclaredFeatures", "GangScheduling", "DeferredPodScheduling"),
        *("TopologyPlacementGenerator", "PodGroupPodsCount"),
    )
)


@attrs.frozen
class OlderPlugin:
    last: str
    """The last release that had it."""
    instead: str
    """The replacement in v1.34."""


_CSI_LIMITS: Final = "NodeVolumeLimits, which counts these volumes for their CSI driver"
_STRATEGY: Final = "NodeResourcesFit with a scoringStrategy of the type"

OLDER: Final[Mapping[str, OlderPlugin]] = {
    "SelectorSpread": OlderPlugin("v1.27", "PodTopologySpread with defaultingType System"),
    "NodePreferAvoidPods": OlderPlugin("v1.22", "a taint with the effect PreferNoSchedule"),
    "EBSLimits": OlderPlugin("v1.30", _CSI_LIMITS),
    "GCEPDLimits": OlderPlugin("v1.30", _CSI_LIMITS),
    "AzureDiskLimits": OlderPlugin("v1.30", _CSI_LIMITS),
    "CinderLimits": OlderPlugin("v1.30", _CSI_LIMITS),
    "NodeLabel": OlderPlugin("v1.22", "NodeAffinity with addedAffinity"),
    "ServiceAffinity": OlderPlugin("v1.22", "InterPodAffinity"),
    "NodeResourcesLeastAllocated": OlderPlugin("v1.22", f"{_STRATEGY} LeastAllocated"),
    "NodeResourcesMostAllocated": OlderPlugin("v1.22", f"{_STRATEGY} MostAllocated"),
    "RequestedToCapacityRatio": OlderPlugin("v1.22", f"{_STRATEGY} RequestedToCapacityRatio"),
    "RequestedToCapacityRatioPriority": OlderPlugin("v1.16", f"{_STRATEGY} RequestedToCapacityRatio"),
}
"""In-tree plugins of older releases."""


@cache
def in_tree_class(name: str) -> type[Any]:
    """Return the class of an in-tree plugin."""
    room = "older" if name in OLDER else _ROOMS.get(name, "")
    path = ".".join(("kschedd.plugins", *([room] if room else []), name.lower()))
    found: type[Any] = getattr(importlib.import_module(path), name)
    return found


class _InTree(Mapping[str, PluginInfo]):
    """The in-tree plugins with data from their classes, and `others`, which take precedence if names are equal.

    `IN_TREE | others` imports no plugin; `{**IN_TREE, **others}` would import all of them.
    """

    def __init__(self, others: Catalogue) -> None:
        self._others = others
        self._names = frozenset((*_PLUGINS, *OLDER, *others))

    def __getitem__(self, name: str) -> PluginInfo:
        if name not in self._names:
            raise KeyError(name)
        return self._others[name] if name in self._others else _info(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*_PLUGINS, *OLDER, *self._others)))

    def __len__(self) -> int:
        return len(self._names)

    def __or__(self, others: Catalogue) -> Catalogue:
        return _InTree({**self._others, **others})


@cache
def _info(name: str) -> PluginInfo:
    # Imported dynamically, because the plugin interface is in a layer above the configuration.
    interface = importlib.import_module("kschedd.framework.interface")
    cls = in_tree_class(name)
    info: PluginInfo = interface.plugin_info(cls)
    points = info.points | getattr(cls, "idle_points", frozenset())
    return attrs.evolve(info, points=points, rule_of_point=getattr(cls, "rule_of_point", {}))


IN_TREE: Final = _InTree({})


def default_plugins(rules: Rules, gates: Mapping[str, bool]) -> tuple[tuple[str, int], ...]:
    """Return the default MultiPoint list: names and weights, in order."""
    by_rule = dict[str, int]()
    for rule, moved in _BY_RULE.items():
        by_rule |= moved if getattr(rules, rule) else {}
    absent = _NEWER - by_rule.keys()
    if not gates.get("DynamicResourceAllocation", True):
        absent |= {"DynamicResources"}
    found = [(name, by_rule.get(name, weight)) for name, weight in _PLUGINS.items() if name not in absent]
    if rules.node_name_first:
        names = [name for name, _ in found]
        found.insert(names.index("NodeUnschedulable"), found.pop(names.index("NodeName")))
    return tuple(found)
