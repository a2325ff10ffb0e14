"""The status that a kubelet reports for a pod: phase, conditions, container statuses, addresses.

Source: Kubernetes v1.34, pkg/kubelet/status/generate.go, pkg/kubelet/kubelet_pods.go.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from kschedd.api.nodes import Node
from kschedd.api.objects import Raw
from kschedd.api.pods import Pod, PodSpec
from kschedd.controllers.conditions import condition, with_condition

_RUNNING: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


@lru_cache(1 << 10)
def _container_statuses(spec: PodSpec, state: str, at: str) -> list[Raw]:
    """The containerStatuses shared by all pods with this spec that start (or end) in the same second."""
    running = state == "running"
    detail = {"startedAt": at} if running else {"exitCode": 0, "reason": "Completed", "finishedAt": at}
    return [
        {
            "name": container.get("name", ""),
            "image": container.get("image", ""),
            "imageID": "",
            "ready": running,
            "started": running,
            "restartCount": 0,
            "state": {state: detail},
        }
        for container in spec.raw.get("containers") or ()
    ]


@lru_cache(256)
def _running_conditions(at: str, scheduled_at: str) -> list[Raw]:
    started = [{"type": type_, "status": "True", "lastTransitionTime": at} for type_ in _RUNNING]
    return [*started, {"type": "PodScheduled", "status": "True", "lastTransitionTime": scheduled_at}]


def _conditions_of_running(pod: Pod, at: str) -> list[Raw]:
    present = pod.status.get("conditions") or ()
    scheduled = condition(pod.status, "PodScheduled")
    if len(present) == (scheduled is not None):
        return _running_conditions(at, (scheduled or {}).get("lastTransitionTime") or at)
    conditions = list(present)
    for type_ in (*_RUNNING, "PodScheduled"):
        conditions = with_condition(conditions, {"type": type_, "status": "True"}, at)
    return conditions


def running_status(pod: Pod, node: Node, at: str) -> dict[str, Any]:
    """The status fields that change when a pod starts on this node."""
    host_ip = next(
        (a.get("address") or "" for a in node.status.get("addresses") or () if a.get("type") == "InternalIP"), ""
    )
    number = int(pod.uid[:6], 16) if _is_hex(pod.uid[:6]) else 0
    own_ip = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    ip = host_ip if pod.pod_spec.raw.get("hostNetwork") else own_ip
    status: dict[str, Any] = {
        "phase": "Running",
        "startTime": pod.start_time or at,
        "conditions": _conditions_of_running(pod, at),
        "containerStatuses": _container_statuses(pod.pod_spec, "running", at),
    }
    if host_ip:
        status["hostIP"] = host_ip
        status["hostIPs"] = [{"ip": host_ip}]
    if ip:
        status["podIP"] = ip
        status["podIPs"] = [{"ip": ip}]
    return status


def _is_hex(text: str) -> bool:
    return len(text) == 6 and all(letter in "0123456789abcdef" for letter in text)


def succeeded_status(pod: Pod, at: str) -> dict[str, Any]:
    """The status fields that change when all containers of a pod have succeeded."""
    conditions: Sequence[Raw] = pod.status.get("conditions") or ()
    for type_ in ("Ready", "ContainersReady"):
        conditions = with_condition(conditions, {"type": type_, "status": "False", "reason": "PodCompleted"}, at)
    statuses = _container_statuses(pod.pod_spec, "terminated", at)
    return {"phase": "Succeeded", "conditions": conditions, "containerStatuses": statuses}
