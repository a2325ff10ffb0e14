"""Conditions on a device, as in claims and device classes."""

from typing import Any

from kschedd.cel.program import CelCondition, compile_condition
from kschedd.cel.values import DeviceMaps, Struct

_TYPE = "kubernetes.DRADevice"
_FIELDS = {
    "driver": "string",
    "attributes": "map(string,map(string,dyn))",
    "capacity": "map(string,map(string,kubernetes.Quantity))",
}


def compile_selector(expression: str) -> CelCondition:
    return compile_condition(expression, {"device": _TYPE}, {_TYPE: _FIELDS})


def device(driver: str, attributes: dict[str, Any], capacity: dict[str, Any]) -> dict[str, Any]:
    """Return the variables for a device with these attributes and capacities by domain."""
    fields = {"driver": driver, "attributes": DeviceMaps(attributes), "capacity": DeviceMaps(capacity)}
    return {"device": Struct(_TYPE, fields)}
