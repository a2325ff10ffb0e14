"""Node groups of Cluster Autoscaler, and properties of their nodes.

Source: sigs.k8s.io/cluster-autoscaler, pkg/utils/taints/taints.go, pkg/utils/kubernetes/ready.go.
"""

from collections.abc import Iterable
from typing import Final

import attrs

from kschedd.api.nodes import Node

TO_BE_DELETED: Final = "ToBeDeletedByClusterAutoscaler"
DELETION_CANDIDATE: Final = "DeletionCandidateOfClusterAutoscaler"
_DISABLED: Final = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
_FAULTY: Final = {
    "Ready": ("False", "Unknown"),
    "DiskPressure": ("True",),
    "NetworkUnavailable": ("True",),
}  # states of conditions with which a node is not ready
_FAULT_TAINTS: Final = frozenset(
    f"node.kubernetes.io/{fault}" for fault in ("not-ready", "disk-pressure", "network-unavailable")
)


@attrs.frozen(eq=False)
class AutoscaledGroup:
    """A node group. `template` is the node that it would add; `exists` is false for a group yet to be created.

    `price` is the price of a node per hour; None if it is unknown.
    """

    name: str
    minimum: int
    maximum: int
    target: int
    template: Node
    exists: bool = True
    price: float | None = None


def is_scale_down_disabled(node: Node) -> bool:
    return node.annotations.get(_DISABLED) == "true"


def node_is_ready(node: Node) -> bool:
    """Return whether Cluster Autoscaler considers the node ready, by its conditions and taints."""
    states = [(each.get("type"), each.get("status")) for each in node.status.get("conditions") or ()]
    if not any(kind == "Ready" for kind, _ in states):
        return False
    faulty = any(status in _FAULTY.get(str(kind), ()) for kind, status in states)
    return not faulty and all(taint.key not in _FAULT_TAINTS for taint in node.taints)


def taint_time(node: Node, key: str) -> float | None:
    """Return the time in the value of the node's taint; None without this taint, or if the value is no time."""
    for taint in node.taints:
        if taint.key == key:
            digits = taint.value.removeprefix("-")
            return float(taint.value) if digits.isascii() and digits.isdigit() else None
    return None


def is_healthy(group: AutoscaledGroup, nodes: Iterable[Node], most_missing: int = 3, share: float = 0.45) -> bool:
    """Return whether few enough nodes of the group are missing or not ready. `nodes` are the group's nodes.

    Source: pkg/clusterstate/clusterstate.go, IsNodeGroupHealthy, without nodes that are being started.
    """
    ready = [node_is_ready(node) for node in nodes]
    missing = group.target - sum(ready)
    return missing <= most_missing or missing <= share * len(ready)
