"""Validation of a new pod's spec, and of a pod's status.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go (ValidatePodSpec and what it calls).
Takes specs that match the schema and have their defaults.  The spec is validated without the pod's metadata, so
that the result is valid for every pod with that spec.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kschedd.api.fields import FieldError, duplicate, forbidden, invalid, not_found, required, unsupported
from kschedd.api.quantity import quoted
from kschedd.api.validation_names import between, dns_label, dns_subdomain, port_name, qualified_name
from kschedd.registry.go_structs import go_struct
from kschedd.registry.pod_defaults import aggregate
from kschedd.registry.validation_containers import (
    PORT_RANGE,
    refuse_hooks,
    validate_environment,
    validate_hooks,
    validate_mounts,
    validate_resize_policy,
)
from kschedd.registry.validation_meta import validate_labels
from kschedd.registry.validation_pod_volumes import validate_volumes
from kschedd.registry.validation_resources import (
    validate_limits_of_pod,
    validate_pod_requirements,
    validate_requirements,
)
from kschedd.registry.validation_security import (
    BAD_ADDRESS,
    is_address,
    validate_network,
    validate_pod_security,
    validate_security,
)
from kschedd.registry.validation_selectors import validate_affinity, validate_spread, validate_tolerations

Raw = dict[str, Any]
Faults = list[FieldError]
Volumes = Mapping[str, Raw]

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_TERMINATION_POLICIES: Final = ("File", "FallbackToLogsOnError")
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_PREEMPTION_POLICIES: Final = ("Never", "PreemptLowerPriority")
_LONGEST_DEADLINE: Final = 2**31 - 1


def validate_pod_spec(spec: Raw, path: str = "spec") -> Faults:
    """All faults of a pod's spec, or of a pod template's."""
    faults: Faults = []
    volumes = validate_volumes(spec, f"{path}.volumes", faults)
    claims: frozenset[str] = frozenset()
    if claimed := spec.get("resourceClaims"):
        claims = _validate_pod_claims(claimed, f"{path}.resourceClaims", faults)
    _validate_containers(spec, path, volumes, claims, faults)
    _validate_policies(spec, path, faults)
    _validate_names(spec, path, faults)
    if labels := spec.get("nodeSelector"):
        validate_labels(labels, f"{path}.nodeSelector", faults)
    if affinity := spec.get("affinity"):
        validate_affinity(affinity, f"{path}.affinity", faults)
    if tolerations := spec.get("tolerations"):
        validate_tolerations(tolerations, f"{path}.tolerations", faults)
    if constraints := spec.get("topologySpreadConstraints"):
        validate_spread(constraints, f"{path}.topologySpreadConstraints", faults)
    if gates := spec.get("schedulingGates"):
        _validate_gates(gates, f"{path}.schedulingGates", faults)
    if (group := spec.get("schedulingGroup")) is not None:
        _validate_group(group, f"{path}.schedulingGroup", faults)
    validate_pod_security(spec, path, faults)
    validate_network(spec, path, faults)
    if overhead := spec.get("overhead"):
        validate_requirements({"limits": overhead}, f"{path}.overhead", faults)
    if resources := spec.get("resources"):
        validate_pod_requirements(resources, aggregate(spec, "requests"), f"{path}.resources", faults)
        validate_limits_of_pod(spec, resources.get("limits") or {}, f"{path}.resources", faults)
    return faults


APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
MIRROR: Final = "kubernetes.io/config.mirror"


def validate_pod_annotations(annotations: Mapping[str, str], spec: Raw, path: str, faults: Faults) -> None:
    """The annotations that say something about the pod's spec."""
    if MIRROR in annotations and not spec.get("nodeName"):
        why = "must set spec.nodeName if mirror pod annotation is set"
        faults.append(invalid(f"{path}[{MIRROR}]", annotations[MIRROR], why))
    for key, profile in annotations.items():
        if not key.startswith(APPARMOR):
            continue
        name = key.removeprefix(APPARMOR)
        fields = ("initContainers", "containers", "ephemeralContainers")
        if not any(name == each.get("name") for field in fields for each in spec.get(field) or ()):
            faults.append(invalid(f"{path}[{key}]", name, "container not found"))
        if profile not in ("", "runtime/default", "unconfined") and not profile.startswith("localhost/"):
            faults.append(invalid(f"{path}[{key}]", profile, f"invalid AppArmor profile name: {quoted(profile)}"))


