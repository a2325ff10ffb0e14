"""Decoding errors of objects, with the messages of kube-apiserver's JSON decoder.

Go's decoder processes a document from beginning to end. A value of a wrong type is recorded, and decoding continues. A
value that the decoder of its type rejects (a quantity, time, or integer-or-string) ends the decoding. The reported
error is such a rejection, or else the first value of a wrong type. The message contains the Go type that has the field,
and the field names of the path, without list indices and map keys.

Source: Go 1.24, encoding/json/decode.go (UnmarshalTypeError); Kubernetes v1.34, apimachinery/pkg/api/resource
(ParseQuantity), util/intstr, apis/meta/v1/{time,micro_time}.go.
"""

import base64
import binascii
import json
import re
from typing import Any, Final

from kschedd.api.schemas.check import schema_for
from kschedd.api.schemas.schema import (
    ANY,
    BOOL,
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
    type_named,
)
from kschedd.api.text.time_errors import time_error

QUANTITY_EXPRESSION: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_NUMERIC: Final = re.compile(r"[+-]?[0-9]*+(?:\.[0-9]*+)?+([eEinumkKMGTP]*+[-+]?[0-9]*+)", re.ASCII)
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/]*", re.ASCII)


class _HardFault(Exception):
    """An error from the decoder of a type; internal to this module."""


def unmarshal_error(raw: dict[str, Any]) -> str:
    """Return the error that kube-apiserver reports for an object, or "" if it can be decoded."""
    schema = schema_for(raw)
    if schema is None:  # a custom resource
        schema = Fields(str(raw.get("kind")))
        schema.update(apiVersion=STR, kind=STR, metadata=type_named("meta.ObjectMeta"))
    soft: list[str] = []
    try:
        _fields(raw, schema, "", soft)
    except _HardFault as fault:
        return str(fault)
    return soft[0] if soft else ""


def _fields(value: dict[str, Any], fields: Fields, path: str, soft: list[str]) -> None:
    for name, item in value.items():
        schema = fields.get(name)
        if schema is not None and item is not None:
            where = f"{path}.{name}" if path else name
            _value(item, schema, fields.short_name, where, go_type(fields, name), soft)


def _value(value: Any, schema: Schema, struct: str, path: str, named: str, soft: list[str]) -> None:
    """Check a value; `struct` and `path` identify its field, and `named` is its Go type."""
    sort = type(schema)
    if sort is str:
        _leaf(value, schema, struct, path, named, soft)
    elif sort is Fields and type(value) is dict:
        _fields(value, schema, path, soft)
    elif sort is ListOf and type(value) is list:
        for item in value:
            if item is not None:
                _value(item, schema.item, struct, path, item_type(named), soft)
    elif sort is MapOf and type(value) is dict:
        inner = item_type(named)
        for item in value.values():
            if item is not None:
                _value(item, schema.item, struct, path, inner, soft)
    else:
        soft.append(_mistyped(json_kind(value), struct, path, named))


def item_type(named: str) -> str:
    """Return the Go type of the items of a list or map of this Go type."""
    return "resource.Quantity" if named.endswith("ResourceList") else named.partition("]")[2]


def _mistyped(what: str, struct: str, path: str, named: str) -> str:
    return f"json: cannot unmarshal {what} into Go struct field {struct}.{path} of type {named}"


def json_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, dict | list):
        return "object" if isinstance(value, dict) else "array"
    return "string" if isinstance(value, str) else "number"


def _leaf(value: Any, schema: str, struct: str, path: str, named: str, soft: list[str]) -> None:
    if schema is ANY:
        return
    if schema is QUANTITY:
        if why := quantity_error(value):
            raise _HardFault(why)
    elif schema is TIME or schema is MICRO_TIME:
        if type(value) is not str:
            raise _HardFault(_mistyped(json_kind(value), struct, path, "string"))
        if why := time_error(value, micro=schema is MICRO_TIME):
            raise _HardFault(why)
    elif schema is INT_OR_STR:
        if type(value) is not str and (why := _integer_error(value, 32)):
            raise _HardFault(_mistyped(why, struct, path, "int32"))
    elif schema is INT or schema is INT32:
        if why := _integer_error(value, 32 if schema is INT32 else 64):
            soft.append(_mistyped(why, struct, path, named))
    elif schema is BOOL or schema is STR or schema is NUMBER:
        expected = {BOOL: "bool", STR: "string", NUMBER: "number"}[schema]
        if json_kind(value) != expected:
            soft.append(_mistyped(json_kind(value), struct, path, named))
    elif type(value) is not str:
        soft.append(_mistyped(json_kind(value), struct, path, named))
    elif why := base64_error(value):
        soft.append(why)


def _integer_error(value: Any, bits: int) -> str:
    """Return Go's name for the type of a value that is not an integer of this size; "" for a valid integer."""
    if json_kind(value) != "number":
        return json_kind(value)
    if isinstance(value, int) and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        return ""
    return f"number {value!r}"


def quantity_error(value: Any) -> str:
    """Return why a value is not a quantity; "" if it is a quantity."""
    text = value.strip() if isinstance(value, str) else json.dumps(value)
    found = _NUMERIC.fullmatch(text)
    if not text or found is None:
        return QUANTITY_EXPRESSION
    suffix = found[1]
    known = re.fullmatch(r"[KMGTPE]i|[numkMGTPE]?|[eE][+-]?[0-9]+", suffix, re.ASCII)
    return "" if known else "unable to parse quantity's suffix"


def base64_error(text: str) -> str:
    data = text.replace("\r", "").replace("\n", "").encode("utf-8", "replace")
    try:
        base64.b64decode(data, validate=True)
    except binascii.Error:
        return f"illegal base64 data at input byte {_first_illegal(data)}"
    return ""


def _first_illegal(data: bytes) -> int:
    """Return the position at which Go's base64 decoder fails: an invalid byte or an incomplete group of four."""
    whole = _BASE64.match(data)
    assert whole is not None, "it matches the empty text"
    at = whole.end()
    if at < len(data) and data[at : at + 1] != b"=":
        return at
    if at == len(data):
        return at // 4 * 4  # truncated
    padding = 4 - at % 4
    return at if padding > 2 else min(at + padding, len(data))
