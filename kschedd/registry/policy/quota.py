"""Validation of LimitRanges and ResourceQuotas.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go (ValidateLimitRange, ValidateResourceQuota).
The functions require objects that match the schema and have their defaults, and append errors to `faults`.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.quantity import as_stored, nanos
from kschedd.api.schemas.fields import ENOUGH, FieldError, duplicate, forbidden, invalid, required
from kschedd.api.selecting.names import qualified_name
from kschedd.registry.go_structs import go_struct
from kschedd.registry.validation_resources import (
    container_resource_faults,
    is_huge_page,
    is_standard_for_quota,
    may_overcommit,
    resource_name_faults,
    validate_amount,
)

Raw = dict[str, Any]
Faults = list[FieldError]

_LIMIT_TYPES: Final = ("Pod", "Container", "PersistentVolumeClaim")
_LIMIT_FIELDS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_UNIT: Final = 10**9


def validate_limit_range(item: Raw, faults: Faults) -> None:
    seen: set[str] = set()
    for index, limit in enumerate((item.get("spec") or {}).get("limits") or ()):
        here = f"spec.limits[{index}]"
        kind = limit.get("type") or ""
        wrong = qualified_name(kind)
        faults += [invalid(f"{here}.type", kind, why) for why in wrong]
        if not wrong and "/" not in kind and kind not in _LIMIT_TYPES:
            faults.append(invalid(f"{here}.type", kind, "must be a standard limit type or fully qualified"))
        if kind in seen:
            faults.append(duplicate(f"{here}.type", kind))
        seen.add(kind)
        _validate_limit(limit, kind, here, faults)


def _validate_limit(limit: Raw, kind: str, path: str, faults: Faults) -> None:
    checks = container_resource_faults if kind in ("Pod", "Container") else resource_name_faults
    values: dict[str, Raw] = {}
    for field in _LIMIT_FIELDS:
        given = limit.get(field) or {}
        if kind == "Pod" and field in ("default", "defaultRequest"):
            if given:
                faults.append(forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'"))
            continue
        if field == "maxLimitRequestRatio" and kind == "PersistentVolumeClaim":
            if not any("storage" in (limit.get(side) or {}) for side in ("min", "max")):
                why = "either minimum or maximum storage value is required, but neither was provided"
                faults.append(required(f"{path}.limits", why))
        for name in given:
            faults += [invalid(f"{path}.{field}[{name}]", name, why) for why in checks(name)]
        values[field] = given
    for name in dict.fromkeys(name for given in values.values() for name in given):
        _compare({field: given.get(name) for field, given in values.items()}, name, path, faults)


def _compare(of: dict[str, Any], name: str, path: str, faults: Faults) -> None:
    """Check the limits, defaults and ratio of a resource against each other."""
    least, most, default, request = (of.get(field) for field in ("min", "max", "default", "defaultRequest"))

    def above(one: Any, other: Any, field: str, shown: Any, words: str) -> None:
        if one is not None and other is not None and nanos(one) > nanos(other):
            left, right = words.split("|")
            why = f"{left} {as_stored(one)} is greater than {right} {as_stored(other)}"
            faults.append(invalid(f"{path}.{field}[{name}]", as_stored(shown), why))

    above(least, most, "min", least, "min value|max value")
    above(least, request, "defaultRequest", request, "min value|default request value")
    above(request, most, "defaultRequest", request, "default request value|max value")
    above(request, default, "defaultRequest", request, "default request value|default limit value")
    above(least, default, "default", least, "min value|default value")
    above(default, most, "default", most, "default value|max value")
    ratio = of.get("maxLimitRequestRatio")
    here = f"{path}.maxLimitRequestRatio[{name}]"
    if ratio is not None and nanos(ratio) < _UNIT:
        faults.append(invalid(here, as_stored(ratio), f"ratio {as_stored(ratio)} is less than 1"))
    if ratio is not None and least is not None and most is not None and nanos(least):
        highest = nanos(most) / nanos(least)
        if nanos(ratio) / _UNIT > highest:
            why = f"ratio {as_stored(ratio)} is greater than max/min = {highest:f}"
            faults.append(invalid(here, as_stored(ratio), why))
    if default is None or request is None or may_overcommit(name) or nanos(default) == nanos(request):
        return
    why = f"default value {as_stored(default)} must equal to defaultRequest value {as_stored(request)} in {name}"
    faults.append(invalid(f"{path}.defaultRequest[{name}]", as_stored(request), why))


_SCOPES: Final = frozenset(
    "BestEffort CrossNamespacePodAffinity NotBestEffort NotTerminating PriorityClass Terminating"
    " VolumeAttributesClass".split()
)
_FOR_PODS: Final = frozenset("pods cpu memory limits.cpu limits.memory requests.cpu requests.memory".split())
_EXISTS_ONLY: Final = frozenset("BestEffort NotBestEffort Terminating NotTerminating CrossNamespacePodAffinity".split())
_CONFLICTING: Final = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))


def validate_resource_quota(quota: Raw, faults: Faults) -> None:
    spec = quota.get("spec") or {}
    hard = spec.get("hard") or {}
    validate_quota_amounts(hard, "spec.hard", faults)
    out_of_scope = {
        scope: sum(is_standard_for_quota(each) and not _applies(scope, each) for each in hard) for scope in _SCOPES
    }
    if scopes := spec.get("scopes"):
        unknown = invalid("spec.scopes", scopes, "unsupported scope")
        inapplicable = invalid("spec.scopes", scopes, "unsupported scope applied to resource")
        for scope in scopes:
            if scope not in _SCOPES:
                faults.append(unknown)
            _repeat(inapplicable, out_of_scope.get(scope, 0), faults)
        for pair in _CONFLICTING:
            if set(pair) <= set(scopes):
                faults.append(invalid("spec.scopes", scopes, "conflicting scopes"))
    if selector := spec.get("scopeSelector"):
        _validate_scope_selector(selector, spec, out_of_scope, faults)


def validate_quota_amounts(amounts: Raw, path: str, faults: Faults) -> None:
    for name, quantity in amounts.items():
        here = f"{path}[{name}]"
        if not is_standard_for_quota(name):
            faults += [invalid(here, name, why) for why in resource_name_faults(name)]
        if "/" not in name and not is_standard_for_quota(name):
            faults.append(invalid(here, name, "must be a standard resource for quota"))
        validate_amount(name, quantity, here, faults)


def _applies(scope: str, resource: str) -> bool:
    if scope in ("Terminating", "NotTerminating", "NotBestEffort", "PriorityClass"):
        return resource in _FOR_PODS or is_huge_page(resource.removeprefix("requests."))
    if scope in ("BestEffort", "CrossNamespacePodAffinity"):
        return resource == "pods" if scope == "BestEffort" else resource in _FOR_PODS
    if scope == "VolumeAttributesClass":
        return resource in ("persistentvolumeclaims", "requests.storage")
    return True


def _repeat(fault: FieldError, times: int, faults: Faults) -> None:
    """Append a fault repeatedly, at most `ENOUGH` times, because each may be as large as the object."""
    faults += [fault] * min(times, max(0, ENOUGH - len(faults)))


def _validate_scope_selector(selector: Raw, spec: Raw, out_of_scope: Mapping[str, int], faults: Faults) -> None:
    """Append the errors of a scope selector; `out_of_scope` is the number of resources that each scope excludes."""
    path = "spec.scopeSelector.matchExpressions"
    inapplicable = invalid(path, go_struct("ScopeSelector", selector), "unsupported scope applied to resource")
    names = set()
    for term in selector.get("matchExpressions") or ():
        scope, operator = term.get("scopeName") or "", term.get("operator") or ""
        values = term.get("values") or []
        names.add(scope)
        if scope not in _SCOPES:
            faults.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
        _repeat(inapplicable, out_of_scope.get(scope, 0), faults)
        if scope in _EXISTS_ONLY and operator != "Exists":
            why = (
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
                "ResourceQuotaScopeCrossNamespacePodAffinity"
            )
            faults.append(invalid(f"{path}.operator", operator, why))
        if operator in ("In", "NotIn"):
            if not values:
                why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                faults.append(required(f"{path}.values", why))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                faults.append(invalid(f"{path}.values", values, why))
        else:
            faults.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    for pair in _CONFLICTING:
        if set(pair) <= names:
            faults.append(invalid(path, spec.get("scopes"), "conflicting scopes"))
