"""Resource requests of a pod: the total of its containers, init containers, sidecars, pod-level resources and overhead.

During a resize, the resources reported in the pod's status are included. `ResizeRules` defines, for each Kubernetes
version, how these resources are included.

Source: Kubernetes v1.34, v1.36 and v1.37, component-helpers/resource/helpers.go (PodRequests) and
scheduler/framework/types.go. Sums are exact and rounded up once, because upstream adds quantities, not integers. A sum
beyond int64 is computed again with the arithmetic of Kubernetes (`Amount`), and overflows in the same way: the result
may be negative or 0.

Units: CPU in millicores, every other resource in whole units (bytes, counts); Python ints, never floats. Within this
module, sums are in billionths of a unit. Errors: QuantityError from `kschedd.api.quantity` if a quantity cannot be
parsed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import attrs

from kschedd.api.quantity import MAX_INT64, Amount, amount, milli_value, nanos, value

Raw = Mapping[str, Any]
Resources = dict[str, int]
_N = TypeVar("_N", int, Amount)
_Read = Callable[[Any], _N]

# requests assumed in scoring for a container without requests (schedutil.Default*Request)
DEFAULT_CPU_MILLI = 100
DEFAULT_MEMORY = 200 * 1024 * 1024

PLAIN_AMOUNT = 1 << 56
"""Amounts from 0 to this limit fit an int64 even when multiplied by a hundred."""

_UNIT = 10**9
_MILLI = _UNIT // 1000
_NOTHING: Final[Raw] = {}
_ASSUMED: Mapping[str, str] = {"cpu": f"{DEFAULT_CPU_MILLI}m", "memory": str(DEFAULT_MEMORY)}


def amounts(quantities: Mapping[str, Any] | None) -> Resources:
    """Return a ResourceList as integers: `{"cpu": "1"}` becomes `{"cpu": 1000}`."""
    if not quantities:
        return {}
    return {name: milli_value(q) if name == "cpu" else value(q) for name, q in quantities.items()}


def _exact(quantities: Mapping[str, Any] | None, read: _Read[_N]) -> dict[str, _N]:
    return {name: read(quantity) for name, quantity in quantities.items()} if quantities else {}


def _add(total: dict[str, _N], more: Mapping[str, _N]) -> None:
    for name, part in more.items():
        total[name] = total[name] + part if name in total else part


def _raise_to(total: dict[str, _N], least: Mapping[str, _N]) -> None:
    for name, other in least.items():
        if name not in total or other > total[name]:
            total[name] = other


def _pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _states_pod_level(spec: Raw) -> bool:
    stated = spec.get("resources") or {}
    return any(_pod_level(name) for part in ("requests", "limits") for name in stated.get(part) or ())


@attrs.frozen
class ResizeRules:
    """The rules (`kschedd.config.versions.rules`) for the resources in a pod's status."""

    pod_level: bool = True
    """Feature pod_level_resize: pod-level resources in a status count in the same way as those of containers."""
    of_sums: bool = False
    """Feature resize_max_of_sums: the maximum of the pod's sums counts, not the sum of each container's maximum."""


DEFAULT_RESIZE: Final = ResizeRules()


@attrs.frozen
class _Resize:
    """The resources in a pod's status, which differ from the resources in the spec during an in-place resize."""

    containers: Mapping[str, Raw] = attrs.field(factory=dict)
    """Statuses of containers by name."""
    pod: Raw | None = None
    """The status, if it has pod-level resources that count."""
    infeasible: bool = False
    of_sums: bool = False


_NO_RESIZE: Final = _Resize()


