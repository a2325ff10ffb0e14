"""Validation of ResourceClaims, claim templates and DeviceClasses that needs CEL or the namespace.

Selectors must compile, and the namespace must allow admin access. Selectors are checked on create and update. Admin
access is checked on create and when devices are allocated; an existing claim keeps it even if its namespace no longer
allows it. All other validation is in `kschedd.registry.devices.validation`. CEL is imported only for an object that has
a selector.

Source: Kubernetes v1.34, pkg/apis/resource/validation/validation.go (validateCELSelector), pkg/registry/resource
(AuthorizedForAdmin). The worst-case cost is not estimated; an evaluation that exceeds the limit is stopped instead.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, forbidden, invalid
from kschedd.cel.errors import LONGEST_EXPRESSION
from kschedd.devices.selection import compile_error

Raw = Mapping[str, Any]

KINDS: Final = frozenset(("ResourceClaim", "ResourceClaimTemplate", "DeviceClass"))
ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"
_NOT_ADMIN: Final = f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"


def selector_faults(raw: Raw, *, shares: bool = False) -> list[FieldError]:
    """Return the errors in the selectors of an object of one of KINDS.

    `shares` is true if devices may be allocated in shares.
    """
    spec, path = _spec_of(raw)
    return [fault for place, found in _selectors(spec, path) for fault in _selector_faults(place, found, shares)]


def admin_faults(raw: Raw, namespace_labels: Mapping[str, str]) -> list[FieldError]:
    """Return an error for the first request with admin access if the namespace with these labels does not allow it."""
    requests = (_spec_of(raw)[0].get("devices") or {}).get("requests") or ()
    requested = [(request.get("exactly") or {}).get("adminAccess") for request in requests]
    # as in upstream, errors in templates have the path that they would have in a claim
    return _admin_faults("spec.devices.requests", requested, namespace_labels)


def admin_status_faults(old: Raw, new: Raw, namespace_labels: Mapping[str, str]) -> list[FieldError]:
    """Return an error for admin access to devices that are allocated in this update of a claim's status."""
    before, after = (_allocated_to_admins(raw.get("status") or {}) for raw in (old, new))
    return [] if any(before) else _admin_faults("status.allocation.devices.results", after, namespace_labels)


def _allocated_to_admins(status: Raw) -> list[Any]:
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    return [result.get("adminAccess") for result in results]


def _admin_faults(path: str, requested: Sequence[Any], namespace_labels: Mapping[str, str]) -> list[FieldError]:
    if not any(requested) or namespace_labels.get(ADMIN_LABEL) == "true":
        return []
    return [forbidden(f"{path}[{requested.index(True)}].adminAccess", _NOT_ADMIN)]


def _spec_of(raw: Raw) -> tuple[Raw, str]:
    spec = raw.get("spec") or {}
    if raw.get("kind") == "ResourceClaimTemplate":
        return spec.get("spec") or {}, "spec.spec"
    return spec, "spec"


def _selectors(spec: Raw, path: str) -> Iterator[tuple[str, Any]]:
    yield f"{path}.selectors", spec.get("selectors") or ()
    for index, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        here = f"{path}.devices.requests[{index}]"
        yield f"{here}.exactly.selectors", (request.get("exactly") or {}).get("selectors") or ()
        for number, alternative in enumerate(request.get("firstAvailable") or ()):
            yield f"{here}.firstAvailable[{number}].selectors", alternative.get("selectors") or ()


def _selector_faults(path: str, selectors: Any, shares: bool) -> Iterator[FieldError]:
    for index, selector in enumerate(selectors):
        if selector.get("cel") is None:
            continue
        expression = selector["cel"].get("expression") or ""
        place = f"{path}[{index}].cel.expression"
        if len(expression) > LONGEST_EXPRESSION:
            why = f"Too long: may not be more than {LONGEST_EXPRESSION} bytes"
            yield FieldError(place, expression, why)
        elif (error := compile_error(expression, shares=shares)) is not None:
            yield invalid(place, expression, error)
