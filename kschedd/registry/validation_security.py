"""Validation of security contexts, of DNS and of host names: what a pod asks of the node besides resources.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go (ValidateSecurityContext, ValidatePodSecurityContext,
validatePodDNSConfig, ValidateHostAliases, validateReadinessGates, validateOS).
"""

import ipaddress
import re
from functools import lru_cache
from typing import Any, Final

from kschedd.api.fields import FieldError, duplicate, invalid, required, unsupported
from kschedd.api.validation_names import between, dns_subdomain, does_not_match, qualified_name
from kschedd.registry.go_structs import go_struct
from kschedd.registry.validation_paths import validate_descending

Raw = dict[str, Any]
Faults = list[FieldError]

_ID_RANGE: Final = between(0, 2**31 - 1)
_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
BAD_ADDRESS: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_SEARCH_LABEL: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH: Final = rf"{_SEARCH_LABEL}(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*"
_SEARCH_RE: Final = re.compile(_SEARCH, re.ASCII)
_SYSCTL: Final = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL_RE: Final = re.compile(_SYSCTL, re.ASCII)
_MOST_NAMESERVERS, _MOST_SEARCHES, _LONGEST_SEARCH = 3, 32, 2048


@lru_cache(1 << 10)
@lru_cache(1 << 12)  # asked for each status of a pod
def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _validate_ids(context: Raw, path: str, fields: tuple[str, ...], faults: Faults) -> None:
    for field in fields:
        number = context.get(field)
        if number is not None and not 0 <= number < 2**31:
            faults.append(invalid(f"{path}.{field}", number, _ID_RANGE))


