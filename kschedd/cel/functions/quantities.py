"""Kubernetes' quantities and semantic versions.

Source: apiserver/pkg/cel/library/{quantity,semverlib}.go.
Errors: CelFailure.
"""

import re
from typing import Any, Final

from kschedd.cel.errors import CelFailure
from kschedd.cel.functions.overloads import define
from kschedd.cel.values import QUANTITY, SEMVER, Quantity, Semver, in_int_range, traversed

_NANO: Final = 10**9
_SEMVER_PARTS: Final = re.compile(r"([^-+]*)([-+]?)(.*)", re.DOTALL)


def _through(text: str, *_: Any) -> int:
    return traversed(len(text))


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


define("quantity", "string", QUANTITY, Quantity.parse, _through)
define("isQuantity", "string", "bool", _is_quantity, _through)
define(".compareTo", f"{QUANTITY} {QUANTITY}", "int", lambda a, b: _compared(a.nanos, b.nanos))
define(".isLessThan", f"{QUANTITY} {QUANTITY}", "bool", lambda a, b: a.nanos < b.nanos)
define(".isGreaterThan", f"{QUANTITY} {QUANTITY}", "bool", lambda a, b: a.nanos > b.nanos)
define(".sign", QUANTITY, "int", lambda a: _compared(a.nanos, 0))
define(".isInteger", QUANTITY, "bool", lambda a: a.nanos % _NANO == 0)
define(".asInteger", QUANTITY, "int", _whole)
define(".asApproximateFloat", QUANTITY, "double", lambda a: a.nanos / _NANO)
define(".add", f"{QUANTITY} {QUANTITY}", QUANTITY, lambda a, b: Quantity(a.nanos + b.nanos))
define(".add", f"{QUANTITY} int", QUANTITY, lambda a, b: Quantity(a.nanos + b * _NANO))
define(".sub", f"{QUANTITY} {QUANTITY}", QUANTITY, lambda a, b: Quantity(a.nanos - b.nanos))
define(".sub", f"{QUANTITY} int", QUANTITY, lambda a, b: Quantity(a.nanos - b * _NANO))
define("semver", "string", SEMVER, _semver, _through)
define("semver", "string bool", SEMVER, _semver, _through)
define("isSemver", "string", "bool", _is_semver, _through)
define("isSemver", "string bool", "bool", _is_semver, _through)
define(".compareTo", f"{SEMVER} {SEMVER}", "int", lambda a, b: _compared(a.precedence, b.precedence))
define(".isLessThan", f"{SEMVER} {SEMVER}", "bool", lambda a, b: a.precedence < b.precedence)
define(".isGreaterThan", f"{SEMVER} {SEMVER}", "bool", lambda a, b: a.precedence > b.precedence)
define(".major", SEMVER, "int", lambda a: a.core[0])
define(".minor", SEMVER, "int", lambda a: a.core[1])
define(".patch", SEMVER, "int", lambda a: a.core[2])
