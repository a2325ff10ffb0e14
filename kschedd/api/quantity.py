"""Exact arithmetic on quantities (resource.Quantity): numbers with suffixes for cpu, memory and other resources.

Source: Kubernetes v1.34, apimachinery/pkg/api/resource (quantity.go, amount.go, math.go, suffix.go, scale_int.go). A
quantity is a whole number of billionths ("nanos", a Python int); floats are never used. A YAML or JSON number is parsed
from its source text. Fractions of a nano are rounded away from zero, and a quantity with a binary suffix is capped at
2**63-1 units. Text without any digit ("m", ".") is rejected, as the documented grammar requires, although upstream's
scanner parses it as 0. Values beyond int64 overflow as in Kubernetes, depending on the internal representation
(`Amount`). Errors: only QuantityError.
"""

import json
import re
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Final, Literal

import attrs

from kschedd.errors import KscheddError

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=repr)
ALLOWED: Final = (
    "quantities are a number with an optional suffix (n u m k M G T P E, Ki Mi Gi Ti Pi Ei) "
    "or exponent (e3), such as 250m, 1.5, 2Gi"
)
MAX_INT64: Final = 2**63 - 1
MIN_INT64: Final = -(2**63)

Style = Literal["DecimalSI", "BinarySI", "DecimalExponent"]
"""Notation (upstream's Format) in which a quantity was written and is printed."""

_NANO: Final = 10**9
_KEPT: Final = 1 << 13  # size of each cache
_MAX_NANOS: Final = MAX_INT64 * _NANO
_ALL_BITS: Final = 2**64 - 1
_NARROW_DIGITS: Final = 18  # maximum number of digits of a decimal quantity that upstream stores as an int64
LONGEST: Final = 256
"""Maximum characters of a quantity in user input. Sums of quantities are parsed, too, and may have more digits."""
_LONGEST_SUM: Final = 2048
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
    """A value that is not a quantity."""

    value: object
    allowed: str = ALLOWED

    def __str__(self) -> str:
        return f"{shown(self.value)}: {self.allowed}"


_ESCAPES: Final = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), 0x7F)},
    **str.maketrans({"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}),
    **str.maketrans({'"': '\\"', "\\": "\\\\"}),
}


def quoted(text: str) -> str:
    """Return a text in quotes, as printed by Go's %q."""
    shown = text.translate(_ESCAPES)
    return f'"{shown}"' if shown.isprintable() else '"' + "".join(map(_printable, shown)) + '"'


def _printable(character: str) -> str:
    code = ord(character)
    if character.isprintable():
        return character
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shown(value: object, limit: int = 80) -> str:
    """Return `value` as JSON for an error message, cut at `limit` characters (for containers, ten times as many)."""
    if isinstance(value, str):
        return quoted(value) if len(value) <= limit else f"{quoted(value[:limit])}... ({len(value)} characters)"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, dict | list):
        limit *= 10
        try:
            text = "".join(islice(_ENCODER.iterencode(value), limit))
        except (TypeError, ValueError, RecursionError):
            text = repr(value)
    else:
        text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}..."


