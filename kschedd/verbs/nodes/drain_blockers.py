"""Reasons why a pod cannot be evicted: its disruption budget, and the unhealthy pods of that budget.

This module reads the budget and its pods from the daemon. Objects that were deleted meanwhile are ignored.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.selecting.selectors import SelectorError, parse_label_selector
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.session import DaemonClient

_NAMED: Final = 3
_LONGEST: Final = 160


def blockers(daemon: DaemonClient, namespace: str, refusal: Any) -> list[str]:
    """Return lines about why the budget blocks an eviction.

    `refusal` is the data of the eviction's error.
    """
    if not isinstance(refusal, Mapping):
        return []
    if refusal.get("budgets"):
        return [f"they are {', '.join(map(str, refusal['budgets']))}: one of them has to go, or to select other pods"]
    why, name = str(refusal.get("why") or ""), str(refusal.get("budget") or "")
    lines = [why] if why else []
    try:
        budget = daemon.call("objects.get", kind="PodDisruptionBudget", name=name, namespace=namespace)["object"]
        selector = parse_label_selector((budget.get("spec") or {}).get("selector"))
        text = None if selector.empty else str(selector)
        pods = daemon.call("objects.list", kind="Pod", namespace=namespace, label_selector=text)["items"]
    except (RpcError, SelectorError):
        return lines
    failed = next(
        (
            str(each.get("message"))
            for each in (budget.get("status") or {}).get("conditions") or ()
            if each.get("reason") == "SyncFailed"
        ),
        "",
    )
    if failed:
        return [*lines, f"its status could not be computed: {failed}"]
    unhealthy = [(pod["metadata"]["name"], state) for pod in pods if (state := _unhealthy(pod))]
    for pod_name, state in unhealthy[:_NAMED]:
        lines.append(f"pod/{pod_name} {state}")
    if len(unhealthy) > _NAMED:
        lines.append(f"and {len(unhealthy) - _NAMED} more of its pods are not ready")
    if pods and not unhealthy:
        ready = f"all {len(pods)} of its pods are" if len(pods) > 1 else "its only pod is"
        lines.append(f"{ready} ready, and it spares none: scale them up, or let it allow more")
    return lines


def _unhealthy(pod: Mapping[str, Any]) -> str:
    """Return why the pod is not healthy, or ""."""
    status = pod.get("status") or {}
    if pod["metadata"].get("deletionTimestamp"):
        return "is being deleted"
    conditions = {each.get("type"): each for each in status.get("conditions") or ()}
    if (conditions.get("Ready") or {}).get("status") == "True":
        return ""
    phase = str(status.get("phase") or "Pending")
    scheduled = conditions.get("PodScheduled") or {}
    if scheduled.get("status") == "False" and scheduled.get("message"):
        first, dot, _ = str(scheduled["message"]).partition(". ")
        return f"is {phase}: {first[:_LONGEST]}{dot.strip()}"
    return f"is {phase} and not ready"
