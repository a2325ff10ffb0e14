"""Warnings about valid fields of pods and pod templates that are deprecated, ignored, or have surprising effects.

Source: Kubernetes v1.34, pkg/api/pod/warnings.go, pkg/api/node/util.go, pkg/registry/core/pod/strategy.go.
The functions require specs with their defaults. Raises nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kschedd.api.quantity import canonical, milli_value
from kschedd.registry.warnings.addresses import address_warnings
from kschedd.registry.warnings.volumes import overlapping_paths

Raw = Mapping[str, Any]

_NO_POD: Final = "a null labelSelector results in matching no pod"
_APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
_POD_SECCOMP: Final = "seccomp.security.alpha.kubernetes.io/pod"
_USE_SECCOMP: Final = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_USE_APPARMOR: Final = 'deprecated since v1.30; use the "appArmorProfile" field instead'
_NODE_LABELS: Final[Mapping[str, str]] = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
}
_ANNOTATIONS: Final[Mapping[str, str]] = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
# in the order of upstream's warnings
REMOVED_VOLUMES: Final[Mapping[str, str]] = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "ephemeral": "",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_SHOWN: Final[Mapping[str, str]] = {"storageos": "storageOS"}


def pod_warnings(spec: Raw, annotations: Raw, template: str = "") -> Iterator[str]:
    """Yield the warnings about a pod's spec, or about the template at this path."""
    at = f"{template}.spec" if template else "spec"
    meta = f"{template}.metadata.annotations" if template else "metadata.annotations"
    yield from _node_labels(spec, at)
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        path = f"{at}.topologySpreadConstraints[{index}]"
        if why := node_label_warning(key := constraint.get("topologyKey")):
            yield f"{path}.topologyKey: {key} is {why}"
        if constraint.get("labelSelector") is None:
            yield f"{path}.labelSelector: {_NO_POD}"
    yield from (f"{meta}[{key}]: {why}" for key, why in _ANNOTATIONS.items() if key in annotations)
    volumes = spec.get("volumes") or ()
    for index, volume in enumerate(volumes):
        yield from _volume(volume, f"{at}.volumes[{index}]")
    yield from _token_paths(volumes, at)
    for volume in volumes:
        yield from overlapping_paths(volume)
    yield from _lists(spec, at)
    for resource in ("memory", "ephemeral-storage"):
        yield from fraction(spec.get("overhead"), resource, f"{at}.overhead")
    context = spec.get("securityContext") or {}
    if "seccompProfile" not in context and _POD_SECCOMP in annotations:
        yield f"{meta}[{_POD_SECCOMP}]: {_USE_SECCOMP}"
    containers = list(_containers(spec, at))
    for container, path in containers:
        own = container.get("securityContext") or {}
        key = _SECCOMP + container["name"]
        if "seccompProfile" not in own and key in annotations:
            yield f"{meta}[{key}]: {_USE_SECCOMP}"
        key = _APPARMOR + container["name"]
        if template and "appArmorProfile" not in context and "appArmorProfile" not in own and key in annotations:
            yield f"{meta}[{key}]: {_USE_APPARMOR}"
        yield from _amounts(container.get("resources") or {}, f"{path}.resources")
        yield from _environment(container.get("env") or (), f"{path}.env")
    yield from _ports(containers)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        why = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{at}.terminationGracePeriodSeconds: {why}"
    yield from _affinity(spec.get("affinity") or {}, f"{at}.affinity")
    for index, address in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        yield from address_warnings(address, f"{at}.dnsConfig.nameservers[{index}]")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        yield from address_warnings(alias.get("ip") or "", f"{at}.hostAliases[{index}].ip")


def is_warned_of(annotation: str) -> bool:
    """Return whether `pod_warnings` checks this annotation."""
    return annotation in _ANNOTATIONS or annotation == _POD_SECCOMP or annotation.startswith((_SECCOMP, _APPARMOR))


def node_label_warning(key: Any) -> str:
    """Return the reason why a node label is deprecated, or ""."""
    return _NODE_LABELS.get(key, "")


def term_warnings(term: Raw, path: str) -> Iterator[str]:
    """Yield the warnings of a node selector term, or of a label selector for nodes."""
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        if why := node_label_warning(expression.get("key")):
            yield f"{path}.matchExpressions[{index}].key: {expression['key']} is {why}"
    for key in term.get("matchLabels") or ():
        if why := node_label_warning(key):
            yield f"{path}.matchLabels.{key}: {why}"


def fraction(amounts: Raw | None, resource: str, path: str) -> Iterator[str]:
    """Yield a warning if an amount is not a whole number of bytes."""
    if amounts and resource in amounts and milli_value(amounts[resource]) % 1000:
        shown = canonical(amounts[resource])
        yield f'{path}[{resource}]: fractional byte value "{shown}" is invalid, must be an integer'


def claim_spec_warnings(spec: Raw, path: str) -> Iterator[str]:
    resources = spec.get("resources") or {}
    yield from fraction(resources.get("requests"), "storage", f"{path}.resources.requests")
    yield from fraction(resources.get("limits"), "storage", f"{path}.resources.limits")


def _node_labels(spec: Raw, at: str) -> Iterator[str]:
    for key in spec.get("nodeSelector") or ():
        if why := node_label_warning(key):
            yield f"{at}.nodeSelector[{key}]: {why}"
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    path = f"{at}.affinity.nodeAffinity"
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for index, term in enumerate(required.get("nodeSelectorTerms") or ()):
        yield from term_warnings(
            term, f"{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{index}]"
        )
    for index, each in enumerate(affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()):
        where = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}].preference"
        yield from term_warnings(each.get("preference") or {}, where)


