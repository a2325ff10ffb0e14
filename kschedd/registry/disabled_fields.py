"""Fields of disabled feature gates: they are dropped from a new object, unless the old object already uses them.

Device fields are disabled in 1.34 and enabled in 1.36. Image volumes, restart rules of containers, hostname overrides
and environment files are enabled in 1.35, and certificates in projected volumes in 1.37.

Source: Kubernetes v1.34 to v1.37, pkg/api/pod/util.go (dropDisabledFields), pkg/registry/resource/*/strategy.go; the
defaults of the feature gates in pkg/features/kube_features.go.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

Raw = dict[str, Any]
Old = Mapping[str, Any]

_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")


NO_FEATURES: Final[frozenset[str]] = frozenset()

# field of a pod -> feature that enables it
_OF_POD: Final = {
    "image": "fields_of_1_35",
    "restartPolicyRules": "fields_of_1_35",
    "hostnameOverride": "fields_of_1_35",
    "fileKeyRef": "fields_of_1_35",
    "projected": "fields_of_1_37",
    "schedulingGroup": "pod_groups",
}


def drop_disabled(spec: Raw, old: Old | None = None, features: frozenset[str] = NO_FEATURES) -> Raw:
    """Return a pod's spec without the fields of disabled features.

    The disabled features are ImageVolume, ContainerRestartRules, ContainerStopSignals, HostnameOverride, EnvFiles and
    GenericWorkload. `_OF_POD` maps fields to the `features` that enable them.
    """
    used = _used(old or {}) | {field for field, rule in _OF_POD.items() if rule in features}
    wanted = _used(spec) - used
    if not wanted:
        return spec
    new = dict(spec)
    for field in ("hostnameOverride", "schedulingGroup"):
        if field in wanted:
            del new[field]
    gone: frozenset[str] = frozenset()
    if "image" in wanted:
        gone = frozenset(volume.get("name") or "" for volume in spec["volumes"] if "image" in volume)
        new["volumes"] = [volume for volume in spec["volumes"] if "image" not in volume]
        if not new["volumes"]:
            del new["volumes"]
    if "projected" in wanted and "volumes" in new:
        new["volumes"] = [_without_projections(volume) for volume in new["volumes"]]
    for field in _CONTAINERS:
        if field in spec:
            new[field] = [_container(each, wanted, gone, field == "containers") for each in spec[field]]
    return new


def _each_container(spec: Old) -> Iterator[Raw]:
    for field in _CONTAINERS:
        yield from spec.get(field) or ()


_PROJECTIONS: Final = ("clusterTrustBundle", "podCertificate")


def _used(spec: Old) -> set[str]:
    """Return the gated fields that a pod uses."""
    used = {field for field in ("hostnameOverride", "schedulingGroup") if spec.get(field) is not None}
    for volume in spec.get("volumes") or ():
        if "image" in volume:
            used.add("image")
        for source in (volume.get("projected") or {}).get("sources") or ():
            if any(name in source for name in _PROJECTIONS):
                used.add("projected")
    for container in _each_container(spec):
        if container.get("restartPolicyRules"):
            used.add("restartPolicyRules")
        if (container.get("lifecycle") or {}).get("stopSignal") is not None:
            used.add("stopSignal")
        if any("fileKeyRef" in (variable.get("valueFrom") or {}) for variable in container.get("env") or ()):
            used.add("fileKeyRef")
    for container in spec.get("containers") or ():
        if container.get("restartPolicy") is not None:
            used.add("restartPolicyRules")
    return used


def _without_projections(volume: Raw) -> Raw:
    if "projected" not in volume:
        return volume
    sources = [
        {name: source for name, source in each.items() if name not in _PROJECTIONS}
        for each in volume["projected"].get("sources") or ()
    ]
    return {**volume, "projected": {**volume["projected"], "sources": sources}}


def _container(container: Raw, wanted: set[str], gone: frozenset[str], own: bool) -> Raw:
    new = dict(container)
    if gone and "volumeMounts" in new:
        new["volumeMounts"] = [mount for mount in new["volumeMounts"] if mount.get("name") not in gone]
        if not new["volumeMounts"]:
            del new["volumeMounts"]
    if "restartPolicyRules" in wanted:
        new.pop("restartPolicyRules", None)
        if own:
            new.pop("restartPolicy", None)
    if "stopSignal" in wanted and "lifecycle" in new:
        lifecycle = {name: hook for name, hook in new["lifecycle"].items() if name != "stopSignal"}
        if lifecycle:
            new["lifecycle"] = lifecycle
        else:
            del new["lifecycle"]
    if "fileKeyRef" in wanted and "env" in new:
        new["env"] = [_without_file_key(variable) for variable in new["env"]]
    return new


def _without_file_key(variable: Raw) -> Raw:
    source = variable.get("valueFrom")
    if not source or "fileKeyRef" not in source:
        return variable
    return {**variable, "valueFrom": {name: value for name, value in source.items() if name != "fileKeyRef"}}


# Feature -> its fields.
_OF_CLASS: Final = {"extended_resources": ("extendedResourceName",)}
_OF_SLICE: Final = {"partitionable_devices": ("sharedCounters", "perDeviceNodeSelection")}
_OF_DEVICE: Final = {
    "partitionable_devices": ("consumesCounters", "nodeName", "nodeSelector", "allNodes"),
    "device_taints": ("taints",),
    "binding_conditions": ("bindsToNode", "bindingConditions", "bindingFailureConditions"),
    "consumable_capacity": ("allowMultipleAllocations",),
}
_OF_REQUEST: Final = {"consumable_capacity": ("capacity",)}

_Fields = Mapping[str, tuple[str, ...]]


def _off(fields: _Fields, features: frozenset[str], used: Collection[str]) -> list[str]:
    """Return the fields of disabled features that the object does not use already."""
    return [
        field for feature, of_it in fields.items() if feature not in features for field in of_it if field not in used
    ]


def drop_disabled_device_fields(new: Raw, old: Old | None, features: frozenset[str] = NO_FEATURES) -> None:
    """Drop fields of disabled features from an object of resource.k8s.io. `new` is modified; it is already a copy.

    `features` are the enabled features among partitionable_devices, device_taints, binding_conditions,
    consumable_capacity and extended_resources.
    """
    spec = new.get("spec") or {}
    before = (old or {}).get("spec") or {}
    if new.get("kind") == "DeviceClass":
        if gone := _off(_OF_CLASS, features, before):
            new["spec"] = _without(spec, gone)
    elif new.get("kind") == "ResourceSlice":
        slim = _without(spec, _off(_OF_SLICE, features, before))
        if "devices" in slim:
            used = {field for device in before.get("devices") or () for field in device}
            rest = _off(_OF_DEVICE, features, used)
            slim = {**slim, "devices": [_device(device, rest) for device in slim["devices"]]}
        new["spec"] = slim
    elif new.get("kind") == "ResourceClaim":
        new["spec"] = _claim(spec, before, features)
    elif new.get("kind") == "ResourceClaimTemplate" and "spec" in spec:
        new["spec"] = {**spec, "spec": _claim(spec["spec"], before.get("spec") or {}, features)}


def _without(raw: Raw, fields: Any) -> Raw:
    return raw if not any(field in raw for field in fields) else {f: v for f, v in raw.items() if f not in fields}


def _device(device: Raw, fields: list[str]) -> Raw:
    slim = _without(device, fields)
    if "capacity" in slim and "allowMultipleAllocations" in fields:
        capacity = {name: _without(each, ("requestPolicy",)) for name, each in slim["capacity"].items()}
        slim = {**slim, "capacity": capacity}
    return slim


def _claim(spec: Raw, before: Old, features: frozenset[str]) -> Raw:
    devices = spec.get("devices")
    if not devices:
        return spec
    changed = dict(devices)
    used = {field for request in _requests_of(before) for field in request}
    fields = _off(_OF_REQUEST, features, used)
    if devices.get("requests"):
        changed["requests"] = [_request(request, fields) for request in devices["requests"]]
    return {**spec, "devices": changed}


def _requests_of(spec: Old) -> Iterator[Raw]:
    for request in (spec.get("devices") or {}).get("requests") or ():
        if "exactly" in request:
            yield request["exactly"]
        yield from request.get("firstAvailable") or ()


def _request(request: Raw, fields: list[str]) -> Raw:
    new = dict(request)
    if "exactly" in new:
        new["exactly"] = _without(new["exactly"], fields)
    if "firstAvailable" in new:
        new["firstAvailable"] = [_without(each, fields) for each in new["firstAvailable"]]
    return new


_OF_RESULT: Final = ("shareID", "consumedCapacity")


def drop_disabled_claim_status(new: Raw, old: Old, features: frozenset[str] = NO_FEATURES) -> None:
    """Drop device shares from a ResourceClaim's status if their feature is disabled and the old status has none.

    Modifies `new`, a copy.
    """
    if "consumable_capacity" in features or _has_shares(old):
        return
    status = new.get("status") or {}
    if not any(field in device for device in _results(status) for field in _OF_RESULT):
        return
    new["status"] = status = dict(status)
    if "devices" in status:
        status["devices"] = [_without(device, ("shareID",)) for device in status["devices"]]
    if allocation := status.get("allocation"):
        given = allocation.get("devices") or {}
        if "results" in given:
            given = {**given, "results": [_without(result, _OF_RESULT) for result in given["results"]]}
            status["allocation"] = {**allocation, "devices": given}


def _results(status: Old) -> Iterator[Raw]:
    """Yield the allocated devices of a claim, and the devices for which a driver reports a status."""
    yield from ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    yield from status.get("devices") or ()


def _has_shares(claim: Old) -> bool:
    """Return whether a claim has or requests a share of a device."""
    spec = claim.get("spec") or {}
    return (
        any("distinctAttribute" in each for each in (spec.get("devices") or {}).get("constraints") or ())
        or any("capacity" in request for request in _requests_of(spec))
        or any(field in device for device in _results(claim.get("status") or {}) for field in _OF_RESULT)
    )


def drop_terminating_replicas(new: Raw, old: Old, features: frozenset[str]) -> None:
    """Drop the field of DeploymentReplicaSetTerminatingReplicas, which is disabled.

    `new` is modified; it is already a copy.
    """
    if "terminatingReplicas" in new["status"] and "terminatingReplicas" not in (old.get("status") or {}):
        new["status"] = _without(new["status"], ("terminatingReplicas",))
