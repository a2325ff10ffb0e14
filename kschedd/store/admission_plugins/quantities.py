"""Sums of resource lists as text, in kube-apiserver's notation.

Source: Kubernetes v1.34, apimachinery/pkg/api/resource/quantity.go (Add); component-helpers/resource/helpers.go
(PodRequests, PodLimits).
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from kschedd.api.quantity import format_nanos, nanos, style
from kschedd.store.admission_plugins.attributes import Raw

ResourceList = dict[str, Any]
Part = Literal["requests", "limits"]
_POD_LEVEL: Final = ("cpu", "memory")


def plus(one: Any, other: Any) -> str:
    """Return the sum in the format of `one`, or of `other` if `one` is 0."""
    return format_nanos(nanos(one) + nanos(other), style(one) if nanos(one) else style(other))


def add(total: ResourceList, more: Mapping[str, Any]) -> None:
    for name, quantity in more.items():
        total[name] = plus(total[name], quantity) if name in total else quantity


def raise_to(total: ResourceList, least: Mapping[str, Any]) -> None:
    for name, quantity in least.items():
        if name not in total or nanos(quantity) > nanos(total[name]):
            total[name] = quantity


def _stated(holder: Raw, part: Part) -> Mapping[str, Any]:
    return (holder.get("resources") or {}).get(part) or {}


def pod_total(spec: Raw, part: Part, *, overhead: bool = False) -> ResourceList:
    """Return a pod's total requests or limits, including sidecars, init containers, pod-level values and overhead."""
    total: ResourceList = {}
    for container in spec.get("containers") or ():
        add(total, _stated(container, part))
    sidecars: ResourceList = {}
    starting: ResourceList = {}
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            add(total, _stated(container, part))
            add(sidecars, _stated(container, part))
            raise_to(starting, sidecars)
        else:
            together = dict(_stated(container, part))
            add(together, sidecars)
            raise_to(starting, together)
    raise_to(total, starting)
    for name, quantity in _stated(spec, part).items():
        if name in _POD_LEVEL or name.startswith("hugepages-"):
            total[name] = quantity
    if overhead:
        more = spec.get("overhead") or {}
        add(total, more if part == "requests" else {name: more[name] for name in more if name in total})
    return total
