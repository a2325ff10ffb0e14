"""Timestamps and durations.

Source: cel-go common/types/{timestamp,duration}.go; Go's time package.
Errors: CelFailure.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kschedd.api.text.times import FIRST_S, LAST_S, micros
from kschedd.cel.errors import CelFailure
from kschedd.cel.functions.overloads import define
from kschedd.cel.types import DURATION_NAME, TIMESTAMP_NAME
from kschedd.cel.values import MOST_INT, Duration, Timestamp

_SECOND: Final = 10**9
_UNITS: Final = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": _SECOND, "m": 60 * _SECOND, "h": 3600 * _SECOND
}  # fmt: skip
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]+)")
_FRACTION: Final = re.compile(r"[.,]([0-9]+)")


def timestamp_fault(text: str) -> str:
    """Return why a text is not a timestamp; "" if it is one."""
    try:
        timestamp(text)
    except CelFailure as fault:
        return str(fault)
    return ""


def timestamp(text: str) -> Timestamp:
    try:
        whole = micros(text) // 10**6
    except ValueError as fault:
        why = f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}" as "2006"'
        raise CelFailure(why) from fault
    fraction = _FRACTION.search(text)
    return _moment(whole * _SECOND + int((fraction[1] if fraction else "0")[:9].ljust(9, "0")))


def _moment(nanos: int) -> Timestamp:
    if not -62135596800 * _SECOND <= nanos < (LAST_S + 1) * _SECOND:
        raise CelFailure("timestamp overflow")
    return Timestamp(nanos)


def _span(nanos: int) -> Duration:
    if not -MOST_INT - 1 <= nanos <= MOST_INT:
        raise CelFailure("duration overflow")
    return Duration(nanos)


def duration(text: str) -> Duration:
    shown = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return Duration(0)
    total, place = 0, 0
    while place < len(rest):
        part = _PART.match(rest, place)
        if part is None:
            why = (
                "missing unit in duration"
                if re.fullmatch(r"[0-9]*\.?[0-9]+|[0-9]+\.", rest[place:])
                else "invalid duration"
            )
            raise CelFailure(f"time: {why} {shown}")
        if not part[1] and not part[2]:
            raise CelFailure(f"time: invalid duration {shown}")
        if part[3] not in _UNITS:
            raise CelFailure(f'time: unknown unit "{part[3]}" in duration {shown}')
        unit = _UNITS[part[3]]
        total += int(part[1] or 0) * unit + int(part[2] or 0) * unit // 10 ** len(part[2] or "")
        place = part.end()
    if not rest or total > MOST_INT:
        raise CelFailure(f"time: invalid duration {shown}")
    return Duration(-total if text.startswith("-") else total)


def _converted(parse: Callable[[str], Any], name: str) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        try:
            return parse(text)
        except CelFailure as fault:
            raise CelFailure(f"type conversion error from 'string' to '{name}'") from fault

    return convert


define("timestamp", "string", "timestamp", _converted(timestamp, TIMESTAMP_NAME))
define("timestamp", "timestamp", "timestamp", lambda a: a)
define("timestamp", "int", "timestamp", lambda a: _moment(a * _SECOND))
define("duration", "string", "duration", _converted(duration, DURATION_NAME))
define("duration", "duration", "duration", lambda a: a)
define("string", "timestamp", "string", str)
define("string", "duration", "string", str)
define("int", "timestamp", "int", lambda a: a.nanos // _SECOND)
define("int", "duration", "int", lambda a: a.nanos)
define("_+_", "timestamp duration", "timestamp", lambda a, b: _moment(a.nanos + b.nanos))
define("_+_", "duration timestamp", "timestamp", lambda a, b: _moment(a.nanos + b.nanos))
define("_+_", "duration duration", "duration", lambda a, b: _span(a.nanos + b.nanos))
define("_-_", "timestamp duration", "timestamp", lambda a, b: _moment(a.nanos - b.nanos))
define("_-_", "timestamp timestamp", "duration", lambda a, b: _span(a.nanos - b.nanos))
define("_-_", "duration duration", "duration", lambda a, b: _span(a.nanos - b.nanos))
for _of in ("timestamp", "duration"):
    define("_<_", f"{_of} {_of}", "bool", lambda a, b: a < b)
    define("_<=_", f"{_of} {_of}", "bool", lambda a, b: a <= b)
    define("_>_", f"{_of} {_of}", "bool", lambda a, b: a > b)
    define("_>=_", f"{_of} {_of}", "bool", lambda a, b: a >= b)


def _local(moment: Timestamp, zone: str = "UTC") -> datetime:
    whole = moment.nanos // _SECOND
    assert FIRST_S <= whole <= LAST_S, "timestamps are within the years that Go prints"
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=whole)).astimezone(_zone(zone))


def _zone(text: str) -> Any:
    hours, colon, minutes = text.partition(":")
    if not colon:
        try:
            return ZoneInfo(text or "UTC")
        except (ZoneInfoNotFoundError, ValueError, OSError) as fault:
            raise CelFailure(f"unknown time zone {text}") from fault
    try:
        hour, minute = int(hours), int(minutes)
    except ValueError as fault:
        wrong = minutes if hours.lstrip("+-").isdecimal() else hours
        raise CelFailure(f'strconv.Atoi: parsing "{wrong}": invalid syntax') from fault
    if not 0 <= minute <= 59:
        raise CelFailure(f"timezone offset minutes out of range [0, 59]: {text}")
    offset = hour * 60 - minute if text.startswith("-") else hour * 60 + minute
    return timezone(timedelta(minutes=offset))


_PARTS: Final[dict[str, Callable[[datetime], int]]] = {
    "getFullYear": lambda at: at.year,
    "getMonth": lambda at: at.month - 1,
    "getDayOfYear": lambda at: at.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda at: at.day - 1,
    "getDate": lambda at: at.day,
    "getDayOfWeek": lambda at: at.isoweekday() % 7,
    "getHours": lambda at: at.hour,
    "getMinutes": lambda at: at.minute,
    "getSeconds": lambda at: at.second,
}


def _part(part: Callable[[datetime], int]) -> Callable[..., int]:
    return lambda moment, zone="UTC": part(_local(moment, zone))


def _milliseconds(moment: Timestamp, zone: str = "UTC") -> int:
    _zone(zone)
    return moment.nanos % _SECOND // 10**6


for _name, _get in _PARTS.items():
    define(f".{_name}", "timestamp", "int", _part(_get))
    define(f".{_name}", "timestamp string", "int", _part(_get))
define(".getMilliseconds", "timestamp", "int", _milliseconds)
define(".getMilliseconds", "timestamp string", "int", _milliseconds)


def _whole(unit: int) -> Callable[[Duration], int]:
    return lambda span: abs(span.nanos) // unit * (1 if span.nanos >= 0 else -1)


for _name, _unit in (("getHours", 3600), ("getMinutes", 60), ("getSeconds", 1)):
    define(f".{_name}", "duration", "int", _whole(_unit * _SECOND))
define(".getMilliseconds", "duration", "int", _whole(10**6))
