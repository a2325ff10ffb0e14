"""Evaluation of CEL selectors for devices; compiled expressions and results per device are cached.

Only this module of the package imports CEL, and only at the first evaluation. A cluster without devices never imports
this module.

Source: Kubernetes v1.34, dynamic-resource-allocation/cel/compile.go (getAttributeValue, DeviceMatches), errors.go.
Errors: SelectorFailure, with kube-scheduler's message, but without the name of the claim or class.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import attrs

from kschedd.cel.errors import CelCompileError, CelFailure
from kschedd.devices.pools.inventory import Device, typed_value
from kschedd.errors import KscheddError

if TYPE_CHECKING:
    from kschedd.cel.program import CelCondition


@attrs.define(eq=False)
class SelectorFailure(KscheddError):
    """The error if a selector has no result: it does not compile, or its evaluation for this device fails."""

    why: str
    at_compile_time: bool


def selects(expression: str, device: Device, *, shares: bool = True) -> bool:
    """Return whether the expression selects the device, or raise SelectorFailure.

    With `shares`, `allowMultipleAllocations` is the device's value; otherwise it is false for every device.
    """
    known = device.verdicts.get(expression)
    if known is None:
        try:
            known = _evaluate(expression, device, shares)
        except SelectorFailure as failure:
            known = failure
        device.verdicts[expression] = known
    if known is True or known is False:
        return known
    raise known


def compile_error(expression: str, *, shares: bool = False) -> str | None:
    """Return the compile error of a new expression; None if it compiles.

    With `shares`, the expression may use `allowMultipleAllocations`. Stored expressions may always use this function.
    """
    failure = _compiled(expression, shares)
    return str(failure) if isinstance(failure, SelectorFailure) else None


def _evaluate(expression: str, device: Device, shares: bool) -> bool:
    program = _compiled(expression, True)
    if isinstance(program, SelectorFailure):
        raise program
    try:
        if not device.view:
            device.view.append(_view(device, shares))
        return program.holds(device.view[0])
    except CelFailure as failure:
        raise SelectorFailure(str(failure), at_compile_time=False) from failure


_DEVICE: Final = "kubernetes.DRADevice"
_FIELDS: Final = {
    "driver": "string",
    "attributes": "map(string,map(string,dyn))",
    "capacity": "map(string,map(string,kubernetes.Quantity))",
}
_ALL_FIELDS: Final = {**_FIELDS, "allowMultipleAllocations": "bool"}
"""Fields of `device`, including that of consumable capacity."""


@lru_cache(maxsize=1024)
def _compiled(expression: str, shares: bool) -> "CelCondition | SelectorFailure":
    from kschedd.cel.program import compile_condition

    try:
        return compile_condition(expression, {"device": _DEVICE}, {_DEVICE: _ALL_FIELDS if shares else _FIELDS})
    except CelCompileError as error:
        return SelectorFailure(str(error), at_compile_time=True)


def _view(device: Device, shares: bool) -> Mapping[str, Any]:
    """Return the variables of an expression about the device. Raises CelFailure for an attribute that is no value."""
    from kschedd.cel.values import DeviceMaps, Quantity, Semver, Struct

    driver = device.id.driver
    attributes, capacity = DeviceMaps(), DeviceMaps()
    raw_attributes: Mapping[str, Any] = device.raw.get("attributes") or {}
    for name, attribute in raw_attributes.items():
        typed = typed_value(attribute)
        if typed is None:
            raise CelFailure(f"attribute {name}: unsupported attribute value")
        value: Any = typed[1]
        if typed[0] == "version":
            try:
                value = Semver.parse(value)
            except CelFailure as failure:
                raise CelFailure(f"attribute {name}: parse semantic version: {failure}") from failure
        _file(attributes, name, driver, value)
    raw_capacity: Mapping[str, Any] = device.raw.get("capacity") or {}
    for name, entry in raw_capacity.items():
        _file(capacity, name, driver, Quantity.parse(entry.get("value", "0")))
    fields = {
        "driver": driver,
        "attributes": attributes,
        "capacity": capacity,
        "allowMultipleAllocations": device.shared and shares,
    }
    return {"device": Struct(_DEVICE, fields)}


def _file(maps: dict[str, Any], qualified: str, driver: str, value: Any) -> None:
    domain, slash, name = qualified.partition("/")
    if not slash:
        domain, name = driver, qualified
    maps.setdefault(domain, {})[name] = value
