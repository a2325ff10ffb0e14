"""The quality-of-service class of a pod, from its requests and limits of cpu and memory.

Source: Kubernetes v1.34, component-helpers and apis/core/helper/qos/qos.go (ComputePodQOS).
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kschedd.api.quantity import nanos

Raw = Mapping[str, Any]

GUARANTEED: Final = "Guaranteed"
BURSTABLE: Final = "Burstable"
BEST_EFFORT: Final = "BestEffort"
_COUNTED: Final = ("cpu", "memory")


def _positive(quantities: Any) -> dict[str, int]:
    if not quantities:
        return {}
    amounts = {name: nanos(quantities[name]) for name in _COUNTED if name in quantities}
    return {name: amount for name, amount in amounts.items() if amount > 0}


def _stated(spec: Raw) -> Iterable[Raw]:
    """The resource lists that count: the pod's own if it has them, else those of all its containers."""
    if spec.get("resources"):
        return (spec["resources"],)
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    return [container.get("resources") or {} for container in containers]


def qos_class(spec: Raw) -> str:
    """Guaranteed, Burstable or BestEffort, for a spec that was defaulted (limits without requests imply them)."""
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    everywhere = True
    for stated in _stated(spec):
        for name, amount in _positive(stated.get("requests")).items():
            requests[name] = requests.get(name, 0) + amount
        limited = _positive(stated.get("limits"))
        for name, amount in limited.items():
            limits[name] = limits.get(name, 0) + amount
        everywhere = everywhere and len(limited) == len(_COUNTED)
    if not requests and not limits:
        return BEST_EFFORT
    return GUARANTEED if everywhere and requests == limits else BURSTABLE