def _volume(volume: Raw, path: str) -> Iterator[str]:
    for name, why in REMOVED_VOLUMES.items():
        source = volume.get(name)
        if source is None:
            continue
        if name == "ephemeral":
            claim = (source.get("volumeClaimTemplate") or {}).get("spec") or {}
            yield from claim_spec_warnings(claim, f"{path}.ephemeral.volumeClaimTemplate.spec")
        else:
            yield f"{path}.{_SHOWN.get(name, name)}: {why}"


def _token_paths(volumes: Any, at: str) -> Iterator[str]:
    """Yield warnings about files that occur twice in a projected volume, at least once as a token."""
    sources = [
        (index, source)
        for index, volume in enumerate(volumes)
        for source in (volume.get("projected") or {}).get("sources") or ()
    ]
    tokens = {source["serviceAccountToken"].get("path") for _, source in sources if source.get("serviceAccountToken")}
    if not tokens:
        return
    why = "has duplicated path with ServiceAccountToken"
    for index, source in sources:
        path = f"{at}.volumes[{index}].projected.sources"
        for name, shown in (("configMap", "configMap"), ("secret", "secrets"), ("downwardAPI", "downwardAPI")):
            for place, item in enumerate((source.get(name) or {}).get("items") or ()):
                if item.get("path") in tokens:
                    yield f'{path}.{shown}[{place}]: {why} "{item["path"]}"'
        bundle = source.get("clusterTrustBundle") or {}
        if bundle and bundle.get("path") in tokens:
            yield f'{path}.ClusterTrustBundle: {why} "{bundle["path"]}"'


def _lists(spec: Raw, at: str) -> Iterator[str]:
    for field, name in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        seen = set()
        for index, item in enumerate(spec.get(field) or ()):
            value = item.get(name) or ""
            if value in seen:
                yield f'{at}.{field}[{index}].{name}: duplicate {name} "{value}"'
            seen.add(value)
    for index, item in enumerate(spec.get("imagePullSecrets") or ()):
        if not item.get("name"):
            yield f'{at}.imagePullSecrets[{index}].name: invalid empty name ""'


def _containers(spec: Raw, at: str) -> Iterator[tuple[Raw, str]]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield container, f"{at}.{field}[{index}]"


def _amounts(resources: Raw, path: str) -> Iterator[str]:
    for resource in ("memory", "ephemeral-storage"):
        for part in ("limits", "requests"):
            yield from fraction(resources.get(part), resource, f"{path}.{part}")


def _environment(env: Any, path: str) -> Iterator[str]:
    seen = set()
    for index, item in enumerate(env):
        name, value = item.get("name"), item.get("value") or ""
        if name not in seen:
            seen.add(name)
            continue
        reference = f"$({name})"
        if item.get("valueFrom") is not None or value == reference or reference not in value:
            yield f'{path}[{index}]: hides previous definition of "{name}", which may be dropped when using apply'


def _ports(containers: list[tuple[Raw, str]]) -> Iterator[str]:
    ports: dict[tuple[Any, Any], list[tuple[str, str, int]]] = {}
    for container, path in containers:
        for index, port in enumerate(container.get("ports") or ()):
            where, address, own = f"{path}.ports[{index}]", port.get("hostIP") or "", port.get("hostPort") or 0
            if address and not own:
                yield f"{where}: hostIP set without hostPort: {_printed(port)}"
            others = ports.setdefault((port.get("containerPort"), port.get("protocol")), [])
            for other, its_address, its_port in others:
                if (address, own) == (its_address, its_port):
                    yield f"{where}: duplicate port definition with {other}"
                elif not own or not its_port:
                    yield f"{where}: overlapping port definition with {other}"
                elif own == its_port and (not address) != (not its_address):
                    yield f"{where}: dangerously ambiguous port definition with {other}"
            others.append((where, address, own))
    yield from _port_names(containers)


def _port_names(containers: list[tuple[Raw, str]]) -> Iterator[str]:
    names: dict[str, str] = {}
    for container, path in containers:
        if ".ephemeralContainers[" in path:
            continue
        for index, port in enumerate(container.get("ports") or ()):
            where, name = f"{path}.ports[{index}]", port.get("name")
            if not name:
                continue
            if name in names:
                first = names[name]
                yield (
                    f'{where}: duplicate port name "{name}" with {first}, services and probes that select ports by '
                    f"name will use {first}"
                )
            else:
                names[name] = where


def _printed(port: Raw) -> str:
    """Return a port as Go prints it."""
    fields = ("name", ""), ("hostPort", 0), ("containerPort", 0), ("protocol", ""), ("hostIP", "")
    shown = " ".join(f"{name[0].upper()}{name[1:]}:{port.get(name) or empty}" for name, empty in fields)
    return "{" + shown + "}"


def _affinity(affinity: Raw, path: str) -> Iterator[str]:
    for sort in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(sort) or {}
        for field, inner in (
            ("requiredDuringSchedulingIgnoredDuringExecution", ""),
            ("preferredDuringSchedulingIgnoredDuringExecution", "podAffinityTerm"),
        ):
            for index, each in enumerate(terms.get(field) or ()):
                term = each.get(inner) or {} if inner else each
                if term.get("labelSelector") is None:
                    where = f"{path}.{sort}.{field}[{index}]" + (f".{inner}" if inner else "")
                    yield f"{where}.labelSelector: {_NO_POD}"
