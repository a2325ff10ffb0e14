"""In-place resizes: the kubelet's decision whether to allocate the resources that a pod's spec requests.

The pod's status contains the allocated resources of each container. Allocations take effect immediately. A resize is
pending while the pod's spec requests different resources. A resize is infeasible if even the empty node could not
provide the resources, and deferred while other pods use them. Deferred resizes are retried when resources of the node
are freed, and every three minutes. Source: Kubernetes v1.34, pkg/kubelet/allocation/allocation_manager.go.
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
    """The reason why a resize is pending, and the time of the next attempt."""

    reason: Literal["Infeasible", "Deferred"]
    message: str
    retry_at: float | None = None


def stated(container: Raw) -> Raw:
    """Return the resources in a container's spec."""
    return container.get("resources") or _NOTHING


def is_resizable(container: Raw, *, init: bool) -> bool:
    return not init or container.get("restartPolicy") == "Always"


def report_of(resources: Raw) -> dict[str, Any]:
    """Return the fields of a container's status that contain its resources."""
    requests = resources.get("requests")
    return {"allocatedResources": requests, "resources": resources} if requests else {"resources": resources}


def reported_in(entry: Raw) -> Raw | None:
    """Return the resources allocated to a container according to its status entry, or None if there are none."""
    resources = entry.get("resources")
    if resources is None or not entry.get("allocatedResources"):
        return resources
    return {**resources, "requests": entry["allocatedResources"]}


def reported(pod: Pod) -> dict[str, Raw]:
    """Return the resources allocated to a pod's containers, if the pod's status contains them."""
    entries = (entry for field in _STATUSES for entry in pod.status.get(field) or ())
    return {entry.get("name") or "": had for entry in entries if (had := reported_in(entry)) is not None}


def differ(had: Raw, wanted: Raw) -> bool:
    return any((had.get(part) or _NOTHING) != (wanted.get(part) or _NOTHING) for part in _LISTS)


def is_requested(pod: Pod, allocated: Mapping[str, Raw]) -> bool:
    """Return whether the spec requests resources that differ from those of the pod's containers."""
    spec = pod.pod_spec.raw
    return any(
        is_resizable(container, init=field == "initContainers")
        and container.get("name") in allocated
        and differ(allocated[container["name"]], stated(container))
        for field in ("initContainers", "containers")
        for container in spec.get(field) or ()
    )


def allocated_requests(pod: Pod, allocated: Mapping[str, Raw]) -> Resources:
    """Return the pod's requests, based on the resources allocated to its containers."""
    if not is_requested(pod, allocated):
        return pod.pod_spec.requests
    spec: dict[str, Any] = dict(pod.pod_spec.raw)
    for field in ("initContainers", "containers"):
        spec[field] = [
            {**container, "resources": allocated.get(container.get("name") or "", stated(container))}
            for container in spec.get(field) or ()
        ]
    return pod_requests(spec)


def refusal(pod: Pod, node: Node, others: NodeUsage, now: float) -> PendingResize | None:
    """Return why the node cannot provide the requested resources now, or None if it can.

    `others` is the usage of the node's other pods.
    """
    requested, has = pod.pod_spec.requests, node.allocatable
    for resource in ("memory", "cpu"):
        wanted, capacity = requested.get(resource, 0), has.get(resource, 0)
        if wanted > capacity:
            why = f"Node didn't have enough capacity: {resource}, requested: {wanted}, capacity: {capacity}"
            return PendingResize("Infeasible", why)
    wanting = _not_refused_yet(pod)
    refused = refused_by_system(wanting, node)
    if refused is None and (found := failures(wanting, node, others)):
        refused = refusal_of(found)
    return None if refused is None else PendingResize("Deferred", refused.message, now + RETRY_S)


def _not_refused_yet(pod: Pod) -> Pod:
    """Return the pod without its PodResizePending condition, so that an infeasible resize is evaluated again."""
    conditions = pod.status.get("conditions") or ()
    status = {**pod.status, "conditions": [entry for entry in conditions if entry.get("type") != PENDING]}
    return attrs.evolve(pod, raw={**pod.raw, "status": status})


def restarts(container: Raw, had: Raw) -> bool:
    """Return whether a container must be restarted for a change to the requested resources."""
    changed = {
        resource
        for part in _LISTS
        for resource in ("cpu", "memory")
        if (stated(container).get(part) or _NOTHING).get(resource) != (had.get(part) or _NOTHING).get(resource)
    }
    policies = container.get("resizePolicy") or ()
    return any(each.get("restartPolicy") == "RestartContainer" and each["resourceName"] in changed for each in policies)


def order(pod: Pod, allocated: Mapping[str, Raw]) -> tuple[bool, int, bool, str]:
    """Return the sort key of deferred resizes.

    Resizes that need no additional resources are first; then the order is by priority, QoS class and waiting time.
    """
    has, asks = allocated_requests(pod, allocated), pod.pod_spec.requests
    grows = any(asks.get(resource, 0) > has.get(resource, 0) for resource in ("cpu", "memory"))
    waiting = condition(pod.status, PENDING)
    since = "~" if waiting is None else waiting.get("lastTransitionTime") or ""
    return grows, -pod.priority, qos_of_spec(pod.pod_spec.raw) != "Guaranteed", since
