"""Consumable capacity: how much of a device's capacities a request takes, and whether that much is left.

A device with `allowMultipleAllocations` is given out in shares as long as the capacity consumed by all shares stays
within its values. A request says how much of a capacity it wants; the capacity's `requestPolicy` rounds that up (to the
next of some values, or to a number of steps above a minimum), and says what is consumed where the request says nothing
(without a policy: all). Capacities that the request does not mention are consumed, too. The same check applies to
devices that are given out whole.

Source: Kubernetes v1.36, dynamic-resource-allocation/structured/internal/incubating/consumable_capacity.go;
structured/internal/types.go (ConsumedCapacityCollection).
Units: amounts are exact; a step is counted in whole units (int64), as in 1.36.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from kschedd.api.quantity import canonical, format_value, parse, value

Raw = Mapping[str, Any]
Amounts = Mapping[str, str]
"""Quantities by name of the capacity."""


def consumed_capacity(requested: Amounts, capacities: Mapping[str, Raw]) -> dict[str, str] | None:
    """What a request consumes of a device with these capacities; None if the device cannot serve such a request.

    It cannot where it lacks a requested capacity, or where the amount is not one that its policy admits.
    """
    if any(name not in capacities for name in requested):
        return None
    consumed = {}
    for name, capacity in capacities.items():
        policy: Raw = capacity.get("requestPolicy") or {}
        amount = _consumed(requested.get(name), str(capacity.get("value", "0")), policy)
        if _violates(amount, policy):
            return None
        consumed[name] = canonical(amount)
    return consumed


def fits(consumed: Amounts, used: Mapping[str, Fraction], capacities: Mapping[str, Raw]) -> bool:
    """Whether this much more than what is used stays within the device's capacities."""
    return all(
        parse(amount) + used.get(name, 0) <= parse(capacities[name].get("value", "0"))
        for name, amount in consumed.items()
    )


def _consumed(requested: str | None, total: str, policy: Raw) -> str:
    if requested is None:
        return str(policy.get("default", total))
    valid_range: Raw = policy.get("validRange") or {}
    if valid_range.get("min") is not None:
        return _round_up(requested, valid_range)
    for valid in policy.get("validValues") or ():
        if parse(requested) <= parse(valid):
            return str(valid)
    return requested


def _round_up(requested: str, valid_range: Raw) -> str:
    least = str(valid_range["min"])
    if parse(requested) < parse(least):
        return least
    step = value(valid_range.get("step") or 0)
    if not step:
        return requested
    above = value(requested) - value(least)
    return format_value(value(least) - -above // step * step, "BinarySI")


def _violates(amount: str, policy: Raw) -> bool:
    if policy.get("default") is not None and parse(amount) == parse(policy["default"]):
        return False
    valid_range = policy.get("validRange")
    if valid_range is not None:
        if valid_range.get("max") is not None and parse(amount) > parse(valid_range["max"]):
            return True
        step = value(valid_range.get("step") or 0)
        return bool(step and (value(amount) - value(valid_range.get("min") or 0)) % step)
    valid_values = policy.get("validValues") or ()
    return bool(valid_values) and all(parse(amount) != parse(valid) for valid in valid_values)


def add(used: dict[str, Fraction], consumed: Amounts, times: int = 1) -> None:
    for name, amount in consumed.items():
        used[name] = used.get(name, Fraction()) + times * parse(amount)
