"""Codec: conversion of objects to the result of a typed decoder, and to the form that kube-apiserver encodes.

A decoder into Go structs does not distinguish an absent field from a field with "", 0 or false, unless the field is a
pointer. Go's decoder also loses the notation of quantities and times. `decoded` therefore drops fields with Go's zero
value, and writes quantities and times in their canonical form. The encoder omits empty lists and maps, but always
prints some fields, with a zero value for unset fields. `encoded` does the same. Defaulting and validation run between
the two conversions.

The arguments of `decoded` and `encoded` must have passed `check_schema`; unchanged parts are shared with the result.
Unknown fields are kept. Source: the JSON tags of the types (`kschedd.api.schemas.schema`),
apimachinery/pkg/apis/meta/v1/{time,micro_time}.go.
"""

from operator import is_
from typing import Any, Final

from kschedd.api.quantity import as_stored
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
    Schema,
    type_named,
)
from kschedd.api.text.times import micro_stamp, micros, stamp

_META: Final = type_named("meta.ObjectMeta")
_ZERO: Final[dict[str, Any]] = {
    STR: "",
    INT: 0,
    INT32: 0,
    NUMBER: 0,
    BOOL: False,
    INT_OR_STR: 0,
    QUANTITY: "0",
    TIME: None,
    MICRO_TIME: None,
    BYTES: None,
    ANY: None,
}


def decoded_object(raw: dict[str, Any]) -> dict[str, Any]:
    """Return a whole object in decoded form.

    For a kind that is not built in, only nulls in the metadata are removed.
    """
    schema = schema_for(raw)
    if schema is None:
        meta = raw.get("metadata")
        slim = decoded(meta, _META) if isinstance(meta, dict) else meta
        return raw if slim is meta else {**raw, "metadata": slim}
    found: dict[str, Any] = decoded(raw, schema)
    return found


def encoded_object(raw: dict[str, Any]) -> dict[str, Any]:
    """Return a whole object in encoded form."""
    schema = schema_for(raw)
    if schema is None:
        return raw
    found: dict[str, Any] = encoded(raw, schema)
    return found


def decoded(value: Any, schema: Schema) -> Any:
    """Return `value` in the form that a typed decoder produces: no zero values, canonical quantities and times."""
    sort = type(schema)
    if sort is str:
        return _leaf(value, schema)
    if sort is Fields:
        return _decoded_fields(value, schema)
    item = schema.item
    if sort is ListOf:
        if item is STR and None not in value:
            return value
        items = [_zero(item) if each is None else decoded(each, item) for each in value]
        return value if all(map(is_, items, value)) else items
    if item is STR and None not in value.values():
        return value
    found = {key: _zero(item) if each is None else decoded(each, item) for key, each in value.items()}
    return value if all(map(is_, found.values(), value.values())) else found


def _decoded_fields(value: dict[str, Any], fields: Fields) -> dict[str, Any]:
    found: dict[str, Any] | None = None
    for name, item in value.items():
        schema = fields.get(name)
        if item is None:
            if schema is None and name not in ("spec", "status"):
                continue
        elif schema is None or (item and (schema is STR or schema is BOOL)):
            continue
        else:
            new = decoded(item, schema)
            # In Go, a zero value equals an absent value. Fields that are always printed stay in their position.
            zero = not new and type(schema) is str and schema is not ANY
            if not zero or name in fields.pointers or name in fields.always:
                if new is not item:
                    found = dict(value) if found is None else found
                    found[name] = new
                continue
        found = dict(value) if found is None else found
        del found[name]
    return value if found is None else found


def _leaf(value: Any, schema: str) -> Any:
    if schema is STR:
        return value
    if schema is QUANTITY:
        return as_stored(value.strip() if type(value) is str else value)
    if schema is TIME:
        return value if len(value) == 20 and value[19] == "Z" else stamp(micros(value) // 1_000_000)
    if schema is MICRO_TIME:
        return micro_stamp(micros(value))
    return value


def _zero(schema: Schema) -> Any:
    """Return Go's zero value for an item of a list or map."""
    if type(schema) is Fields:
        return {}
    if schema is BYTES:
        return ""  # as the value is read back from storage
    return _ZERO[schema] if type(schema) is str else None


def encoded(value: Any, schema: Schema) -> Any:
    """Return a decoded value as kube-apiserver prints it, including fields that are always printed."""
    sort = type(schema)
    if sort is str or value is None:
        return value
    if sort is Fields:
        return _encoded_fields(value, schema)
    if type(schema.item) is str:
        return value
    if sort is ListOf:
        items = [encoded(each, schema.item) for each in value]
        return value if all(map(is_, items, value)) else items
    found = {key: encoded(each, schema.item) for key, each in value.items()}
    return value if all(map(is_, found.values(), value.values())) else found


def _encoded_fields(value: dict[str, Any], fields: Fields) -> dict[str, Any]:
    found: dict[str, Any] | None = None
    for name in fields.nested:
        if name not in value:
            continue
        item, schema = value[name], fields[name]
        if not item and type(schema) is not Fields:
            # an empty list or map equals an absent one
            found = dict(value) if found is None else found
            if name in fields.always:
                found[name] = None
            else:
                del found[name]
            continue
        new = encoded(item, schema)
        if new is not item:
            found = dict(value) if found is None else found
            found[name] = new
    for name in fields.always:
        if name in value:
            continue
        found = dict(value) if found is None else found
        schema = fields[name]
        if name in fields.pointers:
            found[name] = None
        elif type(schema) is Fields:
            found[name] = _encoded_fields({}, schema)
        else:
            found[name] = _ZERO[schema] if type(schema) is str else None
    return value if found is None else found
