"""Validation of the spec of a pod or of a pod template.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go (ValidatePodSpec and the functions that it calls). The
functions require specs that match the schema and have their defaults. The pod's metadata is not an input, so the result
is valid for every pod with this spec. `validation_pod_annotations` validates fields against the metadata. Errors are in
upstream's order.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, duplicate, forbidden, invalid, not_found, required, unsupported
from kschedd.api.selecting.names import between, dns_label, dns_subdomain, port_name, qualified_name
from kschedd.registry.go_structs import go_struct
from kschedd.registry.pods.containers import (
    PORT_RANGE,
    refuse_hooks,
    validate_environment,
    validate_hooks,
    validate_mounts,
    validate_resize_policy,
)
from kschedd.registry.pods.defaults import aggregate
from kschedd.registry.pods.security import (
    validate_dns,
    validate_host_aliases,
    validate_pod_security,
    validate_security,
)
from kschedd.registry.pods.volumes import validate_volumes
from kschedd.registry.pods.windows import validate_host_process, validate_system
from kschedd.registry.validation_meta import validate_labels
from kschedd.registry.validation_resources import (
    validate_limits_of_pod,
    validate_pod_requirements,
    validate_requirements,
)
from kschedd.registry.validation_selectors import validate_affinity, validate_spread, validate_tolerations

Raw = dict[str, Any]
Faults = list[FieldError]
Volumes = Mapping[str, Raw]

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_TERMINATION_POLICIES: Final = ("File", "FallbackToLogsOnError")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
_LONGEST_DEADLINE: Final = 2**31 - 1


def validate_pod_spec(spec: Raw, path: str = "spec", *, template: bool = False) -> Faults:
    """Return all errors in the spec of a pod or of a pod template."""
    faults: Faults = []
    if spec.get("terminationGracePeriodSeconds") is None:
        faults.append(required(f"{path}.terminationGracePeriodSeconds"))
    volumes = validate_volumes(spec, f"{path}.volumes", faults)
    claims: frozenset[str] = frozenset()
    if claimed := spec.get("resourceClaims"):
        claims = _validate_pod_claims(claimed, f"{path}.resourceClaims", faults)
    _validate_containers(spec, path, volumes, claims, faults)
    _validate_init_containers(spec, path, volumes, claims, faults)
    _validate_ephemeral_containers(spec, path, volumes, claims, faults)
    if (resources := spec.get("resources")) is not None:
        _validate_resources_of_pod(resources, spec, f"{path}.resources", faults)
    if spec.get("hostNetwork"):
        _validate_ports_on_host(spec, path, faults)
    _one_of(spec, "restartPolicy", RESTART_POLICIES, path, faults)
    _one_of(spec, "dnsPolicy", _DNS_POLICIES, path, faults)
    if labels := spec.get("nodeSelector"):
        validate_labels(labels, f"{path}.nodeSelector", faults)
    validate_pod_security(spec, path, faults)
    if affinity := spec.get("affinity"):
        validate_affinity(affinity, f"{path}.affinity", faults)
    validate_dns(spec, path, faults)
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        kind = gate.get("conditionType") or ""
        faults += [invalid(f"{path}.readinessGates[{index}].conditionType", kind, why) for why in qualified_name(kind)]
    if gates := spec.get("schedulingGates"):
        _validate_gates(gates, f"{path}.schedulingGates", faults)
    if (group := spec.get("schedulingGroup")) is not None:
        _validate_group(group, f"{path}.schedulingGroup", faults)
    if constraints := spec.get("topologySpreadConstraints"):
        validate_spread(constraints, f"{path}.topologySpreadConstraints", faults)
    validate_host_process(spec, path, faults)
    if spec.get("hostUsers") is False:
        _validate_host_users(spec, path, faults)
    _validate_names(spec, path, faults)
    if overhead := spec.get("overhead"):
        validate_requirements({"limits": overhead}, f"{path}.overhead", faults)
    validate_system(spec, path, faults)
    if not template:
        for field in ("containers", "initContainers"):
            for index, container in enumerate(spec.get(field) or ()):
                _validate_image(container, f"{path}.{field}[{index}]", faults)
    return faults


def validate_tokens(spec: Raw, faults: Faults) -> None:
    """Reject projected tokens in a pod (not in a template) that has no service account."""
    if spec.get("serviceAccountName"):
        return
    for index, volume in enumerate(spec.get("volumes") or ()):
        for place, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("serviceAccountToken") is not None:
                here = f"spec.volumes[{index}].projected.sources[{place}].serviceAccountToken"
                faults.append(forbidden(here, "must not be specified when serviceAccountName is not set"))


def validate_new_pod(spec: Raw, faults: Faults) -> None:
    """Reject fields that a new pod may not have: a node name while it is gated, and ephemeral containers."""
    if spec.get("ephemeralContainers"):
        faults.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        faults.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))


def _one_of(spec: Raw, field: str, allowed: Sequence[str], path: str, faults: Faults) -> None:
    value = spec.get(field)
    if not value:
        faults.append(required(f"{path}.{field}"))
    elif value not in allowed:
        faults.append(unsupported(f"{path}.{field}", value, allowed))


def _validate_resources_of_pod(resources: Raw, spec: Raw, path: str, faults: Faults) -> None:
    if (spec.get("os") or {}).get("name") == "windows":
        faults.append(forbidden(path, "may not be set for a windows pod"))
        return
    validate_pod_requirements(resources, aggregate(spec, "requests"), path, faults)
    validate_limits_of_pod(spec, resources.get("limits") or {}, path, faults)


def _validate_host_users(spec: Raw, path: str, faults: Faults) -> None:
    """Check that a pod with its own user namespace shares no other namespace with its node."""
    for field, called in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(field):
            faults.append(forbidden(f"{path}.{called}", "when `hostUsers` is false"))


def _validate_names(spec: Raw, path: str, faults: Faults) -> None:
    """Validate names, and the fields that upstream validates in between."""

    def each(field: str, rule: Any) -> None:
        if name := spec.get(field):
            faults.extend([invalid(f"{path}.{field}", name, why) for why in rule(name)])

    each("serviceAccountName", dns_subdomain)
    each("nodeName", dns_subdomain)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LONGEST_DEADLINE:
        faults.append(invalid(f"{path}.activeDeadlineSeconds", deadline, between(1, _LONGEST_DEADLINE)))
    each("hostname", dns_label)
    each("subdomain", dns_label)
    if tolerations := spec.get("tolerations"):
        validate_tolerations(tolerations, f"{path}.tolerations", faults)
    validate_host_aliases(spec, path, faults)
    each("priorityClassName", dns_subdomain)
    if (name := spec.get("runtimeClassName")) is not None:
        faults += [invalid(f"{path}.runtimeClassName", name, why) for why in dns_subdomain(name)]
    if spec.get("preemptionPolicy") is not None:
        _one_of(spec, "preemptionPolicy", _PREEMPTION_POLICIES, path, faults)


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
    """Check the resource claims and return their names."""
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
        sources = [
            field for field in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(field) is not None
        ]
        shown = go_struct("PodResourceClaim", claim)
        if not sources:
            both = "`resourceClaimName`, `resourceClaimTemplateName`"
            faults.append(invalid(here, shown, f"must specify one of: {both}"))
        elif len(sources) > 1:
            both = "`resourceClaimName` or `resourceClaimTemplateName`"
            faults.append(invalid(here, shown, f"at most one of {both} may be specified"))
        for field in sources:
            faults += [invalid(f"{here}.{field}", claim[field], why) for why in dns_subdomain(claim[field])]
    return frozenset(names - {""})


def _validate_containers(spec: Raw, path: str, volumes: Volumes, claims: frozenset[str], faults: Faults) -> None:
    containers = spec.get("containers")
    if not containers:
        faults.append(required(f"{path}.containers"))
        return
    names: set[str] = set()
    for index, container in enumerate(containers):
        here = f"{path}.containers[{index}]"
        _validate_container(container, spec, here, volumes, claims, faults)
        if (name := container.get("name") or "") in names:
            faults.append(duplicate(f"{here}.name", name))
        names.add(name)
        validate_hooks(container, here, spec.get("terminationGracePeriodSeconds") or 0, faults)
    taken: set[tuple[str, str, int]] = set()
    for index, container in enumerate(containers):
        _validate_host_ports(container, f"{path}.containers[{index}]", taken, faults)


def _validate_init_containers(spec: Raw, path: str, volumes: Volumes, claims: frozenset[str], faults: Faults) -> None:
    names = {container.get("name") or "" for container in spec.get("containers") or ()}
    for index, container in enumerate(spec.get("initContainers") or ()):
        here = f"{path}.initContainers[{index}]"
        _validate_container(container, spec, here, volumes, claims, faults)
        restart = container.get("restartPolicy")
        if restart is not None and restart != "Always":
            faults.append(unsupported(f"{here}.restartPolicy", restart, ("Always",)))
        if (name := container.get("name") or "") in names:
            faults.append(duplicate(f"{here}.name", name))
        elif name:
            names.add(name)
        # Init containers run one after the other, so each is checked separately. As upstream, errors contain the index
        # 0.
        _validate_host_ports(container, f"{path}.initContainers[0]", set(), faults)
        if restart == "Always":
            validate_hooks(container, here, spec.get("terminationGracePeriodSeconds") or 0, faults)
        else:
            refuse_hooks(container, here, faults)


def _validate_container(
    container: Raw, spec: Raw, path: str, volumes: Volumes, claims: frozenset[str], faults: Faults
) -> None:
    """Validate the fields that all types of containers have."""
    name = container.get("name") or ""
    if not name:
        faults.append(required(f"{path}.name"))
    elif wrong := dns_label(name):
        faults += [invalid(f"{path}.name", name, why) for why in wrong]
    if not container.get("image"):
        faults.append(required(f"{path}.image"))
    _one_of(container, "terminationMessagePolicy", _TERMINATION_POLICIES, path, faults)
    if ports := container.get("ports"):
        _validate_ports(ports, f"{path}.ports", faults)
    validate_environment(container, path, faults)
    validate_mounts(container, path, volumes, faults)
    _one_of(container, "imagePullPolicy", _PULL_POLICIES, path, faults)
    if resources := container.get("resources"):
        validate_requirements(resources, f"{path}.resources", faults, claims)
    if container.get("resizePolicy"):
        validate_resize_policy(container, path, spec.get("restartPolicy") or "", faults)
    if context := container.get("securityContext"):
        validate_security(context, f"{path}.securityContext", spec.get("hostUsers") is not False, faults)


def _validate_image(container: Raw, path: str, faults: Faults) -> None:
    """Reject surrounding whitespace in the image of a pod; templates may contain it."""
    image = container.get("image") or ""
    if image != image.strip():
        faults.append(invalid(f"{path}.image", image, "must not have leading or trailing whitespace"))


def _validate_ports(ports: Sequence[Raw], path: str, faults: Faults) -> None:
    names = set()
    for index, port in enumerate(ports):
        here = f"{path}[{index}]"
        if name := port.get("name"):
            if wrong := port_name(name):
                faults += [invalid(f"{here}.name", name, why) for why in wrong]
            elif name in names:
                faults.append(duplicate(f"{here}.name", name))
            names.add(name)
        number = port.get("containerPort") or 0
        if not number:
            faults.append(required(f"{here}.containerPort"))
        elif not 1 <= number <= 65535:
            faults.append(invalid(f"{here}.containerPort", number, PORT_RANGE))
        on_host = port.get("hostPort") or 0
        if on_host and not 1 <= on_host <= 65535:
            faults.append(invalid(f"{here}.hostPort", on_host, PORT_RANGE))
        _one_of(port, "protocol", _PROTOCOLS, here, faults)


def _validate_host_ports(container: Raw, path: str, taken: set[tuple[str, str, int]], faults: Faults) -> None:
    for index, port in enumerate(container.get("ports") or ()):
        if not (on_host := port.get("hostPort") or 0):
            continue
        key = (port.get("protocol") or "", port.get("hostIP") or "", on_host)
        if key in taken:
            faults.append(duplicate(f"{path}.ports[{index}].hostPort", f"{key[0]}/{key[1]}/{on_host}"))
        taken.add(key)


def _validate_ports_on_host(spec: Raw, path: str, faults: Faults) -> None:
    """Check that with host networking, each container port's host port equals the container port."""
    for place, container in enumerate(spec.get("containers") or ()):
        for index, port in enumerate(container.get("ports") or ()):
            on_host = port.get("hostPort") or 0
            if on_host and on_host != (port.get("containerPort") or 0):
                why = "must match `containerPort` when `hostNetwork` is true"
                faults.append(invalid(f"{path}.containers[{place}].ports[{index}].hostPort", on_host, why))


