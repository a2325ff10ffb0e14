"""Errors in times, with the messages of Go's time.Parse, which contain the invalid part.

Source: Go 1.24, time/format.go (parse, ParseError); the layouts of apimachinery's Time and MicroTime.
"""

import re
from typing import Final

_RFC3339: Final = "2006-01-02T15:04:05Z07:00"
_MICRO: Final = "2006-01-02T15:04:05.000000Z07:00"
_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
# Part of the layout, its pattern, its name, and its bounds (None: checked at the end).
_ELEMENTS: Final = (
    ("2006", r"\d{4}", "", None),
    ("-", "-", "", None),
    ("01", r"\d\d", "month", (1, 12)),
    ("-", "-", "", None),
    ("02", r"\d\d", "", None),
    ("T", "T", "", None),
    ("15", r"\d\d?", "hour", (0, 23)),
    (":", ":", "", None),
    ("04", r"\d\d", "minute", (0, 59)),
    (":", ":", "", None),
    ("05", r"\d\d", "second", (0, 59)),
)
_ZONE: Final = re.compile(r"Z|[+-](\d\d):(\d\d)", re.ASCII)


def time_error(text: str, *, micro: bool) -> str:
    """Return `parsing time "x" as ...`, or "" if the text is a valid time."""
    layout = _MICRO if micro else _RFC3339
    begin = f'parsing time "{_quoted(text)}"'

    def unread(rest: str, element: str) -> str:
        return f'{begin} as "{layout}": cannot parse "{_quoted(rest)}" as "{element}"'

    rest = text
    numbers: dict[str, int] = {}
    for place, (element, form, name, bounds) in enumerate(_ELEMENTS):
        found = re.compile(form, re.ASCII).match(rest)
        if found is None:
            return unread(rest, element)
        rest = rest[found.end() :]
        if bounds is not None and not bounds[0] <= int(found[0]) <= bounds[1]:
            return f"{begin}: {name} out of range"
        numbers[f"{place} {element}"] = int(found[0]) if found[0].isdigit() else 0
    fraction = re.compile(r"[.,]\d{6}" if micro else r"[.,]\d+", re.ASCII).match(rest)
    if micro and fraction is None:
        return unread(rest, ".000000")
    rest = rest[fraction.end() :] if fraction is not None else rest
    zone = _ZONE.match(rest)
    if zone is None:
        return unread(rest, "Z07:00")
    for part, name, most in zip(zone.groups(), ("hour", "minute"), (24, 60), strict=True):
        if part is not None and int(part) > most:
            return f"{begin}: time zone offset {name} out of range"
    if left := rest[zone.end() :]:
        return f'{begin}: extra text: "{_quoted(left)}"'
    year, month, day = numbers["0 2006"], numbers["2 01"], numbers["4 02"]
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= day <= (28 if month == 2 and not leap else _DAYS[month - 1]):
        return f"{begin}: day out of range"
    return ""


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
