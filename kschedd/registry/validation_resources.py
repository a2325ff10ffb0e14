"""Validation of resource lists: which resource names and quantities are allowed where.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go (ValidateResourceRequirements and what it
calls) and pkg/apis/core/helper/helpers.go.
Takes resource lists that match the schema, with quantities that can be parsed.
"""

from functools import lru_cache
from typing import Any, Final

from kschedd.api.fields import FieldError, child, forbidden, invalid, required, unsupported
from kschedd.api.quantity import canonical, nanos
from kschedd.api.resource_names import is_extended
from kschedd.api.validation_names import qualified_name

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
    """Whether it is a resource in the kubernetes.io namespace, or without a prefix."""
    return "/" not in name or "kubernetes.io/" in name


def may_overcommit(name: str) -> bool:
    """Whether its request may be less than its limit."""
    return is_native(name) and not is_huge_page(name)


@lru_cache(1 << 12)
def resource_name_faults(name: str) -> tuple[str, ...]:
    """The faults of a resource name in any resource list."""
    if wrong := qualified_name(name):
        return wrong
    if "/" not in name and name not in _STANDARD and not is_huge_page(name):
        return ("must be a standard resource type or fully qualified",)
    return ()


@lru_cache(1 << 12)
def container_resource_faults(name: str) -> tuple[str, ...]:
    """The faults of a resource name in a container's requests or limits."""
    if wrong := resource_name_faults(name):
        return wrong
    if "/" not in name:
        if name not in _FOR_CONTAINERS and not is_huge_page(name):
            return ("must be a standard resource for containers",)
    elif not is_native(name) and not is_extended(name):
        return ("doesn't follow extended resource name standard",)
    return ()


def is_whole(name: str) -> bool:
    """Whether the resource is counted in whole units only."""
    return name in _COUNTED or is_extended(name)


def validate_amount(name: str, quantity: Any, path: str, faults: Faults) -> None:
    """One entry of a ResourceList: not negative, and an integer where the resource has whole units only."""
    amount = nanos(quantity)
    if amount < 0:
        faults.append(invalid(path, quantity, NOT_NEGATIVE))
    elif amount % _UNIT and is_whole(name):
        faults.append(invalid(path, quantity, "must be an integer"))


def validate_resource_list(resources: Raw, path: str, faults: Faults) -> None:
    """A ResourceList such as a node's capacity or a quota's hard limits."""
    for name, quantity in resources.items():
        here = child(path, name)
        faults += [invalid(here, name, why) for why in resource_name_faults(name)]
        validate_amount(name, quantity, here, faults)


def validate_requirements(resources: Raw, path: str, faults: Faults, claims: frozenset[str] = frozenset()) -> None:
    """requests, limits and claims of a container; `claims` are the names of the pod's resource claims."""
    limits = resources.get("limits") or {}
    requests = resources.get("requests") or {}
    huge = False
    for name, quantity in limits.items():
        _validate_asked(name, quantity, f"{path}.limits", faults)
        huge = huge or is_huge_page(name)
    for name, quantity in requests.items():
        _validate_asked(name, quantity, f"{path}.requests", faults)
        huge = huge or is_huge_page(name)
        limit = limits.get(name)
        if limit is None:
            if not may_overcommit(name) and not container_resource_faults(name):
                why = "Limit must be set for non overcommitable resources"
                faults.append(required(child(f"{path}.limits", name), why))
        elif nanos(quantity) > nanos(limit):
            rule = "equal to" if not may_overcommit(name) else "less than or equal to"
            why = f"must be {rule} {name} limit of {canonical(limit)}"
            faults.append(invalid(child(f"{path}.requests", name), quantity, why))
        elif not may_overcommit(name) and nanos(quantity) != nanos(limit):
            why = f"must be equal to {name} limit of {canonical(limit)}"
            faults.append(invalid(child(f"{path}.requests", name), quantity, why))
    if huge and not any(name in asked for name in ("cpu", "memory") for asked in (limits, requests)):
        faults.append(forbidden(path, "HugePages require cpu or memory"))
    _validate_claims(resources, path, faults, claims)


def _validate_asked(name: str, quantity: Any, path: str, faults: Faults) -> None:
    if wrong := container_resource_faults(name):
        faults += [invalid(child(path, name), name, why) for why in wrong]
    amount = nanos(quantity)
    if amount < 0 or (amount % _UNIT and is_whole(name)):
        validate_amount(name, quantity, child(path, name), faults)


def _validate_claims(resources: Raw, path: str, faults: Faults, claims: frozenset[str]) -> None:
    seen: set[tuple[str, str]] = set()
    for index, claim in enumerate(resources.get("claims") or ()):
        name, request = claim.get("name") or "", claim.get("request") or ""
        here = f"{path}.claims[{index}]"
        if not name:
            faults.append(required(f"{here}.name"))
        elif name not in claims:
            faults.append(
                FieldError(f"{here}.name", name, f'Not found: "{name}": must be a name in spec.resourceClaims')
            )
        if (name, request) in seen:
            faults.append(FieldError(here, name, f'Duplicate value: "{name}"'))
        seen.add((name, request))


_POD_LEVEL: Final = ("cpu", "memory", "hugepages-*")


def validate_pod_requirements(resources: Raw, together: dict[str, int], path: str, faults: Faults) -> None:
    """Pod-level requests and limits; `together` are the aggregate container requests in nanos."""
    for side in ("requests", "limits"):
        for name in resources.get(side) or ():
            if name not in ("cpu", "memory") and not is_huge_page(name):
                faults.append(unsupported(child(f"{path}.{side}", name), name, _POD_LEVEL))
                return
    validate_requirements(resources, path, faults)
    for name, quantity in (resources.get("requests") or {}).items():
        least = together.get(name, 0)
        if least > nanos(quantity):
            why = f"must be greater than or equal to aggregate container requests of {_amount(least)}"
            faults.append(invalid(child(f"{path}.requests", name), quantity, why))


def _amount(total: int) -> str:
    return canonical(f"{total}n")
