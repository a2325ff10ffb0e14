"""Reading rows of figures from a JSON file: kube-scheduler's recorded figures, or an earlier result of kschedd.

A row is read into an attrs class. Each field of the class is a str, int or float, possibly null, a tuple of floats, or
another class of this kind. Unknown fields are ignored, so that files of later versions can be read. Every error is
reported with its JSON path.
"""

import json
import math
from pathlib import Path
from typing import Any, TypeVar

import attrs

from kschedd.errors import KscheddError

RowClass = TypeVar("RowClass", bound=attrs.AttrsInstance)


@attrs.define(eq=False)
class ResultFileError(KscheddError):
    """An error for a file of figures that cannot be read."""

    file: Path
    faults: tuple[str, ...]  # "$.results[3].nodes: -1: must be a whole number, 0 or more"

    def __str__(self) -> str:
        return "\n".join(f"{self.file}: {fault}" for fault in self.faults)


_ALLOWED: dict[Any, tuple[tuple[type, ...], str]] = {
    str: ((str,), "a string"),
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number, 0 or more"),
    float: ((int, float), "a number, 0 or more"),
    float | None: ((int, float, type(None)), "a number, 0 or more, or null"),
    str | None: ((str, type(None)), "a string or null"),
    tuple[float, ...]: ((list,), "a list of numbers, 0 or more"),
}


def read_rows(path: Path, field: str, row_class: type[RowClass]) -> list[RowClass]:
    """Return the rows in the list `field` of the file's top-level object. Raises ResultFileError."""
    found = _read(path).get(field)
    if not isinstance(found, list):
        raise ResultFileError(path, (f"$.{field}: must be a list of measurements",))
    rows = []
    faults: list[str] = []
    for i, raw in enumerate(found):
        wrong = _faults(raw, row_class)
        faults += (f"$.{field}[{i}]{fault}" for fault in wrong)
        if not wrong:
            rows.append(_row(raw, row_class))
    if faults:
        raise ResultFileError(path, tuple(faults))
    return rows


def read_object(path: Path, field: str, row_class: type[RowClass]) -> RowClass:
    """Return the object `field` of the file's top-level object; return defaults if the object is missing.

    Raises ResultFileError.
    """
    raw = _read(path).get(field, {})
    faults = _faults(raw, row_class)
    if faults:
        raise ResultFileError(path, tuple(f"$.{field}{fault}" for fault in faults))
    return _row(raw, row_class)


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as fault:
        raise ResultFileError(path, (f"cannot be read: {fault.strerror}",)) from fault
    except (ValueError, RecursionError) as fault:
        raise ResultFileError(path, (f"is not JSON: {fault}",)) from fault
    return document if isinstance(document, dict) else {}


def _row(raw: dict[str, Any], row_class: type[RowClass]) -> RowClass:
    values = {}
    for attribute in attrs.fields(row_class):
        if (name := attribute.name) in raw:
            nested = attrs.has(attribute.type)
            value = _row(raw[name], attribute.type) if nested else raw[name]
            values[name] = tuple(value) if isinstance(value, list) else value
    return row_class(**values)


def _faults(raw: object, row_class: type[attrs.AttrsInstance]) -> list[str]:
    if not isinstance(raw, dict):
        return [f": {raw!r}: must be an object"]
    faults = []
    for attribute in attrs.fields(row_class):
        name = attribute.name
        if name not in raw:
            if attribute.default is attrs.NOTHING:
                faults.append(f".{name}: missing")
        elif attrs.has(attribute.type):
            faults += (f".{name}{fault}" for fault in _faults(raw[name], attribute.type))
        else:
            types, allowed = _ALLOWED[attribute.type]
            if not _is(raw[name], types):
                faults.append(f".{name}: {raw[name]!r}: must be {allowed}")
    return faults


def _is(value: object, types: tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return bool in types
    if not isinstance(value, types):
        return False
    if isinstance(value, list):
        return all(_is(each, (int, float)) for each in value)
    return not isinstance(value, int | float) or (math.isfinite(value) and value >= 0)
