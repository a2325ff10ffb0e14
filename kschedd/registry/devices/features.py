"""Validation of device fields added in 1.36: counters, taints, node selection, binding conditions, request policies.

Fields of disabled features have already been dropped (`disabled_fields`).

Source: Kubernetes v1.36, pkg/apis/resource/validation/validation.go.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from kschedd.api.quantity import as_stored, format_nanos, nanos, style, value
from kschedd.api.schemas.fields import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    repeats,
    required,
    too_many,
    unsupported,
)
from kschedd.api.selecting.names import dns_label, dns_subdomain, label_value, qualified_name
from kschedd.api.selecting.resource_names import is_extended
from kschedd.registry.validation_selectors import validate_node_selector

Raw = dict[str, Any]
Faults = list[FieldError]

_MOST_COUNTER_SETS: Final = 8
_MOST_COUNTERS: Final = 32
_MOST_CONSUMPTIONS: Final = 2
_MOST_DEVICES: Final = 128
_MOST_DEVICES_WITH_FEATURES: Final = 64
_MOST_TAINTS: Final = 16
_MOST_CONDITIONS: Final = 4
_MOST_VALUES: Final = 10
_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_DEVICE_PLACES: Final = ("nodeName", "nodeSelector", "allNodes")
_PER_DEVICE: Final = "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
_IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"


def validate_shared_counters(spec: Raw, faults: Faults) -> None:
    """Validate the counter sets of a slice, which may not also contain devices."""
    sets = spec.get("sharedCounters")
    if sets is not None and spec.get("devices") is not None:
        faults.append(invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    _validate_counter_sets(sets or (), "name", "spec.sharedCounters", _MOST_COUNTER_SETS, faults)


def _validate_counter_sets(sets: Sequence[Raw], named_by: str, path: str, most: int, faults: Faults) -> None:
    if len(sets) > most:
        faults.append(too_many(path, len(sets), most))
        return
    for index, one in enumerate(sets):
        here = f"{path}[{index}]"
        name, counters = one.get(named_by) or "", one.get("counters") or {}
        if not name:
            faults.append(required(f"{here}.{named_by}"))
        else:
            faults += [invalid(f"{here}.{named_by}", name, why) for why in dns_label(name)]
        if not counters:
            faults.append(required(f"{here}.counters"))
        elif len(counters) > _MOST_COUNTERS:
            faults.append(too_many(f"{here}.counters", len(counters), _MOST_COUNTERS))
        else:
            faults += [
                invalid(f"{here}.counters[{counter}]", counter, why)
                for counter in counters
                for why in dns_label(counter)
            ]
    _repeated([one.get(named_by) or "" for one in sets], path, faults)


def _repeated(keys: Sequence[str], path: str, faults: Faults) -> None:
    faults += [duplicate(f"{path}[{index}]", key) for index, key in repeats(keys)]


def most_devices(devices: Sequence[Raw]) -> int:
    """Return the maximum number of devices for a slice that contains these devices."""
    features = any(device.get(field) for device in devices for field in ("taints", "consumesCounters"))
    return _MOST_DEVICES_WITH_FEATURES if features else _MOST_DEVICES


def validate_device_features(device: Raw, path: str, faults: Faults, *, per_device: bool) -> None:
    """Validate the fields of a device that were added in 1.36.

    `per_device` is true if each device of the slice has its own node selection.
    """
    for name, capacity in (device.get("capacity") or {}).items():
        policy = capacity.get("requestPolicy")
        if policy is None:
            continue
        here = f"{path}.capacity[{name}].requestPolicy"
        if device.get("allowMultipleAllocations"):
            _validate_request_policy(policy, capacity.get("value") or "0", here, faults)
        else:
            faults.append(forbidden(here, "allowMultipleAllocations must be true"))
    taints = device.get("taints") or ()
    if len(taints) > _MOST_TAINTS:
        faults.append(too_many(f"{path}.taints", len(taints), _MOST_TAINTS))
    else:
        for index, taint in enumerate(taints):
            validate_device_taint(taint, f"{path}.taints[{index}]", faults)
    consumed = device.get("consumesCounters") or ()
    _validate_counter_sets(consumed, "counterSet", f"{path}.consumesCounters", _MOST_CONSUMPTIONS, faults)
    _validate_device_place(device, path, faults, per_device=per_device)
    _validate_conditions(device, path, faults)


def _validate_device_place(device: Raw, path: str, faults: Faults, *, per_device: bool) -> None:
    if not per_device:
        if any(device.get(field) is not None for field in _DEVICE_PLACES):
            faults.append(
                invalid(path, None, f"`nodeName`, `nodeSelector` and `allNodes` can only be set if {_PER_DEVICE}")
            )
        return
    if (name := device.get("nodeName")) is not None:
        if not name:
            faults.append(invalid(f"{path}.nodeName", name, "must not be empty"))
        faults += [invalid(f"{path}.nodeName", name, why) for why in dns_subdomain(name) if name]
    if (selector := device.get("nodeSelector")) is not None:
        validate_node_selector(selector, f"{path}.nodeSelector", faults)
    if device.get("allNodes") is False:
        faults.append(invalid(f"{path}.allNodes", False, "must be either unset or set to true"))
    stated = [field for field in _DEVICE_PLACES if device.get(field) not in (None, "", False)]
    why = f"exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when {_PER_DEVICE}"
    if not stated:
        faults.append(required(path, why))
    elif len(stated) > 1:
        faults.append(invalid(path, "{" + ", ".join(f"`{field}`" for field in stated) + "}", why))


def validate_device_taint(taint: Raw, path: str, faults: Faults) -> None:
    key, text, effect = (taint.get(field) or "" for field in ("key", "value", "effect"))
    faults += [invalid(f"{path}.key", key, why) for why in qualified_name(key)]
    faults += [invalid(f"{path}.value", text, why) for why in label_value(text)]
    if not effect:
        faults.append(required(f"{path}.effect"))
    elif effect not in _EFFECTS:
        faults.append(unsupported(f"{path}.effect", effect, _EFFECTS))


def _validate_conditions(device: Raw, path: str, faults: Faults) -> None:
    ready, failed = (device.get(field) or () for field in ("bindingConditions", "bindingFailureConditions"))
    for field, names in (("bindingConditions", ready), ("bindingFailureConditions", failed)):
        here = f"{path}.{field}"
        if len(names) > _MOST_CONDITIONS:
            faults.append(too_many(here, len(names), _MOST_CONDITIONS))
            continue
        faults += [
            invalid(f"{here}[{index}]", name, why) for index, name in enumerate(names) for why in qualified_name(name)
        ]
        _repeated(names, here, faults)
    why = "bindingFailureConditions must not overlap with bindingConditions"
    faults += [
        invalid(f"{path}.bindingFailureConditions[{index}]", name, why)
        for index, name in enumerate(failed)
        if name in ready
    ]
    for missing, used, has in (
        ("bindingConditions", "bindingFailureConditions", bool(failed) and not ready),
        ("bindingFailureConditions", "bindingConditions", bool(ready) and not failed),
    ):
        if has:
            faults.append(invalid(f"{path}.{missing}", device.get(missing), f"{missing} are required to use {used}"))


def _validate_request_policy(policy: Raw, capacity: Any, path: str, faults: Faults) -> None:
    """Validate a request policy; `capacity` is the total capacity of the device."""
    values, valid_range, default = policy.get("validValues") or (), policy.get("validRange"), policy.get("default")
    if values and valid_range is not None:
        both = 'cannot specify "validValues" and "validRange" at the same time'
        faults.append(forbidden(path, f"exactly one policy can be specified, {both}"))
    elif (values or valid_range is not None) and default is None:
        faults.append(
            required(f"{path}.default", f"required when {'validValues' if values else 'validRange'} is defined")
        )
    elif values:
        _validate_values(values, default, capacity, f"{path}.validValues", faults)
    elif valid_range is not None:
        _validate_range(valid_range, default, capacity, f"{path}.validRange", faults)


def _validate_values(values: Sequence[Any], default: Any, capacity: Any, path: str, faults: Faults) -> None:
    for index in range(1, len(values)):
        if nanos(values[index - 1]) > nanos(values[index]):
            why = "values must be sorted in ascending order"
            faults.append(invalid(f"{path}[{index}]", as_stored(values[index]), why))
    if len(values) > _MOST_VALUES:
        faults.append(too_many(path, len(values), _MOST_VALUES))
        values = ()
    for index, each in enumerate(values):
        if nanos(each) > nanos(capacity):
            why = f"option is larger than capacity value: {as_stored(capacity)}"
            faults.append(invalid(f"{path}[{index}]", as_stored(each), why))
    _repeated([str(value(each)) for each in values], path, faults)
    if nanos(default) not in (nanos(each) for each in values):
        faults.append(invalid(path, as_stored(default), "default value is not valid according to the requestPolicy"))


def _validate_range(valid_range: Raw, default: Any, capacity: Any, path: str, faults: Faults) -> None:
    least, most, step = (valid_range.get(field) for field in ("min", "max", "step"))
    if least is None:
        faults.append(required(f"{path}.min", "required when validRange is defined"))
        return
    compared = [
        ("min", least, capacity, "min is larger than capacity value"),
        ("min", default, least, "default is less than min"),
    ]
    if most is not None:
        compared += [
            ("max", least, most, "min is larger than max"),
            ("max", most, capacity, "max is larger than capacity value"),
            ("max", default, most, "default is more than max"),
        ]
    for field, one, other, what in compared:
        sign = -1 if "less" in what else 1
        if sign * nanos(one) > sign * nanos(other):
            faults.append(invalid(f"{path}.{field}", as_stored(one), f"{what}: {as_stored(other)}"))
    if step is not None:
        _validate_step(step, least, [default] if most is None else [default, most], capacity, f"{path}.step", faults)


def _validate_step(step: Any, least: Any, amounts: Sequence[Any], capacity: Any, path: str, faults: Faults) -> None:
    if value(step) <= 0:
        faults.append(invalid(path, as_stored(step), "must be greater than zero"))  # upstream divides by it
        return
    added = nanos(least) + nanos(step)
    if added > nanos(capacity):
        why = f"one step {format_nanos(added, style(least))} is larger than capacity value: {as_stored(capacity)}"
        faults.append(invalid(path, as_stored(step), why))
    for amount in amounts:
        if (value(amount) - value(least)) % value(step):
            why = f"value is not a multiple of a given step ({as_stored(step)}) from ({as_stored(least)})"
            faults.append(invalid(path, as_stored(amount), why))


def validate_extended_resource_name(name: str, path: str, faults: Faults) -> None:
    if name.startswith(_IMPLICIT) or not is_extended(name):
        faults.append(invalid(path, name, "must be the name of an extended resource"))


def validate_requested_capacity(requests: Iterable[tuple[str, Any]], path: str, faults: Faults) -> None:
    for name, amount in requests:
        if nanos(amount) < 0:
            faults.append(invalid(f"{path}[{name}]", amount, "must be greater than or equal to zero"))
