"""Functions on texts: search, regular expressions, case, parts, and formatting.

Source: cel-go ext/strings.go and ext/formatting.go; apiserver/pkg/cel/library/{regex,cost}.go.
Errors: CelFailure.
"""

import math
import re
from decimal import Decimal
from typing import Any, Final

from kschedd.cel import regex as cel_regex
from kschedd.cel.errors import CelFailure
from kschedd.cel.functions.overloads import define
from kschedd.cel.values import Duration, Timestamp, TypeName, kind, traversal, traversed


def _matches(text: str, pattern: str) -> bool:
    try:
        return cel_regex.search(pattern, text)
    except cel_regex.PatternError as fault:
        raise CelFailure(str(fault)) from fault


def _search_cost(text: Any, part: Any, *_: Any) -> int:
    return traversed(len(text)) * traversed(len(part))


def _matches_cost(text: str, pattern: str, *_: Any) -> int:
    return traversed(1 + len(text)) * -(-len(pattern) // 4)


def _found(text: str, pattern: str) -> str:
    return next(iter(_all_found(text, pattern, 1)), "")


def _all_found(text: str, pattern: str, limit: int = -1) -> list[str]:
    try:
        return cel_regex.find_all(pattern, text, limit)
    except cel_regex.PatternError as fault:
        raise CelFailure(str(fault)) from fault


def _char_at(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise CelFailure(f"index out of range: {at}")
    return text[at : at + 1]


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if end is not None and start > end:
        raise CelFailure(f"invalid substring range. start: {start}, end: {end}")
    for at in (start, stop):
        if not 0 <= at <= len(text):
            raise CelFailure(f"index out of range: {at}")
    return text[start:stop]


def _index_of(text: str, part: str, at: int = 0) -> int:
    if at < 0:
        raise CelFailure(f"index out of range: {at}")
    return text.find(part, at) if part else min(at, len(text))


def _last_index_of(text: str, part: str, at: int | None = None) -> int:
    start = len(text) if at is None else at
    if start < 0:
        raise CelFailure(f"index out of range: {at}")
    if not part:
        return min(start, len(text))
    return -1 if at is not None and at >= len(text) else text.rfind(part, 0, start + len(part))


def _replaced(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, limit if limit >= 0 else -1)


def _twice(text: Any, *_: Any) -> int:
    return traversed(2 * len(text))


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if not separator:
        letters = list(text)
        return letters if not 0 < limit < len(letters) else [*letters[: limit - 1], "".join(letters[limit - 1 :])]
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _joined(parts: list[Any], separator: str | None = None) -> str:
    if not all(isinstance(part, str) for part in parts):
        raise CelFailure(f"no such overload: join(list{'' if separator is None else ', string'})")
    return (separator or "").join(parts)


def _joined_cost(result: str) -> int:
    return traversed(2 * len(result))


_SPACES: Final = "\t\n\v\f\r \u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""Unicode white space; Python's strip() also removes U+001C to U+001F."""
_ASCII_LOWER: Final = {code: code + 32 for code in range(65, 91)}
_ASCII_UPPER: Final = {code: code - 32 for code in range(97, 123)}


def _through(text: Any, *_: Any) -> int:
    return traversed(len(text))


define(".contains", "string string", "bool", lambda a, b: b in a, _search_cost)
define(".startsWith", "string string", "bool", str.startswith, lambda a, b: traversed(len(b)))
define(".endsWith", "string string", "bool", str.endswith, lambda a, b: traversed(len(b)))
define(".matches", "string string", "bool", _matches, _matches_cost)
define("matches", "string string", "bool", _matches, _matches_cost)
define(".find", "string string", "string", _found, _matches_cost)
define(".findAll", "string string", "list(string)", _all_found, _matches_cost)
define(".findAll", "string string int", "list(string)", _all_found, _matches_cost)
define(".lowerAscii", "string", "string", lambda a: a.translate(_ASCII_LOWER), _through)
define(".upperAscii", "string", "string", lambda a: a.translate(_ASCII_UPPER), _through)
define(".trim", "string", "string", lambda a: a.strip(_SPACES), _through)
define(".charAt", "string int", "string", _char_at)
define(".substring", "string int", "string", _substring, _through)
define(".substring", "string int int", "string", _substring, _through)
define(".indexOf", "string string", "int", _index_of, traversal)
define(".indexOf", "string string int", "int", _index_of, traversal)
define(".lastIndexOf", "string string", "int", _last_index_of, traversal)
define(".lastIndexOf", "string string int", "int", _last_index_of, traversal)
define(".replace", "string string string", "string", _replaced, _twice)
define(".replace", "string string string int", "string", _replaced, _twice)
define(".split", "string string", "list(string)", _split, _twice)
define(".split", "string string int", "list(string)", _split, _twice)
define(".join", "list(string)", "string", _joined, cost_after=_joined_cost)
define(".join", "list(string) string", "string", _joined, cost_after=_joined_cost)


# -- formatting -----------------------------------------------------------------------------------------------


def _quoted(text: str) -> str:
    escapes = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
    return '"' + "".join({**escapes, "\\": "\\\\", '"': '\\"'}.get(char, char) for char in text) + '"'


def _number(value: float) -> str:
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return shortest(value)


def shortest(value: float) -> str:
    """Return a float with the fewest digits that parse to the same value, without an exponent."""
    text = format(Decimal(repr(value)).normalize(), "f")
    return "0" if text == "-0" and value == 0 and math.copysign(1, value) > 0 else text


def _as_text(value: Any, nested: bool = False) -> str:
    """Return the value as `%s` prints it; inside lists and maps, texts are quoted."""
    if isinstance(value, str):
        return _quoted(value) if nested else value
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Timestamp):
        return f'timestamp("{value}")' if nested else str(value)
    if isinstance(value, Duration):
        return f'duration("{value}")' if nested else str(value)
    if isinstance(value, TypeName):
        return value.name
    if isinstance(value, list):
        return f"[{', '.join(_as_text(each, True) for each in value)}]"
    if isinstance(value, dict):
        shown = sorted(f"{_as_text(key, True)}:{_as_text(each, True)}" for key, each in value.items())
        return f"{{{', '.join(shown)}}}"
    raise CelFailure(
        "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, "
        f"types, durations, and timestamps, was given {kind(value)}"
    )


def _clause(verb: str, precision: int | None, value: Any) -> str:
    of = kind(value)
    if verb == "s":
        return _as_text(value)
    if verb == "d":
        if of not in ("int", "uint"):
            raise CelFailure(f"error during formatting: decimal clause can only be used on integers, was given {of}")
        return str(int(value))
    if verb in ("f", "e"):
        if of != "double":
            what = "fixed-point" if verb == "f" else "scientific"
            raise CelFailure(f"error during formatting: {what} clause can only be used on doubles, was given {of}")
        if math.isnan(value) or math.isinf(value):
            return _number(float(value))
        return f"{float(value):.{6 if precision is None else precision}{verb}}"
    if verb == "b":
        if of not in ("int", "uint", "bool"):
            raise CelFailure(
                f"error during formatting: only integers and bools can be formatted as binary, was given {of}"
            )
        return f"{int(value):b}"
    if verb in ("x", "X"):
        if of in ("int", "uint"):
            return format(int(value), verb)
        if of in ("string", "bytes"):
            octets = value.encode() if isinstance(value, str) else value
            return str(octets.hex().upper() if verb == "X" else octets.hex())
        raise CelFailure(
            f"error during formatting: only integers, byte buffers, and strings can be formatted as hex, was given {of}"
        )
    if of not in ("int", "uint"):
        raise CelFailure(f"error during formatting: octal clause can only be used on integers, was given {of}")
    return f"{int(value):o}"


class _Any:
    """A value that is not known before the evaluation."""


ANY: Final = _Any()


def literal_fault(text: str, values: list[Any]) -> tuple[int | None, str] | None:
    """Return the fault of a format, and the place of the wrong value (None: the list itself); None without a fault."""
    place = used = 0
    while (percent := text.find("%", place)) >= 0:
        if text.startswith("%%", percent):
            place = percent + 2
            continue
        found = _CLAUSE.match(text, percent + 1)
        if found is None:
            wrong = text[percent + 1 : percent + 2]
            return None, f'could not parse formatting clause: unrecognized formatting clause "{wrong}"'
        if used >= len(values):
            return None, f"index {used} out of range"
        if values[used] is not ANY:
            try:
                _clause(found[2], int(found[1]) if found[1] else None, values[used])
            except CelFailure as fault:
                return used, str(fault)
        used, place = used + 1, found.end()
    return None


def _formatted(text: str, values: list[Any]) -> str:
    pieces, place, used = [], 0, 0
    while (percent := text.find("%", place)) >= 0:
        pieces.append(text[place:percent])
        if text.startswith("%%", percent):
            pieces.append("%")
            place = percent + 2
            continue
        found = _CLAUSE.match(text, percent + 1)
        if found is None:
            wrong = text[percent + 1 : percent + 2]
            raise CelFailure(f'could not parse formatting clause: unrecognized formatting clause "{wrong}"')
        if used >= len(values):
            raise CelFailure(f"index {used} out of range")
        precision = int(found[1]) if found[1] else None
        pieces.append(_clause(found[2], precision, values[used]))
        used, place = used + 1, found.end()
    return "".join(pieces) + text[place:]


_CLAUSE: Final = re.compile(r"(?:\.([0-9]+))?([sdfebxXo])")

define(".format", "string list(dyn)", "string", _formatted, _through)
define("strings.quote", "string", "string", _quoted, _through)

# -- patches of mutating policies -----------------------------------------------------------------------------

define(
    "jsonpatch.escapeKey",
    "string",
    "string",
    lambda a: a.replace("~", "~0").replace("/", "~1"),
    _through,
    library="patches",
)
