"""Taints of devices: validation of DeviceTaintRules, with the messages of 1.37, and the times of taints.

Source: Kubernetes v1.37, pkg/apis/resource/validation/validation.go (validateDeviceTaintRuleSpec), v1/defaults.go.
"""

from typing import Any

from kschedd.api.schemas.fields import FieldError, invalid
from kschedd.api.selecting.names import dns_label
from kschedd.registry.devices.features import validate_device_taint
from kschedd.registry.devices.validation import validate_driver, validate_pool_name


def validate_device_taint_rule(spec: dict[str, Any]) -> list[FieldError]:
    """Return the errors in the spec of a DeviceTaintRule."""
    faults: list[FieldError] = []
    selector, path = spec.get("deviceSelector") or {}, "spec.deviceSelector"
    if "driver" in selector:
        validate_driver(selector["driver"], f"{path}.driver", faults)
    if "pool" in selector:
        validate_pool_name(selector["pool"], f"{path}.pool", faults)
    if "device" in selector:
        device = selector["device"]
        faults += [invalid(f"{path}.device", device, why) for why in dns_label(device)]
    validate_device_taint(spec.get("taint") or {}, "spec.taint", faults)
    return faults


def date_taints(new: dict[str, Any], at: str) -> None:
    """Set the time `at` in taints that have no time, in the devices of a ResourceSlice or in a DeviceTaintRule."""
    spec = new.get("spec") or {}
    if spec.get("taint"):
        new["spec"] = {**spec, "taint": _dated(spec["taint"], at)}
    if any(device.get("taints") for device in spec.get("devices") or ()):
        new["spec"] = {**spec, "devices": [_with_dated_taints(device, at) for device in spec["devices"]]}


def _with_dated_taints(device: dict[str, Any], at: str) -> dict[str, Any]:
    taints = device.get("taints")
    return {**device, "taints": [_dated(taint, at) for taint in taints]} if taints else device


def _dated(taint: dict[str, Any], at: str) -> dict[str, Any]:
    return taint if taint.get("timeAdded") else {**taint, "timeAdded": at}
