"""The quality-of-service class of a pod, which follows from its requests and limits of cpu and memory.

Source: Kubernetes v1.34, pkg/apis/core/v1/helper/qos/qos.go (ComputePodQOS, with PodLevelResources).
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from kschedd.api.quantity import nanos

Qos = Literal["Guaranteed", "Burstable", "BestEffort"]

_COUNTED: Final = ("cpu", "memory")


def qos_of_spec(spec: Mapping[str, Any]) -> Qos:
    """Return the class of a pod with this spec, which must have its defaults.

    If the pod has pod-level resources, only these are considered.
    """
    if spec.get("resources") is not None:
        stated = [spec["resources"]]
    else:
        containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
        stated = [container.get("resources") or {} for container in containers]
    requests = dict.fromkeys(_COUNTED, 0)
    limits = dict.fromkeys(_COUNTED, 0)
    limited_everywhere = True
    for resources in stated:
        requested = resources.get("requests") or {}
        allowed = resources.get("limits") or {}
        for name in _COUNTED:
            requests[name] += max(0, nanos(requested[name])) if name in requested else 0
            limit = max(0, nanos(allowed[name])) if name in allowed else 0
            limits[name] += limit
            limited_everywhere = limited_everywhere and limit > 0
    if not any(requests.values()) and not any(limits.values()):
        return "BestEffort"
    # Guaranteed requires equal requests and limits, so a limit without an equal request excludes it.
    return "Guaranteed" if limited_everywhere and requests == limits else "Burstable"
