"""Objects of API versions that are gone, as the version that is served now.

Most fields have kept their names: then only the apiVersion is another. ResourceSlices and claims of resource.k8s.io's
earlier versions have them elsewhere.
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
    """The object in its kind's present version; itself where it is in it, or of a kind that is not built in."""
    kind, api_version = raw["kind"], raw["apiVersion"]
    known = BY_NAME.get(kind)
    if known is None or api_version in known.api_versions:
        return raw
    group = group_of(api_version)
    group = _EXTENSIONS_ELSEWHERE.get(kind, _FORMER_GROUPS[group]) if group in _FORMER_GROUPS else group
    if group != known.group:
        return raw  # somebody else's kind of the same name
    moved = {**raw, "apiVersion": known.api_version}
    if kind == "ResourceSlice":
        return _flattened_slice(moved)
    if kind in ("ResourceClaim", "ResourceClaimTemplate"):
        return _nested_requests(moved)
    return moved


def _flattened_slice(raw: Raw) -> Raw:
    """v1beta1 has attributes and capacity of a device under `basic`."""
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
    """v1 has what a request asks for under `exactly`."""
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