# fields that ephemeral containers may not have, in upstream's order
_NOT_EPHEMERAL: Final = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)


def _validate_ephemeral_containers(
    spec: Raw, path: str, volumes: Volumes, claims: frozenset[str], faults: Faults
) -> None:
    """Validate ephemeral containers. Another function rejects ephemeral containers in templates and new pods."""
    others = {each.get("name") or "" for field in ("containers", "initContainers") for each in spec.get(field) or ()}
    names = set(others)
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        here = f"{path}.ephemeralContainers[{index}]"
        _validate_container(container, spec, here, volumes, claims, faults)
        _validate_image(container, here, faults)
        if (name := container.get("name") or "") in names:
            faults.append(duplicate(f"{here}.name", name))
        names.add(name)
        target = container.get("targetContainerName")
        if target and target not in others:
            faults.append(not_found(f"{here}.targetContainerName", target))
        why = "cannot be set for an Ephemeral Container"
        stated = [
            field for field in _NOT_EPHEMERAL if container.get(field) or (field == "lifecycle" and field in container)
        ]
        faults += [forbidden(f"{here}.{field}", why) for field in stated]
        for place, mount in enumerate(container.get("volumeMounts") or ()):
            for field in ("subPath", "subPathExpr"):
                if mount.get(field):
                    faults.append(forbidden(f"{here}.volumeMounts[{place}].{field}", why))
