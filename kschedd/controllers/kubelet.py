"""The simulated kubelets: make nodes Ready, and start, complete and remove the pods bound to them.

A node without a Ready condition is marked Ready, and every node gets its hostname label. A Ready condition that is
already set is kept; while it is not True, no pod starts or ends on the node. A pod being deleted is removed after its
grace period, or earlier, after `kschedd.io/termination-seconds`; with `kschedd.io/run-seconds` a pod becomes Succeeded
that many seconds after its start.

Owns the deadlines at which pods end. Source of the statuses: Kubernetes v1.34, pkg/kubelet/status/generate.go.
"""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, Final

from kschedd.api.nodes import HOSTNAME_LABEL, Node
from kschedd.api.objects import Raw
from kschedd.api.pods import Pod, PodSpec
from kschedd.controllers.conditions import condition, is_true, with_condition
from kschedd.controllers.controller import View
from kschedd.controllers.timers import Timers
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError
from kschedd.store.log import DELETED, WatchEvent
from kschedd.store.times import duration_s, seconds, stamp
from kschedd.store.writes import Delete, Write, patch_of, status_of

RUN_SECONDS: Final = "kschedd.io/run-seconds"
TERMINATION_SECONDS: Final = "kschedd.io/termination-seconds"

_HEALTHY: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)
_RUNNING: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


def annotated_seconds(pod: Pod, name: str) -> float | None:
    """The number of seconds in an annotation; None if it is missing or invalid."""
    text = pod.annotations.get(name)
    try:
        wanted = float(text) if text is not None else None
    except (TypeError, ValueError):
        return None
    return wanted if wanted is not None and 0 <= wanted < float("inf") else None


def node_status(node: Node, at: str) -> dict[str, Any] | None:
    """The status fields that the kubelet sets on a node without a Ready condition; None if it has one."""
    if condition(node.status, "Ready") is not None:
        return None
    conditions = list(node.status.get("conditions") or ())
    stated = {entry.get("type") for entry in conditions}
    for type_, status, reason, message in _HEALTHY:
        if type_ not in stated:
            entry = {"type": type_, "status": status, "reason": reason, "message": message}
            conditions.append({**entry, "lastHeartbeatTime": at, "lastTransitionTime": at})
    added: dict[str, Any] = {"conditions": conditions}
    capacity, allocatable = node.status.get("capacity"), node.status.get("allocatable")
    if capacity and not allocatable:
        added["allocatable"] = capacity
    if allocatable and not capacity:
        added["capacity"] = allocatable
    return added


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


class Kubelets:
    """The kubelets of all embedded nodes."""

    name: Final = "kubelets"
    kinds: Final = frozenset(("Node", "Pod"))

    def __init__(self) -> None:
        self._ends: Timers[tuple[str, str]] = Timers()  # by pod: when it completes, or is removed
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        return self._ends.next

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        pods: dict[tuple[str, str], None] = {}
        nodes: dict[tuple[str, str], None] = {}
        for event in events:
            new = event.new
            if isinstance(new, Pod):
                if new.node_name and event.type != DELETED:
                    pods[new.namespace, new.name] = None
                elif event.type == DELETED:
                    self._ends.clear((new.namespace, new.name))
            elif isinstance(new, Node) and event.type != DELETED:
                was_ready = event.old is not None and is_true(event.old.status, "Ready")
                if not was_ready:
                    pods.update(dict.fromkeys((pod.namespace, pod.name) for pod in view.pods_on(new.name)))
                nodes["", new.name] = None
        pods.update(dict.fromkeys(self._ends.due(now)))
        writes = self.faults.each("Node", nodes, partial(self._register, view), now)
        return writes + self.faults.each("Pod", pods, partial(self._look_after, view), now)

    def _register(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        """Set what is missing on a node: its hostname label and the Ready condition."""
        node = view.find("Node", "", name)
        if not isinstance(node, Node):
            return []
        writes: list[Write] = []
        if HOSTNAME_LABEL not in node.labels:
            writes.append(patch_of(node, {"metadata": {"labels": {HOSTNAME_LABEL: node.name}}}))
        status = node_status(node, stamp(now))
        if status is not None:
            writes.append(status_of(node, status))
        return writes

    def _look_after(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        pod = view.find("Pod", namespace, name)
        return self._tend(pod, view, now) if isinstance(pod, Pod) and pod.node_name else []

    def _tend(self, pod: Pod, view: View, now: float) -> list[Write]:
        """The writes due for the pod now; sets the timer for a later action."""
        node = view.find("Node", "", pod.node_name)
        if not isinstance(node, Node) or not is_true(node.status, "Ready"):
            return []
        key = (pod.namespace, pod.name)
        if pod.deletion_timestamp:
            end = self._end_of_deletion(pod)
            if end > now:
                self._ends.set(key, end)
                return []
            self._ends.clear(key)
            return [Delete("Pod", pod.namespace, pod.name, pod.uid, grace_period_s=0)]
        if pod.phase in ("", "Pending"):
            run = annotated_seconds(pod, RUN_SECONDS)
            if run is not None:
                self._ends.set(key, now + run)
            return [status_of(pod, running_status(pod, node, stamp(now)))]
        run = annotated_seconds(pod, RUN_SECONDS) if pod.phase == "Running" else None
        # startTime has whole seconds only; a timer set when the pod started is more precise, so it takes precedence.
        if run is not None and key not in self._ends:
            end = (seconds(pod.start_time) if pod.start_time else now) + run
            if end <= now:
                self._ends.clear(key)
                return [status_of(pod, succeeded_status(pod, stamp(now)))]
            self._ends.set(key, end)
        return []

    def _end_of_deletion(self, pod: Pod) -> float:
        grace = pod.metadata.get("deletionGracePeriodSeconds") or 0
        end = seconds(pod.deletion_timestamp)
        quicker = annotated_seconds(pod, TERMINATION_SECONDS)
        return end if quicker is None else min(end, end - duration_s(grace) + quicker)

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Nothing to do: the object was changed or deleted meanwhile, and that event triggers the next reconcile."""
        return []
