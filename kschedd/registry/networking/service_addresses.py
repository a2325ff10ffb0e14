"""Addresses of Services: the fields ipFamilyPolicy, ipFamilies, clusterIP and clusterIPs, which depend on each other.

The cluster has one range of IPv4 addresses. A Service that prefers two IP families gets one; a Service that requires
two is rejected. A headless Service without a selector may have any IP families.

Source: Kubernetes v1.34, pkg/registry/core/service/storage/alloc.go (initIPFamilyFields) and
pkg/apis/core/validation/validation.go (ValidateServiceClusterIPsRelatedFields, validateUpgradeDowngrade*).
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, duplicate, invalid, required, unsupported
from kschedd.api.text.ip_addresses import ip_address

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
    if spec.get("type") == EXTERNAL_NAME:
        return
    if before is not None and needs_cluster_ip(before):
        for field in ("ipFamilyPolicy", "ipFamilies"):
            if field not in spec and field in before:
                spec[field] = before[field]
    any_family = headless(spec) and not spec.get("selector")
    spec.setdefault("ipFamilyPolicy", "RequireDualStack" if any_family else "SingleStack")
    if validate_addresses(spec):
        return
    single = spec["ipFamilyPolicy"] == "SingleStack"
    families = list(spec.get("ipFamilies") or ())
    if single and before is not None and families == list(before.get("ipFamilies") or ()):
        families = families[:1]
    stated = [ip for ip in spec.get("clusterIPs") or () if ip != "None"]
    for index, ip in enumerate(stated):
        if index >= len(families) and _family(ip) == "IPv4":
            families.append("IPv4")
    if not families and not stated:
        families = ["IPv4"]
    reduced = before is not None and 0 < len(families) < len(before.get("ipFamilies") or ())
    if any_family and not single and not reduced and len(families) < 2:
        families.append(next(family for family in _FAMILIES if family not in families))
    if families:
        spec["ipFamilies"] = families


def _family(address: str) -> str:
    return "IPv6" if ":" in address else "IPv4"


def stack_faults(spec: Old, before: Old | None = None) -> list[FieldError]:
    """Return errors for requirements that a cluster with one IP family cannot meet.

    The Service must be valid otherwise, and its IP families must be set.
    """
    if spec.get("type") == EXTERNAL_NAME:
        return []
    faults: Faults = []
    policy, families, addresses = (spec.get(field) for field in ("ipFamilyPolicy", "ipFamilies", "clusterIPs"))
    several = {"cluster IPs": addresses or (), "IP families": families or ()}
    if policy != "SingleStack" and before is not None:
        for field, word in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")):
            if 0 < len(spec.get(field) or ()) < len(before.get(field) or ()):
                why = f"must be 'SingleStack' to release the secondary {word}"
                faults.append(invalid("spec.ipFamilyPolicy", policy, why))
    for what, given in several.items() if policy == "SingleStack" else ():
        if len(given) == 2:
            why = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            faults.append(invalid("spec.ipFamilyPolicy", policy, why))
    for index, address in enumerate(addresses or ()):
        if address != "None" and index >= len(families or ()):
            why = f"{_family(address)} is not configured on this cluster"
            faults.append(invalid(f"spec.clusterIPs[{index}]", list(addresses or ()), why))
    if faults or (headless(spec) and not spec.get("selector")):
        return faults
    if policy == "RequireDualStack":
        why = "this cluster is not configured for dual-stack services"
        faults.append(invalid("spec.ipFamilyPolicy", policy, why))
    faults += [
        invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
        for index, family in enumerate(families or ())
        if family != "IPv4"
    ]
    return faults


def validate_addresses(spec: Old) -> Faults:
    """Return the errors in ipFamilyPolicy, ipFamilies, clusterIP and clusterIPs of a Service."""
    if spec.get("type") == EXTERNAL_NAME:
        return []
    faults: Faults = []
    one, all_of_them = spec.get("clusterIP") or "", list(spec.get("clusterIPs") or ())
    if not one and all_of_them:
        faults.append(invalid("spec.clusterIPs", all_of_them, "must be empty when `clusterIP` is not specified"))
    elif one and not all_of_them:
        faults.append(required("spec.clusterIPs"))
    elif one and all_of_them[0] != one:
        faults.append(invalid("spec.clusterIPs", all_of_them, "first value must match `clusterIP`"))
    families, seen = spec.get("ipFamilies") or (), set()
    for index, family in enumerate(families):
        here = f"spec.ipFamilies[{index}]"
        if family not in _FAMILIES:
            faults.append(unsupported(here, family, _FAMILIES))
        if family in seen:
            faults.append(duplicate(here, family))
        seen.add(family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _POLICIES:
        faults.append(unsupported("spec.ipFamilyPolicy", policy, _POLICIES))
    good = True
    for index, address in enumerate(all_of_them):
        if address == "None" and not index:
            if len(all_of_them) > 1:
                faults.append(invalid("spec.clusterIPs", all_of_them, "'None' must be the first and only value"))
                good = False
        elif ip_address(address) is None:
            faults.append(invalid(f"spec.clusterIPs[{index}]", address, BAD_ADDRESS))
            good = False
    if len(all_of_them) > 2:
        faults.append(invalid("spec.clusterIPs", all_of_them, "may only hold up to 2 values"))
    if not good or all_of_them == ["None"]:
        return faults
    if len(all_of_them) > 1 and len({_family(address) for address in all_of_them}) == 1:
        why = "may specify no more than one IP for each IP family"
        faults.append(invalid("spec.clusterIPs", all_of_them, why))
    for index, (wanted, address) in enumerate(zip(families, all_of_them, strict=False)):
        if wanted in _FAMILIES and wanted != _family(address):
            why = f"expected an {wanted} value as indicated by `ipFamilies[{index}]`"
            faults.append(invalid(f"spec.clusterIPs[{index}]", address, why))
    return faults


def changed_addresses(spec: Old, before: Old) -> Faults:
    """Return errors for a changed first address or IP family, unless the Service is or was an ExternalName."""
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