def validate_new_pod(spec: Raw, faults: Faults) -> None:
    """What only a new pod may not have: a node while it is gated, tokens in volumes without a service account."""
    if spec.get("nodeName") and spec.get("schedulingGates"):
        faults.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    if spec.get("serviceAccountName"):
        return
    for index, volume in enumerate(spec.get("volumes") or ()):
        for place, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("serviceAccountToken") is not None:
                here = f"spec.volumes[{index}].projected.sources[{place}].serviceAccountToken"
                faults.append(forbidden(here, "must not be specified when serviceAccountName is not set"))


def _validate_policies(spec: Raw, path: str, faults: Faults) -> None:
    """Validate enum fields, and fields that are durations."""
    restart = spec.get("restartPolicy")
    if not restart:
        faults.append(required(f"{path}.restartPolicy"))
    elif restart not in RESTART_POLICIES:
        faults.append(unsupported(f"{path}.restartPolicy", restart, RESTART_POLICIES))
    dns = spec.get("dnsPolicy")
    if not dns:
        faults.append(required(f"{path}.dnsPolicy"))
    elif dns not in _DNS_POLICIES:
        faults.append(unsupported(f"{path}.dnsPolicy", dns, _DNS_POLICIES))
    preemption = spec.get("preemptionPolicy")
    if preemption is not None and preemption not in _PREEMPTION_POLICIES:
        faults.append(unsupported(f"{path}.preemptionPolicy", preemption, _PREEMPTION_POLICIES))
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is None:
        faults.append(required(f"{path}.terminationGracePeriodSeconds"))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LONGEST_DEADLINE:
        faults.append(invalid(f"{path}.activeDeadlineSeconds", deadline, between(1, _LONGEST_DEADLINE)))


_SUBDOMAIN_FIELDS: Final = ("nodeName", "serviceAccountName", "priorityClassName")
_LABEL_FIELDS: Final = ("hostname", "subdomain")


def _validate_names(spec: Raw, path: str, faults: Faults) -> None:
    for field in _SUBDOMAIN_FIELDS:
        if name := spec.get(field):
            faults += [invalid(f"{path}.{field}", name, why) for why in dns_subdomain(name)]
    if (name := spec.get("runtimeClassName")) is not None:
        faults += [invalid(f"{path}.runtimeClassName", name, why) for why in dns_subdomain(name)]
    for field in _LABEL_FIELDS:
        if name := spec.get(field):
            faults += [invalid(f"{path}.{field}", name, why) for why in dns_label(name)]


def _validate_group(group: Raw, path: str, faults: list[FieldError]) -> None:
    name = group.get("podGroupName")
    if name is None:
        faults.append(invalid(path, "", "must specify one of: `podGroupName`"))
    else:
        faults += [invalid(f"{path}.podGroupName", name, why) for why in dns_subdomain(name)]


def _validate_gates(gates: Sequence[Raw], path: str, faults: Faults) -> None:
    seen = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        faults += [invalid(f"{path}[{index}]", name, why) for why in qualified_name(name)]
        if name in seen:
            faults.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)


def _validate_pod_claims(claims: Sequence[Raw], path: str, faults: Faults) -> frozenset[str]:
    """Check the claims and return their names."""
    names: set[str] = set()
    for index, claim in enumerate(claims):
        here = f"{path}[{index}]"
        name = claim.get("name") or ""
        if not name:
            faults.append(required(f"{here}.name"))
        elif name in names:
            faults.append(duplicate(f"{here}.name", name))
        else:
            faults += [invalid(f"{here}.name", name, why) for why in dns_label(name)]
        names.add(name)
        sources = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(field)]
        both = "`resourceClaimName`, `resourceClaimTemplateName`"
        if not sources:
            faults.append(invalid(here, go_struct("PodResourceClaim", claim), f"must specify one of: {both}"))
        elif len(sources) > 1:
            faults.append(
                invalid(here, go_struct("PodResourceClaim", claim), f"at most one of {both} may be specified")
            )
        for field in sources:
            faults += [invalid(f"{here}.{field}", claim[field], why) for why in dns_subdomain(claim[field])]
    return frozenset(names)


