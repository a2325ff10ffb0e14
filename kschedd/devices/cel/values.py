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
from collections.abc import Callable
from typing import Any, Final, Self

import attrs

from kschedd.api.quantity import QuantityError, nanos
from kschedd.devices.cel.errors import CelFailure
from kschedd.devices.cel.syntax import Uint

QUANTITY: Final = "kubernetes.Quantity"
SEMVER: Final = "kubernetes.Semver"
OPTIONAL: Final = "optional_type"
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
    Optional: OPTIONAL,
    TypeName: "type",
}
NUMBERS: Final = frozenset({"int", "uint", "double"})


def kind(value: Any) -> str:
    """Return CEL's name for the value's type."""
    return _KINDS.get(type(value), "kubernetes.DRADevice")


def equal(left: Any, right: Any, spend: Callable[[int], None]) -> bool:
    """Compare as CEL's `==` does; the cost of the comparison is passed to `spend`."""
    of_left, of_right = kind(left), kind(right)
    if of_left != of_right:
        return of_left in NUMBERS and of_right in NUMBERS and bool(left == right)
    if of_left in ("string", "bytes"):
        spend(traversed(min(len(left), len(right))))
        return bool(left == right)
    if of_left == "list":
        return len(left) == len(right) and all(equal(mine, its, spend) for mine, its in zip(left, right, strict=True))
    if of_left == "map":
        return len(left) == len(right) and all(
            _same_key(key, right) and equal(value, right[key], spend) for key, value in left.items()
        )
    if of_left == OPTIONAL:
        return len(left.values) == len(right.values) and (not left.values or equal(left.value, right.value, spend))
    spend(1)
    return bool(left == right)


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
