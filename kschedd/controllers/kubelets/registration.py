"""Registration of a node by its kubelet: conditions, capacity, allocatable, labels.

An existing Ready condition does not change, because a user or another program has set it. Source: Kubernetes v1.34,
pkg/kubelet/nodestatus/setters.go, pkg/kubelet/kubelet_node_status.go.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.conditions import condition
from kschedd.api.nodes import Node
from kschedd.api.objects import Raw
from kschedd.api.text.times import stamp
from kschedd.controllers.kubelets.node_labels import missing_labels
from kschedd.controllers.kubelets.state import kubelet_runs
from kschedd.store.writes import Write, patch_of, status_of

_NOTHING: Final[Mapping[str, Any]] = {}
HEALTHY: Final[Mapping[str, Raw]] = {
    type_: {"type": type_, "status": status, "reason": reason, "message": message}
    for type_, status, reason, message in (
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    )
}
"""Conditions that a kubelet reports for a healthy node, by type."""


def registration(node: Node, now: float, more: Mapping[str, Any] = _NOTHING) -> list[Write]:
    """Return the writes that add the node's missing labels and Ready condition, with `more` fields of the status."""
    if not kubelet_runs(node):
        return []
    writes: list[Write] = []
    labels = missing_labels(node)
    if labels:
        writes.append(patch_of(node, {"metadata": {"labels": labels}}))
    status = node_status(node, stamp(now))
    if status is not None:
        writes.append(status_of(node, {**status, **more}))
    return writes


def node_status(node: Node, at: str) -> dict[str, Any] | None:
    """Return the status fields that the kubelet sets on a node, or None if the node has a Ready condition."""
    if condition(node.status, "Ready") is not None:
        return None
    conditions = list(node.status.get("conditions") or ())
    stated = {entry.get("type") for entry in conditions}
    for type_, entry in HEALTHY.items():
        if type_ not in stated:
            conditions.append({**entry, "lastHeartbeatTime": at, "lastTransitionTime": at})
    added: dict[str, Any] = {"conditions": conditions}
    capacity, allocatable = node.status.get("capacity"), node.status.get("allocatable")
    if capacity and not allocatable:
        added["allocatable"] = capacity
    if allocatable and not capacity:
        added["capacity"] = allocatable
    return added
