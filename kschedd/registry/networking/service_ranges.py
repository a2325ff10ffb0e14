"""Validation of ServiceCIDRs (ranges for addresses of Services) and IPAddresses (addresses in use).

Source: Kubernetes v1.34, pkg/apis/networking/validation/validation.go.
The functions require objects that match the schema and have their defaults, and append errors to `faults`.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, invalid, required
from kschedd.api.selecting.names import dns_subdomain, path_segment
from kschedd.api.text.ip_addresses import cidr_family, range_faults
from kschedd.registry.go_structs import go_struct

Raw = Mapping[str, Any]
Faults = list[FieldError]

_PATH: Final = "spec.cidrs"
_IMMUTABLE: Final = "field is immutable"
_TWO_FAMILIES: Final = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"


def validate_service_range(item: Raw, faults: Faults) -> None:
    """Append the errors of a ServiceCIDR."""
    ranges = (item.get("spec") or {}).get("cidrs") or []
    if not ranges:
        faults.append(required(_PATH, "at least one CIDR required"))
        return
    if len(ranges) > 2:
        faults.append(invalid(_PATH, {"CIDRs": ranges}, "may only hold up to 2 values"))
        return
    for index, text in enumerate(ranges):
        faults += [invalid(f"{_PATH}[{index}]", text, why) for why in range_faults(text)]
    families = [cidr_family(text) for text in ranges]
    if len(families) == 2 and families[0] == families[1] != 0:
        faults.append(invalid(_PATH, ranges, _TWO_FAMILIES))


def validate_service_range_change(old: Raw, new: Raw, faults: Faults) -> None:
    """Append the errors of a change to a ServiceCIDR; a change may only add a range of the other IP family."""
    stated = (new.get("spec") or {}).get("cidrs")
    before, after = (old.get("spec") or {}).get("cidrs") or [], stated or []
    if (len(before), len(after)) not in ((1, 2), (len(before), len(before))):
        faults.append(invalid(_PATH, stated, _IMMUTABLE))
        return
    for index, (then, now) in enumerate(zip(before, after, strict=False)):
        if then != now:
            faults.append(invalid(f"{_PATH}[{index}]", now, _IMMUTABLE))
    if len(after) > len(before):
        validate_service_range(new, faults)


def validate_address(item: Raw, faults: Faults) -> None:
    """Append the errors of an IPAddress, except errors in its name."""
    parent = (item.get("spec") or {}).get("parentRef")
    here = "spec.parentRef"
    if parent is None:
        faults.append(required(here))
        return
    if group := parent.get("group"):
        faults += [invalid(f"{here}.group", group, why) for why in dns_subdomain(group)]
    for field in ("resource", "name", "namespace"):
        if text := parent.get(field):
            faults += [invalid(f"{here}.{field}", text, why) for why in path_segment(text)]
        elif field != "namespace":
            faults.append(required(f"{here}.{field}"))


def validate_address_change(old: Raw, new: Raw, faults: Faults) -> None:
    """Append the errors of a change to an IPAddress; its parentRef is immutable."""
    before, after = (_parent(each) for each in (old, new))
    if before != after:
        faults.append(invalid("spec.parentRef", after, _IMMUTABLE))


def _parent(item: Raw) -> Raw | None:
    parent = (item.get("spec") or {}).get("parentRef")
    return None if parent is None else go_struct("networking.v1.ParentReference", parent)
