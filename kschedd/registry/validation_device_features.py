"""Validation of what 1.36 added to devices: counters, taints, nodes, binding conditions, request policies, resources.

Applies where the fields are kept: those of features that are off have been dropped before (`disabled_fields`).

Source: Kubernetes v1.36, pkg/apis/resource/validation/validation.go; the rules are upstream's, most words ours.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from kschedd.api.fields import FieldError, duplicate, forbidden, invalid, required, too_many, unsupported
from kschedd.api.quantity import nanos
from kschedd.api.resource_names import is_extended
from kschedd.api.validation_names import dns_label, dns_subdomain, label_value, qualified_name
from kschedd.registry.validation_selectors import validate_node_selector

Raw = dict[str, Any]
Faults = list[FieldError]

_MOST_COUNTER_SETS: Final = 8
_MOST_CONSUMPTIONS: Final = 2
_MOST_TAINTS: Final = 16
_MOST_CONDITIONS: Final = 4
_MOST_VALUES: Final = 10
_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_DEVICE_PLACES: Final = ("nodeName", "nodeSelector", "allNodes")
_IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"


def validate_shared_counters(spec: Raw, faults: Faults) -> None:
    """The counter sets of a slice, which stand in a slice of their own."""
    sets = spec.get("sharedCounters") or ()
    if sets and spec.get("devices"):
        faults.append(invalid("spec", "{`sharedCounters`, `devices`}", "only one of these may be set"))
    _validate_counter_sets(sets, "name", "spec.sharedCounters", _MOST_COUNTER_SETS, faults)


def _validate_counter_sets(sets: Sequence[Raw], named_by: str, path: str, most: int, faults: Faults) -> None:
    if len(sets) > most:
        faults.append(too_many(path, len(sets), most))
    seen: set[str] = set()
    for index, one in enumerate(sets):
        here = f"{path}[{index}]"
        name = one.get(named_by) or ""
        faults += [invalid(f"{here}.{named_by}", name, why) for why in dns_label(name)]
        if name in seen:
            faults.append(duplicate(f"{here}.{named_by}", name))
        seen.add(name)
        if not one.get("counters"):
            faults.append(required(f"{here}.counters"))
        for counter in one.get("counters") or ():
            faults += [invalid(f"{here}.counters", counter, why) for why in dns_label(counter)]


def validate_device_features(device: Raw, path: str, faults: Faults, *, per_device: bool) -> None:
    """`per_device`: whether the slice leaves it to its devices which nodes can use them."""
    consumed = device.get("consumesCounters") or ()
    _validate_counter_sets(consumed, "counterSet", f"{path}.consumesCounters", _MOST_CONSUMPTIONS, faults)
    _validate_device_place(device, path, faults, per_device=per_device)
    taints = device.get("taints") or ()
    if len(taints) > _MOST_TAINTS:
        faults.append(too_many(f"{path}.taints", len(taints), _MOST_TAINTS))
    for index, taint in enumerate(taints):
        _validate_taint(taint, f"{path}.taints[{index}]", faults)
    for field in ("bindingConditions", "bindingFailureConditions"):
        _validate_conditions(device.get(field) or (), f"{path}.{field}", faults)
    for one, other in (
        ("bindingConditions", "bindingFailureConditions"),
        ("bindingFailureConditions", "bindingConditions"),
    ):
        if device.get(one) and not device.get(other):
            faults.append(required(f"{path}.{other}", f"{other} are required to use {one}"))
    for name, capacity in (device.get("capacity") or {}).items():
        if capacity.get("requestPolicy") is None:
            continue
        here = f"{path}.capacity[{name}].requestPolicy"
        if device.get("allowMultipleAllocations"):
            _validate_request_policy(capacity["requestPolicy"], here, faults)
        else:
            faults.append(forbidden(here, "allowMultipleAllocations must be true"))


def _validate_device_place(device: Raw, path: str, faults: Faults, *, per_device: bool) -> None:
    stated = [field for field in _DEVICE_PLACES if device.get(field) not in (None, "", False)]
    if not per_device:
        why = "may only be set if `perDeviceNodeSelection` is true"
        faults += [forbidden(f"{path}.{field}", why) for field in stated]
        return
    which = f"exactly one of {', '.join(f'`{field}`' for field in _DEVICE_PLACES)} is required"
    if not stated:
        faults.append(required(path, f"{which} when `perDeviceNodeSelection` is true"))
    elif len(stated) > 1:
        faults.append(invalid(path, "{" + ", ".join(f"`{field}`" for field in stated) + "}", which))
    if name := device.get("nodeName"):
        faults += [invalid(f"{path}.nodeName", name, why) for why in dns_subdomain(name)]
    if (selector := device.get("nodeSelector")) is not None:
        validate_node_selector(selector, f"{path}.nodeSelector", faults)


def _validate_taint(taint: Raw, path: str, faults: Faults) -> None:
    key, value, effect = (taint.get(field) or "" for field in ("key", "value", "effect"))
    if not key:
        faults.append(required(f"{path}.key"))
    else:
        faults += [invalid(f"{path}.key", key, why) for why in qualified_name(key)]
    faults += [invalid(f"{path}.value", value, why) for why in label_value(value)]
    if not effect:
        faults.append(required(f"{path}.effect"))
    elif effect not in _EFFECTS:
        faults.append(unsupported(f"{path}.effect", effect, _EFFECTS))


def _validate_conditions(conditions: Sequence[str], path: str, faults: Faults) -> None:
    if len(conditions) > _MOST_CONDITIONS:
        faults.append(too_many(path, len(conditions), _MOST_CONDITIONS))
    for index, name in enumerate(conditions):
        faults += [invalid(f"{path}[{index}]", name, why) for why in qualified_name(name)]
        if name in conditions[:index]:
            faults.append(duplicate(f"{path}[{index}]", name))


def _validate_request_policy(policy: Raw, path: str, faults: Faults) -> None:
    values, valid_range, default = policy.get("validValues") or (), policy.get("validRange"), policy.get("default")
    if values and valid_range is not None:
        faults.append(invalid(path, "{`validValues`, `validRange`}", "only one of these may be set"))
    if (values or valid_range is not None) and default is None:
        faults.append(required(f"{path}.default", "required when validValues or validRange is defined"))
    if len(values) > _MOST_VALUES:
        faults.append(too_many(f"{path}.validValues", len(values), _MOST_VALUES))
    amounts = [nanos(each) for each in values]
    if amounts != sorted(set(amounts)):
        faults.append(invalid(f"{path}.validValues", None, "must be in ascending order, each once"))
    if default is not None and values and nanos(default) not in amounts:
        faults.append(invalid(f"{path}.default", default, "must be one of validValues"))
    if valid_range is not None:
        _validate_range(valid_range, default, f"{path}.validRange", faults)


def _validate_range(valid_range: Raw, default: Any, path: str, faults: Faults) -> None:
    least, most, step = (valid_range.get(field) for field in ("min", "max", "step"))
    if least is None:
        faults.append(required(f"{path}.min"))
        return
    if most is not None and nanos(most) < nanos(least):
        faults.append(invalid(f"{path}.max", most, "must be greater than or equal to min"))
    if step is not None and nanos(step) <= 0:
        faults.append(invalid(f"{path}.step", step, "must be greater than zero"))
        return
    for field, amount in (("max", most), ("default", default)):
        if step is not None and amount is not None and (nanos(amount) - nanos(least)) % nanos(step):
            faults.append(invalid(f"{path}.{field}", amount, "must be a number of steps above min"))
    outside = default is not None and (
        nanos(default) < nanos(least) or (most is not None and nanos(default) > nanos(most))
    )
    if outside:
        faults.append(invalid(f"{path}.default", default, "must be between min and max"))


def validate_extended_resource_name(name: str, path: str, faults: Faults) -> None:
    if name.startswith(_IMPLICIT) or not is_extended(name):
        faults.append(invalid(path, name, "must be the name of an extended resource"))


def validate_requested_capacity(requests: Iterable[tuple[str, Any]], path: str, faults: Faults) -> None:
    for name, amount in requests:
        if nanos(amount) < 0:
            faults.append(invalid(f"{path}[{name}]", amount, "must be greater than or equal to zero"))
