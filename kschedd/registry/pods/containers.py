"""Validation of container fields for the kubelet: probes, hooks, environment, mounts, block devices, resize policy.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go (validateProbe, validateHandler, ValidateEnv,
ValidateEnvFrom, ValidateVolumeMounts, ValidateVolumeDevices, validateResizePolicy).
The functions require containers that match the schema and have their defaults, and append errors to `faults`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, duplicate, forbidden, invalid, not_found, required, unsupported
from kschedd.api.selecting.names import between, dns_label, dns_subdomain, does_not_match, port_name, without_last_dash
from kschedd.registry.pods.downward_api import validate_field_ref, validate_resource_ref
from kschedd.registry.storage.volume_sources import validate_descending, validate_no_backsteps, with_backsteps
from kschedd.registry.validation_resources import NOT_NEGATIVE

Raw = dict[str, Any]
Faults = list[FieldError]

PORT_RANGE: Final = between(1, 65535)
_HEADER: Final = re.compile(r"[-A-Za-z0-9]+", re.ASCII)
_ONE_HANDLER: Final = "may not specify more than 1 handler type"
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_COUNTS: Final = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_ENV_FIELDS: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)


def config_key_faults(key: str) -> list[str]:
    """Return the errors in a key of a ConfigMap or Secret."""
    faults = []
    if len(key) > 253:
        faults.append("must be no more than 253 characters")
    if not _KEY.fullmatch(key):
        rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        faults.append(does_not_match(rule, "[-._a-zA-Z0-9]+", "key.name", "KEY_NAME", "key-name"))
    elif key in (".", ".."):
        faults.append(f"must not be '{key}'")
    elif key.startswith(".."):
        faults.append("must not start with '..'")
    return faults


def validate_hooks(container: Raw, path: str, grace: int, faults: Faults) -> None:
    """Validate the probes and lifecycle hooks of a container; `grace` is the pod's grace period."""
    lifecycle = container.get("lifecycle") or {}
    for hook in ("postStart", "preStop"):
        if (handler := lifecycle.get(hook)) is not None:
            _validate_handler(handler, f"{path}.lifecycle.{hook}", grace, faults)
    for field in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (probe := container.get(field)) is not None:
            _validate_probe(probe, f"{path}.{field}", field, grace, faults)


def refuse_hooks(container: Raw, path: str, faults: Faults) -> None:
    """Reject fields that are forbidden in init containers other than sidecars."""
    for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(field) is not None:
            why = "may not be set for init containers without restartPolicy=Always"
            faults.append(forbidden(f"{path}.{field}", why))


def _validate_probe(probe: Raw, path: str, field: str, grace: int, faults: Faults) -> None:
    _validate_handler(probe, path, grace, faults)
    for count in _COUNTS:
        if (value := probe.get(count) or 0) < 0:
            faults.append(invalid(f"{path}.{count}", value, NOT_NEGATIVE))
    here, period = f"{path}.terminationGracePeriodSeconds", probe.get("terminationGracePeriodSeconds")
    if period is not None and period <= 0:
        faults.append(invalid(here, period, "must be greater than 0"))
    if field == "readinessProbe":
        if period is not None:
            faults.append(invalid(here, period, "must not be set for readinessProbes"))
    elif (successes := probe.get("successThreshold") or 0) != 1:
        faults.append(invalid(f"{path}.successThreshold", successes, "must be 1"))


def _validate_handler(handler: Raw, path: str, grace: int, faults: Faults) -> None:
    stated = [name for name in _HANDLERS if handler.get(name) is not None]
    if not stated:
        faults.append(required(path, "must specify a handler type"))
        return
    kind, action = stated[0], handler[stated[0]]
    here = f"{path}.{kind}"
    if kind == "exec":
        if not action.get("command"):
            faults.append(required(f"{here}.command"))
    elif kind == "httpGet":
        if not action.get("path"):
            faults.append(required(f"{here}.path"))
        _validate_port(action.get("port", 0), f"{here}.port", faults)
        if action.get("scheme") not in ("HTTP", "HTTPS"):
            faults.append(unsupported(f"{here}.scheme", action.get("scheme") or "", ("HTTP", "HTTPS")))
        for header in action.get("httpHeaders") or ():
            name = header.get("name") or ""
            if not _HEADER.fullmatch(name):
                rule = "a valid HTTP header must consist of alphanumeric characters or '-'"
                why = does_not_match(rule, "[-A-Za-z0-9]+", "X-Header-Name")
                faults.append(invalid(f"{here}.httpHeaders", name, why))
    elif kind == "tcpSocket":
        _validate_port(action.get("port", 0), f"{here}.port", faults)
    elif kind == "grpc":
        port = action.get("port") or 0
        if not 1 <= port <= 65535:
            faults.append(invalid(f"{here}.port", port, PORT_RANGE))
    else:
        seconds = action.get("seconds") or 0
        if not 0 <= seconds <= grace:
            why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            faults.append(invalid(here, seconds, why))
    faults += [forbidden(f"{path}.{extra}", _ONE_HANDLER) for extra in stated[1:]]


