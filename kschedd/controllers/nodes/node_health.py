"""Functions of the node lifecycle controller for one node: conditions of an unresponsive kubelet, and NoExecute taints.

Source: Kubernetes v1.34, controller/nodelifecycle/node_lifecycle_controller.go (tryUpdateNodeHealth,
processTaintBaseEviction), controller/util/node/controller_utils.go (MarkPodsNotReady, SwapNodeControllerTaint).
"""

import math
from collections.abc import Iterable
from typing import Any, Final

from kschedd.api.conditions import condition, with_condition
from kschedd.api.nodes import Node
from kschedd.api.objects import Raw
from kschedd.api.pods import Pod
from kschedd.api.selecting.terms import NO_EXECUTE
from kschedd.api.text.times import stamp
from kschedd.controllers.nodes.nodetaints import NOT_READY, UNREACHABLE
from kschedd.store.writes import Patch, patch_of

EXCLUDED: Final = "node.kubernetes.io/exclude-disruption"
KUBELET_CONDITIONS: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
"""Conditions that become Unknown; NetworkUnavailable is not set by the kubelet."""


def ready_status(node: Node) -> str | None:
    """Return the status of the node's Ready condition; None if the node has no such condition."""
    found = condition(node.status, "Ready")
    return None if found is None else found.get("status") or ""


def silent_conditions(node: Node, now: float) -> list[Any]:
    """Return the node's conditions after its kubelet has been unresponsive for longer than the grace period."""
    at = stamp(now)
    conditions: list[Any] = []
    present = {entry.get("type") for entry in node.status.get("conditions") or ()}
    for entry in node.status.get("conditions") or ():
        if entry.get("type") in KUBELET_CONDITIONS and entry.get("status") != "Unknown":
            silent = {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
            conditions.append({**entry, "status": "Unknown", **silent, "lastTransitionTime": at})
        else:
            conditions.append(entry)
    for type_ in KUBELET_CONDITIONS:
        if type_ not in present:
            conditions.append(
                {
                    "type": type_,
                    "status": "Unknown",
                    "lastHeartbeatTime": node.metadata.get("creationTimestamp"),
                    "lastTransitionTime": at,
                    "reason": "NodeStatusNeverUpdated",
                    "message": "Kubelet never posted node status.",
                }
            )
    return conditions


def wanted_taint(status: str | None) -> str | None:
    """Return the key of the NoExecute taint for this status of the Ready condition; None if there is none."""
    if status == "False":
        return NOT_READY
    return UNREACHABLE if status == "Unknown" else None


def condition_taints(node: Node) -> frozenset[str]:
    """Return which of the two NoExecute taints (not-ready, unreachable) the node has."""
    return frozenset(t.key for t in node.taints if t.effect == NO_EXECUTE and t.key in (NOT_READY, UNREACHABLE))


def with_taint(node: Node, key: str | None, now: float) -> Patch | None:
    """Return the write that leaves the node with this taint only (None: with neither of the two taints).

    Return None if the node already has the correct taints.
    """
    taints: Iterable[Raw] = node.spec.get("taints") or ()
    ours = (NOT_READY, UNREACHABLE)
    kept = [t for t in taints if t.get("effect") != NO_EXECUTE or t.get("key") not in ours or t.get("key") == key]
    if key is not None and key not in condition_taints(node):
        kept.append({"key": key, "effect": NO_EXECUTE, "timeAdded": stamp(now)})
    elif len(kept) == len(node.taints):
        return None
    return patch_of(node, {"spec": {"taints": kept or None}}, exactly=True)


def pod_not_ready(pod: Pod, now: float) -> list[Any] | None:
    """Return the pod's conditions with Ready set to False; None if Ready is missing or already False."""
    ready = condition(pod.status, "Ready")
    if ready is None or ready.get("status") == "False":
        return None
    return with_condition(pod.status.get("conditions"), {**ready, "status": "False"}, stamp(now))


def next_pass(after_s: float, period_s: float) -> float:
    """Return the time of the first check of all nodes after this time.

    Checks are at whole multiples of the period since the epoch.
    """
    return (math.floor(after_s / period_s) + 1) * period_s


def pass_at_or_after(at_s: float, period_s: float) -> float:
    return math.ceil(at_s / period_s - 1e-9) * period_s
