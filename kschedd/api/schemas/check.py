"""Schema check: verifies that the fields of an object have the types that typed decoding requires.

An object that passes `check_schema` may be traversed without further type checks: mappings are dicts with string keys,
lists are lists, quantities and times can be parsed. Fields that the schema does not contain are not checked here
(`decoding` handles them). A null is treated as an absent field: `without_nulls` removes nulls, as a typed decoder does.
"""

import base64
import re
from typing import Any, Final

import msgpack

from kschedd.api.quantity import ALLOWED, LONGEST, QuantityError, nanos, shown
from kschedd.api.schemas.fields import FieldError, child, invalid
from kschedd.api.schemas.kinds import BY_NAME, kind_of
from kschedd.api.schemas.schema import (
    ANY,
    BOOL,
    BYTES,
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
    schema_of,
    type_named,
)
from kschedd.api.text.times import micros

_INT32_MAX: Final = 2**31 - 1
_NIL: Final = b"\xc0"  # msgpack's encoding of None
_pack = msgpack.Packer(autoreset=True).pack

_MICROS: Final = re.compile(r"[.,]\d{6}(?!\d)", re.ASCII)

_LINE_ENDS: Final = str.maketrans("", "", "\r\n")

_TOP: Final = Fields("any kind")
_TOP.update(apiVersion=STR, kind=STR, metadata=type_named("meta.ObjectMeta"))


def schema_for(raw: dict[str, Any]) -> Fields | None:
    """Return the schema of an object's kind, or None for kinds that are not built in."""
    name = raw.get("kind")
    if "apiVersion" not in raw:
        known = BY_NAME.get(name) if isinstance(name, str) else None
        return None if known is None else schema_of(known.api_version, known.name)
    api_version = raw["apiVersion"]
    if isinstance(name, str) and isinstance(api_version, str) and (found := schema_of(api_version, name)):
        return found
    # A kind of another API group may have the same name and a different schema.
    kind = kind_of(raw)
    return schema_of(kind.api_version, kind.name) if kind.known else None


def check_schema(raw: dict[str, Any]) -> list[FieldError]:
    """Return the fields of an object that have a wrong type."""
    faults: list[FieldError] = []
    _check(raw, schema_for(raw) or _TOP, "", faults)
    return faults


def check_pod_spec_schema(spec: object, path: str = "spec") -> list[FieldError]:
    """Return the type errors in a pod's spec."""
    return _check_part(spec, type_named("PodSpec"), path)


def check_node_affinity_schema(affinity: object, path: str) -> list[FieldError]:
    """Return the type errors in a pod's node affinity."""
    return _check_part(affinity, type_named("NodeAffinity"), path)


def check_pod_status_schema(status: object, path: str = "status") -> list[FieldError]:
    """Return the type errors in a pod's status."""
    return _check_part(status, type_named("PodStatus"), path)


def check_status_schema(kind: str, status: object) -> list[FieldError]:
    """Return the type errors in the status of a built-in kind."""
    fields = (schema_for({"kind": kind}) or _TOP).get("status")
    return [] if fields is None else _check_part(status, fields, "status")


def check_meta_schema(meta: object, path: str = "metadata") -> list[FieldError]:
    """Return the type errors in metadata."""
    return _check_part(meta, type_named("meta.ObjectMeta"), path)


def _check_part(part: object, fields: Fields, path: str) -> list[FieldError]:
    faults: list[FieldError] = []
    if isinstance(part, dict):
        _check(part, fields, path, faults)
    else:
        faults.append(invalid(path, part, "must be a mapping"))
    return faults


Where = str | tuple[Any, str | int]
"""A path, or (parent location, key or index); formatted as a path only when a fault is found."""


def _text(where: Where) -> str:
    if isinstance(where, str):
        return where
    parent, step = where
    return f"{_text(parent)}[{step}]" if isinstance(step, int) else child(_text(parent), step)


