"""CEL values and their comparison.

CEL's types are represented by Python types: bool, int (64 bits), `Uint`, float, str, bytes, list, dict, None.
Kubernetes adds `Quantity` and `Semver`; `Optional` is the result of `.?` and `[?]`. CEL distinguishes types that are
equal in Python.

Source: cel-spec doc/langdef.md (Values, Equality); apiserver/pkg/cel (quantity.go, semver.go); blang/semver v4.
Units: a Quantity is a whole number of billionths.
Errors: CelFailure, for evaluation errors.
"""

import math
import re
from typing import Any, Final, Self

import attrs

from kschedd.api.quantity import QuantityError, nanos
from kschedd.api.text.times import stamp
from kschedd.cel.errors import CelFailure
from kschedd.cel.syntax import Uint
from kschedd.cel.types import DURATION_NAME, OPTIONAL_NAME, TIMESTAMP_NAME

QUANTITY: Final = "kubernetes.Quantity"
SEMVER: Final = "kubernetes.Semver"
LEAST_INT: Final = -(1 << 63)
MOST_INT: Final = (1 << 63) - 1
MOST_UINT: Final = (1 << 64) - 1

_SEMVER: Final = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)


@attrs.frozen
class Quantity:
    nanos: int

    @classmethod
    def parse(cls, text: str) -> Self:
        try:
            return cls(nanos(text))
        except QuantityError as fault:
            raise CelFailure(
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            ) from fault


@attrs.frozen(order=False)
class Semver:
    """A version as in semver.org 2.0.0; `build` is compared only for equality."""

    core: tuple[int, int, int]
    pre: tuple[str, ...] = ()
    build: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        match = _SEMVER.fullmatch(text)
        if match is None or any(len(part) > 20 for part in match.group(1, 2, 3)):
            raise CelFailure(_semver_fault(text))
        pre = tuple(match[4].split(".")) if match[4] else ()
        for part in pre:
            if part.isdecimal() and len(part) > 1 and part.startswith("0"):
                raise CelFailure(f'Numeric PreRelease version must not contain leading zeroes "{part}"')
        core = (int(match[1]), int(match[2]), int(match[3]))
        return cls(core, pre, tuple(match[5].split(".")) if match[5] else ())

    @property
    def precedence(self) -> tuple[Any, ...]:
        """Return the sort key: a pre-release precedes its release, and numeric identifiers precede other ones."""
        pre = tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in self.pre)
        return (self.core, not self.pre, pre)


def _semver_fault(text: str) -> str:
    if not text:
        return "Version string empty"
    if text.count(".") < 2:
        return "No Major.Minor.Patch elements found"
    return f'Invalid character(s) found in version "{text}"'


@attrs.frozen(eq=False)
class Optional:
    """CEL's optional, which is a value that may be absent."""

    values: tuple[Any, ...] = ()

    @property
    def value(self) -> Any:
        if not self.values:
            raise CelFailure("optional.none() dereference")
        return self.values[0]


@attrs.frozen
class TypeName:
    """The result of `type(x)`."""

    name: str


class DeviceMaps(dict[str, Any]):
    """`device.attributes` and `device.capacity`: an unknown domain gives an empty map."""