def _validate_containers(spec: Raw, path: str, volumes: Volumes, claims: frozenset[str], faults: Faults) -> None:
    host_network = bool(spec.get("hostNetwork"))
    names: set[str] = set()
    host_ports: set[tuple[str, str, int]] = set()
    containers = spec.get("containers")
    if not containers:
        faults.append(required(f"{path}.containers"))
    for index, container in enumerate(containers or ()):
        here = f"{path}.containers[{index}]"
        _validate_container(container, spec, here, names, volumes, claims, faults)
        validate_hooks(container, here, spec.get("terminationGracePeriodSeconds") or 0, faults)
        if ports := container.get("ports"):
            _validate_ports(ports, f"{here}.ports", host_network, host_ports, faults)
    host_ports_of_init: set[tuple[str, str, int]] = set()
    for index, container in enumerate(spec.get("initContainers") or ()):
        here = f"{path}.initContainers[{index}]"
        _validate_container(container, spec, here, names, volumes, claims, faults)
        restart = container.get("restartPolicy")
        if restart is not None and restart != "Always":
            faults.append(unsupported(f"{here}.restartPolicy", restart, ("Always",)))
        if restart == "Always":
            validate_hooks(container, here, spec.get("terminationGracePeriodSeconds") or 0, faults)
        else:
            refuse_hooks(container, here, faults)
        if ports := container.get("ports"):
            # Init containers run in sequence; only host ports of sidecars conflict with those of other containers.
            together = host_ports_of_init if restart == "Always" else set()
            _validate_ports(ports, f"{here}.ports", host_network, together, faults)


def _validate_container(
    container: Raw, spec: Raw, path: str, names: set[str], volumes: Volumes, claims: frozenset[str], faults: Faults
) -> None:
    name = container.get("name") or ""
    if not name:
        faults.append(required(f"{path}.name"))
    elif wrong := dns_label(name):
        faults += [invalid(f"{path}.name", name, why) for why in wrong]
    if name in names:
        faults.append(duplicate(f"{path}.name", name))
    names.add(name)
    image = container.get("image") or ""
    if not image:
        faults.append(required(f"{path}.image"))
    elif image != image.strip():
        faults.append(invalid(f"{path}.image", image, "must not have leading or trailing whitespace"))
    pull = container.get("imagePullPolicy")
    if pull and pull not in _PULL_POLICIES:
        faults.append(unsupported(f"{path}.imagePullPolicy", pull, _PULL_POLICIES))
    ending = container.get("terminationMessagePolicy")
    if ending and ending not in _TERMINATION_POLICIES:
        faults.append(unsupported(f"{path}.terminationMessagePolicy", ending, _TERMINATION_POLICIES))
    if resources := container.get("resources"):
        validate_requirements(resources, f"{path}.resources", faults, claims)
    validate_mounts(container, path, volumes, faults)
    validate_environment(container, path, faults)
    if container.get("resizePolicy"):
        validate_resize_policy(container, path, spec.get("restartPolicy") or "", faults)
    if context := container.get("securityContext"):
        validate_security(context, f"{path}.securityContext", spec.get("hostUsers") is not False, faults)


def _validate_ports(
    ports: Sequence[Raw], path: str, host_network: bool, taken: set[tuple[str, str, int]], faults: Faults
) -> None:
    names = set()
    for index, port in enumerate(ports):
        here = f"{path}[{index}]"
        if name := port.get("name"):
            faults += [invalid(f"{here}.name", name, why) for why in port_name(name)]
            if name in names:
                faults.append(duplicate(f"{here}.name", name))
            names.add(name)
        number = port.get("containerPort") or 0
        if not number:
            faults.append(required(f"{here}.containerPort"))
        elif not 1 <= number <= 65535:
            faults.append(invalid(f"{here}.containerPort", number, PORT_RANGE))
        protocol = port.get("protocol") or ""
        if not protocol:
            faults.append(required(f"{here}.protocol"))
        elif protocol not in _PROTOCOLS:
            faults.append(unsupported(f"{here}.protocol", protocol, _PROTOCOLS))
        address = port.get("hostIP") or ""
        on_host = port.get("hostPort") or 0
        if not on_host:
            continue
        if not 1 <= on_host <= 65535:
            faults.append(invalid(f"{here}.hostPort", on_host, PORT_RANGE))
        elif host_network and on_host != number:
            faults.append(invalid(f"{here}.hostPort", on_host, "must match `containerPort` when `hostNetwork` is true"))
        key = (protocol, address, on_host)
        if key in taken:
            faults.append(duplicate(f"{here}.hostPort", f"{protocol}/{address}/{on_host}"))
        taken.add(key)