def _check(value: dict[str, Any], fields: Fields, where: Where, faults: list[FieldError]) -> None:
    for key, item in value.items():
        schema = fields.get(key)
        if schema is None or item is None:
            continue
        if schema is STR:
            if type(item) is not str:
                faults.append(_mistyped(item, schema, (where, key)))
        else:
            _check_value(item, schema, (where, key), faults)


def _check_value(value: Any, schema: Schema, where: Where, faults: list[FieldError]) -> None:
    sort = type(schema)
    if sort is str:
        if not _is_leaf(value, schema):
            faults.append(_mistyped(value, schema, where))
    elif sort is Fields:
        if type(value) is dict:
            _check(value, schema, where, faults)
        else:
            faults.append(invalid(_text(where), value, "must be a mapping"))
    elif sort is ListOf:
        if type(value) is not list:
            faults.append(invalid(_text(where), value, "must be a list"))
            return
        for index, item in enumerate(value):
            if item is not None:
                _check_value(item, schema.item, (where, index), faults)
    else:
        _check_map(value, schema, where, faults)


def _check_map(value: Any, schema: MapOf, where: Where, faults: list[FieldError]) -> None:
    if type(value) is not dict:
        faults.append(invalid(_text(where), value, "must be a mapping"))
        return
    of_texts = schema.item is STR
    for key, item in value.items():
        if type(key) is not str:
            faults.append(invalid(_text(where), key, "a key must be a string"))
        elif item is not None and not (of_texts and type(item) is str):
            _check_value(item, schema.item, (where, key), faults)


def _is_leaf(value: Any, schema: str) -> bool:
    sort = type(value)
    if schema is STR:
        return sort is str
    if schema is QUANTITY:
        if sort is not str and sort is not int and sort is not float:
            return False
        if sort is str and len(value) > LONGEST:
            return False
        try:
            nanos(value.strip() if sort is str else value)  # as in Go, which strips the text before parsing
        except QuantityError:
            return False
        return True
    if schema is BOOL:
        return sort is bool
    if schema is INT_OR_STR:
        return sort is str or (sort is int and -_INT32_MAX - 1 <= value <= _INT32_MAX)
    if schema is TIME or schema is MICRO_TIME:
        return sort is str and _is_time(value, schema)
    if schema is BYTES:
        return sort is str and _is_base64(value)
    if schema is NUMBER:
        return sort is int or sort is float
    if schema is ANY:
        return True
    if sort is not int:
        return False
    limit = _INT32_MAX if schema is INT32 else 2**63 - 1
    return bool(-limit - 1 <= value <= limit)


def _is_time(text: str, schema: str) -> bool:
    try:
        micros(text)
    except ValueError:
        return False
    return schema is TIME or _MICROS.match(text, 19) is not None


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text.translate(_LINE_ENDS), validate=True)
    except ValueError:
        return False
    return True


def _mistyped(value: Any, schema: str, where: Where) -> FieldError:
    path = _text(where)
    if schema is QUANTITY:
        return FieldError(path, value, f"Invalid value: {shown(value)}: {ALLOWED}")
    if schema is STR and type(value) in (bool, int, float):
        meant = str(value).lower() if type(value) is bool else str(value)
        return invalid(path, value, f'must be a string: write it in quotes, "{meant[:40]}"')
    return invalid(path, value, f"must be {schema}")


def without_nulls(value: Any) -> Any:
    """Return `value` without null fields and items; a value without nulls is not copied."""
    try:
        # most manifests have no nulls; packing a manifest takes a tenth of the time of traversing it
        if _NIL not in _pack(value):
            return value
    except (OverflowError, TypeError, ValueError):
        pass  # other checks reject values that cannot be packed
    return _clean(value)


def _clean(value: Any) -> Any:
    if type(value) is dict:
        slim = {key: _clean(item) for key, item in value.items() if item is not None}
        same = len(slim) == len(value) and all(slim[key] is item for key, item in value.items())
        return value if same else slim
    if type(value) is list:
        items = [_clean(item) for item in value if item is not None]
        same = len(items) == len(value) and all(new is old for new, old in zip(items, value, strict=True))
        return value if same else items
    return value
