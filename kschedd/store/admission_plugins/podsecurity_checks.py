"""The Pod Security Standards: the checks of the levels baseline and restricted.

Each check applies from a minor version of Kubernetes on, and returns a reason with a detail. A stricter check of
`restricted` replaces the check of `baseline` that it covers. AppArmor profiles are read from fields only, not from
annotations.
Source: Kubernetes v1.34, staging/src/k8s.io/pod-security-admission/policy.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import attrs

from kschedd.store.admission_plugins.attributes import Raw

Level = Literal["privileged", "baseline", "restricted"]
Minor = int
LATEST: Final[Minor] = 34
Finding = tuple[str, str]  # reason, detail
Check = Callable[[Raw, Minor], Finding | None]
_NOTHING: Mapping[str, Any] = {}


def findings(spec: Raw, level: Level, minor: Minor) -> list[Finding]:
    """Return the violations of a pod spec, sorted by name, baseline checks first."""
    if level == "privileged":
        return []
    chosen = [each for each in _BASELINE if level == "baseline" or each.name not in _COVERED]
    if level == "restricted":
        chosen += _RESTRICTED
    results = (each.check(spec, minor) for each in chosen if minor >= each.since)
    return [found for found in results if found is not None]


# Parts of a pod


def _containers(spec: Raw) -> Iterator[tuple[str, Raw, Raw]]:
    """Yield the name, the container and its security context for each container."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(field) or ():
            yield str(container.get("name", "")), container, container.get("securityContext") or _NOTHING


def _pod_context(spec: Raw) -> Raw:
    found: Raw = spec.get("securityContext") or _NOTHING
    return found


def _is_windows(spec: Raw, minor: Minor) -> bool:
    return minor >= 25 and (spec.get("os") or {}).get("name") == "windows"


def _quoted(names: Collection[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _named(one: str, many: str, names: Collection[str]) -> str:
    """Return a list of quoted names after their noun: `container "a"`, `containers "a", "b"`."""
    return f"{one if len(names) == 1 else many} {_quoted(names)}"


def _in_containers(names: Collection[str]) -> str:
    return _named("container", "containers", names)


def _setters(in_pod: bool, containers: Sequence[str]) -> str:
    """Return the parts of the pod that set a forbidden value: `pod and container "a"`."""
    return " and ".join((["pod"] if in_pod else []) + ([_in_containers(containers)] if containers else []))


def _dig(raw: Raw, *path: str) -> Any:
    found: Any = raw
    for name in path:
        found = (found or _NOTHING).get(name)
    return found


# baseline


def _app_armor(spec: Raw, minor: Minor) -> Finding | None:
    def bad(context: Raw) -> str:
        kind = _dig(context, "appArmorProfile", "type")
        return kind if kind not in (None, "RuntimeDefault", "Localhost") else ""

    in_pod = bad(_pod_context(spec))
    found = {name: kind for name, _, context in _containers(spec) if (kind := bad(context))}
    if not in_pod and not found:
        return None
    kinds = sorted({*found.values(), *([in_pod] if in_pod else [])})
    reason = "forbidden AppArmor profile" + ("" if len(kinds) == 1 else "s")
    return reason, f"{_setters(bool(in_pod), list(found))} must not set AppArmor profile type to {_quoted(kinds)}"


_DEFAULT_CAPABILITIES: Final = frozenset(
    "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID"
    " SYS_CHROOT".split()
)


def _added(spec: Raw, allowed: Collection[str]) -> tuple[list[str], list[str]]:
    """Return the containers that add forbidden capabilities, and the added capabilities."""
    names, capabilities = [], set()
    for name, _, context in _containers(spec):
        if more := set(_dig(context, "capabilities", "add") or ()) - set(allowed):
            names.append(name)
            capabilities |= more
    return names, sorted(capabilities)


def _baseline_capabilities(spec: Raw, minor: Minor) -> Finding | None:
    names, capabilities = _added(spec, _DEFAULT_CAPABILITIES)
    return ("non-default capabilities", _must_not_add(names, capabilities)) if names else None


def _must_not_add(names: Collection[str], capabilities: Collection[str]) -> str:
    where = "securityContext.capabilities.add"
    return f"{_in_containers(names)} must not include {_quoted(capabilities)} in {where}"


def _host_namespaces(spec: Raw, minor: Minor) -> Finding | None:
    found = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field)]
    return ("host namespaces", ", ".join(found)) if found else None


def _host_path(spec: Raw, minor: Minor) -> Finding | None:
    found = [str(volume.get("name", "")) for volume in spec.get("volumes") or () if volume.get("hostPath") is not None]
    return ("hostPath volumes", _named("volume", "volumes", found)) if found else None


