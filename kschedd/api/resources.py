"""What a pod asks of a node: the arithmetic of containers, init containers, sidecars, pod level and overhead.

Source: Kubernetes v1.34, component-helpers/resource/helpers.go (PodRequests) and scheduler/framework/types.go.
Sums are made exactly and rounded up once, as upstream adds quantities, not integers.

Units: CPU in millicores, every other resource in whole units (bytes, counts); Python ints, never floats. Within this
module sums are billionths of a unit (`Nanos`).
Errors: QuantityError from `kschedd.api.quantity` where a quantity cannot be read.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kschedd.api.quantity import MAX_INT64, milli_value, nanos, value

Raw = Mapping[str, Any]
Resources = dict[str, int]
Nanos = dict[str, int]

# What a container that requests nothing counts as when nodes are scored (schedutil.Default*Request).
DEFAULT_CPU_MILLI = 100
DEFAULT_MEMORY = 200 * 1024 * 1024

_UNIT = 10**9
_MILLI = _UNIT // 1000
_ASSUMED: Mapping[str, int] = {"cpu": DEFAULT_CPU_MILLI * _MILLI, "memory": DEFAULT_MEMORY * _UNIT}


def amounts(quantities: Mapping[str, Any] | None) -> Resources:
    """A ResourceList as integers: `{"cpu": "1"}` becomes `{"cpu": 1000}`."""
    if not quantities:
        return {}
    return {name: milli_value(q) if name == "cpu" else value(q) for name, q in quantities.items()}


def _exact(quantities: Mapping[str, Any] | None) -> Nanos:
    return {name: nanos(quantity) for name, quantity in quantities.items()} if quantities else {}


def _rounded(total: Nanos) -> Resources:
    """Up to whole units; never more than an int64 column holds."""
    return {name: min(-(-n // (_MILLI if name == "cpu" else _UNIT)), MAX_INT64) for name, n in total.items()}


def _add(total: Nanos, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Nanos, least: Mapping[str, int]) -> None:
    for name, amount in least.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def _pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _states_pod_level(spec: Raw) -> bool:
    stated = spec.get("resources") or {}
    return any(_pod_level(name) for part in ("requests", "limits") for name in stated.get(part) or ())


def _infeasible(status: Raw) -> bool:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodResizePending":
            return bool(condition.get("reason") == "Infeasible")
    return False


def _container_requests(container: Raw, reported: Mapping[str, Raw], infeasible: bool) -> Nanos:
    """Requests of one container; while it is resized in place, the most of spec, allocated and actual counts."""
    asked = _exact((container.get("resources") or {}).get("requests"))
    status = reported.get(container["name"]) if reported else None
    if status is None or status.get("resources") is None:
        return asked
    most: Nanos = {} if infeasible else asked
    _raise_to(most, _exact(status["resources"].get("requests")))
    _raise_to(most, _exact(status.get("allocatedResources")))
    return most


def _total(
    spec: Raw,
    reported: Mapping[str, Raw],
    infeasible: bool,
    assumed: Mapping[str, int] | None,
    *,
    pod_level: bool = True,
) -> Nanos:
    total: Nanos = {}
    for container in spec.get("containers") or ():
        asked = _container_requests(container, reported, infeasible)
        if assumed:
            asked = {**assumed, **asked}
        _add(total, asked)
    sidecars: Nanos = {}
    starting: Nanos = {}
    for container in spec.get("initContainers") or ():
        is_sidecar = container.get("restartPolicy") == "Always"
        asked = _container_requests(container, reported if is_sidecar else {}, infeasible)
        if assumed:
            asked = {**assumed, **asked}
        if is_sidecar:
            _add(total, asked)
            _add(sidecars, asked)
            _raise_to(starting, sidecars)
        else:
            together = dict(asked)
            _add(together, sidecars)
            _raise_to(starting, together)
    _raise_to(total, starting)
    if pod_level:
        for name, quantity in ((spec.get("resources") or {}).get("requests") or {}).items():
            if _pod_level(name):
                total[name] = nanos(quantity)
    _add(total, _exact(spec.get("overhead")))
    return total


def pod_requests(spec: Raw, status: Raw | None = None) -> Resources:
    """All that a pod asks of its node, resource by resource; a resource it never names is absent."""
    reported, infeasible = _reported(status)
    return _rounded(_total(spec, reported, infeasible, None))


def pod_nonzero_requests(spec: Raw, status: Raw | None = None) -> tuple[int, int]:
    """(cpu in millicores, memory in bytes) with the assumed least for containers that name none: what scores use."""
    reported, infeasible = _reported(status)
    assumed = _ASSUMED
    if _states_pod_level(spec):
        # Then the least is assumed only of what neither the pod nor any container names.
        named = _total(spec, reported, infeasible, None)
        assumed = {name: least for name, least in assumed.items() if name not in named}
    total = _rounded(_total(spec, reported, infeasible, assumed))
    return total.get("cpu", 0), total.get("memory", 0)


def pod_fit_score_requests(spec: Raw) -> Resources:
    """What a pod to be placed counts for in NodeResourcesFit's score.

    Unlike everywhere else, v1.34 leaves out what the pod states for itself as a whole; the sum of its containers
    counts.
    """
    return _rounded(_total(spec, {}, False, _ASSUMED, pod_level=False))


def resizes(status: Raw | None) -> bool:
    """Whether the status reports container resources, so that it counts beside the spec."""
    if not status or ("containerStatuses" not in status and "initContainerStatuses" not in status):
        return False
    lists: Sequence[Any] = (status.get("containerStatuses"), status.get("initContainerStatuses"))
    return any(s.get("resources") is not None for statuses in lists for s in statuses or ())


def _reported(status: Raw | None) -> tuple[dict[str, Raw], bool]:
    if not resizes(status):
        return {}, False
    assert status is not None
    reported = {}
    for statuses in (status.get("initContainerStatuses"), status.get("containerStatuses")):
        for entry in statuses or ():
            reported[entry.get("name") or ""] = entry
    return reported, _infeasible(status)
