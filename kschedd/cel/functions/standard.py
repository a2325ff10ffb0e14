"""Standard functions of CEL: operators, conversions, sizes, and optional values.

Source: cel-spec doc/langdef.md (List of Standard Definitions); cel-go common/stdlib, cel/library.go,
interpreter/runtimecost.go.
Errors: CelFailure, from the function of an overload.
"""

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from kschedd.cel.errors import CelFailure
from kschedd.cel.functions.overloads import define
from kschedd.cel.syntax import Uint
from kschedd.cel.values import (
    Optional,
    Quantity,
    Semver,
    TypeName,
    in_int_range,
    in_uint_range,
    kind,
    merged,
    traversed,
)

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


define("_+_", "int int", "int", lambda a, b: in_int_range(a + b))
define("_+_", "uint uint", "uint", lambda a, b: in_uint_range(int(a) + int(b)))
define("_+_", "double double", "double", lambda a, b: a + b)
define("_+_", "string string", "string", lambda a, b: a + b, _both)
define("_+_", "bytes bytes", "bytes", lambda a, b: a + b, _both)
define("_+_", "list(A) list(A)", "list(A)", lambda a, b: a + b)
define("_-_", "int int", "int", lambda a, b: in_int_range(a - b))
define("_-_", "uint uint", "uint", lambda a, b: in_uint_range(int(a) - int(b)))
define("_-_", "double double", "double", lambda a, b: a - b)
define("_*_", "int int", "int", lambda a, b: in_int_range(a * b))
define("_*_", "uint uint", "uint", lambda a, b: in_uint_range(int(a) * int(b)))
define("_*_", "double double", "double", lambda a, b: a * b)
define("_/_", "int int", "int", _divided)
define("_/_", "uint uint", "uint", lambda a, b: Uint(_divided(a, b)))
define("_/_", "double double", "double", _float_divided)
define("_%_", "int int", "int", _rest)
define("_%_", "uint uint", "uint", lambda a, b: Uint(_rest(a, b)))
define("-_", "int", "int", lambda a: in_int_range(-a))
define("-_", "double", "double", lambda a: -a)
define("!_", "bool", "bool", lambda a: not a)


def _special(*_: Any) -> Any:
    raise AssertionError("the planner compiles this operator itself")


for _name, _params, _result in (
    ("_&&_", "bool bool", "bool"),
    ("_||_", "bool bool", "bool"),
    ("_?_:_", "bool A A", "A"),
    ("_==_", "A A", "bool"),
    ("_!=_", "A A", "bool"),
    ("@in", "A list(A)", "bool"),
    ("@in", "A map(A,B)", "bool"),
    ("_[_]", "list(A) int", "A"),
    ("_[_]", "map(A,B) A", "B"),
    ("_[_]", "optional(list(A)) int", "optional(A)"),
    ("_[_]", "optional(map(A,B)) A", "optional(B)"),
    ("_[?_]", "list(A) int", "optional(A)"),
    ("_[?_]", "map(A,B) A", "optional(B)"),
    ("_[?_]", "optional(list(A)) int", "optional(A)"),
    ("_[?_]", "optional(map(A,B)) A", "optional(B)"),
    ("@not_strictly_false", "bool", "bool"),
    (".or", "optional(A) optional(A)", "optional(A)"),
    (".orValue", "optional(A) A", "A"),
):
    define(_name, _params, _result, _special)
define("cel.@mapInsert", "map(A,B) A B", "map(A,B)", lambda table, key, value: merged(table, {key: value}))
define("cel.@mapInsert", "map(A,B) map(A,B)", "map(A,B)", merged)

_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "_<_": lambda a, b: bool(a < b),
    "_<=_": lambda a, b: bool(a <= b),
    "_>_": lambda a, b: bool(a > b),
    "_>=_": lambda a, b: bool(a >= b),
}
for _name, _order in _ORDERS.items():
    for _one in ("int", "uint", "double"):
        for _other in ("int", "uint", "double"):
            define(_name, f"{_one} {_other}", "bool", _order)
    define(_name, "bool bool", "bool", _order)
    define(_name, "string string", "bool", _order, _shorter)
    define(_name, "bytes bytes", "bool", _order, _shorter)

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
            raise CelFailure(f"type conversion error from 'string' to '{what}'")
        try:
            return convert(text)
        except ValueError as fault:
            raise CelFailure(f"type conversion error from 'string' to '{what}'") from fault

    return read


_TRUTHS: Final = {text: True for text in ("1", "t", "T", "TRUE", "true", "True")} | {
    text: False for text in ("0", "f", "F", "FALSE", "false", "False")
}


def _truth(text: str) -> bool:
    if text not in _TRUTHS:
        raise CelFailure("type conversion error from 'string' to 'bool'")
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


define("int", "int", "int", lambda a: a)
define("int", "uint", "int", lambda a: in_int_range(int(a)))
define("int", "double", "int", _int_of)
define("int", "string", "int", _read("int", lambda text: in_int_range(int(text))))
define("uint", "uint", "uint", lambda a: a)
define("uint", "int", "uint", in_uint_range)
define("uint", "double", "uint", _uint_of)
define("uint", "string", "uint", _read("uint", lambda text: in_uint_range(int(text))))
define("double", "double", "double", lambda a: a)
define("double", "int", "double", float)
define("double", "uint", "double", float)
define("double", "string", "double", _read("double", float))
define("string", "string", "string", lambda a: a)
define("string", "int", "string", str)
define("string", "uint", "string", lambda a: str(int(a)))
define("string", "double", "string", _double_text)
define("string", "bool", "string", lambda a: "true" if a else "false")
define("string", "bytes", "string", _text, lambda a: traversed(len(a)))
define("bytes", "bytes", "bytes", lambda a: a)
define("bytes", "string", "bytes", str.encode, lambda a: traversed(len(a)))
define("bool", "bool", "bool", lambda a: a)
define("bool", "string", "bool", _truth)
define("dyn", "A", "dyn", lambda a: a)
define("type", "A", "type(A)", lambda a: TypeName(kind(a)))


# -- sizes and optional values --------------------------------------------------------------------------------

for _of in ("string", "bytes", "list(A)", "map(A,B)"):
    define("size", _of, "int", len)
    define(".size", _of, "int", len)


def _of_nonzero(value: Any) -> Optional:
    return Optional((value,)) if value or isinstance(value, Quantity | Semver) else Optional()


define("optional.of", "A", "optional(A)", lambda a: Optional((a,)))
define("optional.ofNonZeroValue", "A", "optional(A)", _of_nonzero)
define("optional.none", "", "optional(A)", lambda: Optional())
define(".hasValue", "optional(A)", "bool", lambda a: bool(a.values))
define(".value", "optional(A)", "A", lambda a: a.value)
define("optional.unwrap", "list(optional(A))", "list(A)", lambda a: [each.value for each in a if each.values])
define(".unwrapOpt", "list(optional(A))", "list(A)", lambda a: [each.value for each in a if each.values])
define(".first", "list(A)", "optional(A)", lambda a: Optional(tuple(a[:1])))
define(".last", "list(A)", "optional(A)", lambda a: Optional(tuple(a[-1:])))
