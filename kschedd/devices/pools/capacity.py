"""Consumable capacity: the amounts of a device's capacities that a request consumes.

A device with `allowMultipleAllocations` can be allocated in shares as long as the capacity that all shares consume does
not exceed its values. A request contains the requested amount of a capacity. The capacity's `requestPolicy` rounds the
requested amount up to an allowed value or step. The `requestPolicy` also defines the consumption if a request contains
no amount (without a policy: the whole capacity). Capacities that the request omits are consumed as well. The same check
applies to whole devices.

Source: Kubernetes v1.36 and v1.37, dynamic-resource-allocation/structured/internal/incubating/consumable_capacity.go;
structured/internal/types.go (ConsumedCapacityCollection).
Units: amounts are exact; a step is in whole units (int64), or in thousandths if the range is in thousandths and the
rule fractional_capacity is enabled.
Errors: CapacityError for an amount that upstream's arithmetic cannot represent; without the rule
capacity_representable, the amount overflows as in upstream.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

import attrs

from kschedd.api.quantity import (
    MAX_INT64,
    as_stored,
    canonical,
    format_nanos,
    format_value,
    milli_value,
    parse,
    style,
    value,
)
from kschedd.devices.rules import DeviceRules
from kschedd.errors import KscheddError

Raw = Mapping[str, Any]
Amounts = Mapping[str, str]
"""Quantities by the capacity's name."""


NEGATIVE: Final = "capacity value is negative"
_NOT_REPRESENTABLE: Final = "capacity request cannot be represented in the device's range arithmetic"
_RULES: Final = DeviceRules()


@attrs.define(eq=False)
class CapacityError(KscheddError):
    """The error for a capacity request that makes the allocation on this node fail."""

    name: str
    why: str

    def __str__(self) -> str:
        return f'capacity "{self.name}": {self.why}'


def consumed_capacity(
    requested: Amounts, capacities: Mapping[str, Raw], rules: DeviceRules = _RULES
) -> dict[str, str] | None:
    """Return the consumption of a request on a device with these capacities, or None.

    None means that the device lacks a requested capacity, or that a policy forbids the amount. Raises
    CapacityError.
    """
    if any(name not in capacities for name in requested):
        return None
    consumed = {}
    for name, capacity in sorted(capacities.items()):
        policy: Raw = capacity.get("requestPolicy") or {}
        amount = consumed_amount(requested.get(name), str(capacity.get("value", "0")), policy, rules, name)
        if rules.capacity_representable and parse(amount) < 0:
            raise CapacityError(name, NEGATIVE)
        consumed[name] = amount
    if any(violates(amount, capacities[name].get("requestPolicy") or {}, rules) for name, amount in consumed.items()):
        return None
    return {name: canonical(amount) for name, amount in consumed.items()}


def fits(consumed: Amounts, used: Mapping[str, Fraction], capacities: Mapping[str, Raw]) -> bool:
    """Return whether this consumption and the used amounts together are within the device's capacities."""
    return all(
        parse(amount) + used.get(name, 0) <= parse(capacities[name].get("value", "0"))
        for name, amount in consumed.items()
    )


class _NotRepresentableError(Exception):
    pass


def consumed_amount(requested: str | None, total: str, policy: Raw, rules: DeviceRules, name: str) -> str:
    """Return the consumption of one capacity, without checking its policy; `name` is used in errors.

    Raises CapacityError.
    """
    try:
        return _consumed(requested, total, policy, rules)
    except _NotRepresentableError as fault:
        raise CapacityError(name, f"{_NOT_REPRESENTABLE}: {fault}") from fault


def _consumed(requested: str | None, total: str, policy: Raw, rules: DeviceRules) -> str:
    if requested is None:
        return str(policy.get("default", total))
    valid_range: Raw = policy.get("validRange") or {}
    if valid_range.get("min") is not None:
        return _round_up(requested, valid_range, rules)
    for valid in policy.get("validValues") or ():
        if parse(requested) <= parse(valid):
            return str(valid)
    return requested


def _round_up(requested: str, valid_range: Raw, rules: DeviceRules) -> str:
    least = str(valid_range["min"])
    if parse(requested) < parse(least):
        return least
    if valid_range.get("step") is None:
        return requested
    written = style(valid_range["step"]) if rules.capacity_formatted_by_step else "BinarySI"
    if in_thousandths(valid_range, rules):
        return format_nanos(_in_steps_of_thousandths(requested, valid_range) * 10**6, written)
    step = value(valid_range["step"])
    if not step:
        return requested
    if rules.capacity_representable and parse(requested) > MAX_INT64:
        raise _NotRepresentableError(f"request {as_stored(requested)} exceeds MaxInt64")
    steps = -((value(least) - value(requested)) // step)
    if rules.capacity_representable and value(least) >= 0 and steps > (MAX_INT64 - value(least)) // step:
        raise _NotRepresentableError(f"rounding request {as_stored(requested)} up to the next step passes MaxInt64")
    return format_value(value(least) + steps * step, written)


def _in_steps_of_thousandths(requested: str, valid_range: Raw) -> int:
    asked = thousandths(requested)
    if asked is None:
        raise _NotRepresentableError(f"request {as_stored(requested)} is not a representable milli value")
    least, step = milli_value(valid_range["min"]), milli_value(valid_range["step"])
    steps = -((least - asked) // step)
    if steps > (MAX_INT64 - least) // step:
        what = f"rounding request {as_stored(requested)} up to the next step passes the milli-value range"
        raise _NotRepresentableError(what)
    return least + steps * step


def in_thousandths(valid_range: Raw, rules: DeviceRules) -> bool:
    """Return whether a range is in thousandths: all values are whole thousandths, and the step is not 0."""
    if not rules.fractional_capacity:
        return False
    given = [valid_range[name] for name in ("min", "max", "step") if valid_range.get(name) is not None]
    if any(thousandths(quantity) is None for quantity in given):
        return False
    return valid_range.get("step") is None or milli_value(valid_range["step"]) >= 1


def thousandths(quantity: str) -> int | None:
    """Return an amount in thousandths, or None if it is not a whole number of thousandths within 64 bits."""
    exact = parse(quantity) * 1000
    return int(exact) if exact.denominator == 1 and abs(exact) <= MAX_INT64 else None


def violates(amount: str, policy: Raw, rules: DeviceRules) -> bool:
    """Return whether the policy of a capacity forbids this amount."""
    if policy.get("default") is not None and parse(amount) == parse(policy["default"]):
        return False
    valid_range = policy.get("validRange")
    if valid_range is not None:
        if valid_range.get("max") is not None and parse(amount) > parse(valid_range["max"]):
            return True
        if valid_range.get("step") is not None and in_thousandths(valid_range, rules):
            requested = thousandths(amount)
            least, step = milli_value(valid_range.get("min") or 0), milli_value(valid_range["step"])
            return requested is None or (requested - least) % step != 0
        step = value(valid_range.get("step") or 0)
        return bool(step and (value(amount) - value(valid_range.get("min") or 0)) % step)
    valid_values = policy.get("validValues") or ()
    return bool(valid_values) and all(parse(amount) != parse(valid) for valid in valid_values)


def add(used: dict[str, Fraction], consumed: Amounts, times: int = 1) -> None:
    for name, amount in consumed.items():
        used[name] = used.get(name, Fraction()) + times * parse(amount)
