"""The functions of Go templates (comparisons, index, len, printf), and the print format of values.

Source: Go's text/template (funcs.go) and fmt; Kubernetes v1.34, cli-runtime/pkg/printers/template.go (exists,
base64decode).
Raises: ValueError and LookupError, with the text for the user; TypeError for a wrong number of arguments.
"""

import base64
import binascii
import html
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote_plus

from kschedd.api.text.numbers import whole_number

_WIDEST: Final = 1_000_000  # the maximum width in Go
_LONGEST_PRECISION: Final = 6  # digits


class _Absent:
    """The value of a missing field, printed as Go prints it."""

    def __bool__(self) -> bool:
        return False


ABSENT: Final = _Absent()


def is_true(value: Any) -> bool:
    """Return whether a value is true in Go: empty strings, lists and maps, zero, nil and absent values are false."""
    return bool(value)


def shown(value: Any) -> str:
    """Return a value in the format of `{{.}}`: `map[a:1]`, `[1 2]`, `<no value>`."""
    if value is ABSENT:
        return "<no value>"
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return f"map[{' '.join(f'{key}:{_inside(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list | tuple):
        return f"[{' '.join(map(_inside, value))}]"
    if isinstance(value, float):
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
        return f"{value:g}" if value != int(value) or abs(value) >= 1e21 else str(int(value))
    return str(value)


def _inside(value: Any) -> str:
    return "<nil>" if value is None or value is ABSENT else shown(value)


# Functions


def _comparable(left: Any, right: Any) -> bool:
    def basic(value: Any) -> str:
        if isinstance(value, bool):
            return "bool"
        if isinstance(value, int | float):
            return "number"
        return "string" if isinstance(value, str) else ""

    if left in (None, ABSENT) or right in (None, ABSENT):
        return left in (None, ABSENT) and right in (None, ABSENT)
    if not basic(left) or not basic(right):
        raise ValueError("incompatible types for comparison")
    if basic(left) != basic(right):
        raise ValueError("incompatible types for comparison")
    return True


def _eq(first: Any, *others: Any) -> bool:
    if not others:
        raise ValueError("missing argument for comparison")
    for other in others:
        nothing = (None, ABSENT)
        if any(first is each for each in nothing) or any(other is each for each in nothing):
            if any(first is each for each in nothing) and any(other is each for each in nothing):
                return True
        elif _comparable(first, other) and first == other:
            return True
    return False


def _ordered(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compare(left: Any, right: Any) -> bool:
        if not _comparable(left, right) or isinstance(left, bool) or left in (None, ABSENT):
            raise ValueError("incompatible types for comparison")
        return test(left, right)

    return compare


def _len(value: Any) -> int:
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, Mapping | list | tuple):
        return len(value)
    raise ValueError("len of nil pointer" if value in (None, ABSENT) else f"len of type {type(value).__name__}")


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        if isinstance(value, Mapping):
            value = value.get(key, ABSENT)
        elif isinstance(value, list | tuple | str):
            if isinstance(key, bool) or not isinstance(key, int):
                raise ValueError(f"cannot index slice/array with type {type(key).__name__}")
            if not 0 <= key < len(value):
                raise ValueError(f"index out of range: {key}")
            value = value[key] if not isinstance(value, str) else value.encode()[key]
        else:
            raise ValueError("index of untyped nil" if value in (None, ABSENT) else "can't index item of this type")
    return value


def _slice(value: Any, *bounds: Any) -> Any:
    if not isinstance(value, list | tuple | str) or any(not isinstance(each, int) for each in bounds):
        raise ValueError("can't slice item of this type")
    start, end = (*bounds, *(0, len(value))[len(bounds) :])[:2]
    if not 0 <= start <= end <= len(value):
        raise ValueError(f"index out of range: {end}")
    return value[start:end]


_VERB: Final = re.compile(r"%(?P<flags>[-+# 0]*)(?P<width>\d+|\*)?(?:\.(?P<precision>\d+))?(?P<verb>[a-zA-Z%])")


