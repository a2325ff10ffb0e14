"""In-place resizes: whether a kubelet can give the containers of a pod what its spec asks for now.

What a container has (allocated, and in force at once) stands in the pod's status; a resize asks for something else. It
is infeasible if the node could not bear it if it were empty, and deferred while others have what is lacking. Those
deferred are tried again when something of the node becomes free, and every three minutes.
Source: Kubernetes v1.34, pkg/kubelet/allocation/allocation_manager.go.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

import attrs

from kschedd.api.conditions import condition
from kschedd.api.nodes import Node
from kschedd.api.objects import Raw
from kschedd.api.pods import Pod
from kschedd.api.qos import qos_of_spec
from kschedd.api.resources import Resources, pod_requests
from kschedd.controllers.kubelets.admission import NodeUsage, failures, refusal_of, refused_by_system

PENDING: Final = "PodResizePending"
RETRY_S: Final = 180.0
_LISTS: Final = ("requests", "limits")
_STATUSES: Final = ("initContainerStatuses", "containerStatuses")
_NOTHING: Final[Raw] = {}


@attrs.frozen
class PendingResize:
    """Why a resize is not done, and when it is tried again."""

    reason: Literal["Infeasible", "Deferred"]
    message: str
    retry_at: float | None = None


def stated(container: Raw) -> Raw:
    """What the spec of a container asks for."""
    return container.get("resources") or _NOTHING


def is_resizable(container: Raw, *, init: bool) -> bool:
    return not init or container.get("restartPolicy") == "Always"


def report_of(resources: Raw) -> dict[str, Any]:
    """The fields of a container's status that say what it has."""
    requests = resources.get("requests")
    return {"allocatedResources": requests, "resources": resources} if requests else {"resources": resources}


def reported_in(entry: Raw) -> Raw | None:
    """What is allocated to a container by its entry in a status, if that says it."""
    resources = entry.get("resources")
    if resources is None or not entry.get("allocatedResources"):
        return resources
    return {**resources, "requests": entry["allocatedResources"]}


def reported(pod: Pod) -> dict[str, Raw]:
    """What is allocated to the containers of a pod by its status, as far as that says it."""
    entries = (entry for field in _STATUSES for entry in pod.status.get(field) or ())
    return {entry.get("name") or "": had for entry in entries if (had := reported_in(entry)) is not None}


def differ(had: Raw, wanted: Raw) -> bool:
    return any((had.get(part) or _NOTHING) != (wanted.get(part) or _NOTHING) for part in _LISTS)


def is_asked(pod: Pod, allocated: Mapping[str, Raw]) -> bool:
    """Whether the spec asks for anything else than its containers have."""
    spec = pod.pod_spec.raw
    return any(
        is_resizable(container, init=field == "initContainers")
        and container.get("name") in allocated
        and differ(allocated[container["name"]], stated(container))
        for field in ("initContainers", "containers")
        for container in spec.get(field) or ()
    )


def allocated_requests(pod: Pod, allocated: Mapping[str, Raw]) -> Resources:
    """What the pod requests of its node with what its containers have."""
    if not is_asked(pod, allocated):
        return pod.pod_spec.requests
    spec: dict[str, Any] = dict(pod.pod_spec.raw)
    for field in ("initContainers", "containers"):
        spec[field] = [
            {**container, "resources": allocated.get(container.get("name") or "", stated(container))}
            for container in spec.get(field) or ()
        ]
    return pod_requests(spec)


def refusal(pod: Pod, node: Node, others: NodeUsage, now: float) -> PendingResize | None:
    """Why the node cannot give the pod what it asks for now, if it cannot; `others` is what its other pods have."""
    asked, has = pod.pod_spec.requests, node.allocatable
    for resource in ("memory", "cpu"):
        wanted, capacity = asked.get(resource, 0), has.get(resource, 0)
        if wanted > capacity:
            why = f"Node didn't have enough capacity: {resource}, requested: {wanted}, capacity: {capacity}"
            return PendingResize("Infeasible", why)
    wanting = _not_refused_yet(pod)
    refused = refused_by_system(wanting, node)
    if refused is None and (found := failures(wanting, node, others)):
        refused = refusal_of(found)
    return None if refused is None else PendingResize("Deferred", refused.message, now + RETRY_S)


def _not_refused_yet(pod: Pod) -> Pod:
    """The pod as if nobody had said that what it asks for is infeasible: then that would not count."""
    conditions = pod.status.get("conditions") or ()
    status = {**pod.status, "conditions": [entry for entry in conditions if entry.get("type") != PENDING]}
    return attrs.evolve(pod, raw={**pod.raw, "status": status})


def restarts(container: Raw, had: Raw) -> bool:
    """Whether a container is started again to get what it asks for, instead of what it had."""
    changed = {
        resource
        for part in _LISTS
        for resource in ("cpu", "memory")
        if (stated(container).get(part) or _NOTHING).get(resource) != (had.get(part) or _NOTHING).get(resource)
    }
    policies = container.get("resizePolicy") or ()
    return any(each.get("restartPolicy") == "RestartContainer" and each["resourceName"] in changed for each in policies)


def order(pod: Pod, allocated: Mapping[str, Raw]) -> tuple[bool, int, bool, str]:
    """The order in which deferred resizes are tried: those first that need no more than they have, then by priority and
    by QoS class, and the one first that has waited longest."""
    has, asks = allocated_requests(pod, allocated), pod.pod_spec.requests
    grows = any(asks.get(resource, 0) > has.get(resource, 0) for resource in ("cpu", "memory"))
    waiting = condition(pod.status, PENDING)
    since = "~" if waiting is None else waiting.get("lastTransitionTime") or ""
    return grows, -pod.priority, qos_of_spec(pod.pod_spec.raw) != "Guaranteed", since
