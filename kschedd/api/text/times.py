"""Times and durations of API objects: conversion between RFC 3339 text and exact microseconds since the epoch.

`micros` accepts the same times as kube-apiserver's decoder (Go's time.RFC3339: any offset, any number of fractional
digits, the years 0 to 9999). A validated time can therefore always be parsed, changed and printed without an overflow.
`stamp` replaces a time before or after these years by their first or last second. Source: Kubernetes v1.34,
apimachinery/pkg/apis/meta/v1/{time,micro_time}.go; Go's time package (format_rfc3339.go).
"""

import re
from datetime import date, datetime
from functools import lru_cache
from typing import Final

SECOND: Final = 1_000_000
_RFC3339: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)
_AS_PRINTED: Final = re.compile(r"(?!0000)\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ", re.ASCII)  # by `stamp`
_CYCLE_YEARS: Final = 400  # period of the Gregorian calendar in years
_CYCLE_DAYS: Final = 146_097
_EPOCH: Final = date(1970, 1, 1).toordinal()
FIRST_S: Final = -62_167_219_200  # 0000-01-01T00:00:00Z
# a table, because formatting each number would take several times as long
_TWO_DIGITS: Final = tuple(f"{number:02}" for number in range(60))
LAST_S: Final = 253_402_300_799  # 9999-12-31T23:59:59Z


@lru_cache(1 << 14)  # preemption compares the start times of all candidate victims
def micros(text: str) -> int:
    """Return microseconds since the epoch, truncating further digits.

    Raises ValueError if the text is not RFC 3339.
    """
    if _AS_PRINTED.fullmatch(text):
        return int(datetime.fromisoformat(text).timestamp()) * SECOND
    found = _RFC3339.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:100]!r} is not an RFC 3339 time")
    hour, minute, second = (int(part) for part in found.groups()[3:6])
    fraction, sign, ahead_h, ahead_m = found.groups()[6:]
    ahead_s = 0 if sign is None else (int(ahead_h) * 3600 + int(ahead_m) * 60) * (1 if sign == "+" else -1)
    if hour > 23 or minute > 59 or second > 59 or (sign is not None and (int(ahead_h) > 24 or int(ahead_m) > 60)):
        raise ValueError(f"{text[:100]!r} is not an RFC 3339 time")
    whole = _days(text[:10]) * 86_400 + hour * 3600 + minute * 60 + second - ahead_s
    return whole * SECOND + int((fraction or "")[:6].ljust(6, "0"))


@lru_cache(256)
def _days(text: str) -> int:
    """Return the number of days from the epoch to this date."""
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:])
    # datetime does not support the year 0
    days = date(year + _CYCLE_YEARS, month, day).toordinal() if year < 1 else date(year, month, day).toordinal()
    return days - _EPOCH - (_CYCLE_DAYS if year < 1 else 0)


def seconds(text: str) -> float:
    """Parse any RFC 3339 text (including metav1.MicroTime); the inverse of `stamp`. Raises ValueError."""
    return micros(text) / SECOND


@lru_cache(256)
def _stamp(second: int) -> str:
    days, rest = divmod(second, 86_400)
    hour, rest = divmod(rest, 3600)
    return f"{_day(days)}T{_TWO_DIGITS[hour]}:{_TWO_DIGITS[rest // 60]}:{_TWO_DIGITS[rest % 60]}Z"


@lru_cache(256)  # small, because simulated time advances by seconds, and a day is rarely requested twice
def _day(days: int) -> str:
    ordinal = days + _EPOCH
    if ordinal < 1:
        return f"0000{date.fromordinal(ordinal + _CYCLE_DAYS).isoformat()[4:]}"
    return date.fromordinal(ordinal).isoformat()


def stamp(now: float) -> str:
    """Return `now` (seconds since the epoch) in the format of metav1.Time, with the fraction truncated."""
    return _stamp(int(now if FIRST_S <= now <= LAST_S else min(max(now, FIRST_S), LAST_S)))


def duration_s(whole_seconds: int) -> float:
    """Return these seconds as a Go time.Duration: 64 bits of nanoseconds, which overflow after 292 years.

    As in kube-apiserver, a grace period of 2^63-1 s therefore becomes -1 s, and a subtraction reverses an addition.
    """
    return ((whole_seconds * 1_000_000_000 + 2**63) % 2**64 - 2**63) / 1e9


def micro_stamp(moment: int) -> str:
    """Return microseconds since the epoch in the format of metav1.MicroTime."""
    whole, fraction = divmod(moment, SECOND)
    return f"{stamp(whole)[:-1]}.{fraction:06}Z"
