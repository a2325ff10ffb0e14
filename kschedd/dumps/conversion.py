"""Conversion of objects from removed API versions to the currently served version.

Most fields have kept their names, and only apiVersion changes. In earlier versions of resource.k8s.io, some fields of
ResourceSlices and claims have other paths.

Source: Kubernetes v1.34, the conversion functions of pkg/apis/resource; the deprecated API migration guide.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.schemas.kinds import BY_NAME, group_of

Raw = dict[str, Any]

_FORMER_GROUPS: Final[Mapping[str, str]] = {"extensions": "apps"}
_EXTENSIONS_ELSEWHERE: Final[Mapping[str, str]] = {"Ingress": "networking.k8s.io", "NetworkPolicy": "networking.k8s.io"}
_REQUEST_FIELDS: Final = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
)


def current(raw: Raw) -> Raw:
    """Return the object in the current version of its kind.

    An object in this version, or an object that is not of a built-in kind, is returned unchanged.
    """
    kind, api_version = raw["kind"], raw["apiVersion"]
    known = BY_NAME.get(kind)
    if known is None or api_version in known.api_versions:
        return raw
    group = group_of(api_version)
    group = _EXTENSIONS_ELSEWHERE.get(kind, _FORMER_GROUPS[group]) if group in _FORMER_GROUPS else group
    if group != known.group:
        return raw  # a custom kind that has the name of a built-in kind
    moved = {**raw, "apiVersion": known.api_version}
    if kind == "ResourceSlice":
        return _flattened_slice(moved)
    if kind in ("ResourceClaim", "ResourceClaimTemplate"):
        return _nested_requests(moved)
    return moved


def _flattened_slice(raw: Raw) -> Raw:
    """Move a device's attributes and capacity from `basic`, where v1beta1 has them, to the device itself."""
    spec = raw.get("spec")
    devices = spec.get("devices") if isinstance(spec, dict) else None
    if not isinstance(devices, list):
        return raw
    flat = []
    for device in devices:
        basic = device.get("basic") if isinstance(device, dict) else None
        if isinstance(basic, dict):
            device = {**{name: value for name, value in device.items() if name != "basic"}, **basic}
        flat.append(device)
    return {**raw, "spec": {**raw["spec"], "devices": flat}}


def _nested_requests(raw: Raw) -> Raw:
    """Move the fields of each request under `exactly`, as v1 requires."""
    spec = raw.get("spec")
    if not isinstance(spec, dict):
        return raw
    if raw["kind"] == "ResourceClaimTemplate":
        inner = spec.get("spec")
        return {**raw, "spec": {**spec, "spec": _nested(inner)}} if isinstance(inner, dict) else raw
    return {**raw, "spec": _nested(spec)}


def _nested(spec: Raw) -> Raw:
    devices = spec.get("devices")
    requests = devices.get("requests") if isinstance(devices, dict) else None
    if not isinstance(devices, dict) or not isinstance(requests, list):
        return spec
    nested = []
    for request in requests:
        if isinstance(request, dict) and "exactly" not in request and "firstAvailable" not in request:
            exactly = {name: request[name] for name in _REQUEST_FIELDS if name in request}
            request = {name: value for name, value in request.items() if name not in _REQUEST_FIELDS}
            request["exactly"] = exactly
        nested.append(request)
    return {**spec, "devices": {**devices, "requests": nested}}
