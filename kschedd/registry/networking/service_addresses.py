"""Addresses of Services: the fields ipFamilyPolicy, ipFamilies, clusterIP and clusterIPs, which depend on each other.

The ranges of kube-apiserver's --service-cluster-ip-range determine the IP families of the cluster. If the cluster has
one family, a Service that prefers two gets one, and a Service that requires two is rejected. A headless Service without
a selector may have any IP families.

Source: Kubernetes v1.34, pkg/registry/core/service/storage/alloc.go (initIPFamilyFields) and
pkg/apis/core/validation/validation.go (ValidateServiceClusterIPsRelatedFields, validateUpgradeDowngrade*).
"""

from collections.abc import Mapping, Sequence
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


def init_families(spec: Raw, before: Old | None, configured: Sequence[str]) -> list[FieldError]:
    """Set the IP family fields of a Service; return the errors of its fields and of its requirements.

    `configured` are the IP families of the cluster, the default family first.
    """
    if spec.get("type") == EXTERNAL_NAME:
        return []
    if before is not None and needs_cluster_ip(before):
        for field in ("ipFamilyPolicy", "ipFamilies"):
            if field not in spec and field in before:
                spec[field] = before[field]
    if prefers_as_before(spec, before):
        return validate_addresses(spec)
    any_family = headless(spec) and not spec.get("selector")
    policy = spec.setdefault("ipFamilyPolicy", "RequireDualStack" if any_family else "SingleStack")
    if faults := validate_addresses(spec):
        return faults
    if before is not None and policy == "SingleStack":
        for field in ("clusterIPs", "ipFamilies"):
            if len(listed := list(spec.get(field) or ())) > 1 and listed == list(before.get(field) or ()):
                spec[field] = listed[:1]
    elif before is not None:
        for field, word in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")):
            if 0 < len(spec.get(field) or ()) < len(before.get(field) or ()):
                why = f"must be 'SingleStack' to release the secondary {word}"
                faults.append(invalid("spec.ipFamilyPolicy", policy, why))
    families, addresses = list(spec.get("ipFamilies") or ()), list(spec.get("clusterIPs") or ())
    for what, given in (("cluster IPs", addresses), ("IP families", families)) if policy == "SingleStack" else ():
        if len(given) == 2:
            why = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            faults.append(invalid("spec.ipFamilyPolicy", policy, why))
    for index, address in enumerate(addresses if not headless(spec) else ()):
        if index >= len(families):
            if (family := _family(address)) in configured:
                families.append(family)
            else:
                faults.append(
                    invalid(f"spec.clusterIPs[{index}]", addresses, f"{family} is not configured on this cluster")
                )
    if not faults:
        families = families or [configured[0]]
        if not any_family:
            faults = _stack_faults(policy, families, configured)
        if not faults and policy != "SingleStack" and len(families) == 1 and (any_family or len(configured) == 2):
            families.append(next(family for family in _FAMILIES if family not in families))
    if families:
        spec["ipFamilies"] = families
    return faults


def _stack_faults(policy: str, families: Sequence[str], configured: Sequence[str]) -> Faults:
    """Return errors for required IP families that the cluster does not have."""
    faults: Faults = []
    if policy == "RequireDualStack" and len(configured) < 2:
        why = "this cluster is not configured for dual-stack services"
        faults.append(invalid("spec.ipFamilyPolicy", policy, why))
    faults += [
        invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
        for index, family in enumerate(families)
        if family not in configured
    ]
    return faults


def prefers_as_before(spec: Old, before: Old | None) -> bool:
    """Return whether an update keeps a Service that prefers two IP families as it is.

    The IP families of such a Service do not change only because those of the cluster have changed.
    """
    if before is None or spec.get("type") != before.get("type"):
        return False
    if any(each.get("ipFamilyPolicy") != "PreferDualStack" for each in (spec, before)):
        return False
    return all(list(spec.get(field) or ()) == list(before.get(field) or ()) for field in ("clusterIPs", "ipFamilies"))


def _family(address: str) -> str:
    return "IPv6" if ":" in address else "IPv4"


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
