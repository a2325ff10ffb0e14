"""A kubelet's observations of its node's memory, disk and process ids, and the node's pressure conditions.

A node is observed only if an annotation gives its usage, either on the node or on one of its pods. Images are included
in the used disk space if their sizes are known.

Source: Kubernetes v1.34, pkg/kubelet/nodestatus/setters.go (MemoryPressureCondition and the other pressure conditions).
Units: bytes; counts; seconds since the epoch.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from kschedd.api.conditions import condition, with_condition
from kschedd.api.nodes import Node
from kschedd.api.objects import Raw
from kschedd.api.resources import amounts
from kschedd.api.simulation.annotations import NodeSettings, pod_settings
from kschedd.api.simulation.eviction_thresholds import (
    IMAGEFS,
    MEMORY,
    NODEFS,
    PID,
    EvictionConfig,
    Threshold,
    ThresholdValue,
)
from kschedd.controllers.kubelets.eviction import MONITORING_S, Observation, Observations
from kschedd.controllers.kubelets.ranking import EvictionCandidate
from kschedd.controllers.kubelets.registration import HEALTHY

UNDER_PRESSURE: Final[Mapping[str, tuple[str, str]]] = {
    "MemoryPressure": ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
    "DiskPressure": ("KubeletHasDiskPressure", "kubelet has disk pressure"),
    "PIDPressure": ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
}
_SIGNAL_OF: Final[Mapping[str, str]] = {"memory": MEMORY, "disk": NODEFS, "pid": PID}
_TENTH: Final = ThresholdValue(share=0.1)
_UNSTATED: Final = 1 << 30  # assumed bytes of memory or disk if the node's status contains no capacity


def config_of(settings: NodeSettings) -> EvictionConfig:
    """Return the node's eviction settings, with a threshold for every pressure in its annotations."""
    present = {threshold.signal for threshold in settings.eviction.thresholds}
    missing = [_SIGNAL_OF[name] for name in settings.pressures if _SIGNAL_OF[name] not in present]
    if not missing:
        return settings.eviction
    added = tuple(Threshold(signal, _TENTH) for signal in missing)
    return attrs.evolve(settings.eviction, thresholds=(*settings.eviction.thresholds, *added))


def image_bytes(images: Sequence[Raw] | None) -> int:
    """Return the total size of the images in a node's status whose size is known."""
    return sum(image.get("sizeBytes") or 0 for image in images or ())


def observe(
    node: Node,
    settings: NodeSettings,
    active: Sequence[EvictionCandidate],
    images: int,
    last: Observations,
    now: float,
) -> Observations:
    """Return the available amounts of all signals with known usage; `images` is the total image size in bytes."""
    stated = [pod_settings(candidate.pod.annotations) for candidate in active]
    capacity = amounts(node.status.get("capacity"))
    seen: dict[str, tuple[int, int]] = {}

    def left(of: int, used: int, pressure: str) -> tuple[int, int]:
        if pressure in settings.pressures:
            return 0, of or _UNSTATED  # an annotation may set a shortage of a resource without capacity
        return max(0, of - used), of

    if "memory" in settings.pressures or settings.system_memory or any(s.states("memory-usage") for s in stated):
        used = settings.system_memory + sum(candidate.uses("memory") for candidate in active)
        seen[MEMORY] = left(capacity.get("memory", 0), used, "memory")
    if "disk" in settings.pressures or settings.system_storage or any(s.states("storage-usage") for s in stated):
        used = settings.system_storage + images + sum(candidate.uses("ephemeral-storage") for candidate in active)
        disk = left(capacity.get("ephemeral-storage", 0), used, "disk")
        seen[NODEFS] = disk
        if "disk" not in settings.pressures:
            seen[IMAGEFS] = disk  # one disk for both
    if "pid" in settings.pressures or any(s.states("pids") for s in stated):
        seen[PID] = left(settings.max_pids, sum(candidate.uses("pids") for candidate in active), "pid")
    return {
        signal: Observation(available, of, _seen_at(last.get(signal), available, of, now))
        for signal, (available, of) in seen.items()
        if of > 0
    }


def _seen_at(last: Observation | None, available: int, capacity: int, now: float) -> float:
    """Return the time of the observation: now, or the time of a recent equal observation."""
    if last is None or (last.available, last.capacity) != (available, capacity) or now - last.at >= MONITORING_S:
        return now
    return last.at


def own_pressures(node: Node) -> list[str]:
    """Return the pressure conditions that are True and were set by a kubelet."""
    return [
        name
        for name, (reason, _) in UNDER_PRESSURE.items()
        if (entry := condition(node.status, name)) is not None
        and entry.get("status") == "True"
        and entry.get("reason") == reason
    ]


def with_pressures(node: Node, pressures: Sequence[str], at: str) -> list[Raw] | None:
    """Return the node's conditions with these pressures, or None if they are already set."""
    before = own_pressures(node)
    conditions: Sequence[Raw] = node.status.get("conditions") or ()
    changed = False
    for name in UNDER_PRESSURE:
        stated = condition(node.status, name)
        is_there = stated is not None and stated.get("status") == "True"
        if name in pressures and not is_there:
            reason, message = UNDER_PRESSURE[name]
        elif name not in pressures and name in before:
            reason, message = HEALTHY[name]["reason"], HEALTHY[name]["message"]
        else:
            continue
        status = "True" if name in pressures else "False"
        entry = {"type": name, "status": status, "reason": reason, "message": message, "lastHeartbeatTime": at}
        conditions = with_condition(conditions, entry, at)
        changed = True
    return list(conditions) if changed else None
