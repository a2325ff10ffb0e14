"""Validation of resource lists: allowed resource names and quantities.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go (ValidateResourceRequirements and the functions that it
calls) and pkg/apis/core/helper/helpers.go. The functions require resource lists that match the schema and have
quantities that can be parsed.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from kschedd.api.quantity import QuantityError, as_stored, canonical, milli_value, nanos
from kschedd.api.schemas.fields import ENOUGH, FieldError, duplicate, forbidden, invalid, required, unsupported
from kschedd.api.selecting.names import dns_label, qualified_name
from kschedd.api.selecting.resource_names import is_extended

Raw = dict[str, Any]
Faults = list[FieldError]

NOT_NEGATIVE: Final = "must be greater than or equal to 0"
_UNIT: Final = 10**9
_FOR_CONTAINERS: Final = frozenset(("cpu", "memory", "ephemeral-storage"))
_COUNTED: Final = frozenset(
    (
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    )
)
_STANDARD: Final = (
    _FOR_CONTAINERS
    | _COUNTED
    | {"storage", "requests.storage"}
    | {f"{side}.{name}" for side in ("requests", "limits") for name in _FOR_CONTAINERS}
)


def is_huge_page(name: str) -> bool:
    return name.startswith("hugepages-")


def is_native(name: str) -> bool:
    """Return whether the resource has no prefix or is in the kubernetes.io namespace."""
    return "/" not in name or "kubernetes.io/" in name


def may_overcommit(name: str) -> bool:
    """Return whether a container may request less of this resource than its limit."""
    return is_native(name) and not is_huge_page(name)


@lru_cache(1 << 10)
def resource_name_faults(name: str) -> tuple[str, ...]:
    """Return the errors of a resource name, in any resource list."""
    if wrong := qualified_name(name):
        return wrong
    if "/" not in name and name not in _STANDARD and not is_huge_page(name):
        return ("must be a standard resource type or fully qualified",)
    return ()


@lru_cache(1 << 10)
def container_resource_faults(name: str) -> tuple[str, ...]:
    """Return the errors of a resource name in the requests or limits of a container."""
    wrong = resource_name_faults(name)
    if "/" not in name:
        if name not in _FOR_CONTAINERS and not is_huge_page(name):
            return (*wrong, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        return (*wrong, "doesn't follow extended resource name standard")
    return wrong


_NOT_FOR_QUOTA: Final = frozenset(("storage",))
_FOR_QUOTA: Final = _STANDARD - _NOT_FOR_QUOTA


def is_standard_for_quota(name: str) -> bool:
    return name in _FOR_QUOTA or is_huge_page(name) or is_huge_page(name.removeprefix("requests."))


def is_whole(name: str) -> bool:
    """Return whether the resource has only whole units."""
    return name in _COUNTED or is_extended(name)


def validate_amount(name: str, quantity: Any, path: str, faults: Faults) -> None:
    """Validate an entry of a ResourceList: not negative, and an integer if the resource has only whole units."""
    if nanos(quantity) < 0:
        faults.append(invalid(path, quantity, NOT_NEGATIVE))
    # In upstream, an amount that exceeds 64 bits in thousandths overflows, and is then treated as a fraction.
    if is_whole(name) and milli_value(quantity) % 1000:
        faults.append(invalid(path, quantity, "must be an integer"))


def validate_resource_list(resources: Raw, path: str, faults: Faults) -> None:
    """Validate the amounts of a node's capacity, which may contain any resource names."""
    for name, quantity in resources.items():
        validate_amount(name, quantity, f"{path}.{name}", faults)


NameRule = Callable[[str, str], Faults]


def _container_name(name: str, path: str) -> Faults:
    return [invalid(path, name, why) for why in container_resource_faults(name)]


