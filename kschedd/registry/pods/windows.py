"""Validation of the pod's operating system and of Windows options.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go (validateOS, validateLinux, validateWindows,
validateWindowsSecurityContextOptions, validateWindowsHostProcessPod).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, forbidden, invalid, required, unsupported
from kschedd.api.selecting.names import dns_subdomain

Raw = dict[str, Any]
Faults = list[FieldError]

_SYSTEMS: Final = ("linux", "windows")
_FOR_LINUX: Final = "cannot be set for a windows pod"
_FOR_WINDOWS: Final = "windows options cannot be set for a linux pod"
# fields of the pod's security context and spec, in upstream's order
_OF_POD: Final = (
    "securityContext.appArmorProfile",
    "securityContext.seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "securityContext.seccompProfile",
    "securityContext.fsGroup",
    "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls",
    "shareProcessNamespace",
    "securityContext.runAsUser",
    "securityContext.runAsGroup",
    "securityContext.supplementalGroups",
    "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
)
_WHERE_TRUE: Final = ("hostPID", "hostIPC")
_OF_CONTAINER: Final = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


def each_container(spec: Mapping[str, Any], path: str) -> Iterator[tuple[Raw, str]]:
    """Yield the containers of all types with their paths, in upstream's order."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield container, f"{path}.{field}[{index}]"


def validate_system(spec: Raw, path: str, faults: Faults) -> None:
    """Validate the field os, and reject fields that only the other operating system supports."""
    if (system := spec.get("os")) is None:
        return
    name = system.get("name") or ""
    if not name:
        faults.append(required(f"{path}.os.name", "cannot be empty"))
    elif name not in _SYSTEMS:
        faults.append(unsupported(f"{path}.os", name, _SYSTEMS))
    elif name == "linux":
        _refuse_windows_options(spec, path, faults)
    else:
        _refuse_linux_options(spec, path, faults)


def _refuse_windows_options(spec: Raw, path: str, faults: Faults) -> None:
    if (spec.get("securityContext") or {}).get("windowsOptions") is not None:
        faults.append(forbidden(f"{path}.securityContext.windowsOptions", _FOR_WINDOWS))
    for container, here in each_container(spec, path):
        if (container.get("securityContext") or {}).get("windowsOptions") is not None:
            faults.append(forbidden(f"{here}.securityContext.windowsOptions", _FOR_WINDOWS))


def _refuse_linux_options(spec: Raw, path: str, faults: Faults) -> None:
    context = spec.get("securityContext") or {}
    for field in _OF_POD:
        inner = field.removeprefix("securityContext.")
        value = spec.get(field) if inner == field else context.get(inner)
        if value if field in _WHERE_TRUE else value is not None:
            faults.append(forbidden(f"{path}.{field}", _FOR_LINUX))
    for container, here in each_container(spec, path):
        own = container.get("securityContext") or {}
        stated = [field for field in _OF_CONTAINER if own.get(field) is not None]
        faults += [forbidden(f"{here}.securityContext.{field}", _FOR_LINUX) for field in stated]


def _host_process(context: Raw | None) -> bool | None:
    found: bool | None = ((context or {}).get("windowsOptions") or {}).get("hostProcess")
    return found


def validate_host_process(spec: Raw, path: str, faults: Faults) -> None:
    """Check that either all containers of a pod are HostProcess containers, which require host networking, or none."""
    of_pod = _host_process(spec.get("securityContext"))
    count = of_host = 0
    for container, here in each_container(spec, path):
        count += 1
        own = _host_process(container.get("securityContext"))
        if of_pod is not None and own is not None and own != of_pod:
            message = f"pod hostProcess value must be identical if both are specified, was {str(of_pod).lower()}"
            faults.append(invalid(f"{here}.securityContext.windowsOptions.hostProcess", own, message))
        of_host += bool(of_pod if own is None else own)
    if not of_host:
        return
    if of_host != count:
        why = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        faults.append(invalid(path, "", why))
    if not spec.get("hostNetwork"):
        why = "hostNetwork must be true if pod contains any hostProcess containers"
        faults.append(invalid(f"{path}.hostNetwork", False, why))


_LARGEST_SPEC_KIB: Final = 64
_LONGEST_DOMAIN, _LONGEST_USER = 256, 104
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_NET_BIOS: Final = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DNS_LABEL: Final = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DNS: Final = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*", re.ASCII)
_NOT_IN_USER: Final = re.compile(r'["/\\:;|=,+*?<>@\[\]]')
_DOTS_OR_SPACES: Final = re.compile(r"[. ]+")


def validate_windows_options(options: Raw | None, path: str, faults: Faults) -> None:
    if options is None:
        return
    if (name := options.get("gmsaCredentialSpecName")) is not None:
        faults += [invalid(f"{path}.gmsaCredentialSpecName", name, why) for why in dns_subdomain(name)]
    if (credential := options.get("gmsaCredentialSpec")) is not None:
        if not credential:
            why = "gmsaCredentialSpec cannot be an empty string"
            faults.append(invalid(f"{path}.gmsaCredentialSpec", credential, why))
        elif len(credential.encode()) > _LARGEST_SPEC_KIB * 1024:
            why = f"gmsaCredentialSpec size must be under {_LARGEST_SPEC_KIB} KiB"
            faults.append(invalid(f"{path}.gmsaCredentialSpec", credential, why))
    if (user := options.get("runAsUserName")) is not None:
        faults += [invalid(f"{path}.runAsUserName", user, f"runAsUserName{why}") for why in _user_faults(user)]


def _user_faults(name: str) -> Iterator[str]:
    if not name:
        yield " cannot be an empty string"
        return
    if _CONTROL.search(name):
        yield " cannot contain control characters"
        return
    if name.count("\\") > 1:
        yield " cannot contain more than one backslash"
        return
    domain, backslash, user = name.rpartition("\\")
    if len(domain.encode()) >= _LONGEST_DOMAIN:
        yield f"'s Domain length must be under {_LONGEST_DOMAIN} characters"
    if backslash and not _NET_BIOS.fullmatch(domain) and not _DNS.fullmatch(domain):
        yield "'s Domain doesn't match the NetBios nor the DNS format"
    if not user:
        yield "'s User cannot be empty"
    elif len(user.encode()) > _LONGEST_USER:
        yield f"'s User length must not be longer than {_LONGEST_USER} characters"
    if _DOTS_OR_SPACES.fullmatch(user):
        yield "'s User cannot contain only periods or spaces"
    if _NOT_IN_USER.search(user):
        yield "'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"
