"""Quantities: the numbers with suffixes in which Kubernetes counts cpu, memory and devices, exactly.

Source: Kubernetes v1.34, apimachinery/pkg/api/resource (quantity.go, suffix.go, scale_int.go).
A quantity is a whole number of billionths ("nanos", a Python int); no float is ever involved.  A YAML or
JSON number is taken as the text it was written as.  Finer than a nano is rounded away from zero, larger
than 2**63-1 units is capped, so that whatever parses also fits an int64 column.  Text that holds no digit
at all ("m", ".") is refused, as the written grammar has it, although upstream's scanner reads it as 0.
Owns nothing but caches of pure functions.  Raises QuantityError, nothing else.
"""

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal

import attrs

from kschedd.errors import KscheddError

_TYPE_NAMES: Final = {bool: "a boolean", list: "a list", dict: "a mapping", type(None): "null"}
ALLOWED: Final = (
    "quantities are a number with an optional suffix (n u m k M G T P E, Ki Mi Gi Ti Pi Ei) "
    "or exponent (e3), such as 250m, 1.5, 2Gi"
)
MAX_INT64: Final = 2**63 - 1

Style = Literal["DecimalSI", "BinarySI", "DecimalExponent"]
"""How a quantity was written, and so how upstream prints it again."""

_NANO: Final = 10**9
_MAX_NANOS: Final = MAX_INT64 * _NANO
_LONGEST: Final = 256
_TEXT: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([KMGTPE]i)|([numkMGTPE]?)|[eE]([+-]?[0-9]+))", re.ASCII)
_DECIMAL_EXPONENT: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY_SHIFT: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENT.items()}
_BINARY_SUFFIX: Final = {shift: suffix for suffix, shift in _BINARY_SHIFT.items()}


@attrs.define(eq=False)
class QuantityError(KscheddError):
    """A value that is no quantity."""

    value: object
    allowed: str = ALLOWED

    def __str__(self) -> str:
        return f"{shown(self.value)}: {self.allowed}"


def shown(value: object, limit: int = 80) -> str:
    """`value` as an error message may repeat it: quoted if text, and never longer than `limit`."""
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= limit else f'"{value[:limit]}"... ({len(value)} characters)'
    if type(value) in _TYPE_NAMES:
        return str(value).lower() if isinstance(value, bool) else _TYPE_NAMES[type(value)]
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}..."


@lru_cache(maxsize=1 << 16, typed=True)
def _read(quantity: str | int | float) -> tuple[int, Style]:
    """Nanos, and the way it was written."""
    if isinstance(quantity, bool) or not isinstance(quantity, str | int | float):
        raise QuantityError(quantity)
    if isinstance(quantity, int):
        return _capped(quantity * _NANO), "DecimalSI"
    text = quantity if isinstance(quantity, str) else repr(quantity)
    if len(text) > _LONGEST:
        raise QuantityError(quantity)
    match = _TEXT.fullmatch(text)
    if match is None:
        raise QuantityError(quantity)
    sign, whole, fraction, binary, decimal, power = match.groups()
    fraction = fraction or ""
    digits = whole + fraction
    if not digits:
        raise QuantityError(quantity)
    amount = int(digits)
    style: Style
    if binary is not None:
        style, exponent, amount = "BinarySI", 0, amount << _BINARY_SHIFT[binary]
    elif power is not None:
        # Beyond +-600 the outcome is the cap or one nano, whatever the 256 characters hold.
        style, exponent = "DecimalExponent", max(-600, min(600, int(power)))
    else:
        style, exponent = "DecimalSI", _DECIMAL_EXPONENT[decimal]
    shift = exponent - len(fraction) + 9
    nanos = amount * 10**shift if shift >= 0 else -(-amount // 10**-shift)
    if style == "BinarySI" and 0 < nanos < _NANO:
        style = "DecimalSI"  # upstream's own exception: less than one is never printed in Ki
    nanos = min(nanos, _MAX_NANOS)
    return (-nanos if sign == "-" else nanos), style


def _capped(nanos: int) -> int:
    return max(-_MAX_NANOS, min(_MAX_NANOS, nanos))


@lru_cache(maxsize=1 << 16, typed=True)
def _units(quantity: str | int | float, nanos_per_unit: int) -> int:
    nanos = _read(quantity)[0]
    rounded = -(-abs(nanos) // nanos_per_unit)
    return min(rounded, MAX_INT64) if nanos >= 0 else -min(rounded, MAX_INT64)


@lru_cache(maxsize=1 << 16, typed=True)
def _value(quantity: str | int | float) -> int:
    return _units(quantity, _NANO)


@lru_cache(maxsize=1 << 16, typed=True)
def _milli_value(quantity: str | int | float) -> int:
    return _units(quantity, _NANO // 1000)


def value(quantity: str | int | float) -> int:
    """Whole units, rounded away from zero (Quantity.Value)."""
    try:
        return _value(quantity)
    except TypeError as unhashable:
        raise QuantityError(quantity) from unhashable


def milli_value(quantity: str | int | float) -> int:
    """Thousandths of a unit, rounded away from zero (Quantity.MilliValue); capped, never overflowing."""
    try:
        return _milli_value(quantity)
    except TypeError as unhashable:
        raise QuantityError(quantity) from unhashable


def nanos(quantity: str | int | float) -> int:
    """The whole of it, exactly: billionths of a unit.  Compare and add these."""
    try:
        return _read(quantity)[0]
    except TypeError as unhashable:
        raise QuantityError(quantity) from unhashable


def parse(quantity: str | int | float) -> Fraction:
    """The exact number."""
    return Fraction(nanos(quantity), _NANO)


def style(quantity: str | int | float) -> Style:
    """The notation a quantity was written in."""
    nanos(quantity)
    return _read(quantity)[1]


def canonical(quantity: str | int | float) -> str:
    """As upstream prints it: no fraction, the largest suffix that loses nothing, its own notation kept."""
    return format_nanos(nanos(quantity), style(quantity))


def format_nanos(amount: int, notation: Style = "DecimalSI") -> str:
    """Canonical text of `amount` billionths in `notation` (decimal where binary would lose something)."""
    if amount == 0:
        return "0"
    if notation == "BinarySI" and abs(amount) >= 1024 * _NANO and amount % _NANO == 0:
        units, shift = amount // _NANO, 0
        while units % 1024 == 0 and shift < 60:
            units, shift = units // 1024, shift + 10
        return f"{units}{_BINARY_SUFFIX.get(shift, '')}"
    exponent = -9
    limit = 18 if notation != "DecimalExponent" else 600
    while amount % 1000 == 0 and exponent < limit:
        amount, exponent = amount // 1000, exponent + 3
    if notation == "DecimalExponent":
        return f"{amount}e{exponent}" if exponent else str(amount)
    return f"{amount}{_DECIMAL_SUFFIX[exponent]}"


def format_value(units: int, notation: Style = "DecimalSI") -> str:
    """Canonical text of a number of whole units; "BinarySI" for bytes."""
    return format_nanos(units * _NANO, notation)


def format_milli(milli: int) -> str:
    """Canonical text of a number of thousandths, as cpu is printed: 1500m, 2."""
    return format_nanos(milli * (_NANO // 1000))
