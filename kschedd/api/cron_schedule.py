"""Cron schedules of CronJobs: five fields, descriptors such as `@hourly` and `@every 1h30m`, names, `TZ=`.

Each field is a set of values. `next_after` searches for the first second at which all fields are in these sets, in
local time. When the clock is put forward, the skipped hours do not occur. When the clock is put back, hours occur
twice, and so do the scheduled times in them. A day matches if its day of month or its day of week matches. If either of
them is `*` or `?`, both must match.

Source: github.com/robfig/cron v3.0.1 (parser.go, spec.go, constantdelay.go) with ParseStandard; Go's time.Date for
local times that do not exist. Raises: ScheduleError, with the messages of this parser.
"""

import datetime
import zoneinfo
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import attrs

from kschedd.api.text.durations import DurationError, parse_duration
from kschedd.errors import KscheddError

_MONTHS: Final = {
    name: number
    for number, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)
}  # fmt: skip
_DAYS: Final = {name: number for number, name in enumerate("sun mon tue wed thu fri sat".split())}
_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_YEARS: Final = 5  # number of years to search for a matching time
_NOON: Final = 12
_MOST: Final = 2**63 - 1


@attrs.define(eq=False)
class ScheduleError(KscheddError):
    why: str


@attrs.frozen
class _Field:
    """The values of a field; `any` is True for `*` and `?`."""

    values: frozenset[int]
    any: bool


@attrs.frozen
class Bounds:
    low: int
    high: int
    names: Mapping[str, int] = attrs.field(factory=dict)


_BOUNDS: Final = (Bounds(0, 59), Bounds(0, 23), Bounds(1, 31), Bounds(1, 12, _MONTHS), Bounds(0, 6, _DAYS))


@attrs.frozen(eq=False)
class ConstantDelay:
    """An `@every` schedule: a constant delay in whole seconds."""

    delay_s: int

    def next_after(self, after: float) -> float | None:
        return int(after) + self.delay_s


