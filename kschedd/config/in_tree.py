"""The plugins kube-scheduler v1.34 is built with: the one table of them, in the order of the default profile.

A plugin's module is named after it in small letters (`kschedd.plugins.nodeaffinity`) and has a class of its name,
which is imported when it is first needed. Where a plugin takes part is asked of its class: having an extension point's
methods is taking part. Adding one takes its file, its test, and a line here.

Source: Kubernetes v1.34, framework/plugins/registry.go and apis/config/v1/default_plugins.go.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

Catalogue = Mapping[str, frozenset[str]]
"""Name of a plugin -> the extension points it has methods for."""

# Name -> weight in the default profile; 0 is one not given: a plugin that scores then gets 1.
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
    # Before DefaultPreemption: giving back an idle claim hurts less than evicting a pod.
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
    """What the in-tree plugins take part in, looked up in their classes when asked for."""

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
    # By name, for what a plugin is lies above configuration, which only has to know that it is there.
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
"""Plugins that older releases had and v1.34 no longer has."""


def default_plugins(gates: Mapping[str, bool]) -> tuple[tuple[str, int], ...]:
    """The default MultiPoint list: names and weights, in order."""
    if gates.get("DynamicResourceAllocation", True):
        return tuple(_PLUGINS.items())
    return tuple(item for item in _PLUGINS.items() if item[0] != "DynamicResources")
