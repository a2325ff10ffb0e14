"""The usage of simulated containers for metrics.k8s.io and autoscalers, from annotations or else from requests.

`kschedd.io/cpu-usage` and `kschedd.io/memory-usage` are the usage of the whole pod, which is divided evenly among its
containers; the first one gets the remainder. `kschedd.io/cpu-usage.app` is the usage of one container.

A simulated container without annotations is idle: it uses a hundredth of the CPU and half of the memory that it
requests. The usage of a pod from a dump is unknown: metrics.k8s.io shows the pod's requests, and autoscalers ignore the
pod.

Units: millicores, bytes.
"""

from collections.abc import Mapping
from typing import Final

from kschedd.api.container_ids import is_simulated
from kschedd.api.objects import Object, Raw
from kschedd.api.quantity import QuantityError, milli_value, value
from kschedd.api.simulation.annotations import PREFIX

CPU: Final = PREFIX + "cpu-usage"
MEMORY: Final = PREFIX + "memory-usage"
_RESOURCES: Final = ((CPU, "cpu"), (MEMORY, "memory"))
_IDLE: Final = {"cpu": 100, "memory": 2}  # request divided by the usage of an idle container, by resource
Usage = tuple[int, int]


def stated_usage(obj: Object) -> Usage | None:
    """Return the usage in the annotations of a pod or node; None if they are absent or invalid."""
    annotations = obj.metadata.get("annotations") or {}
    if CPU not in annotations and MEMORY not in annotations:
        return None
    cpu, memory = (_amount(annotations.get(key, "0"), resource) for key, resource in _RESOURCES)
    return None if cpu is None or memory is None else (cpu, memory)


def container_usage(pod: Object) -> dict[str, Usage]:
    """Return the usage of each container of a pod."""
    annotations: Mapping[str, str] = pod.metadata.get("annotations") or {}
    containers: list[Raw] = list(pod.spec.get("containers") or ())
    idle = is_simulated(pod.raw)
    found: dict[str, Usage] = {}
    for place, container in enumerate(containers):
        name = str(container.get("name") or "")
        requests = (container.get("resources") or {}).get("requests") or {}
        amounts = []
        for key, resource in _RESOURCES:
            amount = _amount(annotations.get(f"{key}.{name}"), resource)
            if amount is None and (whole := _amount(annotations.get(key), resource)) is not None:
                share = whole // len(containers)
                amount = whole - share * (len(containers) - 1) if place == 0 else share
            if amount is None:
                amount = _amount(requests.get(resource), resource) or 0
                amount = -(-amount // _IDLE[resource]) if idle else amount
            amounts.append(amount)
        found[name] = amounts[0], amounts[1]
    return found


def has_usage(pod: Object, annotation: str) -> bool:
    """Return whether the usage of this resource is known: an annotation states it, or the pod is simulated."""
    stated = any(name == annotation or name.startswith(f"{annotation}.") for name in pod.annotations)
    return stated or is_simulated(pod.raw)


def pod_usage(pod: Object) -> Usage:
    """Return the usage of a pod."""
    found = container_usage(pod).values()
    return sum(cpu for cpu, _ in found), sum(memory for _, memory in found)


def _amount(text: object, resource: str) -> int | None:
    if text is None:
        return None
    try:
        return milli_value(str(text)) if resource == "cpu" else value(str(text))
    except QuantityError:
        return None
