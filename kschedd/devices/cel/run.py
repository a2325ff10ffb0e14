"""Run-time operations of compiled CEL expressions: lookups, calls, comprehensions, and the accounting of their cost.

A `CelEvaluation` exists for one evaluation of one expression for one device. `cel.program` combines the functions
defined here.

Source: cel-go interpreter (attributes.go, interpretable.go, runtimecost.go) and its messages; the limit is
CELSelectorExpressionMaxCost of api/resource/v1.
Errors: CelFailure, and TooExpensive above the limit.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import attrs

from kschedd.devices.cel.errors import CelFailure
from kschedd.devices.cel.functions import Overload
from kschedd.devices.cel.values import QUANTITY, DeviceMaps, Optional, key_in, kind

MOST_COST: Final = 1_000_000

DEVICE_FIELDS: Final = {
    "driver": "string",
    "attributes": "map(string, map(string, dyn))",
    "capacity": f"map(string, map(string, {QUANTITY}))",
}
ALL_DEVICE_FIELDS: Final = {**DEVICE_FIELDS, "allowMultipleAllocations": "bool"}
"""Fields of `device`, including that of consumable capacity."""


@attrs.frozen(eq=False)
class DeviceInput:
    """The variable `device` of an expression: its attributes and capacities by domain and name."""

    driver: str
    attributes: DeviceMaps
    capacity: DeviceMaps
    allow_multiple_allocations: bool = False

    def field(self, name: str) -> Any:
        return self.allow_multiple_allocations if name == "allowMultipleAllocations" else getattr(self, name)


class CelEvaluation:
    """One evaluation: its input, its variables (the given ones and those of macros), its present cost and its limit."""

    __slots__ = ("cost", "device", "most_cost", "names")

    def __init__(self, device: DeviceInput, names: Mapping[str, Any] | None = None, most_cost: int = MOST_COST) -> None:
        self.device = device
        self.names: dict[str, Any] = {} if names is None else dict(names)
        self.cost, self.most_cost = 0, most_cost

    def spend(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.most_cost:
            raise TooExpensive


class TooExpensive(Exception):
    """The cost limit was exceeded. This ends the evaluation at any depth, and no operator may catch the error."""


Code = Callable[[CelEvaluation], Any]


def constant(value: Any) -> Code:
    return lambda run: value


def member(table: Any, key: Any) -> Any:
    if isinstance(table, dict):
        if (isinstance(key, str) and key in table) or key_in(table, key):
            return table[key]
        if isinstance(table, DeviceMaps):
            return {}
        raise CelFailure(f"no such key: {key}")
    if isinstance(table, list):
        if type(key) is not int:
            raise CelFailure(f"unsupported index type '{kind(key)}' in list")
        if not 0 <= key < len(table):
            raise CelFailure(f"index out of bounds: {key}")
        return table[key]
    raise CelFailure("no such overload")


def member_if_there(table: Any, key: Any) -> Optional:
    if isinstance(table, DeviceMaps) or (isinstance(table, dict) and key_in(table, key)):
        return Optional((member(table, key),))
    if isinstance(table, dict):
        return Optional()
    if isinstance(table, list) and type(key) is int:
        return Optional((table[key],)) if 0 <= key < len(table) else Optional()
    if isinstance(table, DeviceInput) and key in DEVICE_FIELDS:
        return Optional((table.field(key),))
    raise CelFailure("no such overload")


def dispatch(name: str, overloads: tuple[Overload, ...], codes: tuple[Code, ...]) -> Code:
    """Return a closure that calls the overload for the run-time types of the arguments."""

    def call(run: CelEvaluation) -> Any:
        values = [code(run) for code in codes]
        kinds = tuple(map(kind, values))
        for overload in overloads:
            if overload.takes(kinds):
                run.spend(1 if overload.cost is None else max(1, overload.cost(*values)))
                return overload.run(*values)
        raise CelFailure(f"no such overload: {name.lstrip('.')}({', '.join(kinds)})")

    return call


_UNSET: Final = object()


def with_name(run: CelEvaluation, name: str, value: Any, body: Code) -> Any:
    before = run.names.get(name, _UNSET)
    run.names[name] = value
    try:
        return body(run)
    finally:
        if before is _UNSET:
            del run.names[name]
        else:
            run.names[name] = before


def items(table: Any) -> list[Any]:
    if isinstance(table, list):
        return table
    if isinstance(table, dict):
        return list(table)
    shown = {"int": "Int", "string": "String", "bool": "Bool", "double": "Double", "uint": "Uint"}
    of_kind = kind(table)
    raise CelFailure(f"got 'types.{shown.get(of_kind, of_kind)}', expected iterable type")


def decided(values: Iterable[Callable[[], Any]], *, deciding: bool) -> bool:
    """Return the result of `&&`, `||`, `all` and `exists` for these values.

    A value that decides takes precedence, even over failures of other values. Raises CelFailure.
    """
    failure: CelFailure | None = None
    for compute in values:
        try:
            value = compute()
        except CelFailure as fault:
            failure = failure or fault
            continue
        if value is deciding:
            return bool(deciding)
        if type(value) is not bool:
            failure = failure or CelFailure("no such overload")
    if failure is not None:
        raise failure
    return not deciding


def quantified(operand: Code, name: str, body: Code, *, deciding: bool) -> Code:
    def values(run: CelEvaluation) -> Iterator[Callable[[], Any]]:
        for item in items(operand(run)):
            run.spend(4)
            yield partial(with_name, run, name, item, body)

    return lambda run: decided(values(run), deciding=deciding)


def exactly_one(operand: Code, name: str, body: Code) -> Code:
    def decide(run: CelEvaluation) -> bool:
        found = 0
        for item in items(operand(run)):
            run.spend(4)
            found += with_name(run, name, item, body) is True
        return found == 1

    return decide


def collected(operand: Code, name: str, wanted: Code | None, transform: Code | None) -> Code:
    def collect(run: CelEvaluation) -> list[Any]:
        found = []
        for item in items(operand(run)):
            run.spend(12)
            if wanted is not None and with_name(run, name, item, wanted) is not True:
                continue
            found.append(item if transform is None else with_name(run, name, item, transform))
        return found

    return collect
