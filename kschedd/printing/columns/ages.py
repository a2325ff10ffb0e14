"""Times and durations in kubectl's formats: `5m12s`, `3d4h`, `<unknown>`.

Source: Kubernetes v1.34, apimachinery/pkg/util/duration (HumanDuration).
Units: seconds; `now` is seconds since the epoch.
"""

from typing import Any

from kschedd.api.text.times import seconds, stamp

UNKNOWN = "<unknown>"

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY


def span(seconds: float) -> str:
    """Return a duration with at most two units; the longer the duration, the larger the units."""
    if seconds < -1:
        return "<invalid>"
    whole = max(0, int(seconds))
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 10 * _MINUTE:
        return _two(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _two(whole, _YEAR, "y", _DAY, "d")
    return f"{whole // _YEAR}y"


def _two(whole: int, large: int, large_unit: str, small: int, small_unit: str) -> str:
    rest = whole % large // small
    return f"{whole // large}{large_unit}" + (f"{rest}{small_unit}" if rest else "")


def seconds_of(time: Any) -> float | None:
    """Return the seconds since the epoch for RFC 3339 text or a number of seconds; None for other values."""
    if isinstance(time, int | float) and not isinstance(time, bool):
        return float(time)
    if not isinstance(time, str) or not time:
        return None
    try:
        return seconds(time)
    except ValueError:
        return None


def age(time: Any, now: float) -> str:
    """Return the duration from `time` to `now`."""
    at = seconds_of(time)
    return UNKNOWN if at is None else span(now - at)


def clock(time: Any) -> str:
    """Return a point in time as date and time in UTC: `2025-01-31 12:00:05Z`."""
    at = seconds_of(time)
    return UNKNOWN if at is None else stamp(at).replace("T", " ")