def _printf(form: Any, *values: Any) -> str:
    if not isinstance(form, str):
        raise ValueError("the format is not a string")
    waiting = list(values)

    def one(found: re.Match[str]) -> str:
        if found["verb"] == "%":
            return "%"
        if not waiting:
            return f"%!{found['verb']}(MISSING)"
        return _padded(_formatted(waiting.pop(0), found), found)

    text = _VERB.sub(one, form)
    if waiting:
        extra = ", ".join(f"{_type_of(value)}={shown(value)}" for value in waiting)
        text += f"%!(EXTRA {extra})"
    return text


def _formatted(value: Any, found: re.Match[str]) -> str:
    verb, precision = found["verb"], found["precision"]
    if precision is not None and len(precision) > _LONGEST_PRECISION:
        return "%!(BADPREC)"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if verb in "vs" and (verb == "v" or not number):
        text = "<nil>" if value in (None, ABSENT) else shown(value)
        return text[: int(precision)] if precision is not None and verb == "s" else text
    if verb == "q" and isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if verb == "t" and isinstance(value, bool):
        return shown(value)
    if verb in "dxXob" and number and (isinstance(value, int) or value.is_integer()):
        sign = "+" if "+" in found["flags"] else ""
        return format(int(value), f"{sign}{verb}")
    if verb in "feEgG" and number:
        sign = "+" if "+" in found["flags"] else ""
        return format(float(value), f"{sign}.{precision or 6}{verb}" if verb in "feE" or precision else f"{sign}g")
    if verb == "T":
        return _type_of(value)
    return f"%!{verb}({_type_of(value)}={shown(value)})"


def _padded(text: str, found: re.Match[str]) -> str:
    width = min(whole_number(found["width"] or "") or 0, _WIDEST)
    if "-" in found["flags"]:
        return text.ljust(width)
    zeros = "0" in found["flags"] and found["verb"] in "dxXobfeEgG"
    return text.zfill(width) if zeros else text.rjust(width)


def _type_of(value: Any) -> str:
    names = {
        bool: "bool",
        str: "string",
        int: "int64",
        float: "float64",
        list: "[]interface {}",
        dict: "map[string]interface {}",
    }
    return names.get(type(value), "<nil>")


def _print(*values: Any) -> str:
    """Return the output of Go's Sprint, with a space between two values if neither is a string."""
    text = ""
    for place, value in enumerate(values):
        if place and not isinstance(value, str) and not isinstance(values[place - 1], str):
            text += " "
        text += "<nil>" if value in (None, ABSENT) else shown(value)
    return text


def _println(*values: Any) -> str:
    return " ".join("<nil>" if value in (None, ABSENT) else shown(value) for value in values) + "\n"


def _exists(value: Any, *keys: Any) -> bool:
    try:
        found = _index(value, *keys)
    except ValueError:
        return False
    return found is not ABSENT


def _base64decode(text: Any) -> str:
    if not isinstance(text, str):
        raise ValueError("base64decode requires a string")
    try:
        return base64.b64decode(text, validate=True).decode("utf-8", "replace")
    except binascii.Error as wrong:
        raise ValueError(f"illegal base64 data: {wrong}") from None


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "eq": _eq,
    "ne": lambda left, right: not _eq(left, right),
    "lt": _ordered(lambda left, right: left < right),
    "le": _ordered(lambda left, right: left <= right),
    "gt": _ordered(lambda left, right: left > right),
    "ge": _ordered(lambda left, right: left >= right),
    "not": lambda value: not is_true(value),
    "len": _len,
    "index": _index,
    "slice": _slice,
    "print": _print,
    "printf": _printf,
    "println": _println,
    "html": lambda *values: html.escape(_print(*values)).replace("&#x27;", "&#39;").replace("&quot;", "&#34;"),
    "js": lambda *values: json.dumps(_print(*values))[1:-1].replace("'", "\\'").replace("<", "\\u003C"),
    "urlquery": lambda *values: quote_plus(_print(*values)),
    "exists": _exists,
    "base64decode": _base64decode,
}