def _validate_port(port: int | str, path: str, faults: Faults) -> None:
    if isinstance(port, str):
        faults += [invalid(path, port, why) for why in port_name(port)]
    elif not 1 <= port <= 65535:
        faults.append(invalid(path, port, PORT_RANGE))


# --- environment ---------------------------------------------------------------------------------------------------

_PRINTABLE: Final = re.compile(r"[ -<>-~]+", re.ASCII)
_BAD_VARIABLE: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)


def validate_environment(container: Raw, path: str, faults: Faults) -> None:
    for index, variable in enumerate(container.get("env") or ()):
        here = f"{path}.env[{index}]"
        name = variable.get("name") or ""
        if not name:
            faults.append(required(f"{here}.name"))
        elif not _PRINTABLE.fullmatch(name):
            faults.append(invalid(f"{here}.name", name, _BAD_VARIABLE))
        if (source := variable.get("valueFrom")) is not None:
            _validate_value_from(source, variable.get("value") or "", f"{here}.valueFrom", faults)
    for index, source in enumerate(container.get("envFrom") or ()):
        here = f"{path}.envFrom[{index}]"
        prefix = source.get("prefix") or ""
        if prefix and not _PRINTABLE.fullmatch(prefix):
            faults.append(invalid(f"{here}.prefix", prefix, _BAD_VARIABLE))
        stated = [field for field in ("configMapRef", "secretRef") if source.get(field) is not None]
        for field in stated:
            _validate_reference_name(source[field], f"{here}.{field}", faults)
        if not stated:
            faults.append(invalid(f"{path}.envFrom", "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(stated) > 1:
            faults.append(invalid(f"{path}.envFrom", "", "may not have more than one field specified at a time"))


def _validate_reference_name(source: Raw, path: str, faults: Faults) -> None:
    name = source.get("name") or ""
    if not name:
        faults.append(required(f"{path}.name"))
    else:  # the name may be a prefix, which may end with a dash
        faults += [invalid(f"{path}.name", name, why) for why in dns_subdomain(without_last_dash(name))]


def _validate_value_from(source: Raw, value: str, path: str, faults: Faults) -> None:
    stated = 0
    if (field := source.get("fieldRef")) is not None:
        stated += 1
        validate_field_ref(field, f"{path}.fieldRef", _ENV_FIELDS, faults)
    if (resource := source.get("resourceFieldRef")) is not None:
        stated += 1
        validate_resource_ref(resource, f"{path}.resourceFieldRef", faults, volume=False)
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if (reference := source.get(kind)) is not None:
            stated += 1
            name = reference.get("name") or ""
            faults += [invalid(f"{path}.{kind}.name", name, why) for why in dns_subdomain(name)]
            key = reference.get("key") or ""
            if not key:
                faults.append(required(f"{path}.{kind}.key"))
            else:
                faults += [invalid(f"{path}.{kind}.key", key, why) for why in config_key_faults(key)]
    if (reference := source.get("fileKeyRef")) is not None:
        stated += 1
        _validate_file_key(reference, f"{path}.fileKeyRef", faults)
    if not stated:
        why = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        faults.append(invalid(path, "", why))
    elif value:
        faults.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif stated > 1:
        faults.append(invalid(path, "", "may not have more than one field specified at a time"))


def _validate_file_key(reference: Raw, path: str, faults: Faults) -> None:
    key, volume = reference.get("key") or "", reference.get("volumeName") or ""
    if not key:
        faults.append(required(f"{path}.key"))
    elif not _PRINTABLE.fullmatch(key):
        faults.append(invalid(f"{path}.key", key, _BAD_VARIABLE))
    if not volume:
        faults.append(required(f"{path}.volumeName"))
    else:
        faults += [invalid(f"{path}.volumeName", volume, why) for why in dns_label(volume)]
    if not reference.get("path"):
        faults.append(required(f"{path}.path"))
    else:
        validate_no_backsteps(reference["path"], f"{path}.path", faults)


# --- mounts --------------------------------------------------------------------------------------------------------

_PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
_READ_ONLY: Final = ("Disabled", "Enabled", "IfPossible")


def validate_mounts(container: Raw, path: str, volumes: Mapping[str, Raw], faults: Faults) -> None:
    """Validate volumeMounts and volumeDevices; `volumes` are the pod's valid volumes."""
    devices = container.get("volumeDevices") or ()
    mounts = container.get("volumeMounts") or ()
    if mounts:
        _validate_volume_mounts(mounts, devices, container, f"{path}.volumeMounts", volumes, faults)
    if devices:
        _validate_devices(devices, mounts, f"{path}.volumeDevices", volumes, faults)


def _validate_volume_mounts(
    mounts: Sequence[Raw], devices: Sequence[Raw], container: Raw, path: str, volumes: Mapping[str, Raw], faults: Faults
) -> None:
    of_devices = {device.get("name") or "": device.get("devicePath") or "" for device in devices}
    names, places = of_devices.keys(), set(of_devices.values())
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        here = f"{path}[{index}]"
        name, place = mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            faults.append(required(f"{here}.name"))
        if name not in volumes:
            faults.append(not_found(f"{here}.name", name))
        if not place:
            faults.append(required(f"{here}.mountPath"))
        if place in seen:
            faults.append(invalid(f"{here}.mountPath", place, "must be unique"))
        seen.add(place)
        if name in names:
            faults.append(invalid(f"{here}.name", name, "must not already exist in volumeDevices"))
        if place in places:
            faults.append(invalid(f"{here}.mountPath", place, "must not already exist as a path in volumeDevices"))
        if "image" in (volumes.get(name) or {}):
            faults += [
                invalid(f"{here}.{field}", mount[field], "not allowed in image volume sources")
                for field in ("subPath", "subPathExpr")
                if mount.get(field)
            ]
        if part := mount.get("subPath"):
            validate_descending(part, f"{path}.subPath", faults)
        if expression := mount.get("subPathExpr"):
            if mount.get("subPath"):
                why = "subPathExpr and subPath are mutually exclusive"
                faults.append(invalid(f"{here}.subPathExpr", expression, why))
            validate_descending(expression, f"{path}.subPathExpr", faults)
        propagation = mount.get("mountPropagation")
        if propagation is not None:
            if propagation not in _PROPAGATIONS:
                faults.append(unsupported(f"{path}.mountPropagation", propagation, _PROPAGATIONS))
            if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
                why = "Bidirectional mount propagation is available only to privileged containers"
                faults.append(forbidden(f"{path}.mountPropagation", why))
        _validate_recursive(mount, propagation, f"{path}.recursiveReadOnly", faults)


def _validate_recursive(mount: Raw, propagation: str | None, path: str, faults: Faults) -> None:
    recursive = mount.get("recursiveReadOnly")
    if recursive is None or recursive == "Disabled":
        return
    if recursive not in _READ_ONLY:
        faults.append(unsupported(path, recursive, _READ_ONLY))
        return
    if not mount.get("readOnly"):
        faults.append(forbidden(path, "may only be specified when readOnly is true"))
    if propagation not in (None, "None"):
        faults.append(forbidden(path, "may only be specified when mountPropagation is None or not specified"))


def _validate_devices(
    devices: Sequence[Raw], mounts: Sequence[Raw], path: str, volumes: Mapping[str, Raw], faults: Faults
) -> None:
    names: set[str] = set()
    places: set[str] = set()
    mounted = {mount.get("name") or "": mount.get("mountPath") or "" for mount in mounts}
    mount_paths = set(mounted.values())
    for index, device in enumerate(devices):
        here = f"{path}[{index}]"
        name, place = device.get("name") or "", device.get("devicePath") or ""
        if not name:
            faults.append(required(f"{here}.name"))
        if name in names:
            faults.append(invalid(f"{here}.name", name, "must be unique"))
        volume = volumes.get(name)
        if volume is None:
            faults.append(not_found(f"{here}.name", name))
        elif "persistentVolumeClaim" not in volume and "ephemeral" not in volume:
            why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            faults.append(invalid(f"{here}.name", name, why))
        if not place:
            faults.append(required(f"{here}.devicePath"))
        if place in places:
            faults.append(invalid(f"{here}.devicePath", place, "must be unique"))
        if place and with_backsteps(place):
            faults.append(invalid(f"{here}.devicePath", place, "can not contain backsteps ('..')"))
        else:
            places.add(place)
        if name in mounted:
            faults.append(invalid(f"{here}.name", name, "must not already exist in volumeMounts"))
        if place in mount_paths:
            faults.append(invalid(f"{here}.devicePath", place, "must not already exist as a path in volumeMounts"))
        if name:
            names.add(name)


_HOW: Final = ("NotRequired", "RestartContainer")


def validate_resize_policy(container: Raw, path: str, restart: str, faults: Faults) -> None:
    here = f"{path}.resizePolicy"
    seen: set[str] = set()
    for index, policy in enumerate(container.get("resizePolicy") or ()):
        name, how = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if name in seen:
            faults.append(duplicate(f"{here}[{index}]", name))
        seen.add(name)
        for value, allowed in ((name, ("cpu", "memory")), (how, _HOW)):
            if not value:
                faults.append(required(here))
            elif value not in allowed:
                faults.append(unsupported(here, value, allowed))
        if restart == "Never" and how != "NotRequired":
            faults.append(invalid(here, how, "must be 'NotRequired' when `restartPolicy` is 'Never'"))
