"""Conversion errors of objects after a strategic merge, with the messages of kube-apiserver's converter.

A strategic merge patch is applied to a map, which is then converted to the kind's Go type without JSON text. The
conversion processes the fields in the order of their types and ends at the first error. The conversion is more lenient
than a JSON decoder: a float without a fraction is an integer, and integers are truncated to the field's size.

Source: Kubernetes v1.34, apimachinery/pkg/runtime/converter.go (fromUnstructured). Types with a decoder of their own
(quantities, times, integer-or-strings) receive the value as JSON.
"""

from typing import Any, Final

from kschedd.api.schemas.check import schema_for
from kschedd.api.schemas.schema import (
    ANY,
    BOOL,
    BYTES,
    INT,
    INT32,
    INT_OR_STR,
    MICRO_TIME,
    NUMBER,
    QUANTITY,
    STR,
    TIME,
    Fields,
    ListOf,
    MapOf,
    Schema,
    go_type,
)
from kschedd.api.schemas.unmarshal_errors import base64_error, item_type, json_kind, quantity_error
from kschedd.api.text.time_errors import time_error

_GO_KINDS: Final = {STR: "string", INT: "int64", INT32: "int32", NUMBER: "float64", BOOL: "bool"}


def conversion_error(raw: dict[str, Any]) -> str:
    """Return the error that kube-apiserver reports for a merged object, or "" if it can be converted."""
    schema = schema_for(raw)
    return "" if schema is None else _fields(raw, schema)


def converted(raw: dict[str, Any]) -> dict[str, Any]:
    """Return a merged object without conversion errors.

    Integers in the returned value have the values that the Go fields would store.
    """
    found: dict[str, Any] = _converted(raw, schema_for(raw) or ANY)
    return found


def _converted(value: Any, schema: Schema) -> Any:
    if isinstance(schema, Fields):
        return {name: _converted(each, schema.get(name, ANY)) for name, each in value.items()} if value else value
    if isinstance(schema, ListOf):
        return value and [_converted(each, schema.item) for each in value]
    if isinstance(schema, MapOf):
        return value and {name: _converted(each, schema.item) for name, each in value.items()}
    if schema not in (INT, INT32) or isinstance(value, bool) or not isinstance(value, int | float):
        return value
    whole = int(value)
    # for a float outside int64, the result of the conversion depends on the processor
    if not -(2**63) <= whole < 2**63:
        whole = -(2**63)
    return whole if schema is INT else (whole + 2**31) % 2**32 - 2**31


def _fields(value: Any, fields: Fields) -> str:
    if not isinstance(value, dict):
        return f"cannot restore struct from: {_go_kind(value)}"
    for name, schema in fields.items():
        if value.get(name) is not None and (why := _fault(value[name], schema, go_type(fields, name))):
            return why
    return ""


def _fault(value: Any, schema: Schema, named: str) -> str:
    """Return the error of a value; `named` is the field's Go type."""
    sort = type(schema)
    if sort is str:
        return _leaf_fault(value, schema, named)
    if sort is Fields:
        return _fields(value, schema)
    if sort is ListOf:
        if not isinstance(value, list):
            return f"cannot restore slice from {_go_kind(value)}"
        found = (_fault(each, schema.item, item_type(named)) for each in value if each is not None)
    else:
        if not isinstance(value, dict):
            return f"cannot restore map from {_go_kind(value)}"
        inner = item_type(named)
        found = (_fault(each, schema.item, inner) for _, each in sorted(value.items()) if each is not None)
    return next(filter(None, found), "")


def _leaf_fault(value: Any, schema: str, named: str) -> str:
    if schema is ANY:
        return ""
    if schema is QUANTITY:
        return quantity_error(value)
    if schema is TIME or schema is MICRO_TIME:
        if not isinstance(value, str):
            return f"json: cannot unmarshal {json_kind(value)} into Go value of type string"
        return time_error(value, micro=schema is MICRO_TIME)
    if schema is INT_OR_STR:
        known = isinstance(value, str | int) and not isinstance(value, bool)
        return "" if known else f"json: cannot unmarshal {json_kind(value)} into Go value of type int32"
    if schema is BYTES:
        if not isinstance(value, str):
            return f"cannot restore slice from {_go_kind(value)}"
        why = base64_error(value)
        return f"error decoding from json: {why}" if why else ""
    wanted, given = _GO_KINDS[schema], _go_kind(value)
    if given == wanted or (given in _NUMBERS and _fits(value, wanted)):
        return ""
    # Go converts an integer to the string with the character of this number.
    if given in _NUMBERS and (wanted in _NUMBERS or (wanted == "string" and given == "int64")):
        return f"cannot convert {given} to {named}"
    return f"unrecognized type: {wanted}"


_NUMBERS: Final = ("int64", "int32", "float64")


def _fits(number: int | float, wanted: str) -> bool:
    return wanted == "float64" or (wanted in _NUMBERS and (isinstance(number, int) or number.is_integer()))


def _go_kind(value: Any) -> str:
    """Return the name in Go's reflection for the kind of a decoded JSON value."""
    match value:
        case bool():
            return "bool"
        case int():
            return "int64"
        case float():
            return "float64"
        case str():
            return "string"
        case list():
            return "slice"
        case _:
            return "map"