def why_resize_pends(status: Raw) -> str:
    """Return the reason why a resize of the pod is pending, or ""."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodResizePending":
            return str(condition.get("reason") or "")
    return ""


def _effective(requests: dict[str, _N], status: Raw, infeasible: bool, read: _Read[_N]) -> dict[str, _N]:
    """Return the maximum of requested, allocated and actual resources; infeasible requests are ignored."""
    most = {} if infeasible else requests
    _raise_to(most, _exact(status["resources"].get("requests"), read))
    _raise_to(most, _exact(status.get("allocatedResources"), read))
    return most


def _container_requests(container: Raw, resize: _Resize, assumed: Mapping[str, str], read: _Read[_N]) -> dict[str, _N]:
    """Return a container's requests; during an in-place resize, the maximum of spec, allocated and actual resources."""
    requests = _exact((container.get("resources") or {}).get("requests"), read)
    status = resize.containers.get(container["name"]) if resize.containers else None
    if status is not None and status.get("resources") is not None:
        requests = _effective(requests, status, resize.infeasible, read)
    return {**_exact(assumed, read), **requests} if assumed else requests


def _aggregate(spec: Raw, requests_of: Callable[[Raw, bool], dict[str, _N]]) -> dict[str, _N]:
    """Return the total requests of the containers, or the requests of an init container if they are higher.

    `requests_of` is called with a container, and with True if the container runs as long as the pod.
    """
    total: dict[str, _N] = {}
    for container in spec.get("containers") or ():
        _add(total, requests_of(container, True))
    if init_containers := spec.get("initContainers"):
        sidecars: dict[str, _N] = {}
        starting: dict[str, _N] = {}
        for container in init_containers:
            is_sidecar = container.get("restartPolicy") == "Always"
            requests = requests_of(container, is_sidecar)
            if is_sidecar:
                _add(total, requests)
                _add(sidecars, requests)
                _raise_to(starting, sidecars)
            else:
                together = dict(requests)
                _add(together, sidecars)
                _raise_to(starting, together)
        _raise_to(total, starting)
    return total


def _allocated(container: Raw, resize: _Resize) -> Raw | None:
    allocated: Raw | None = resize.containers.get(container["name"], _NOTHING).get("allocatedResources")
    return _requests(container, resize) if allocated is None else allocated


def _in_force(container: Raw, resize: _Resize) -> Raw | None:
    reported = resize.containers.get(container["name"], _NOTHING).get("resources") or _NOTHING
    requests: Raw | None = reported.get("requests")
    return _allocated(container, resize) if requests is None else requests


def _requests(container: Raw, resize: _Resize) -> Raw | None:
    """Return a container's requests; None if the node reports that the requests are infeasible."""
    requests: Raw | None = (container.get("resources") or _NOTHING).get("requests")
    return None if resize.infeasible else requests


def _most_of_sums(read: _Read[_N], spec: Raw, resize: _Resize, assumed: Mapping[str, str]) -> dict[str, _N]:
    """Return the maximum of the containers' total requested, total allocated and total actual resources.

    Infeasible requests are ignored.
    """

    def summed(quantities_of: Callable[[Raw, _Resize], Raw | None]) -> dict[str, _N]:
        def requests_of(container: Raw, _: bool) -> dict[str, _N]:
            found = _exact(quantities_of(container, resize), read)
            return {**_exact(assumed, read), **found} if assumed else found

        return _aggregate(spec, requests_of)

    level = resize.pod or _NOTHING
    allocated, in_force = level.get("allocatedResources"), (level.get("resources") or _NOTHING).get("requests")
    if allocated is not None and in_force is not None:
        most = _exact(allocated, read)
        _raise_to(most, _exact(in_force, read))
    else:
        most = summed(_allocated)
        _raise_to(most, summed(_in_force))
    if not resize.infeasible:
        _raise_to(most, summed(_requests))
    return most


def _total(
    read: _Read[_N],
    spec: Raw,
    resize: _Resize,
    assumed: Mapping[str, str],
    pod_level: bool = True,
) -> dict[str, _N]:
    if resize.of_sums:
        total = _most_of_sums(read, spec, resize, assumed)
    else:
        total = _aggregate(
            spec,
            lambda container, lasting: _container_requests(container, resize if lasting else _NO_RESIZE, assumed, read),
        )
    if pod_level and (stated := (spec.get("resources") or {}).get("requests")):
        level = _exact(stated, read)
        if resize.pod is not None:
            level = _effective(level, resize.pod, resize.infeasible, read)
        total.update({name: n for name, n in level.items() if _pod_level(name)})
    if overhead := spec.get("overhead"):
        _add(total, _exact(overhead, read))
    return total