def validate_pod_status(status: Mapping[str, Any], path: str = "status") -> Faults:
    """The faults of a pod's status."""
    faults: Faults = []
    if nominated := status.get("nominatedNodeName"):
        faults += [invalid(f"{path}.nominatedNodeName", nominated, why) for why in dns_subdomain(nominated)]
    if (status.get("observedGeneration") or 0) < 0:
        why = "must be a non-negative integer"
        faults.append(invalid(f"{path}.observedGeneration", status["observedGeneration"], why))
    for index, condition in enumerate(status.get("conditions") or ()):
        kind = condition.get("type") or ""
        if kind not in _SYSTEM_CONDITIONS:
            faults += [invalid(f"{path}.conditions[{index}].Type", kind, why) for why in qualified_name(kind)]
        if (condition.get("observedGeneration") or 0) < 0:
            why, generation = "must be a non-negative integer", condition["observedGeneration"]
            faults.append(invalid(f"{path}.conditions[{index}].observedGeneration", generation, why))
    for field in ("podIPs", "hostIPs"):
        if addresses := status.get(field):
            _validate_addresses(addresses, f"{path}.{field}", faults)
    for index, claim in enumerate(status.get("resourceClaimStatuses") or ()):
        if name := claim.get("resourceClaimName"):
            here = f"{path}.resourceClaimStatuses[{index}].resourceClaimName"
            faults += [invalid(here, name, why) for why in dns_subdomain(name)]
    return faults


_SYSTEM_CONDITIONS: Final = frozenset(("PodScheduled", "Ready", "Initialized"))


def _validate_addresses(addresses: Sequence[Raw], path: str, faults: Faults) -> None:
    """Addresses, each there once, and of each family one."""
    texts = [address.get("ip") or "" for address in addresses]
    for index, text in enumerate(texts):
        if not is_address(text):
            faults.append(invalid(f"{path}[{index}]", text, BAD_ADDRESS))
    if len(texts) == 1 or not all(map(is_address, texts)):
        return
    families = [":" in text for text in texts]
    if len(texts) > 2 or len(set(families)) == 1:
        shown = [{"IP": text} for text in texts]
        faults.append(invalid(path, shown, "may specify no more than one IP for each IP family"))
    for index, text in enumerate(texts):
        if text in texts[:index]:
            faults.append(duplicate(f"{path}[{index}]", {"IP": text}))


_NOT_EPHEMERAL: Final = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "lifecycle",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
)


def validate_ephemeral_containers(spec: Raw, faults: Faults) -> None:
    """Ephemeral containers, beside the pod's other ones."""
    others = {each.get("name") for field in ("containers", "initContainers") for each in spec.get(field) or ()}
    volumes = {volume.get("name") or "": volume for volume in spec.get("volumes") or ()}
    names: set[str] = set()
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        here = f"spec.ephemeralContainers[{index}]"
        target = container.get("targetContainerName")
        if target and target not in others:
            faults.append(not_found(f"{here}.targetContainerName", target))
        if container.get("name") in others:
            faults.append(duplicate(f"{here}.name", container["name"]))
        why = "cannot be set for an Ephemeral Container"
        faults += [forbidden(f"{here}.{field}", why) for field in _NOT_EPHEMERAL if container.get(field)]
        for place, mount in enumerate(container.get("volumeMounts") or ()):
            for field in ("subPath", "subPathExpr"):
                if mount.get(field):
                    faults.append(forbidden(f"{here}.volumeMounts[{place}].{field}", why))
        allowed = {name: each for name, each in container.items() if name not in _NOT_EPHEMERAL}
        _validate_container(allowed, spec, here, names, volumes, frozenset(), faults)
