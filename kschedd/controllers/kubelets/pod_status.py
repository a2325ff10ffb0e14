"""The status that a kubelet reports for a pod: phase, conditions, container statuses, addresses.

Most pods have containers that only run, so their statuses are built once for each spec and second (`running_status`).
All other pods have a `PodRun` (`status_of_run`).

Source: Kubernetes v1.34, pkg/kubelet/status/generate.go, pkg/kubelet/kubelet_pods.go, pkg/kubelet/kubelet.go
(rejectPod).
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv6Address
from typing import Any, Final

from kschedd.api.conditions import condition, with_condition
from kschedd.api.container_ids import image_id
from kschedd.api.nodes import Node
from kschedd.api.objects import Raw
from kschedd.api.pods import Pod, PodSpec
from kschedd.api.text.times import stamp
from kschedd.controllers.kubelets.admission import Refusal
from kschedd.controllers.kubelets.node_info import internal_ips
from kschedd.controllers.kubelets.pod_run import BY_KUBELET, DISRUPTION_TARGET, PodRun
from kschedd.controllers.kubelets.resizing import PENDING, report_of, stated

_HEX: Final = re.compile("[0-9a-f]{6}")
_PODS_IPV6: Final = IPv6Address("fd00:10::")
_RUNNING: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


@lru_cache(64)  # small, because each entry keeps its spec in memory
def _container_statuses(spec: PodSpec, at: str) -> list[Raw]:
    """Return the containerStatuses shared by all pods with this spec that start in the same second."""
    return [
        {
            "name": container.get("name", ""),
            "image": container.get("image", ""),
            "imageID": image_id(container.get("image", "")),
            "ready": True,
            "started": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": at}},
            **report_of(stated(container)),
        }
        for container in spec.raw.get("containers") or ()
    ]


@lru_cache(256)
def _running_conditions(at: str, scheduled_at: str, generation: int) -> list[Raw]:
    seen = {"observedGeneration": generation} if generation else {}
    started = [{"type": type_, "status": "True", "lastTransitionTime": at, **seen} for type_ in _RUNNING]
    return [*started, {"type": "PodScheduled", "status": "True", "lastTransitionTime": scheduled_at, **seen}]


def _conditions_of_running(pod: Pod, at: str, generation: int) -> list[Raw]:
    present = pod.status.get("conditions") or ()
    scheduled = condition(pod.status, "PodScheduled")
    if len(present) == (scheduled is not None):
        return _running_conditions(at, (scheduled or {}).get("lastTransitionTime") or at, generation)
    conditions = list(present)
    seen = {"observedGeneration": generation} if generation else {}
    for type_ in (*_RUNNING, "PodScheduled"):
        conditions = with_condition(conditions, {"type": type_, "status": "True", **seen}, at)
    return conditions


def _generation(pod: Pod) -> int:
    return pod.metadata.get("generation") or 0


def _addresses(pod: Pod, node: Node) -> dict[str, Any]:
    """Return the pod's addresses: one of each IP family of its node, or an IPv4 address if the node has none."""
    host_ips = internal_ips(node)
    status: dict[str, Any] = {}
    if host_ips:
        status["hostIP"] = host_ips[0]
        status["hostIPs"] = _as_list(*host_ips)
    if pod.pod_spec.raw.get("hostNetwork"):
        ips = host_ips
    else:
        number = int(pod.uid[:6], 16) if _HEX.fullmatch(pod.uid[:6]) else 0
        ips = [_own_ip(number, ":" in each) for each in host_ips or ("",)]
    if ips:
        status["podIP"] = ips[0]
        status["podIPs"] = [{"ip": ip} for ip in ips]
    return status


def _own_ip(number: int, ipv6: bool) -> str:
    if ipv6:
        return str(_PODS_IPV6 + number)
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


@lru_cache(256)
def _as_list(*ips: str) -> list[Raw]:
    """Return the hostIPs shared by all pods of a node."""
    return [{"ip": ip} for ip in ips]


def running_status(pod: Pod, node: Node, at: str) -> dict[str, Any]:
    """Return the status fields that change when a pod with such containers starts on this node."""
    generation = _generation(pod)
    status: dict[str, Any] = {
        "phase": "Running",
        "startTime": pod.start_time or at,
        "conditions": _conditions_of_running(pod, at, generation),
        "containerStatuses": _container_statuses(pod.pod_spec, at),
        **_addresses(pod, node),
    }
    if generation:
        status["observedGeneration"] = generation
    return status


