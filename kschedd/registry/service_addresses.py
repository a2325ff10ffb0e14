"""Addresses of Services: ipFamilyPolicy, ipFamilies, clusterIP and clusterIPs, which belong together.

A cluster here has one range of IPv4 addresses, so a Service that would like two families gets one, and one that demands
two is refused; but one that is headless and selects nothing may state any.

Source: Kubernetes v1.34, pkg/registry/core/service/storage/alloc.go (initIPFamilyFields) and
pkg/apis/core/validation/validation.go (ValidateServiceClusterIPsRelatedFields, validateUpgradeDowngrade*).
"""

import ipaddress
from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.fields import FieldError, duplicate, invalid, required, unsupported

Raw = dict[str, Any]
Old = Mapping[str, Any]
Faults = list[FieldError]

EXTERNAL_NAME: Final = "ExternalName"
_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_FAMILIES: Final = ("IPv4", "IPv6")
BAD_ADDRESS: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
NOT_CHANGED: Final = "may not change once set"


def headless(spec: Old) -> bool:
    return list(spec.get("clusterIPs") or (spec.get("clusterIP"),)) == ["None"]


def needs_cluster_ip(spec: Old) -> bool:
    return spec.get("type") in ("ClusterIP", "NodePort", "LoadBalancer")


def init_families(spec: Raw, before: Old | None) -> None:
    if spec.get("type") == EXTERNAL_NAME or validate_addresses(spec):
        return
    if before is not None and needs_cluster_ip(before):
        for field in ("ipFamilyPolicy", "ipFamilies"):
            if field not in spec and field in before:
                spec[field] = before[field]
    any_family = headless(spec) and not spec.get("selector")
    several = len(spec.get("ipFamilies") or ()) == 2 or len(spec.get("clusterIPs") or ()) == 2
    spec.setdefault("ipFamilyPolicy", "RequireDualStack" if any_family or several else "SingleStack")
    families = list(spec.get("ipFamilies") or ())
    if not families:
        families = [_family(ip) for ip in spec.get("clusterIPs") or () if ip != "None"] or ["IPv4"]
    if any_family and spec["ipFamilyPolicy"] != "SingleStack" and len(families) < 2:
        families.append(next(family for family in _FAMILIES if family not in families))
    spec["ipFamilies"] = families


def _family(address: str) -> str:
    return "IPv6" if ":" in address else "IPv4"


def stack_faults(spec: Old) -> list[FieldError]:
    """What a cluster of one family cannot give; of a Service without faults of its own."""
    if spec.get("type") == EXTERNAL_NAME or (headless(spec) and not spec.get("selector")):
        return []
    if spec.get("ipFamilyPolicy") == "RequireDualStack":
        why = "this cluster is not configured for dual-stack services"
        return [invalid("spec.ipFamilyPolicy", "RequireDualStack", why)]
    return [
        invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
        for index, family in enumerate(spec.get("ipFamilies") or ())
        if family != "IPv4"
    ]


def validate_addresses(spec: Old) -> Faults:
    """ipFamilyPolicy, ipFamilies, clusterIP and clusterIPs of a Service."""
    if spec.get("type") == EXTERNAL_NAME:
        return []
    faults: Faults = []
    faults += _validate_families(spec)
    one, all_of_them = spec.get("clusterIP") or "", list(spec.get("clusterIPs") or ())
    if not one and all_of_them:
        faults.append(invalid("spec.clusterIPs", all_of_them, "must be empty when `clusterIP` is not specified"))
    elif one and not all_of_them:
        faults.append(required("spec.clusterIPs"))
    elif one and all_of_them[0] != one:
        faults.append(invalid("spec.clusterIPs", all_of_them, "first value must match `clusterIP`"))
    good = True
    for index, address in enumerate(all_of_them):
        here = f"spec.clusterIPs[{index}]"
        if address == "None":
            if index:
                faults.append(invalid(here, address, "'None' must be used as the first and only value"))
                good = False
            continue
        try:
            ipaddress.ip_address(address)
        except ValueError:
            faults.append(invalid(here, address, BAD_ADDRESS))
            good = False
    if len(all_of_them) > 2:
        faults.append(invalid("spec.clusterIPs", all_of_them, "may only hold up to 2 values"))
        good = False
    if not good or not all_of_them or all_of_them == ["None"]:
        return faults
    families = ["IPv6" if ":" in address else "IPv4" for address in all_of_them]
    if len(families) == 2 and families[0] == families[1]:
        why = "may specify no more than one IP for each IP family"
        faults.append(invalid("spec.clusterIPs", all_of_them, why))
    for index, (family, address) in enumerate(zip(families, all_of_them, strict=True)):
        wanted = spec.get("ipFamilies") or ()
        if index < len(wanted) and wanted[index] != family and wanted[index] in _FAMILIES:
            why = f"expected an {wanted[index]} value as indicated by `ipFamilies[{index}]`"
            faults.append(invalid(f"spec.clusterIPs[{index}]", address, why))
    return faults


def _validate_families(spec: Old) -> Faults:
    faults: Faults = []
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _POLICIES:
        faults.append(unsupported("spec.ipFamilyPolicy", policy, _POLICIES))
    families = spec.get("ipFamilies") or ()
    for index, family in enumerate(families):
        here = f"spec.ipFamilies[{index}]"
        if family not in _FAMILIES:
            faults.append(unsupported(here, family, _FAMILIES))
        if family in families[:index]:
            faults.append(duplicate(here, family))
    if policy == "SingleStack":
        for field in ("clusterIPs", "ipFamilies"):
            if len(spec.get(field) or ()) == 2:
                why = "must be 'RequireDualStack' or 'PreferDualStack' when multiple " + (
                    "cluster IPs are specified" if field == "clusterIPs" else "IP families are specified"
                )
                faults.append(invalid("spec.ipFamilyPolicy", policy, why))
                break
    return faults


def changed_addresses(spec: Old, before: Old) -> Faults:
    """The first address and family are fixed, unless the Service becomes or was an ExternalName."""
    if EXTERNAL_NAME in (spec.get("type"), before.get("type")) or (headless(spec) and headless(before)):
        return []
    now, then = list(spec.get("clusterIPs") or ()), list(before.get("clusterIPs") or ())
    faults: Faults = []
    if len(now) == len(then):
        for index, (one, other) in enumerate(zip(now, then, strict=True)):
            if one != other:
                faults.append(invalid(f"spec.clusterIPs[{index}]", now, NOT_CHANGED))
    elif not now:
        faults.append(invalid("spec.clusterIPs[0]", now, "primary clusterIP can not be unset"))
    elif then and now[0] != then[0]:
        faults.append(invalid("spec.clusterIPs[0]", now, NOT_CHANGED))
    if headless(spec) != headless(before):
        return faults
    families, were = list(spec.get("ipFamilies") or ()), list(before.get("ipFamilies") or ())
    if families and were and families[0] != were[0]:
        faults.append(invalid("spec.ipFamilies[0]", families, NOT_CHANGED))
    return faults
