"""Parts of objects as upstream's messages show them: Go structures of its internal types, as JSON.

Internal types have no names for JSON: fields have their Go names, in Go's order, and all of them are shown. Only what
stands in messages about small structures is here; those about whole pod templates show what was sent.

Source: Kubernetes v1.34, pkg/apis/resource/types.go.
"""

from collections.abc import Mapping
from typing import Any, Final

# Type -> its fields, each with its type: `''`, `0` and `null` are leaves with that value if absent, `*T` is a pointer,
# `[T]` a list.
_STRUCTS: Final[Mapping[str, Mapping[str, str]]] = {
    name: dict(field.split(":") for field in fields.split())
    for name, fields in {
        "ResourceClaimSpec": "Devices:DeviceClaim",
        "DeviceClaim": "Requests:[DeviceRequest] Constraints:[DeviceConstraint] Config:[DeviceClaimConfiguration]",
        "DeviceRequest": "Name:'' Exactly:*ExactDeviceRequest FirstAvailable:[DeviceSubRequest]",
        "ExactDeviceRequest": (
            "DeviceClassName:'' Selectors:[DeviceSelector] AllocationMode:'' Count:0 AdminAccess:null "
            "Tolerations:[DeviceToleration] Capacity:*CapacityRequirements"
        ),
        "DeviceSubRequest": (
            "Name:'' DeviceClassName:'' Selectors:[DeviceSelector] AllocationMode:'' Count:0 "
            "Tolerations:[DeviceToleration] Capacity:*CapacityRequirements"
        ),
        "DeviceSelector": "CEL:*CELDeviceSelector",
        "CELDeviceSelector": "Expression:''",
        "DeviceToleration": "Key:'' Operator:'' Value:'' Effect:'' TolerationSeconds:null",
        "CapacityRequirements": "Requests:null",
        "DeviceConstraint": "Requests:null MatchAttribute:null DistinctAttribute:null",
        "DeviceClaimConfiguration": "Requests:null Opaque:*OpaqueDeviceConfiguration",
        "OpaqueDeviceConfiguration": "Driver:'' Parameters:null",
        "AllocationResult": "Devices:DeviceAllocationResult NodeSelector:*NodeSelector AllocationTimestamp:null",
        "DeviceAllocationResult": "Results:[DeviceRequestAllocationResult] Config:[DeviceAllocationConfiguration]",
        "DeviceRequestAllocationResult": (
            "Request:'' Driver:'' Pool:'' Device:'' AdminAccess:null Tolerations:[DeviceToleration] "
            "BindingConditions:null BindingFailureConditions:null ShareID:null ConsumedCapacity:null"
        ),
        "DeviceAllocationConfiguration": "Source:'' Requests:null Opaque:*OpaqueDeviceConfiguration",
        "NodeSelector": "NodeSelectorTerms:[NodeSelectorTerm]",
        "NodeSelectorTerm": "MatchExpressions:[NodeSelectorRequirement] MatchFields:[NodeSelectorRequirement]",
        "NodeSelectorRequirement": "Key:'' Operator:'' Values:null",
        "CSINodeDriver": "Name:'' NodeID:'' TopologyKeys:null Allocatable:*VolumeNodeResources",
        "VolumeNodeResources": "Count:null",
    }.items()
}
_LEAVES: Final[Mapping[str, Any]] = {"''": "", "0": 0, "null": None}
_META: Final = ("name", "generateName", "namespace", "labels", "annotations")


def go_struct(name: str, raw: Mapping[str, Any] | None) -> dict[str, Any]:
    """An object of this Go type."""
    raw = raw or {}
    return {field: _value(kind, raw.get(_key(field))) for field, kind in _STRUCTS[name].items()}


def go_claim_template(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of a ResourceClaimTemplate: its metadata is embedded, and has names for JSON."""
    meta = spec.get("metadata") or {}
    shown = {field: meta[field] for field in _META if meta.get(field)}
    return {**shown, "Spec": go_struct("ResourceClaimSpec", spec.get("spec"))}


def _key(field: str) -> str:
    return field.lower() if field.isupper() else field[0].lower() + field[1:]


def _value(kind: str, value: Any) -> Any:
    if kind in _LEAVES:
        return _LEAVES[kind] if value is None else value
    if kind[0] == "[":
        return [go_struct(kind[1:-1], each) for each in value] if value else None
    if kind[0] == "*":
        return None if value is None else go_struct(kind[1:], value)
    return go_struct(kind, value)