def validate_pod_security(spec: Raw, path: str, faults: Faults) -> None:
    context = spec.get("securityContext") or {}
    here = f"{path}.securityContext"
    _validate_ids(context, here, ("fsGroup", "runAsUser", "runAsGroup"), faults)
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        if not 0 <= group < 2**31:
            faults.append(invalid(f"{here}.supplementalGroups[{index}]", group, _ID_RANGE))
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        faults.append(invalid(f"{path}.shareProcessNamespace", True, why))
    _validate_sysctls(context, f"{here}.sysctls", faults)
    for field, allowed in (
        ("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
        ("seLinuxChangePolicy", ("MountOption", "Recursive")),
    ):
        if (value := context.get(field)) is not None and value not in allowed:
            faults.append(unsupported(f"{here}.{field}", value, allowed))
    _validate_profiles(context, here, faults)
    if (policy := context.get("supplementalGroupsPolicy")) is not None and policy not in ("Merge", "Strict"):
        faults.append(unsupported(f"{here}.supplementalGroupsPolicy", policy, ("Merge", "Strict")))
    _validate_host_process(spec, path, faults)


def _validate_sysctls(context: Raw, path: str, faults: Faults) -> None:
    seen: set[str] = set()
    for index, entry in enumerate(context.get("sysctls") or ()):
        name = entry.get("name") or ""
        if not name:
            faults.append(required(f"{path}[{index}].name"))
        elif len(name) > 253 or not _SYSCTL_RE.fullmatch(name):
            why = f"must have at most 253 characters and match regex ^{_SYSCTL}$"
            faults.append(invalid(f"{path}[{index}].name", name, why))
        elif name in seen:
            faults.append(duplicate(f"{path}[{index}].name", name))
        seen.add(name)


def _validate_profiles(context: Raw, path: str, faults: Faults) -> None:
    if (profile := context.get("seccompProfile")) is not None:
        _validate_profile(profile, f"{path}.seccompProfile", "seccomp", faults)
    if (profile := context.get("appArmorProfile")) is not None:
        _validate_profile(profile, f"{path}.appArmorProfile", "AppArmor", faults)


def _validate_profile(profile: Raw, path: str, word: str, faults: Faults) -> None:
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    seccomp = word == "seccomp"
    if kind == "Localhost":
        if local is None:
            faults.append(required(f"{path}.localhostProfile", f"must be set when {word} type is Localhost"))
        elif seccomp:
            validate_descending(local, f"{path}.localhostProfile", faults)
        elif not local.strip():
            faults.append(required(f"{path}.localhostProfile", f"must be set when {word} type is Localhost"))
    elif local is not None:
        shown: Any = go_struct("SeccompProfile", profile) if seccomp else local
        why = f"can only be set when {word} type is Localhost"
        faults.append(invalid(f"{path}.localhostProfile", shown, why))
    if not kind:
        field = "seccompProfile" if seccomp else "appArmorProfile"
        faults.append(required(f"{path}.type", f"type is required when {field} is set"))
    elif kind not in _PROFILES:
        faults.append(unsupported(f"{path}.type", kind, _PROFILES))


def _host_process(context: Raw) -> bool | None:
    found: bool | None = (context.get("windowsOptions") or {}).get("hostProcess")
    return found


def _validate_host_process(spec: Raw, path: str, faults: Faults) -> None:
    of_pod = _host_process(spec.get("securityContext") or {})
    some = False
    for field in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(field) or ():
            own = _host_process(container.get("securityContext") or {})
            some = some or bool(of_pod if own is None else own)
    if some and not spec.get("hostNetwork"):
        why = "hostNetwork must be true if pod contains any hostProcess containers"
        faults.append(invalid(f"{path}.hostNetwork", False, why))


def validate_security(context: Raw, path: str, host_users: bool, faults: Faults) -> None:
    """A container's security context."""
    _validate_ids(context, path, ("runAsUser", "runAsGroup"), faults)
    if (mount := context.get("procMount")) is not None:
        if mount not in ("Default", "Unmasked"):
            faults.append(unsupported(f"{path}.procMount", mount, ("Default", "Unmasked")))
        elif mount == "Unmasked" and host_users:
            faults.append(invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    _validate_profiles(context, path, faults)
    if context.get("allowPrivilegeEscalation") is False:
        shown = go_struct("SecurityContext", context)
        before = "cannot set `allowPrivilegeEscalation` to false and "
        if context.get("privileged"):
            faults.append(invalid(path, shown, before + "`privileged` to true"))
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            faults.append(invalid(path, shown, before + "`capabilities.Add` CAP_SYS_ADMIN"))


def validate_network(spec: Raw, path: str, faults: Faults) -> None:
    """dnsConfig, hostAliases, readinessGates and os."""
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None" and config is None:
        faults.append(required(f"{path}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None"))
    elif spec.get("dnsPolicy") == "None" and not (config or {}).get("nameservers"):
        why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        faults.append(required(f"{path}.dnsConfig.nameservers", why))
    elif config is not None:
        _validate_dns(config, f"{path}.dnsConfig", faults)
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        here = f"{path}.hostAliases[{index}]"
        if not is_address(alias.get("ip") or ""):
            faults.append(invalid(f"{here}.ip", alias.get("ip") or "", BAD_ADDRESS))
        for place, name in enumerate(alias.get("hostnames") or ()):
            faults += [invalid(f"{here}.hostnames[{place}]", name, why) for why in dns_subdomain(name)]
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        kind = gate.get("conditionType") or ""
        faults += [invalid(f"{path}.readinessGates[{index}].conditionType", kind, why) for why in qualified_name(kind)]
    if (system := spec.get("os")) is not None:
        name = system.get("name") or ""
        if not name:
            faults.append(required(f"{path}.os.name", "cannot be empty"))
        elif name not in ("linux", "windows"):
            faults.append(unsupported(f"{path}.os", name, ("linux", "windows")))


def _validate_dns(config: Raw, path: str, faults: Faults) -> None:
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if len(servers) > _MOST_NAMESERVERS:
        why = f"must not have more than {_MOST_NAMESERVERS} nameservers"
        faults.append(invalid(f"{path}.nameservers", servers, why))
    for index, server in enumerate(servers):
        if not is_address(server):
            faults.append(invalid(f"{path}.nameservers[{index}]", server, BAD_ADDRESS))
    if len(searches) > _MOST_SEARCHES:
        why = f"must not have more than {_MOST_SEARCHES} search paths"
        faults.append(invalid(f"{path}.searches", searches, why))
    if len(" ".join(searches)) > _LONGEST_SEARCH:
        why = f"must not have more than {_LONGEST_SEARCH} characters (including spaces) in the search list"
        faults.append(invalid(f"{path}.searches", searches, why))
    for index, search in enumerate(searches):
        if search == ".":
            continue
        name = search.removesuffix(".")
        if len(name) > 253:
            faults.append(invalid(f"{path}.searches[{index}]", name, "must be no more than 253 characters"))
        if not _SEARCH_RE.fullmatch(name):
            rule = (
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', "
                "and must start and end with an alphanumeric character"
            )
            why = does_not_match(rule, _SEARCH, "example.com")
            faults.append(invalid(f"{path}.searches[{index}]", name, why))
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            faults.append(required(f"{path}.options[{index}]", "must not be empty"))