def _host_ports(spec: Raw, minor: Minor) -> Finding | None:
    names, ports = [], set()
    for name, container, _ in _containers(spec):
        if own := {str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")}:
            names.append(name)
            ports |= own
    if not names:
        return None
    verb, noun = "uses" if len(names) == 1 else "use", "hostPort" if len(ports) == 1 else "hostPorts"
    return "hostPort", f"{_in_containers(names)} {verb} {noun} {', '.join(sorted(ports))}"


def _probe_hosts(spec: Raw, minor: Minor) -> Finding | None:
    names, hosts = set(), set()
    for name, container, _ in _containers(spec):
        handlers = [container.get(field) for field in ("livenessProbe", "readinessProbe", "startupProbe")]
        handlers += [_dig(container, "lifecycle", field) for field in ("postStart", "preStop")]
        own = {_dig(each or _NOTHING, action, "host") for each in handlers for action in ("httpGet", "tcpSocket")}
        if own := own - {None, ""}:
            names.add(name)
            hosts |= own
    if not names:
        return None
    what = _named("probe or lifecycle host", "probe or lifecycle hosts", sorted(hosts))
    verb = "uses" if len(names) == 1 else "use"
    return "probe or lifecycle host", f"{_in_containers(sorted(names))} {verb} {what}"


def _privileged(spec: Raw, minor: Minor) -> Finding | None:
    names = [name for name, _, context in _containers(spec) if context.get("privileged")]
    return ("privileged", f"{_in_containers(names)} must not set securityContext.privileged=true") if names else None


def _proc_mount(spec: Raw, minor: Minor) -> Finding | None:
    found = {
        name: str(context["procMount"])
        for name, _, context in _containers(spec)
        if context.get("procMount") not in (None, "Default")
    }
    if not found:
        return None
    kinds = _quoted(sorted(set(found.values())))
    return "procMount", f"{_in_containers(list(found))} must not set securityContext.procMount to {kinds}"


def _se_linux(spec: Raw, minor: Minor) -> Finding | None:
    allowed = {"", "container_t", "container_init_t", "container_kvm_t"}
    if minor >= 31:
        allowed.add("container_engine_t")
    types: set[str] = set()
    others: set[str] = set()

    def bad(context: Raw) -> bool:
        options = context.get("seLinuxOptions") or _NOTHING
        wrong = {options.get("type") or ""} - allowed
        set_ones = {field for field in ("user", "role") if options.get(field)}
        types.update(wrong)
        others.update(set_ones)
        return bool(wrong or set_ones)

    in_pod = bad(_pod_context(spec))
    names = [name for name, _, context in _containers(spec) if bad(context)]
    if not in_pod and not names:
        return None
    data = [_named("type", "types", sorted(types))] if types else []
    data += [f"{field} may not be set" for field in ("user", "role") if field in others]
    setters = _setters(in_pod, names)
    return "seLinuxOptions", f"{setters} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}"


_SECCOMP: Final = frozenset(("RuntimeDefault", "Localhost"))


def _bad_seccomp(spec: Raw) -> Finding | None:
    """Return the seccomp profiles that are set but not allowed."""

    def bad(context: Raw) -> str:
        kind = _dig(context, "seccompProfile", "type")
        return kind if kind is not None and kind not in _SECCOMP else ""

    in_pod = bad(_pod_context(spec))
    found = {name: kind for name, _, context in _containers(spec) if (kind := bad(context))}
    if not in_pod and not found:
        return None
    kinds = _quoted(sorted({*found.values(), *([in_pod] if in_pod else [])}))
    setters = _setters(bool(in_pod), list(found))
    return "seccompProfile", f"{setters} must not set securityContext.seccompProfile.type to {kinds}"


def _baseline_seccomp(spec: Raw, minor: Minor) -> Finding | None:
    return _bad_seccomp(spec)


_SYSCTLS: Final[Mapping[Minor, Sequence[str]]] = {
    0: (
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    ),
    27: ("net.ipv4.ip_local_reserved_ports",),
    29: (
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
    ),
    32: ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
}


def _sysctls(spec: Raw, minor: Minor) -> Finding | None:
    allowed = {name for since, names in _SYSCTLS.items() if minor >= since for name in names}
    names = [str(each.get("name", "")) for each in _pod_context(spec).get("sysctls") or ()]
    found = [name for name in names if name not in allowed]
    return ("forbidden sysctls", ", ".join(found)) if found else None


def _host_process(spec: Raw, minor: Minor) -> Finding | None:
    in_pod = bool(_dig(_pod_context(spec), "windowsOptions", "hostProcess"))
    names = [name for name, _, context in _containers(spec) if _dig(context, "windowsOptions", "hostProcess")]
    if not in_pod and not names:
        return None
    return "hostProcess", f"{_setters(in_pod, names)} must not set securityContext.windowsOptions.hostProcess=true"


# restricted


def _escalation(spec: Raw, minor: Minor) -> Finding | None:
    if _is_windows(spec, minor):
        return None
    names = [name for name, _, context in _containers(spec) if context.get("allowPrivilegeEscalation") is not False]
    if not names:
        return None
    why = f"{_in_containers(names)} must set securityContext.allowPrivilegeEscalation=false"
    return "allowPrivilegeEscalation != false", why


def _restricted_capabilities(spec: Raw, minor: Minor) -> Finding | None:
    if _is_windows(spec, minor):
        return None
    keeping = [
        name for name, _, context in _containers(spec) if "ALL" not in (_dig(context, "capabilities", "drop") or ())
    ]
    adding, capabilities = _added(spec, ("NET_BIND_SERVICE",))
    details = [f'{_in_containers(keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
    details += [_must_not_add(adding, capabilities)] if adding else []
    return ("unrestricted capabilities", "; ".join(details)) if details else None


_VOLUME_TYPES: Final = frozenset(
    "configMap csi downwardAPI emptyDir ephemeral persistentVolumeClaim projected secret".split()
)


def _volumes(spec: Raw, minor: Minor) -> Finding | None:
    found = {}
    for volume in spec.get("volumes") or ():
        types = [field for field, value in volume.items() if field != "name" and value is not None]
        if not _VOLUME_TYPES.intersection(types):
            found[str(volume.get("name", ""))] = types[0] if types and types[0] != "image" else "unknown"
    if not found:
        return None
    verb = "uses" if len(found) == 1 else "use"
    kinds = _named("restricted volume type", "restricted volume types", sorted(set(found.values())))
    return "restricted volume types", f"{_named('volume', 'volumes', list(found))} {verb} {kinds}"


def _non_root(spec: Raw, minor: Minor) -> Finding | None:
    reason = "runAsNonRoot != true"
    in_pod = _pod_context(spec).get("runAsNonRoot")
    own = {name: context.get("runAsNonRoot") for name, _, context in _containers(spec)}
    wrong = [name for name, value in own.items() if value is False]
    if in_pod is False or wrong:
        return reason, f"{_setters(in_pod is False, wrong)} must not set securityContext.runAsNonRoot=false"
    open_ones = [name for name, value in own.items() if value is None] if not in_pod else []
    if open_ones:
        return reason, f"pod or {_in_containers(open_ones)} must set securityContext.runAsNonRoot=true"
    return None


def _root_user(spec: Raw, minor: Minor) -> Finding | None:
    in_pod = _pod_context(spec).get("runAsUser") == 0
    names = [name for name, _, context in _containers(spec) if context.get("runAsUser") == 0]
    return ("runAsUser=0", f"{_setters(in_pod, names)} must not set runAsUser=0") if in_pod or names else None


def _restricted_seccomp(spec: Raw, minor: Minor) -> Finding | None:
    if _is_windows(spec, minor):
        return None
    if (wrong := _bad_seccomp(spec)) is not None:
        return wrong
    if _dig(_pod_context(spec), "seccompProfile") is not None:
        return None
    names = [name for name, _, context in _containers(spec) if context.get("seccompProfile") is None]
    if not names:
        return None
    where = "securityContext.seccompProfile.type"
    return "seccompProfile", f'pod or {_in_containers(names)} must set {where} to "RuntimeDefault" or "Localhost"'


@attrs.frozen
class PolicyCheck:
    name: str
    check: Check
    since: Minor = 0


_BASELINE: Final = (
    PolicyCheck("appArmorProfile", _app_armor),
    PolicyCheck("capabilities_baseline", _baseline_capabilities),
    PolicyCheck("hostNamespaces", _host_namespaces),
    PolicyCheck("hostPathVolumes", _host_path),
    PolicyCheck("hostPorts", _host_ports),
    PolicyCheck("hostProbesAndHostLifecycle", _probe_hosts, 34),
    PolicyCheck("privileged", _privileged),
    PolicyCheck("procMount", _proc_mount),
    PolicyCheck("seLinuxOptions", _se_linux),
    PolicyCheck("seccompProfile_baseline", _baseline_seccomp, 19),
    PolicyCheck("sysctls", _sysctls),
    PolicyCheck("windowsHostProcess", _host_process),
)
_RESTRICTED: Final = (
    PolicyCheck("allowPrivilegeEscalation", _escalation, 8),
    PolicyCheck("capabilities_restricted", _restricted_capabilities, 22),
    PolicyCheck("restrictedVolumes", _volumes),
    PolicyCheck("runAsNonRoot", _non_root),
    PolicyCheck("runAsUser", _root_user, 23),
    PolicyCheck("seccompProfile_restricted", _restricted_seccomp, 19),
)
_COVERED: Final = frozenset(("capabilities_baseline", "hostPathVolumes", "seccompProfile_baseline"))