class Struct(dict[str, Any]):
    """A value of a named type, with its fields."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.type_name = type_name


@attrs.frozen(order=True)
class Timestamp:
    """A moment, in nanoseconds since the epoch."""

    nanos: int

    def __str__(self) -> str:
        whole, fraction = divmod(self.nanos, 10**9)
        text = stamp(whole)
        return f"{text[:-1]}.{f'{fraction:09}'.rstrip('0')}Z" if fraction else text


@attrs.frozen(order=True)
class Duration:
    nanos: int

    def __str__(self) -> str:
        whole, fraction = divmod(abs(self.nanos), 10**9)
        text = f"{whole}.{f'{fraction:09}'.rstrip('0')}" if fraction else str(whole)
        return f"{'-' if self.nanos < 0 else ''}{text}s"


@attrs.frozen
class Opaque:
    """A value of a type of Kubernetes' libraries (an IP address, a URL, ...), known by its type's name."""

    type_name: str
    value: Any


_KINDS: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
    DeviceMaps: "map",
    type(None): "null_type",
    Quantity: QUANTITY,
    Semver: SEMVER,
    Optional: OPTIONAL_NAME,
    TypeName: "type",
    Timestamp: TIMESTAMP_NAME,
    Duration: DURATION_NAME,
}
NUMBERS: Final = frozenset({"int", "uint", "double"})


def kind(value: Any) -> str:
    """Return CEL's name for the value's type."""
    known = _KINDS.get(type(value))
    if known is not None:
        return known
    if isinstance(value, dict):
        return str(getattr(value, "type_name", "map"))
    return str(value.type_name)


_ORDERED: Final = frozenset(("bool", "int", "uint", "double", "string", "bytes", TIMESTAMP_NAME, DURATION_NAME))


def ordering(value: Any) -> bool:
    """Return whether values of this type have an order."""
    return kind(value) in _ORDERED


def equal(left: Any, right: Any) -> bool:
    """Compare as CEL's `==` does."""
    of_left, of_right = kind(left), kind(right)
    if of_left != of_right:
        return of_left in NUMBERS and of_right in NUMBERS and bool(left == right)
    if isinstance(left, list):
        return len(left) == len(right) and all(equal(mine, its) for mine, its in zip(left, right, strict=True))
    if isinstance(left, dict):
        return len(left) == len(right) and all(
            _same_key(key, right) and equal(value, right[key]) for key, value in left.items()
        )
    if isinstance(left, Optional):
        return len(left.values) == len(right.values) and (not left.values or equal(left.value, right.value))
    return bool(left == right)


def size_of(value: Any) -> int:
    """Return the size that costs are computed from: the length of a text, list or map, and 1 for any other value."""
    if isinstance(value, str | bytes | list | dict):
        return 1 if isinstance(value, Struct) else len(value)
    if isinstance(value, Optional) and value.values:
        return size_of(value.value)
    return 1


def traversal(value: Any, *_: Any) -> int:
    """Return the cost of reading a whole value: a tenth of each text's octets, rounded down, and 1 for a scalar."""
    if isinstance(value, str | bytes):
        return len(value.encode(errors="replace") if isinstance(value, str) else value) // 10
    if isinstance(value, list):
        return sum(map(traversal, value))
    if isinstance(value, dict):
        return sum(traversal(key) + traversal(each) for key, each in value.items())
    return 1


def merged(table: dict[Any, Any], added: dict[Any, Any]) -> dict[Any, Any]:
    """Return a map with more entries. Raises CelFailure if a key exists already."""
    for key in added:
        if key_in(table, key):
            raise CelFailure(f"insert failed: key {key} already exists")
    return {**table, **added}


def _same_key(key: Any, right: dict[Any, Any]) -> bool:
    return key in right and (isinstance(key, bool) == any(isinstance(k, bool) and k == key for k in right))


def key_in(table: dict[Any, Any], key: Any) -> bool:
    """Return whether a map contains the key; unlike in a Python dict, a bool never equals a number."""
    if kind(key) not in ("string", "bool", "int", "uint", "double") or (isinstance(key, float) and math.isnan(key)):
        return False
    if isinstance(key, str):
        return key in table
    return any(k == key and isinstance(k, bool) == isinstance(key, bool) for k in table)


def traversed(length: int) -> int:
    """Return the cost of traversing a string or list of this length: a tenth of the length, rounded up."""
    return -(-length // 10)


def in_int_range(number: int) -> int:
    if LEAST_INT <= number <= MOST_INT:
        return number
    raise CelFailure("integer overflow")


def in_uint_range(number: int) -> Uint:
    if 0 <= number <= MOST_UINT:
        return Uint(number)
    raise CelFailure("unsigned integer overflow")
