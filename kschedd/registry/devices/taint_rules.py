"""Validation of DeviceTaintRules, worded as by the API server of 1.37.

Source: Kubernetes v1.37, pkg/apis/resource/validation/validation.go (validateDeviceTaintRuleSpec).
"""

from typing import Any

from kschedd.api.schemas.fields import FieldError, invalid
from kschedd.api.selecting.names import dns_label
from kschedd.registry.devices.features import validate_device_taint
from kschedd.registry.devices.validation import validate_driver, validate_pool_name


def validate_device_taint_rule(spec: dict[str, Any]) -> list[FieldError]:
    """Return what is wrong with the spec of a DeviceTaintRule."""
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
