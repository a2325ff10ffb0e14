"""Shapes: of which type each field is that anything here reads, as an API server's decoding would insist.

What passes `check_shape` may be walked without looking at types again: mappings are dicts with text keys, lists
are lists, quantities can be read.  Fields that are not in the tables are of no interest and pass as they are.
A null stands for an absent field: `without_nulls` takes them away, as a typed decoder does.
"""

from typing import Any, Final

import msgpack

from kschedd.api.fields import FieldError, child, invalid
from kschedd.api.kinds import kind_of
from kschedd.api.quantity import ALLOWED, QuantityError, nanos, shown
from kschedd.api.shape_tables import (
    BOOL,
    INT32,
    INT_OR_STR,
    KIND_SHAPES,
    META,
    NODE_AFFINITY,
    POD_SPEC,
    POD_STATUS,
    QUANTITY,
    STR,
    Shape,
)

_INT32_MAX: Final = 2**31 - 1
_NIL: Final = b"\xc0"  # how msgpack writes None
_pack = msgpack.Packer(autoreset=True).pack

_TOP: Final = {"apiVersion": STR, "kind": STR, "metadata": META}
_WHOLE: Final = {kind: {**_TOP, **fields} for kind, fields in KIND_SHAPES.items()}


def check_shape(raw: dict[str, Any]) -> list[FieldError]:
    """What in an object is of a type its kind does not have there."""
    faults: list[FieldError] = []
    # A kind of another group may bear the same name, with fields of its own.
    kind = kind_of(raw)
    _check(raw, _WHOLE.get(kind.name, _TOP) if kind.known else _TOP, "", faults)
    return faults


def check_pod_spec_shape(spec: object, path: str = "spec") -> list[FieldError]:
    """The same for a pod's spec alone."""
    return _check_part(spec, POD_SPEC, path)


def check_node_affinity_shape(affinity: object, path: str) -> list[FieldError]:
    """The same for a pod's node affinity alone."""
    return _check_part(affinity, NODE_AFFINITY, path)


def check_pod_status_shape(status: object, path: str = "status") -> list[FieldError]:
    """The same for a pod's status alone."""
    return _check_part(status, POD_STATUS, path)


def check_meta_shape(meta: object, path: str = "metadata") -> list[FieldError]:
    """The same for metadata alone."""
    return _check_part(meta, META, path)


def _check_part(part: object, fields: dict[str, Shape], path: str) -> list[FieldError]:
    faults: list[FieldError] = []
    if isinstance(part, dict):
        _check(part, fields, path, faults)
    else:
        faults.append(invalid(path, part, "must be a mapping"))
    return faults


Where = str | tuple[Any, str | int]
"""A path, or a place and what to look up there; put into words only where something is wrong."""


def _text(where: Where) -> str:
    if isinstance(where, str):
        return where
    parent, step = where
    return f"{_text(parent)}[{step}]" if isinstance(step, int) else child(_text(parent), step)


def _check(value: dict[str, Any], fields: dict[str, Shape], where: Where, faults: list[FieldError]) -> None:
    for key, item in value.items():
        shape = fields.get(key)
        if shape is None or item is None:
            continue
        sort = type(shape)
        if shape is STR:
            if type(item) is not str:
                faults.append(_mistyped(item, shape, (where, key)))
        elif sort is str:
            if not _is_leaf(item, shape):
                faults.append(_mistyped(item, shape, (where, key)))
        elif sort is dict:
            if type(item) is dict:
                _check(item, shape, (where, key), faults)
            else:
                faults.append(invalid(_text((where, key)), item, "must be a mapping"))
        elif sort is list:
            _check_list(item, shape[0], (where, key), faults)
        else:
            _check_map(item, shape[1], (where, key), faults)


def _check_list(value: Any, shape: Shape, where: Where, faults: list[FieldError]) -> None:
    if type(value) is not list:
        faults.append(invalid(_text(where), value, "must be a list"))
        return
    if type(shape) is dict:
        for index, item in enumerate(value):
            if type(item) is dict:
                _check(item, shape, (where, index), faults)
            else:
                faults.append(invalid(_text((where, index)), item, "must be a mapping"))
        return
    for index, item in enumerate(value):
        if not _is_leaf(item, shape):
            faults.append(_mistyped(item, shape, (where, index)))


def _check_map(value: Any, shape: Shape, where: Where, faults: list[FieldError]) -> None:
    if type(value) is not dict:
        faults.append(invalid(_text(where), value, "must be a mapping"))
        return
    for key, item in value.items():
        if type(key) is not str:
            faults.append(invalid(_text(where), key, "a key must be a string"))
        elif item is None:
            continue
        elif type(shape) is dict:
            if type(item) is dict:
                _check(item, shape, (where, key), faults)
            else:
                faults.append(invalid(_text((where, key)), item, "must be a mapping"))
        elif not _is_leaf(item, shape):
            faults.append(_mistyped(item, shape, (where, key)))


def _is_leaf(value: Any, shape: str) -> bool:
    sort = type(value)
    if shape is STR:
        return sort is str
    if shape is QUANTITY:
        if sort is not str and sort is not int and sort is not float:
            return False
        try:
            nanos(value)
        except QuantityError:
            return False
        return True
    if shape is BOOL:
        return sort is bool
    if shape is INT_OR_STR:
        return sort is str or (sort is int and -_INT32_MAX - 1 <= value <= _INT32_MAX)
    if sort is not int:
        return False
    limit = _INT32_MAX if shape is INT32 else 2**63 - 1
    return bool(-limit - 1 <= value <= limit)


def _mistyped(value: Any, shape: str, where: Where) -> FieldError:
    path = _text(where)
    if shape is QUANTITY:
        return FieldError(path, value, f"Invalid value: {shown(value)}: {ALLOWED}")
    if shape is STR and type(value) in (bool, int, float):
        meant = str(value).lower() if type(value) is bool else str(value)
        return invalid(path, value, f'must be a string: write it in quotes, "{meant[:40]}"')
    return invalid(path, value, f"must be {shape}")


def slimmed(raw: dict[str, Any]) -> dict[str, Any]:
    """An object without nulls; of one whose kind we do not know, only the metadata is ours to touch."""
    if kind_of(raw).known:
        slim: dict[str, Any] = without_nulls(raw)
        return slim
    meta = raw.get("metadata")
    slim_meta = without_nulls(meta)
    return raw if slim_meta is meta else {**raw, "metadata": slim_meta}


def without_nulls(value: Any) -> Any:
    """The same without fields and items that are null; what holds none of them is not copied."""
    try:
        # Most manifests hold none, and packing one takes a tenth of the time of walking over it.
        if _NIL not in _pack(value):
            return value
    except (OverflowError, TypeError, ValueError):
        pass  # what cannot be packed is for others to refuse
    return _slim(value)


def _slim(value: Any) -> Any:
    if type(value) is dict:
        slim = {key: _slim(item) for key, item in value.items() if item is not None}
        same = len(slim) == len(value) and all(slim[key] is item for key, item in value.items())
        return value if same else slim
    if type(value) is list:
        items = [_slim(item) for item in value if item is not None]
        same = len(items) == len(value) and all(new is old for new, old in zip(items, value, strict=True))
        return value if same else items
    return value
