"""JSON values in Go's print formats, for messages about values of the wrong type.

All numbers of a manifest are printed as float64.
Source: Go's package fmt.
"""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

_LARGE_EXPONENT: Final = 6
_TYPES: Final = ((bool, "bool"), (str, "string"), (Mapping, "map[string]interface {}"), (list, "[]interface {}"))


def go_type(value: Any) -> str:
    """Return the type of a value in the format of Go's `%T`."""
    if value is None:
        return "<nil>"
    return next((name for kind, name in _TYPES if isinstance(value, kind)), "float64")


def go_value(value: Any) -> str:
    """Return a value in the format that Go's `%v` has for a pointer to it."""
    return f"&{{{_plain(value)}}}"


def go_syntax(value: Any) -> str:
    """Return a value in the format that Go's `%#v` has for a pointer to it."""
    return f"&value.valueUnstructured{{Value:{_syntax(value)}}}"


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return "map[" + " ".join(f"{name}:{_plain(value[name])}" for name in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(_plain, value)) + "]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _number(value) if isinstance(value, int | float) else str(value)


def _syntax(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{json.dumps(name, ensure_ascii=False)}:{_syntax(value[name])}" for name in sorted(value))
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(map(_syntax, value)) + "}"
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _number(value) if isinstance(value, int | float) else json.dumps(value, ensure_ascii=False)


def _number(value: float) -> str:
    """Return a float64 with the fewest digits, and with an exponent from 1e+06 on and below 1e-04."""
    sign, digits, _ = Decimal(repr(float(value))).normalize().as_tuple()
    power = Decimal(repr(float(value))).adjusted() if value else 0
    if -4 <= power < _LARGE_EXPONENT:
        return f"{Decimal(repr(float(value))).normalize():f}" if value else "0"
    text = "".join(map(str, digits))
    mantissa = text if len(text) == 1 else f"{text[0]}.{text[1:]}"
    return f"{'-' if sign else ''}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"