def validate_requirements(
    resources: Raw,
    path: str,
    faults: Faults,
    claims: frozenset[str] = frozenset(),
    rule: NameRule = _container_name,
) -> None:
    """Validate requests, limits and claims of a container.

    `claims` contains the names of the pod's resource claims; `rule` validates the resource names.
    """
    limits = resources.get("limits") or {}
    requests = resources.get("requests") or {}
    for name, quantity in limits.items():
        _validate_requested(name, quantity, f"{path}.limits", rule, faults)
    for name, quantity in requests.items():
        _validate_requested(name, quantity, f"{path}.requests", rule, faults)
        limit = limits.get(name)
        if limit is None:
            if not may_overcommit(name):
                faults.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
        elif not may_overcommit(name) and nanos(quantity) != nanos(limit):
            why = f"must be equal to {name} limit of {as_stored(limit)}"
            faults.append(invalid(f"{path}.requests", as_stored(quantity), why))
        elif nanos(quantity) > nanos(limit):
            why = f"must be less than or equal to {name} limit of {as_stored(limit)}"
            faults.append(invalid(f"{path}.requests", as_stored(quantity), why))
    requested = {**limits, **requests}
    if any(map(is_huge_page, requested)) and not any(name in requested for name in ("cpu", "memory")):
        faults.append(forbidden(path, "HugePages require cpu or memory"))
    _validate_claims(resources, path, faults, claims)


def _validate_requested(name: str, quantity: Any, path: str, rule: NameRule, faults: Faults) -> None:
    here = f"{path}[{name}]"
    faults += rule(name, here)
    amount = nanos(quantity)
    if amount < 0 or (amount % _UNIT and is_whole(name)):
        validate_amount(name, quantity, here, faults)
    if is_huge_page(name) and not _whole_pages(name, amount):
        text = as_stored(quantity)
        faults.append(invalid(here, text, f"{text} is not positive integer multiple of {name}"))


@lru_cache(1 << 8)
def _page_size(name: str) -> int:
    """Return the page size in bytes, or 0 if the name does not contain a valid page size."""
    try:
        size = nanos(name.removeprefix("hugepages-"))
    except QuantityError:
        return 0
    return 0 if size <= 0 or size % _UNIT else size // _UNIT


def _whole_pages(name: str, amount: int) -> bool:
    size = _page_size(name)
    return bool(size) and -(-amount // _UNIT) % size == 0


def _validate_claims(resources: Raw, path: str, faults: Faults, claims: frozenset[str]) -> None:
    seen: set[str] = set()
    parted: set[str] = set()  # names of claims of which one request is referenced
    for index, claim in enumerate(resources.get("claims") or ()):
        name, request = claim.get("name") or "", claim.get("request") or ""
        here = f"{path}.claims[{index}]"
        if not name:
            faults.append(required(here))
            continue
        key = f"{name}/{request}" if request else name
        faults += [invalid(f"{here}.request", request, why) for why in dns_label(request) if request]
        if name in seen or (not request and name in parted):
            faults.append(duplicate(here, name))  # the list references both the whole claim and one of its requests
        elif key in seen:
            faults.append(duplicate(here, key))
        seen.add(key)
        if request:
            parted.add(name)
        if name not in claims and len(faults) < ENOUGH:
            known = f": {', '.join(sorted(claims))}" if claims else " which is empty"
            why = f'Not found: "{name}": must be one of the names in pod.spec.resourceClaims{known}'
            faults.append(FieldError(here, name, why))


_POD_LEVEL: Final = ("cpu", "hugepages-", "memory")


def _pod_level_name(name: str, path: str) -> Faults:
    if wrong := resource_name_faults(name):
        return [invalid(path, name, why) for why in wrong]
    known = name in ("cpu", "memory") or is_huge_page(name)
    return [] if known else [unsupported(path, name, _POD_LEVEL)]


def validate_pod_requirements(resources: Raw, together: dict[str, int], path: str, faults: Faults) -> None:
    """Validate pod-level requests and limits; `together` is the total of the containers' requests in units of 1e-9."""
    if resources.get("claims"):
        faults.append(forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    validate_requirements(resources, path, faults, rule=_pod_level_name)
    for name, quantity in (resources.get("requests") or {}).items():
        least = together.get(name)
        if least is not None and least > nanos(quantity):
            why = f"must be greater than or equal to aggregate container requests of {_amount(least)}"
            faults.append(invalid(f"{path}.requests[{name}]", quantity, why))


def validate_limits_of_pod(spec: Raw, limits: Raw, path: str, faults: Faults) -> None:
    """Check that no container has a higher limit than the pod."""
    for index, container in enumerate(spec.get("containers") or ()):
        for name, limit in ((container.get("resources") or {}).get("limits") or {}).items():
            if name in limits and nanos(limit) > nanos(limits[name]):
                why = f"must be less than or equal to pod limits of {as_stored(limits[name])}"
                faults.append(invalid(f"{path}.containers[{index}][{name}].limits", as_stored(limit), why))


def _amount(total: int) -> str:
    return canonical(f"{total}n")