@attrs.frozen(eq=False)
class FieldSchedule:
    """A schedule of five fields in a time zone."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: _Field
    months: frozenset[int]
    weekdays: _Field
    zone: datetime.tzinfo

    def next_after(self, after: float) -> float | None:
        """Return the first time (seconds since the epoch) after the given time.

        Returns None if there is no such time within five years, or before the end of 9999.
        """
        try:
            return self._next_after(after)
        except (ValueError, OverflowError):
            return None

    def _next_after(self, after: float) -> float | None:
        """Compute `next_after`; raises ValueError and OverflowError for times after the last supported date."""
        at = int(after) + 1
        last_year = self._local(at).year + _YEARS
        whole = False  # lower fields start at their lowest values
        while True:
            local = self._local(at)
            if local.year > last_year:
                return None
            if local.month not in self.months:
                at, whole = self._next_month(local), True
            elif not self._day_matches(local):
                at, whole = self._next_day(local, whole), True
            elif local.hour not in self.hours:
                at, whole = at - (0 if whole else local.minute * 60 + local.second) + 3600, True
            elif local.minute not in self.minutes:
                at, whole = at - (0 if whole else local.second) + 60, True
            elif local.second:
                at, whole = at + 60 - local.second, True
            else:
                return at

    def _day_matches(self, local: datetime.datetime) -> bool:
        of_month = local.day in self.days.values
        of_week = local.isoweekday() % 7 in self.weekdays.values
        return of_month and of_week if self.days.any or self.weekdays.any else of_month or of_week

    def _next_month(self, local: datetime.datetime) -> int:
        year, month = (local.year + 1, 1) if local.month == 12 else (local.year, local.month + 1)
        return self._instant(datetime.datetime(year, month, 1))

    def _next_day(self, local: datetime.datetime, whole: bool) -> int:
        kept = datetime.time(local.hour, local.minute, local.second) if whole else datetime.time()
        at = self._instant(datetime.datetime.combine(local.date() + datetime.timedelta(days=1), kept))
        # Midnight is missing on some days when the clock is put forward.
        hour = self._local(at).hour
        return at if hour == 0 else at + (24 - hour) * 3600 if hour > _NOON else at - hour * 3600

    def _local(self, at: int) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(at, self.zone)

    def _offset(self, at: int) -> int:
        offset = self._local(at).utcoffset()
        assert offset is not None, "the time is in a zone"
        return int(offset.total_seconds())

    def _instant(self, naive: datetime.datetime) -> int:
        """Return the instant of a local time.

        For ambiguous and missing local times, the result equals Go's time.Date.
        """
        as_utc = int(naive.replace(tzinfo=datetime.UTC).timestamp())
        offset = self._offset(as_utc)
        return as_utc - (offset if self._offset(as_utc - offset) == offset else self._offset(as_utc - offset))


Schedule = ConstantDelay | FieldSchedule


@lru_cache(1 << 10)
def parse_schedule(text: str, time_zone: str = "") -> Schedule:
    """Parse a schedule in this IANA time zone ("": UTC). Raises ScheduleError."""
    zone = zone_of(time_zone)
    if not text:
        raise ScheduleError("empty spec string")
    if text.startswith(("TZ=", "CRON_TZ=")):
        setting, _, text = text.partition(" ")
        name = setting.partition("=")[2]
        try:
            zone = zone_of(name)
        except ScheduleError as fault:
            raise ScheduleError(f"provided bad location {name}: {fault}") from None
        text = text.strip()
    if text.startswith("@"):
        if text.startswith("@every "):
            return _every(text)
        if text not in _DESCRIPTORS:
            raise ScheduleError(f"unrecognized descriptor: {text}")
        text = _DESCRIPTORS[text]
    words = text.split()
    if len(words) != len(_BOUNDS):
        raise ScheduleError(f"expected exactly 5 fields, found {len(words)}: [{' '.join(words)}]")
    minutes, hours, days, months, weekdays = (_field(word, bounds) for word, bounds in zip(words, _BOUNDS, strict=True))
    return FieldSchedule(minutes.values, hours.values, days, months.values, weekdays, zone)


def zone_of(name: str) -> datetime.tzinfo:
    """Return the time zone of this name. Raises ScheduleError for an unknown name."""
    if name in ("", "UTC"):
        return datetime.UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ScheduleError(f"unknown time zone {name}") from None


def _every(text: str) -> ConstantDelay:
    try:
        delay_s = parse_duration(text.removeprefix("@every "))
    except DurationError as fault:
        raise ScheduleError(f"failed to parse duration {text}: {fault}") from None
    return ConstantDelay(max(1, int(delay_s)))


def _field(text: str, bounds: Bounds) -> _Field:
    values: set[int] = set()
    anything = False
    for part in filter(None, dict.fromkeys(text.split(","))):
        found, star = _range(part, bounds)
        values.update(found)
        anything |= star
    return _Field(frozenset(values), anything)


def _range(text: str, bounds: Bounds) -> tuple[range, bool]:
    """Return the values of `number | number-number | * [/step]`, and whether the text allows any value."""
    span, *steps = text.split("/")
    limits = span.split("-")
    star = limits[0] in ("*", "?")
    if star:
        low, high = bounds.low, bounds.high
    else:
        low = _number(limits[0], bounds.names)
        if len(limits) > 2:
            raise ScheduleError(f"too many hyphens: {text}")
        high = _number(limits[1], bounds.names) if len(limits) == 2 else low
    step = 1
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {text}")
    if steps:
        step = _number(steps[0])
        if len(limits) == 1 and not star:
            high = bounds.high
        star = star and step <= 1
    if low < bounds.low:
        raise ScheduleError(f"beginning of range ({low}) below minimum ({bounds.low}): {text}")
    if high > bounds.high:
        raise ScheduleError(f"end of range ({high}) above maximum ({bounds.high}): {text}")
    if low > high:
        raise ScheduleError(f"beginning of range ({low}) beyond end of range ({high}): {text}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {text}")
    return range(low, high + 1, step), star


def _number(text: str, names: Mapping[str, int] | None = None) -> int:
    if names and text.lower() in names:
        return names[text.lower()]
    sign = text[0] if text[:1] in ("+", "-") else ""
    digits = text.removeprefix(sign)
    wrong = "" if digits.isascii() and digits.isdigit() else "invalid syntax"
    digits = digits.lstrip("0") or "0"  # remove leading zeros, because Python parses at most 4,300 digits
    if not wrong and (len(digits) > len(str(_MOST)) or int(digits) > _MOST):
        wrong = "value out of range"
    if wrong:
        raise ScheduleError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": {wrong}')
    number = int(sign + digits)
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number
