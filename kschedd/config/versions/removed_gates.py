"""Feature gates that kube-scheduler has removed, with the reasons.

Source: kubernetes.io, reference of the command-line tools, removed feature gates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_FINISHED: Final[Mapping[str, tuple[str, str]]] = {
    "AttachVolumeLimit": ("1.17", "1.21"),
    "CSIBlockVolume": ("1.18", "1.21"),
    "CSIInlineVolume": ("1.25", "1.26"),
    "CSIMigration": ("1.25", "1.26"),
    "CSIMigrationAWS": ("1.25", "1.26"),
    "CSIMigrationAzureDisk": ("1.24", "1.26"),
    "CSIMigrationOpenStack": ("1.24", "1.25"),
    "CSIMigrationPortworx": ("1.33", "1.35"),
    "CSINodeInfo": ("1.17", "1.22"),
    "CSIStorageCapacity": ("1.24", "1.27"),
    "DefaultPodTopologySpread": ("1.24", "1.25"),
    "EphemeralContainers": ("1.25", "1.26"),
    "EvenPodsSpread": ("1.19", "1.21"),
    "GenericEphemeralVolume": ("1.23", "1.24"),
    "HugePages": ("1.14", "1.16"),
    "LocalStorageCapacityIsolation": ("1.25", "1.26"),
    "MinDomainsInPodTopologySpread": ("1.30", "1.31"),
    "NonPreemptingPriority": ("1.24", "1.25"),
    "PersistentLocalVolumes": ("1.14", "1.16"),
    "PodAffinityNamespaceSelector": ("1.24", "1.25"),
    "PodDisruptionBudget": ("1.21", "1.25"),
    "PodOverhead": ("1.24", "1.25"),
    "PodPriority": ("1.14", "1.18"),
    "PreferNominatedNode": ("1.24", "1.25"),
    "ReadWriteOncePod": ("1.29", "1.30"),
    "ScheduleDaemonSetPods": ("1.17", "1.18"),
    "SchedulerQueueingHints": ("1.34", "1.36"),
    "SidecarContainers": ("1.33", "1.36"),
}
"""Gate -> the release since which the feature is final, and the last release with the gate."""

_GIVEN_UP: Final[Mapping[str, str]] = {
    "BalanceAttachedNodeVolumes": "1.22",
    "EnableEquivalenceClassCache": "1.23",
    "ResourceLimitsPriorityFunction": "1.19",
}
"""Gate -> the last release with it."""

_RENAMED: Final[Mapping[str, tuple[str, str]]] = {"VolumeCapacityPriority": ("StorageCapacityScoring", "1.33")}
"""Gate -> its current name, and the release that introduced it."""


def why_removed(name: str) -> tuple[str, str]:
    """Return the reason why a gate was removed, and its replacement. Both texts are empty if the gate never existed."""
    if name in _FINISHED:
        since, last = _FINISHED[name]
        return (
            f"the feature is finished and always on since v{since}, and its gate was removed after v{last}",
            "leave it out",
        )
    if name in _GIVEN_UP:
        return f"the feature and its gate were removed after v{_GIVEN_UP[name]}", "leave it out"
    if name in _RENAMED:
        present, since = _RENAMED[name]
        return f"the gate is called {present} since v{since}", present
    return "", ""
