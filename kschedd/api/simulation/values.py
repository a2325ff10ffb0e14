"""Values of the annotations for simulated kubelets: seconds, counts, bytes, durations."""

import math
import re
from typing import Final

from kschedd.api.quantity import MAX_INT64, QuantityError, parse


class AnnotationError(ValueError):
    """An invalid annotation; the message contains the allowed values."""


def seconds_of(text: str) -> float:
    """Parse a number of seconds. Raises AnnotationError."""
    why = "a number of seconds of at least 0 is expected, such as 30 or 0.5"
    try:
        found = float(text)
    except ValueError:
        raise AnnotationError(why) from None
    if not 0 <= found < math.inf:
        raise AnnotationError(why)
    return found


def seconds_or_never(text: str) -> float:
    """Parse a number of seconds, or `never` as infinity. Raises AnnotationError."""
    if text == "never":
        return math.inf
    try:
        return seconds_of(text)
    except AnnotationError as wrong:
        raise AnnotationError(f'{wrong}, or "never"') from None


def failing_of(text: str) -> float:
    """Parse `fails` as 1 and `succeeds` as 0. Raises AnnotationError."""
    if text not in ("fails", "succeeds"):
        raise AnnotationError('"fails" or "succeeds" is expected')
    return float(text == "fails")


def true_of(text: str) -> float:
    """Parse a boolean as 0 or 1. Raises AnnotationError."""
    if text not in ("true", "false"):
        raise AnnotationError('"true" or "false" is expected')
    return float(text == "true")


def millicores_of(text: str) -> int:
    """Parse an amount of CPU as millicores. Raises AnnotationError."""
    try:
        exact = parse(text)
    except QuantityError:
        exact = None
    if exact is None or not 0 <= exact <= MAX_INT64 // 1000:
        raise AnnotationError("an amount of CPU is expected, such as 250m")
    return math.ceil(exact * 1000)


def count_of(text: str, highest: int = MAX_INT64) -> int:
    """Parse a count. Raises AnnotationError."""
    if not re.fullmatch(r"[0-9]{1,19}", text) or int(text) > highest:
        most = "up" if highest == MAX_INT64 else f"to {highest}"
        raise AnnotationError(f"a whole number from 0 {most} is expected")
    return int(text)


def bytes_of(text: str) -> int:
    """Parse a number of bytes. Raises AnnotationError."""
    try:
        exact = parse(text)
    except QuantityError:
        exact = None
    if exact is None or not 0 <= exact <= MAX_INT64:
        raise AnnotationError("a quantity from 0 to 9223372036854775807 is expected, such as 500Mi")
    return math.ceil(exact)


_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def duration_of(text: str) -> float:
    """Parse a duration in the syntax of the kubelet's flags (that of Go). Raises AnnotationError."""
    parts = re.findall(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h)", text)
    if text == "0":
        return 0.0
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise AnnotationError("a duration is expected, such as 30s or 1m30s")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