@lru_cache(_KEPT, typed=True)
def _read(quantity: str | int | float) -> tuple[int, Style]:
    """Return the nanos and the notation of a quantity."""
    if isinstance(quantity, bool) or not isinstance(quantity, str | int | float):
        raise QuantityError(quantity)
    if isinstance(quantity, int):
        return quantity * _NANO, "DecimalSI"
    text = quantity if isinstance(quantity, str) else repr(quantity)
    if len(text) > _LONGEST_SUM:
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
        # Beyond ±600 the result is 0 or one nano for any text of at most LONGEST characters.
        style, exponent = "DecimalExponent", max(-600, min(600, int(power)))
    else:
        style, exponent = "DecimalSI", _DECIMAL_EXPONENT[decimal]
    shift = exponent - len(fraction) + 9
    nanos = amount * 10**shift if shift >= 0 else -(-amount // 10**-shift)
    if style == "BinarySI" and 0 < nanos < _NANO:
        style = "DecimalSI"  # upstream never prints values below one with a binary suffix
    if style == "BinarySI":
        nanos = min(nanos, _MAX_NANOS)
    return (-nanos if sign == "-" else nanos), style


@attrs.frozen
class Amount:
    """A quantity in Kubernetes' internal representation: `unscaled` times ten to the power of `exponent`.

    `narrow` is true if the amount is stored as an int64 (int64Amount), which is usual; otherwise its precision is
    arbitrary (infDecAmount). For a value beyond int64, results depend on the representation.
    """

    unscaled: int
    exponent: int
    narrow: bool

    def __add__(self, other: "Amount") -> "Amount":
        narrow = self.narrow and other.narrow
        if not (self.unscaled and other.unscaled):
            return attrs.evolve(self if self.unscaled else other, narrow=narrow)
        low = min(self.exponent, other.exponent)
        mine, theirs = self._at(low), other._at(low)
        return Amount(mine + theirs, low, narrow and all(map(_fits, (mine, theirs, mine + theirs))))

    def __gt__(self, other: "Amount") -> bool:
        low = min(self.exponent, other.exponent)
        return self._at(low) > other._at(low)

    def _at(self, exponent: int) -> int:
        shifted: int = self.unscaled * 10 ** (self.exponent - exponent)
        return shifted

    def in_units_of(self, exponent: int) -> int:
        """Return the value in units of ten to the power of `exponent`, as an int64 (Quantity.ScaledValue)."""
        up = self.exponent - exponent
        if up < 0:
            return wrapped(-(-self.unscaled // 10**-up))
        exact: int = self.unscaled * 10**up
        if self.narrow:
            return wrapped(exact) if _fits(exact) or up in _MULTIPLIED_AT_ONCE else 0
        # A power of ten beyond int64 becomes the minimum int64.
        factor: int = 10**up if up < 19 else MIN_INT64
        return wrapped(self.unscaled * factor)


_MULTIPLIED_AT_ONCE: Final = (1, 2, 3, 6, 9)  # exponents; otherwise ten is multiplied repeatedly, 0 on overflow


def _fits(number: int) -> bool:
    return MIN_INT64 <= number <= MAX_INT64


def wrapped(number: int) -> int:
    """Return the number wrapped to a signed 64-bit integer, in the way in which Go's int64 overflows."""
    return (number - MIN_INT64 & _ALL_BITS) + MIN_INT64


def amount(quantity: str | int | float) -> Amount:
    """Return the quantity in the internal representation that Kubernetes uses after parsing (ParseQuantity)."""
    nanos = _read(quantity)[0]
    match = _TEXT.fullmatch(quantity if isinstance(quantity, str) else repr(quantity))
    assert match is not None, "what has been read is a quantity"
    _, whole, fraction, binary, decimal, power = match.groups()
    whole, fraction = whole.lstrip("0") or "0", fraction or ""
    sign = -1 if nanos < 0 else 1
    if binary is not None:
        shift = _BINARY_SHIFT[binary]
        if not fraction and len(whole) + shift * 3 // 10 <= 14:
            return Amount(sign * (int(whole) << shift), 0, True)
        return Amount(sign * MAX_INT64, 0, False) if abs(nanos) == _MAX_NANOS else Amount(nanos, -9, False)
    exponent = _DECIMAL_EXPONENT[decimal] if power is None else max(-600, min(600, int(power)))
    exponent -= len(fraction)
    if len(whole) + len(fraction) <= _NARROW_DIGITS and exponent >= -9:
        return Amount(sign * int(whole + fraction), exponent, True)
    return Amount(nanos, -9, False)


@lru_cache(_KEPT, typed=True)
def _units(quantity: str | int | float, exponent: int) -> int:
    nanos = _read(quantity)[0]
    per_unit: int = 10 ** (9 + exponent)
    rounded = -(-abs(nanos) // per_unit)
    if rounded > MAX_INT64:
        return amount(quantity).in_units_of(exponent)
    return rounded if nanos >= 0 else -rounded


@lru_cache(_KEPT, typed=True)
def _value(quantity: str | int | float) -> int:
    return _units(quantity, 0)


@lru_cache(_KEPT, typed=True)
def _milli_value(quantity: str | int | float) -> int:
    return _units(quantity, -3)


def value(quantity: str | int | float) -> int:
    """Return whole units, rounded away from zero (Quantity.Value)."""
    try:
        return _value(quantity)
    except TypeError as unhashable:
        raise QuantityError(quantity) from unhashable


def milli_value(quantity: str | int | float) -> int:
    """Return thousandths of a unit, rounded away from zero (Quantity.MilliValue)."""
    try:
        return _milli_value(quantity)
    except TypeError as unhashable:
        raise QuantityError(quantity) from unhashable


def nanos(quantity: str | int | float) -> int:
    """Return the exact value in billionths of a unit, for comparisons and sums."""
    try:
        return _read(quantity)[0]
    except TypeError as unhashable:
        raise QuantityError(quantity) from unhashable


def parse(quantity: str | int | float) -> Fraction:
    """Return the exact number."""
    return Fraction(nanos(quantity), _NANO)


def style(quantity: str | int | float) -> Style:
    """Return the notation of a quantity."""
    nanos(quantity)
    return _read(quantity)[1]


def canonical(quantity: str | int | float) -> str:
    """Return the canonical form in the same notation: no fraction, and the largest suffix without loss of precision."""
    return format_nanos(nanos(quantity), style(quantity))


@lru_cache(_KEPT, typed=True)
def as_stored(quantity: str | int | float) -> str:
    """Return a quantity as kube-apiserver prints it: canonical, or unchanged if ParseQuantity keeps its text.

    Source: ParseQuantity keeps the text of most numbers that need no shorter suffix.
    """
    text = quantity if isinstance(quantity, str) else repr(quantity)
    amount_nanos, notation = _read(quantity)
    match = _TEXT.fullmatch(text)
    assert match is not None, "what has been read is a quantity"
    _, whole, fraction, binary, decimal, power = match.groups()
    digits = (whole.lstrip("0") or "0") + (fraction or "")
    if text == "0":
        return text
    if binary is not None:
        shift = _BINARY_SHIFT[binary]
        if fraction is None and 15 - len(digits) - shift * 3 // 10 - 1 >= 0 and int(digits) & 7:
            return text
    else:
        scale = (_DECIMAL_EXPONENT[decimal] if power is None else int(power)) - len(fraction or "")
        plain = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
        if plain and len(digits) <= _NARROW_DIGITS and scale >= -9:
            return text
    return format_nanos(amount_nanos, notation)


def format_nanos(amount: int, notation: Style = "DecimalSI") -> str:
    """Return the canonical text of `amount` billionths in `notation`, or in decimal if binary would lose precision."""
    if amount == 0:
        return "0"
    if notation == "BinarySI" and abs(amount) >= 1024 * _NANO and amount % _NANO == 0:
        units, shift = amount // _NANO, 0
        while units % 1024 == 0 and shift < 60:
            units, shift = units // 1024, shift + 10
        return f"{units}{_BINARY_SUFFIX.get(shift, '')}"
    exponent = -9
    while amount % 1000 == 0 and exponent < 600:
        amount, exponent = amount // 1000, exponent + 3
    if notation == "DecimalExponent":
        return f"{amount}e{exponent}" if exponent else str(amount)
    # there is no suffix beyond E: 1e21 becomes 1, as in Kubernetes
    return f"{amount}{_DECIMAL_SUFFIX.get(exponent, '')}"


def format_value(units: int, notation: Style = "DecimalSI") -> str:
    """Return the canonical text of a number of whole units; "BinarySI" for bytes."""
    return format_nanos(units * _NANO, notation)


def format_milli(milli: int) -> str:
    """Return the canonical text of a number of thousandths, in the form used for cpu: 1500m, 2."""
    return format_nanos(milli * (_NANO // 1000))