def _sums(spec: Raw, resize: _Resize, assumed: Mapping[str, str], *, pod_level: bool = True) -> Resources:
    """Return the totals in whole units (cpu in millicores), rounded up."""
    exact = _total(nanos, spec, resize, assumed, pod_level)
    total = {name: -(-n // (_MILLI if name == "cpu" else _UNIT)) for name, n in exact.items()}
    if all([n <= MAX_INT64 for n in total.values()]):
        return total
    held = _total(amount, spec, resize, assumed, pod_level)
    return {name: sum_.in_units_of(-3 if name == "cpu" else 0) for name, sum_ in held.items()}


def pod_requests(spec: Raw, status: Raw | None = None, rules: ResizeRules = DEFAULT_RESIZE) -> Resources:
    """Return a pod's total requests by resource, without resources that it does not request."""
    return _sums(spec, _resize(spec, status, rules), {})


def pod_nonzero_requests(spec: Raw, status: Raw | None = None, rules: ResizeRules = DEFAULT_RESIZE) -> tuple[int, int]:
    """Return (cpu in millicores, memory in bytes) for scoring, with defaults for containers without requests."""
    resize = _resize(spec, status, rules)
    assumed = _ASSUMED
    if _states_pod_level(spec):
        # With pod-level resources, defaults apply only to resources that neither the pod nor a container requests.
        named = _total(nanos, spec, resize, {})
        assumed = {name: least for name, least in assumed.items() if name not in named}
    total = _sums(spec, resize, assumed)
    return total.get("cpu", 0), total.get("memory", 0)


def pod_fit_score_requests(spec: Raw) -> Resources:
    """Return the requests of the incoming pod for the score of NodeResourcesFit.

    Only for this score, v1.34 ignores pod-level resources and uses the total of the containers.
    """
    return _sums(spec, _NO_RESIZE, _ASSUMED, pod_level=False)


def states_cpu_and_memory(spec: Raw) -> bool:
    """Return whether all containers request cpu and memory, and the pod has no pod-level resources.

    For such a pod no default request applies, and the three totals of this module are equal.
    """
    if spec.get("resources"):
        return False
    for containers in (spec.get("containers"), spec.get("initContainers")):
        for container in containers or ():
            requests = (container.get("resources") or {}).get("requests") or {}
            if "cpu" not in requests or "memory" not in requests:
                return False
    return True


def resizes(spec: Raw, status: Raw | None) -> bool:
    """Return whether the status reports resources that differ from the spec's requests, so that both count.

    A kubelet reports the resources of each container; they usually equal the requested resources.
    """
    if not status:
        return False
    if status.get("resources") is not None or why_resize_pends(status) == "Infeasible":
        return True
    if "containerStatuses" not in status and "initContainerStatuses" not in status:
        return False
    return _differs(spec.get("containers"), status.get("containerStatuses")) or _differs(
        spec.get("initContainers"), status.get("initContainerStatuses")
    )


def _differs(containers: Sequence[Raw] | None, statuses: Sequence[Raw] | None) -> bool:
    by_name = {each.get("name"): each for each in reversed(containers or ())}
    for entry in statuses or ():
        reported, allocated = entry.get("resources"), entry.get("allocatedResources")
        if reported is None and allocated is None:
            continue
        container = by_name.get(entry.get("name"))
        if container is None:
            continue
        requests = (container.get("resources") or _NOTHING).get("requests") or _NOTHING
        if (allocated is not None and allocated != requests) or (
            reported is not None and (reported.get("requests") or _NOTHING) != requests
        ):
            return True
    return False


def _resize(spec: Raw, status: Raw | None, rules: ResizeRules) -> _Resize:
    if not resizes(spec, status):
        return _NO_RESIZE
    assert status is not None
    reported: dict[str, Raw] = {}
    for statuses in (status.get("initContainerStatuses"), status.get("containerStatuses")):
        for entry in statuses or ():
            reported[entry.get("name") or ""] = entry
    level = status if rules.pod_level and status.get("resources") is not None else None
    return _Resize(reported, level, why_resize_pends(status) == "Infeasible", rules.of_sums)
