"""Functions and operators that device selectors can use: each name with its overloads.

An overload has parameter types, a result type, an implementation and a cost. The checker selects overloads by static
types, and the running program by the types of the values. Methods have names such as `.name`, and their first argument
is the receiver. Costs are counted in upstream's units: one per call, and a tenth of the length of each string or list
that is traversed.

Source: cel-spec doc/langdef.md (List of Standard Definitions); cel-go ext/strings.go; apiserver/pkg/cel/functions
(quantity.go, semverlib.go, lists.go, cost.go).
Errors: CelFailure, from the function of an overload.
"""

import math
import re
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final

import attrs

from kschedd.devices.cel import regex as cel_regex
from kschedd.devices.cel.errors import CelFailure
from kschedd.devices.cel.syntax import Uint
from kschedd.devices.cel.values import (
    OPTIONAL,
    QUANTITY,
    SEMVER,
    Optional,
    Quantity,
    Semver,
    TypeName,
    equal,
    in_int_range,
    in_uint_range,
    kind,
    traversed,
)

_NANO: Final = 10**9
_SEMVER_PARTS: Final = re.compile(r"([^-+]*)([-+]?)(.*)", re.DOTALL)


@attrs.frozen
class Overload:
    params: tuple[str, ...]
    result: str
    run: Callable[..., Any]
    # additional to the cost of 1 per call; computed from the arguments before the call
    cost: Callable[..., int] | None = None

    def takes(self, kinds: tuple[str, ...]) -> bool:
        """Return whether the overload accepts arguments of these types; "dyn" matches any type."""
        if len(kinds) != len(self.params):
            return False
        for given, wanted in zip(kinds, self.params, strict=True):
            if given != "dyn" and wanted != "dyn" and given.partition("(")[0] != wanted:
                return False
        return True


FUNCTIONS: Final[dict[str, tuple[Overload, ...]]] = {}


def _define(
    name: str, params: str, result: str, run: Callable[..., Any], cost: Callable[..., int] | None = None
) -> None:
    FUNCTIONS[name] = (*FUNCTIONS.get(name, ()), Overload(tuple(params.split()), result, run, cost))


# -- operators ------------------------------------------------------------------------------------------------


def _both(left: Any, right: Any) -> int:
    return traversed(len(left) + len(right))


def _shorter(left: Any, right: Any) -> int:
    return traversed(min(len(left), len(right)))


def _divided(left: int, right: int) -> int:
    if right == 0:
        raise CelFailure("division by zero")
    quotient = abs(left) // abs(right)
    return in_int_range(quotient if (left < 0) == (right < 0) else -quotient)


def _rest(left: int, right: int) -> int:
    if right == 0:
        raise CelFailure("modulus by zero")
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _float_divided(left: float, right: float) -> float:
    if right == 0.0:
        if left == 0.0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)
    return left / right


_define("_+_", "int int", "int", lambda a, b: in_int_range(a + b))
_define("_+_", "uint uint", "uint", lambda a, b: in_uint_range(int(a) + int(b)))
_define("_+_", "double double", "double", lambda a, b: a + b)
_define("_+_", "string string", "string", lambda a, b: a + b, _both)
_define("_+_", "bytes bytes", "bytes", lambda a, b: a + b, _both)
_define("_+_", "list list", "list", lambda a, b: a + b, _both)
_define("_-_", "int int", "int", lambda a, b: in_int_range(a - b))
_define("_-_", "uint uint", "uint", lambda a, b: in_uint_range(int(a) - int(b)))
_define("_-_", "double double", "double", lambda a, b: a - b)
_define("_*_", "int int", "int", lambda a, b: in_int_range(a * b))
_define("_*_", "uint uint", "uint", lambda a, b: in_uint_range(int(a) * int(b)))
_define("_*_", "double double", "double", lambda a, b: a * b)
_define("_/_", "int int", "int", _divided)
_define("_/_", "uint uint", "uint", lambda a, b: Uint(_divided(a, b)))
_define("_/_", "double double", "double", _float_divided)
_define("_%_", "int int", "int", _rest)
_define("_%_", "uint uint", "uint", lambda a, b: Uint(_rest(a, b)))
_define("-_", "int", "int", lambda a: in_int_range(-a))
_define("-_", "double", "double", lambda a: -a)
_define("!_", "bool", "bool", lambda a: not a)

_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "_<_": lambda a, b: bool(a < b),
    "_<=_": lambda a, b: bool(a <= b),
    "_>_": lambda a, b: bool(a > b),
    "_>=_": lambda a, b: bool(a >= b),
}
for _name, _order in _ORDERS.items():
    for _one in ("int", "uint", "double"):
        for _other in ("int", "uint", "double"):
            _define(_name, f"{_one} {_other}", "bool", _order)
    _define(_name, "bool bool", "bool", _order)
    _define(_name, "string string", "bool", _order, _shorter)
    _define(_name, "bytes bytes", "bool", _order, _shorter)

