"""Validation of security contexts, DNS settings and host aliases of a pod.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go (ValidateSecurityContext,
validatePodSpecSecurityContext, validatePodDNSConfig, ValidateHostAliases); component-helpers/node/util/sysctl
(GetNamespace).
"""

import re
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, duplicate, invalid, required, unsupported
from kschedd.api.selecting.names import between, dns_subdomain, does_not_match
from kschedd.api.text.ip_addresses import ip_address
from kschedd.registry.go_structs import go_struct
from kschedd.registry.pods.windows import validate_windows_options
from kschedd.registry.storage.volume_sources import validate_descending

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
_BYTE: Final = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
# cached, because each pod has a new address
_USUAL_ADDRESS: Final = re.compile(rf"{_BYTE}(?:\.{_BYTE}){{3}}", re.ASCII)
_MOST_NAMESERVERS, _MOST_SEARCHES, _LONGEST_SEARCH = 3, 32, 2048


def is_address(text: str) -> bool:
    return _USUAL_ADDRESS.fullmatch(text) is not None or ip_address(text) is not None


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
        faults.append(invalid(f"{here}.shareProcessNamespace", True, why))
    _validate_sysctls(spec, context, f"{here}.sysctls", faults)
    _policy(context, "fsGroupChangePolicy", ("Always", "OnRootMismatch"), here, faults)
    _validate_seccomp(context, here, faults)
    validate_windows_options(context.get("windowsOptions"), f"{here}.windowsOptions", faults)
    validate_app_armor(context.get("appArmorProfile"), f"{here}.appArmorProfile", faults)
    _policy(context, "supplementalGroupsPolicy", ("Merge", "Strict"), here, faults)
    _policy(context, "seLinuxChangePolicy", ("MountOption", "Recursive"), here, faults)


def _policy(context: Raw, field: str, allowed: tuple[str, ...], path: str, faults: Faults) -> None:
    if (value := context.get(field)) is not None and value not in allowed:
        faults.append(unsupported(f"{path}.{field}", value, allowed))


def _validate_sysctls(spec: Raw, context: Raw, path: str, faults: Faults) -> None:
    seen: set[str] = set()
    for index, entry in enumerate(context.get("sysctls") or ()):
        here, name = f"{path}[{index}].name", entry.get("name") or ""
        if not name:
            faults.append(required(here))
        elif len(name) > 253 or not _SYSCTL_RE.fullmatch(name):
            why = f"must have at most 253 characters and match regex ^{_SYSCTL}$"
            faults.append(invalid(here, name, why))
        elif name in seen:
            faults.append(duplicate(here, name))
        if (shared := _namespace_of(name)) and spec.get(shared):
            faults.append(invalid(here, name, f"may not be specified when '{shared}' is true"))
        seen.add(name)


_SLASHES: Final = str.maketrans("./", "/.")
_OF_IPC: Final = ("kernel.shm", "kernel.msg", "fs.mqueue.")


def _namespace_of(sysctl: str) -> str:
    """Return the field with which the pod uses its node's namespace for this sysctl."""
    dot, slash = sysctl.find("."), sysctl.find("/")
    name = sysctl.translate(_SLASHES) if 0 <= slash and (dot < 0 or slash < dot) else sysctl
    if name.startswith("net."):
        return "hostNetwork"
    return "hostIPC" if name == "kernel.sem" or name.startswith(_OF_IPC) else ""


def _validate_seccomp(context: Raw, path: str, faults: Faults) -> None:
    if (profile := context.get("seccompProfile")) is None:
        return
    here = f"{path}.seccompProfile"
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    if not kind:
        faults.append(required(f"{here}.type", "type is required when seccompProfile is set"))
    elif kind not in _PROFILES:
        faults.append(unsupported(f"{here}.type", kind, _PROFILES))
    if kind == "Localhost":
        if local is None:
            faults.append(required(f"{here}.localhostProfile", "must be set when seccomp type is Localhost"))
        else:
            validate_descending(local, f"{here}.localhostProfile", faults)
    elif local is not None:
        why = "can only be set when seccomp type is Localhost"
        faults.append(invalid(f"{here}.localhostProfile", go_struct("SeccompProfile", profile), why))


_LONGEST_PROFILE: Final = 4095


def validate_app_armor(profile: Raw | None, path: str, faults: Faults) -> None:
    if profile is None:
        return
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    here = f"{path}.localhostProfile"
    if kind == "Localhost":
        if local is None:
            faults.append(required(here, "must be set when AppArmor type is Localhost"))
            return
        if local != local.strip():
            faults.append(invalid(here, local, "must not be padded with whitespace"))
        elif not local:
            faults.append(required(here, "must be set when AppArmor type is Localhost"))
        if len(local.encode()) > _LONGEST_PROFILE:
            faults.append(FieldError(here, local, f"Too long: may not be more than {_LONGEST_PROFILE} bytes"))
    elif kind in _PROFILES:
        if local is not None:
            faults.append(invalid(here, local, "can only be set when AppArmor type is Localhost"))
    elif not kind:
        faults.append(required(f"{path}.type", "type is required when appArmorProfile is set"))
    else:
        faults.append(unsupported(f"{path}.type", kind, _PROFILES))


def validate_security(context: Raw, path: str, host_users: bool, faults: Faults) -> None:
    """Validate a container's security context."""
    _validate_ids(context, path, ("runAsUser", "runAsGroup"), faults)
    if (mount := context.get("procMount")) is not None:
        if mount not in ("Default", "Unmasked"):
            faults.append(unsupported(f"{path}.procMount", mount, ("Default", "Unmasked")))
        elif mount == "Unmasked" and host_users:
            faults.append(invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    _validate_seccomp(context, path, faults)
    if context.get("allowPrivilegeEscalation") is False:
        shown = go_struct("SecurityContext", context)
        before = "cannot set `allowPrivilegeEscalation` to false and "
        if context.get("privileged"):
            faults.append(invalid(path, shown, before + "`privileged` to true"))
        for added in (context.get("capabilities") or {}).get("add") or ():
            if added == "CAP_SYS_ADMIN":
                faults.append(invalid(path, shown, before + "`capabilities.Add` CAP_SYS_ADMIN"))
    validate_windows_options(context.get("windowsOptions"), f"{path}.windowsOptions", faults)
    validate_app_armor(context.get("appArmorProfile"), f"{path}.appArmorProfile", faults)


def validate_dns(spec: Raw, path: str, faults: Faults) -> None:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None" and config is None:
        faults.append(required(f"{path}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None"))
    elif spec.get("dnsPolicy") == "None" and not (config or {}).get("nameservers"):
        why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        faults.append(required(f"{path}.dnsConfig.nameservers", why))
    elif config is not None:
        _validate_dns(config, f"{path}.dnsConfig", faults)


def validate_host_aliases(spec: Raw, path: str, faults: Faults) -> None:
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        here = f"{path}.hostAliases[{index}]"
        if not is_address(alias.get("ip") or ""):
            faults.append(invalid(f"{here}.ip", alias.get("ip") or "", BAD_ADDRESS))
        for place, name in enumerate(alias.get("hostnames") or ()):
            faults += [invalid(f"{here}.hostnames[{place}]", name, why) for why in dns_subdomain(name)]


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
