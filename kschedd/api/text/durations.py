"""Durations in Go's notation: `1h30m`, `7s`, `1.5s`, `250ms`. Flags and verbs of ours also accept days: `2d12h`.

Source: Go's time package (ParseDuration, Duration.String).
Units: seconds as float, so that nanoseconds may be rounded.
Raises: DurationError, with Go's messages.
"""

import re
from collections.abc import Mapping
from typing import Final

import attrs

from kschedd.errors import KscheddError

_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_WITH_DAYS: Final = {**_UNITS, "d": 86_400.0}
_PART: Final = re.compile(r"(\d+\.?\d*|\.\d+)([^\d.]*)")
_LONGEST_S: Final = (2**63 - 1) / 1e9
_LONGEST_SPAN_S: Final = 1e15  # limit in seconds; more than the range of representable times


@attrs.define(eq=False)
class DurationError(KscheddError):
    """Text that is not a duration."""

    why: str

    def __str__(self) -> str:
        return f"time: {self.why}"


def parse_span(text: str) -> float:
    """Return the seconds of a duration that may contain days, as our tables print it. Raises DurationError."""
    return _parsed(text, _WITH_DAYS, _LONGEST_SPAN_S)


def parse_duration(text: str) -> float:
    """Return the seconds of a duration in Go's notation. Raises DurationError."""
    return _parsed(text, _UNITS, _LONGEST_S)


def _parsed(text: str, units: Mapping[str, float], longest_s: float) -> float:
    shown = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    sign = -1.0 if text.startswith("-") else 1.0
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0.0
    total, place = 0.0, 0
    while place < len(rest):
        part = _PART.match(rest, place)
        if part is None:
            raise DurationError(f"invalid duration {shown}")
        if not part[2]:
            raise DurationError(f"missing unit in duration {shown}")
        if part[2] not in units:
            raise DurationError(f'unknown unit "{part[2]}" in duration {shown}')
        total += float(part[1]) * units[part[2]]
        place = part.end()
    if not rest or total > longest_s:
        raise DurationError(f"invalid duration {shown}")
    return sign * total


def show_duration(seconds: float) -> str:
    """Return a duration in the format of Go: `7s`, `1m30s`, `1h0m0s`, `250ms`."""
    sign = "-" if seconds < 0 else ""
    left = abs(seconds)
    if left == 0:
        return "0s"
    if left < 1:
        unit, size = next((unit, size) for unit, size in (("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)) if left >= size)
        return f"{sign}{round(left / size, 6):g}{unit}"
    minutes, rest = divmod(round(left, 9), 60)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{round(rest, 9):.9f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def brief_duration(seconds: float) -> str:
    """Return a duration without trailing zeros: `1h`, `5m`, `1h0m5s`."""
    shown = show_duration(seconds)
    return re.sub(r"(?<=[hm])(0m)?0s$", "", shown)