# -- conversions ----------------------------------------------------------------------------------------------


def _int_of(value: float) -> int:
    if math.isnan(value) or not -(2.0**63) < value < 2.0**63:
        raise CelFailure("integer overflow")
    return int(value)


def _uint_of(value: float) -> Uint:
    if math.isnan(value) or not 0 <= value < 2.0**64:
        raise CelFailure("unsigned integer overflow")
    return Uint(value)


def _read(what: str, convert: Callable[[str], Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        # Python accepts "1_0", " 1" and numbers of any length, but CEL does not.
        if len(text) > 64 or "_" in text or text != text.strip():
            raise CelFailure(f"type conversion error from string to {what}")
        try:
            return convert(text)
        except ValueError as fault:
            raise CelFailure(f"type conversion error from string to {what}") from fault

    return read


_TRUTHS: Final = {text: True for text in ("1", "t", "T", "TRUE", "true", "True")} | {
    text: False for text in ("0", "f", "F", "FALSE", "false", "False")
}


def _truth(text: str) -> bool:
    if text not in _TRUTHS:
        raise CelFailure("type conversion error from string to bool")
    return _TRUTHS[text]


def _double_text(value: float) -> str:
    """Return a float like Go's `%g`: the fewest digits that parse to the same value, with an exponent from 1e+06 on."""
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
    shortest = Decimal(repr(value)).normalize()
    if not value or -4 <= shortest.adjusted() < 6:
        return format(shortest, "f")
    sign, digits, _ = shortest.as_tuple()
    fraction = "".join(map(str, digits[1:]))
    mantissa = f"{'-' if sign else ''}{digits[0]}{'.' if fraction else ''}{fraction}"
    return f"{mantissa}e{shortest.adjusted():+03d}"


def _text(octets: bytes) -> str:
    try:
        return octets.decode()
    except UnicodeDecodeError as fault:
        raise CelFailure("invalid UTF-8 in bytes, cannot convert to string") from fault


_define("int", "int", "int", lambda a: a)
_define("int", "uint", "int", lambda a: in_int_range(int(a)))
_define("int", "double", "int", _int_of)
_define("int", "string", "int", _read("int", lambda text: in_int_range(int(text))))
_define("uint", "uint", "uint", lambda a: a)
_define("uint", "int", "uint", in_uint_range)
_define("uint", "double", "uint", _uint_of)
_define("uint", "string", "uint", _read("uint", lambda text: in_uint_range(int(text))))
_define("double", "double", "double", lambda a: a)
_define("double", "int", "double", float)
_define("double", "uint", "double", float)
_define("double", "string", "double", _read("double", float))
_define("string", "string", "string", lambda a: a)
_define("string", "int", "string", str)
_define("string", "uint", "string", lambda a: str(int(a)))
_define("string", "double", "string", _double_text)
_define("string", "bool", "string", lambda a: "true" if a else "false")
_define("string", "bytes", "string", _text, lambda a: traversed(len(a)))
_define("bytes", "bytes", "bytes", lambda a: a)
_define("bytes", "string", "bytes", str.encode, lambda a: traversed(len(a)))
_define("bool", "bool", "bool", lambda a: a)
_define("bool", "string", "bool", _truth)
_define("dyn", "dyn", "dyn", lambda a: a)
_define("type", "dyn", "type", lambda a: TypeName(kind(a)))

# -- strings --------------------------------------------------------------------------------------------------


def _size(value: Any) -> int:
    return len(value)


def _matches(text: str, pattern: str) -> bool:
    try:
        return cel_regex.search(pattern, text)
    except cel_regex.PatternError as fault:
        raise CelFailure(str(fault)) from fault


def _search_cost(text: Any, part: Any, *_: Any) -> int:
    return traversed(len(text)) * max(1, traversed(len(part)))


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


def _from(text: str, at: int) -> int:
    if not 0 <= at < len(text):
        raise CelFailure(f"index out of range: {at}")
    return at


def _index_of(text: str, part: str, at: int = 0) -> int:
    return text.find(part, _from(text, at)) if part else at


def _last_index_of(text: str, part: str, at: int | None = None) -> int:
    if not part:
        return len(text) if at is None else at
    return text.rfind(part, 0, _from(text, len(text) - 1 if at is None else at) + len(part))


def _replaced(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, limit if limit >= 0 else -1)


def _replaced_cost(text: str, old: str, new: str, limit: int = -1) -> int:
    times = text.count(old) if limit < 0 else min(limit, text.count(old))
    return traversed(len(text)) + traversed(times * len(new))


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if not separator:
        letters = list(text)
        return letters if not 0 < limit < len(letters) else [*letters[: limit - 1], "".join(letters[limit - 1 :])]
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _shown(value: Any) -> str:
    return "true" if value is True else "false" if value is False else str(value)


def _joined(parts: list[Any], separator: str = "") -> str:
    for part in parts:
        if not isinstance(part, str):
            raise CelFailure(f"join: invalid input: {_shown(part)}")
    return separator.join(parts)


def _joined_cost(parts: list[Any], separator: str = "") -> int:
    return traversed(sum(len(part) + len(separator) for part in parts if isinstance(part, str)))


_SPACES: Final = "\t\n\v\f\r \u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""Unicode white space; Python's strip() also removes U+001C to U+001F."""
_ASCII_LOWER: Final = {code: code + 32 for code in range(65, 91)}
_ASCII_UPPER: Final = {code: code - 32 for code in range(97, 123)}


def _through(text: Any, *_: Any) -> int:
    return traversed(len(text))


for _of in ("string", "bytes", "list", "map"):
    _define("size", _of, "int", _size)
    _define(".size", _of, "int", _size)
_define(".contains", "string string", "bool", lambda a, b: b in a, _search_cost)
_define(".startsWith", "string string", "bool", str.startswith, lambda a, b: traversed(len(b)))
_define(".endsWith", "string string", "bool", str.endswith, lambda a, b: traversed(len(b)))
_define(".matches", "string string", "bool", _matches, _matches_cost)
_define("matches", "string string", "bool", _matches, _matches_cost)
_define(".find", "string string", "string", _found, _matches_cost)
_define(".findAll", "string string", "list(string)", _all_found, _matches_cost)
_define(".findAll", "string string int", "list(string)", _all_found, _matches_cost)
_define(".lowerAscii", "string", "string", lambda a: a.translate(_ASCII_LOWER), _through)
_define(".upperAscii", "string", "string", lambda a: a.translate(_ASCII_UPPER), _through)
_define(".trim", "string", "string", lambda a: a.strip(_SPACES), _through)
_define(".charAt", "string int", "string", _char_at)
_define(".substring", "string int", "string", _substring, _through)
_define(".substring", "string int int", "string", _substring, _through)
_define(".indexOf", "string string", "int", _index_of, _search_cost)
_define(".indexOf", "string string int", "int", _index_of, _search_cost)
_define(".lastIndexOf", "string string", "int", _last_index_of, _search_cost)
_define(".lastIndexOf", "string string int", "int", _last_index_of, _search_cost)
_define(".replace", "string string string", "string", _replaced, _replaced_cost)
_define(".replace", "string string string int", "string", _replaced, _replaced_cost)
_define(".split", "string string", "list", _split, _through)
_define(".split", "string string int", "list", _split, _through)
_define(".join", "list", "string", _joined, _joined_cost)
_define(".join", "list string", "string", _joined, _joined_cost)

# -- lists ----------------------------------------------------------------------------------------------------


def _ordered(values: list[Any]) -> list[Any]:
    kinds = {kind(value) for value in values}
    if len(kinds) > 1 or not kinds <= {"int", "uint", "double", "string", "bytes", "bool"}:
        raise CelFailure("no such overload")
    return values


def _least(values: list[Any]) -> Any:
    if not values:
        raise CelFailure("min called on empty list")
    return min(_ordered(values))


def _most(values: list[Any]) -> Any:
    if not values:
        raise CelFailure("max called on empty list")
    return max(_ordered(values))


def _sum(values: list[Any]) -> Any:
    _ordered(values)
    if not values:
        return 0
    if isinstance(values[0], float):
        return math.fsum(values)
    if isinstance(values[0], bool | str | bytes):
        raise CelFailure("no such overload")
    total = sum(int(value) for value in values)
    return in_uint_range(total) if isinstance(values[0], Uint) else in_int_range(total)


def _is_sorted(values: list[Any]) -> bool:
    _ordered(values)
    return all(bool(one <= next_one) for one, next_one in pairwise(values))


def _place_of(values: list[Any], wanted: Any) -> int:
    return next((place for place, value in enumerate(values) if equal(value, wanted, _spend_nothing)), -1)


def _last_place_of(values: list[Any], wanted: Any) -> int:
    from_the_end = _place_of(values[::-1], wanted)
    return -1 if from_the_end < 0 else len(values) - 1 - from_the_end


def _spend_nothing(_: int) -> None:
    """Ignore the cost of comparisons, because the cost for the length of the list includes it."""


_define(".indexOf", "list dyn", "int", _place_of, lambda values, _: len(values))
_define(".lastIndexOf", "list dyn", "int", _last_place_of, lambda values, _: len(values))
for _name, _run, _result in (
    (".min", _least, "dyn"),
    (".max", _most, "dyn"),
    (".sum", _sum, "dyn"),
    (".isSorted", _is_sorted, "bool"),
):
    _define(_name, "list", _result, _run, lambda values: len(values))

# -- quantities and versions ----------------------------------------------------------------------------------


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except CelFailure:
        return False
    return True


def _semver(text: str, normalize: bool = False) -> Semver:
    """Return the version; with `normalize`, `v1.02` is accepted as 1.2.0."""
    if not normalize:
        return Semver.parse(text)
    parts = _SEMVER_PARTS.fullmatch(text.removeprefix("v"))
    assert parts is not None, "every text has these parts, be they empty"
    core, mark, rest = parts.groups()
    numbers = [number.lstrip("0") or number[:1] for number in core.split(".")]
    return Semver.parse(".".join(numbers + ["0"] * (3 - len(numbers))) + mark + rest)


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _semver(text, normalize)
    except CelFailure:
        return False
    return True


def _whole(quantity: Quantity) -> int:
    if quantity.nanos % _NANO:
        raise CelFailure("cannot convert value to integer")
    return in_int_range(quantity.nanos // _NANO)


def _compared(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


_define("quantity", "string", QUANTITY, Quantity.parse, _through)
_define("isQuantity", "string", "bool", _is_quantity, _through)
_define(".compareTo", f"{QUANTITY} {QUANTITY}", "int", lambda a, b: _compared(a.nanos, b.nanos))
_define(".isLessThan", f"{QUANTITY} {QUANTITY}", "bool", lambda a, b: a.nanos < b.nanos)
_define(".isGreaterThan", f"{QUANTITY} {QUANTITY}", "bool", lambda a, b: a.nanos > b.nanos)
_define(".sign", QUANTITY, "int", lambda a: _compared(a.nanos, 0))
_define(".isInteger", QUANTITY, "bool", lambda a: a.nanos % _NANO == 0)
_define(".asInteger", QUANTITY, "int", _whole)
_define(".asApproximateFloat", QUANTITY, "double", lambda a: a.nanos / _NANO)
_define(".add", f"{QUANTITY} {QUANTITY}", QUANTITY, lambda a, b: Quantity(a.nanos + b.nanos))
_define(".add", f"{QUANTITY} int", QUANTITY, lambda a, b: Quantity(a.nanos + b * _NANO))
_define(".sub", f"{QUANTITY} {QUANTITY}", QUANTITY, lambda a, b: Quantity(a.nanos - b.nanos))
_define(".sub", f"{QUANTITY} int", QUANTITY, lambda a, b: Quantity(a.nanos - b * _NANO))
_define("semver", "string", SEMVER, _semver, _through)
_define("semver", "string bool", SEMVER, _semver, _through)
_define("isSemver", "string", "bool", _is_semver, _through)
_define("isSemver", "string bool", "bool", _is_semver, _through)
_define(".compareTo", f"{SEMVER} {SEMVER}", "int", lambda a, b: _compared(a.precedence, b.precedence))
_define(".isLessThan", f"{SEMVER} {SEMVER}", "bool", lambda a, b: a.precedence < b.precedence)
_define(".isGreaterThan", f"{SEMVER} {SEMVER}", "bool", lambda a, b: a.precedence > b.precedence)
_define(".major", SEMVER, "int", lambda a: a.core[0])
_define(".minor", SEMVER, "int", lambda a: a.core[1])
_define(".patch", SEMVER, "int", lambda a: a.core[2])

# -- optional values ------------------------------------------------------------------------------------------


def _of_nonzero(value: Any) -> Optional:
    return Optional((value,)) if value or (kind(value) in (QUANTITY, SEMVER)) else Optional()


_define("optional.of", "dyn", OPTIONAL, lambda a: Optional((a,)))
_define("optional.ofNonZeroValue", "dyn", OPTIONAL, _of_nonzero)
_define("optional.none", "", OPTIONAL, lambda: Optional())
_define(".hasValue", OPTIONAL, "bool", lambda a: bool(a.values))
_define(".value", OPTIONAL, "dyn", lambda a: a.value)
_define(".or", f"{OPTIONAL} {OPTIONAL}", OPTIONAL, lambda a, b: a if a.values else b)
_define(".orValue", f"{OPTIONAL} dyn", "dyn", lambda a, b: a.value if a.values else b)
