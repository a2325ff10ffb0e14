"""The in-tree plugins of kube-scheduler v1.34: a single table, in the order of the default profile.

A plugin's module is its name in lower case (`kschedd.plugins.nodeaffinity`) and has a class with its name, which is
imported on first use. A plugin's extension points are derived from its class: a plugin takes part in an extension point
by implementing its methods. Adding a plugin takes its module, its test, and a line here.

Source: Kubernetes v1.34, framework/plugins/registry.go and apis/config/v1/default_plugins.go.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

Catalogue = Mapping[str, frozenset[str]]
"""Plugin name -> the extension points it implements."""

# Plugin name -> weight in the default profile; 0 means not set: a score plugin then gets 1.
_PLUGINS: Final[Mapping[str, int]] = {
    "SchedulingGates": 0,
    "PrioritySort": 0,
    "NodeUnschedulable": 0,
    "NodeName": 0,
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodePorts": 0,
    "NodeResourcesFit": 1,
    "VolumeRestrictions": 0,
    "NodeVolumeLimits": 0,
    "VolumeBinding": 0,
    "VolumeZone": 0,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    # Before DefaultPreemption: deallocating an unused claim is less disruptive than evicting a pod.
    "DynamicResources": 0,
    "DefaultPreemption": 0,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "DefaultBinder": 0,
}


def in_tree_class(name: str) -> type[Any]:
    """The class of an in-tree plugin."""
    found: type[Any] = getattr(importlib.import_module(f"kschedd.plugins.{name.lower()}"), name)
    return found


class _InTree(Mapping[str, frozenset[str]]):
    """The in-tree plugins' extension points, derived from their classes on access."""

    def __getitem__(self, name: str) -> frozenset[str]:
        if name not in _PLUGINS:
            raise KeyError(name)
        return _points_of(name)

    def __contains__(self, name: object) -> bool:
        return name in _PLUGINS

    def __iter__(self) -> Iterator[str]:
        return iter(_PLUGINS)

    def __len__(self) -> int:
        return len(_PLUGINS)


@cache
def _points_of(name: str) -> frozenset[str]:
    # Imported dynamically: the plugin interface is a layer above configuration.
    interface = importlib.import_module("kschedd.framework.interface")
    cls = in_tree_class(name)
    found: frozenset[str] = interface.extension_points(cls) | getattr(cls, "idle_points", frozenset())
    return found


IN_TREE: Final[Catalogue] = _InTree()

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
"""In-tree plugins of older releases, removed by v1.34."""


def default_plugins(gates: Mapping[str, bool]) -> tuple[tuple[str, int], ...]:
    """The default MultiPoint list: names and weights, in order."""
    if gates.get("DynamicResourceAllocation", True):
        return tuple(_PLUGINS.items())
    return tuple(item for item in _PLUGINS.items() if item[0] != "DynamicResources")
