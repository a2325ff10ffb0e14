"""The number of replicas that a resource metric of a HorizontalPodAutoscaler proposes.

Plain functions of pods and the time. The usage of pods is the usage that metrics.k8s.io shows
(`kschedd.api.simulation.usage`). A pod from a dump has metrics only if it has an annotation: without metrics, its
workload keeps its replicas. Units: millicores, or thousandths of a byte. Source: Kubernetes v1.37,
controller/podautoscaler/replica_calculator.go, metrics/utilization.go.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.conditions import condition
from kschedd.api.pods import Pod
from kschedd.api.quantity import milli_value
from kschedd.api.simulation.usage import CPU, MEMORY, container_usage, has_usage
from kschedd.api.text.times import seconds
from kschedd.errors import KscheddError

Raw = Mapping[str, Any]
_TOLERANCE: Final = 0.1
_INITIALIZATION_S: Final = 300.0
_READINESS_DELAY_S: Final = 30.0
_WINDOW_S: Final = 30.0
_PLACES: Final = {"cpu": 0, "memory": 1}
_ANNOTATIONS: Final = {"cpu": CPU, "memory": MEMORY}


@attrs.define(eq=False)
class MetricError(KscheddError):
    """A metric that cannot be computed now."""

    why: str

    def __str__(self) -> str:
        return self.why


@attrs.frozen
class Proposal:
    replicas: int
    utilization: int | None  # percent of the requests
    average: int


def propose(pods: Sequence[Pod], current: int, resource: str, container: str, target: Raw, now: float) -> Proposal:
    """Return the proposal for this target; `container` "" means all containers. Raises MetricError."""
    usage = {pod.name: used for pod in pods if (used := _usage(pod, resource, container)) is not None}
    if not usage:
        raise MetricError(
            f"unable to get metrics for resource {resource}: no metrics returned from resource metrics API"
        )
    ready, unready, missing = 0, [], []
    for pod in pods:
        if pod.deletion_timestamp or pod.phase == "Failed":
            usage.pop(pod.name, None)
        elif pod.phase == "Pending" or (pod.name in usage and resource == "cpu" and _is_unready(pod, now)):
            usage.pop(pod.name, None)
            unready.append(pod.name)
        elif pod.name not in usage:
            missing.append(pod.name)
        else:
            ready += 1
    if not usage:
        raise MetricError("did not receive metrics for targeted pods (pods might be unready)")
    average = target.get("averageValue")
    goal = milli_value(str(average)) if average is not None else int(target.get("averageUtilization") or 0)
    requests = {} if average is not None else {pod.name: _request(pod, resource, container) for pod in pods}

    def ratio() -> tuple[float, int | None, int]:
        total = sum(usage.values())
        if average is not None:
            return total / len(usage) / goal, None, total // len(usage)
        requested = sum(requests[name] for name in usage)
        if not requested:
            raise MetricError("no metrics returned matched known pods")
        percent = total * 100 // requested
        return percent / goal, percent, total // len(usage)

    first, percent, mean = ratio()
    same = Proposal(current, percent, mean)
    up_with_unready = bool(unready) and first > 1
    if not up_with_unready and not missing:
        return same if _tolerated(first) else Proposal(math.ceil(first * ready), percent, mean)
    for name in missing:
        if first < 1:
            usage[name] = goal if average is not None else requests[name] * max(100, goal) // 100
        elif first > 1:
            usage[name] = 0
    if up_with_unready:
        usage.update(dict.fromkeys(unready, 0))
    second, _, _ = ratio()
    if _tolerated(second) or (first < 1 < second) or (second < 1 < first):
        return same
    replicas = math.ceil(second * len(usage))
    if (second < 1 and replicas > current) or (second > 1 and replicas < current):
        return same
    return Proposal(replicas, percent, mean)


def _tolerated(ratio: float) -> bool:
    return 1 - _TOLERANCE <= ratio <= 1 + _TOLERANCE


def _usage(pod: Pod, resource: str, container: str) -> int | None:
    """Return the usage of the pod; None if the pod does not run or its usage is unknown."""
    key = _ANNOTATIONS.get(resource)
    if key is None or pod.phase != "Running" or not has_usage(pod, key):
        return None
    found = container_usage(pod)
    used = [each for name, each in found.items() if container in ("", name)]
    total = sum(each[_PLACES[resource]] for each in used)
    return total if resource == "cpu" else total * 1000


def _is_unready(pod: Pod, now: float) -> bool:
    found = condition(pod.status, "Ready")
    started = pod.status.get("startTime")
    if found is None or not started:
        return True
    since, begun = found.get("lastTransitionTime"), seconds(started)
    changed = seconds(since) if since else 0.0
    if begun + _INITIALIZATION_S > now:
        return found.get("status") == "False" or now < changed + _WINDOW_S
    return found.get("status") == "False" and begun + _READINESS_DELAY_S > changed


def _request(pod: Pod, resource: str, container: str) -> int:
    spec = pod.pod_spec.raw
    sidecars = [each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"]
    total = 0
    for each in (*(spec.get("containers") or ()), *sidecars):
        if container in ("", each.get("name")):
            requests = (each.get("resources") or {}).get("requests") or {}
            if resource not in requests:
                raise MetricError(f"missing request for {resource} in container {each.get('name')} of Pod {pod.name}")
            total += milli_value(str(requests[resource]))
    return total