def refused_status(pod: Pod, refusal: Refusal, at: str) -> dict[str, Any]:
    """Return the status of a rejected pod. The returned status contains no condition that a kubelet sets."""
    others = [entry for entry in pod.status.get("conditions") or () if entry.get("type") not in _OF_KUBELET]
    status: dict[str, Any] = {
        "phase": "Failed",
        "reason": refusal.reason,
        "message": f"Pod was rejected: {refusal.message}",
        "startTime": pod.start_time or at,
        "conditions": others or None,
    }
    if generation := _generation(pod):
        status["observedGeneration"] = generation
    return status


_OF_KUBELET: Final = frozenset((*_RUNNING, "PodScheduled"))


# -- pods with a run of their own -----------------------------------------------------------------------------------


def status_of_run(pod: Pod, node: Node, run: PodRun, now: float) -> dict[str, Any]:
    """Return the status fields of a pod for the current state of its run."""
    at, phase, generation = stamp(now), run.phase, _generation(pod)
    main, inits = run.statuses("main"), run.statuses("init", "sidecar")
    conditions: Sequence[Raw] = pod.status.get("conditions") or ()
    if run.pending is None:
        conditions = [entry for entry in conditions if entry.get("type") != PENDING]
    seen = {"observedGeneration": generation} if generation else {}
    for wanted in conditions_of(pod, run):
        conditions = with_condition(conditions, {**wanted, **seen}, at)
    status: dict[str, Any] = {
        "phase": phase,
        "startTime": pod.start_time or stamp(run.admitted_at),
        "conditions": conditions,
        "containerStatuses": main,
    }
    if inits:
        status["initContainerStatuses"] = inits
    if ephemeral := run.statuses("ephemeral"):
        status["ephemeralContainerStatuses"] = ephemeral
    addresses = _addresses(pod, node)
    status |= addresses if run.created or run.over else {k: v for k, v in addresses.items() if k.startswith("host")}
    if generation:
        status["observedGeneration"] = generation
    if run.over and run.stop is not None and run.stop.reason:
        status["reason"], status["message"] = run.stop.reason, run.stop.message
    return status


def conditions_of(pod: Pod, run: PodRun) -> list[Raw]:
    """Return the conditions that the kubelet sets, in upstream's order."""
    phase = run.phase
    inits = [container for container in run.containers if container.role in ("init", "sidecar")]
    mains = [container for container in run.containers if container.role == "main"]
    incomplete = [c.name for c in inits if not (c.state == "running" if c.role == "sidecar" else c.finished_well)]
    if phase == "Succeeded":
        initialized: Raw = _condition("Initialized", "True", "PodCompleted")
    elif run.initialized or not incomplete:
        initialized = _condition("Initialized", "True")
    else:
        why = f"containers with incomplete status: {_listed(incomplete)}"
        initialized = _condition("Initialized", "False", "ContainersNotInitialized", why)
    unready = [c.name for c in inits if c.role == "sidecar" and not c.ready]
    unready += [c.name for c in mains if not c.ready]
    if phase in ("Succeeded", "Failed"):
        reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
        containers_ready: Raw = _condition("ContainersReady", "False", reason)
    elif unready:
        why = f"containers with unready status: {_listed(unready)}"
        containers_ready = _condition("ContainersReady", "False", "ContainersNotReady", why)
    else:
        containers_ready = _condition("ContainersReady", "True")
    ready: Raw = {**containers_ready, "type": "Ready"}
    missing = _unready_gates(pod)
    if containers_ready["status"] == "True" and missing:
        ready = _condition("Ready", "False", "ReadinessGatesNotReady", ", ".join(missing))
    found = [
        _condition("PodReadyToStartContainers", "True" if run.created else "False"),
        initialized,
        ready,
        containers_ready,
        _condition("PodScheduled", "True"),
    ]
    if run.stop is not None and run.stop.disrupts:
        found.append(_condition(DISRUPTION_TARGET, "True", BY_KUBELET, run.stop.message))
    if run.pending is not None:
        found.append(_condition(PENDING, "True", run.pending.reason, run.pending.message))
    return found


def _condition(type_: str, status: str, reason: str = "", message: str = "") -> Raw:
    found = {"type": type_, "status": status}
    if reason:
        found["reason"] = reason
    if message:
        found["message"] = message
    return found


def _unready_gates(pod: Pod) -> list[str]:
    found = []
    for gate in pod.pod_spec.raw.get("readinessGates") or ():
        type_ = gate.get("conditionType") or ""
        stated = condition(pod.status, type_)
        if stated is None:
            found.append(f'corresponding condition of pod readiness gate "{type_}" does not exist.')
        elif stated.get("status") != "True":
            found.append(f'the status of pod readiness gate "{type_}" is not "True", but {stated.get("status")}')
    return found


def _listed(names: Iterable[str]) -> str:
    return f"[{' '.join(names)}]"
