"""Strict parsing of untyped values: each typed access to a field either returns a value or records a fault.

A `ConfigValue` is a value with its path; a `ConfigFields` contains the fields of a mapping whose keys are fixed. A null
counts as absent, as in Go. Faults are collected instead of raised, so that one pass finds all faults.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import attrs

from kschedd.api.text.documents import Document
from kschedd.api.text.similar import did_you_mean
from kschedd.config.parsing.faults import ConfigError
from kschedd.config.parsing.source import child_path, line_in

INT32 = (-(2**31), 2**31 - 1)
INT64 = (-(2**63), 2**63 - 1)

_DURATION_PART = re.compile(r"(\d++\.?\d*+|\.\d++)(ns|us|µs|μs|ms|s|m|h)")
_LONGEST_S = float(2**63 // 10**9)  # largest number of seconds in Go's 64-bit nanoseconds
_SECONDS = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),
    "μs": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "m": Decimal(60),
    "h": Decimal(3600),
}


@attrs.define
class ConfigReader:
    """One configuration being parsed, with the faults and warnings found so far."""

    source: str
    document: Document | None = None
    """The source document; None if the configuration was given as a mapping."""
    faults: list[ConfigError] = attrs.field(factory=list)
    warnings: list[ConfigError] = attrs.field(factory=list)

    def report(self, path: str, value: Any, why: str, allowed: str = "") -> None:
        self.faults.append(ConfigError(self.source, self.line(path), path, value, why, allowed))

    def warn(self, path: str, value: Any, why: str, allowed: str = "") -> None:
        self.warnings.append(ConfigError(self.source, self.line(path), path, value, why, allowed))

    def line(self, path: str) -> int:
        """Return the line of `path`, or of its nearest existing ancestor; 0 if there is no text."""
        return line_in(self.document, path) if self.document else 0


@attrs.frozen
class ConfigValue:
    value: Any
    path: str
    reading: ConfigReader

    def wrong(self, why: str, allowed: str = "") -> None:
        self.reading.report(self.path, self.value, why, allowed)

    def at(self, key: str | int, value: Any) -> ConfigValue:
        return ConfigValue(value, child_path(self.path, key), self.reading)

    def fields(self, *names: str, any_other: bool = False) -> ConfigFields | None:
        """Return the fields of the mapping; None if the value is not a mapping.  Keys not in `names` are faults."""
        if not isinstance(self.value, Mapping):
            self.wrong(f"must be a mapping, not {_kind(self.value)}")
            return None
        for key in self.value:
            if key not in names and not any_other:
                why = f"no such field{did_you_mean(str(key), names, 1)}"
                self.reading.report(child_path(self.path, str(key)), None, why, ", ".join(names))
        return ConfigFields(self)

    def items(self) -> list[ConfigValue]:
        if not isinstance(self.value, list | tuple):
            self.wrong(f"must be a list, not {_kind(self.value)}")
            return []
        return [self.at(number, item) for number, item in enumerate(self.value)]

    def text(self) -> str | None:
        if isinstance(self.value, str):
            return self.value
        self.wrong(f"must be text, not {_kind(self.value)}")
        return None

    def boolean(self) -> bool | None:
        if isinstance(self.value, bool):
            return self.value
        self.wrong(f"must be true or false, not {_kind(self.value)}", "true, false")
        return None

    def integer(self, bounds: tuple[int, int] = INT32) -> int | None:
        """Return an integer within `bounds`, which are inclusive."""
        value = self.value
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self.wrong(f"must be a whole number, not {_kind(self.value)}")
            return None
        if not bounds[0] <= value <= bounds[1]:
            self.wrong("out of range", _range_text(bounds, value))
            return None
        return value

    def number(self) -> float | None:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.wrong(f"must be a number, not {_kind(self.value)}")
            return None
        return float(self.value)

    def duration_s(self) -> float | None:
        """Return the seconds of a duration in Go's notation."""
        text = self.text()
        if text is None:
            return None
        seconds = seconds_of(text)
        if seconds is None:
            self.wrong("not a duration", 'for example "500ms", "15s", "1m30s"')
        return seconds

    def choice(self, options: Sequence[str]) -> str | None:
        text = self.text()
        if text is None or text in options:
            return text
        self.wrong(f"not one of the values{did_you_mean(text, options, 1)}", ", ".join(options))
        return None


@attrs.frozen
class ConfigFields:
    """The fields of a mapping.  Each accessor returns the default if the field is absent, null or invalid."""

    place: ConfigValue

    def get(self, name: str) -> ConfigValue | None:
        value = self.place.value.get(name)
        return None if value is None else self.place.at(name, value)

    def path(self, name: str) -> str:
        return child_path(self.place.path, name)

    def missing(self, name: str, why: str = "required, but missing") -> None:
        self.place.reading.report(self.path(name), None, why)

    def text(self, name: str, default: str = "") -> str:
        found = self.get(name)
        value = found.text() if found else None
        return default if value is None else value

    def needed_text(self, name: str) -> str | None:
        """Return a required non-empty string. Return None after recording a fault if it is absent or invalid."""
        found = self.get(name)
        if found is None:
            self.missing(name)
            return None
        value = found.text()
        if value == "":
            found.wrong("must not be empty")
            return None
        return value

    def boolean(self, name: str, default: bool) -> bool:
        found = self.get(name)
        value = found.boolean() if found else None
        return default if value is None else value

    def integer(self, name: str, default: int, bounds: tuple[int, int] = INT32) -> int:
        found = self.get(name)
        value = found.integer(bounds) if found else None
        return default if value is None else value

    def maybe_integer(self, name: str, bounds: tuple[int, int] = INT32) -> int | None:
        found = self.get(name)
        return found.integer(bounds) if found else None

    def number(self, name: str, default: float) -> float:
        found = self.get(name)
        value = found.number() if found else None
        return default if value is None else value

    def duration_s(self, name: str, default: float) -> float:
        found = self.get(name)
        value = found.duration_s() if found else None
        return default if value is None else value

    def choice(self, name: str, default: str, options: Sequence[str]) -> str:
        found = self.get(name)
        value = found.choice(options) if found else None
        return default if value is None else value

    def items(self, name: str) -> list[ConfigValue]:
        found = self.get(name)
        return found.items() if found else []

    def texts(self, name: str) -> list[tuple[ConfigValue, str]]:
        """Return the strings in a list of strings, with their places. Other items are faults."""
        return [(item, value) for item in self.items(name) if (value := item.text()) is not None]

    def mapping(self, name: str) -> ConfigValue | None:
        return self.get(name)


def in_text_order(faults: Iterable[ConfigError]) -> tuple[ConfigError, ...]:
    return tuple(sorted(faults, key=lambda fault: fault.line))


def seconds_of(text: str) -> float | None:
    """Return the seconds of a duration in Go's notation; None if it is invalid."""
    unsigned = text.lstrip("+-") if text[:1] in ("+", "-") else text
    if unsigned == "0":
        return 0.0
    parts, at = [], 0
    while at < len(unsigned):
        if (part := _DURATION_PART.match(unsigned, at)) is None:
            return None
        parts.append(part)
        at = part.end()
    if not parts:
        return None
    seconds = float(sum(Decimal(part[1]) * _SECONDS[part[2]] for part in parts))
    if seconds > _LONGEST_S:
        return None
    return -seconds if text.startswith("-") else seconds


def duration_text(seconds: float) -> str:
    """Return a number of seconds in Go's notation: the reverse of `seconds_of`."""
    return f"{Decimal(repr(seconds)).normalize():f}s"


def _range_text(bounds: tuple[int, int], value: int) -> str:
    low, high = bounds
    return f"{low} or more" if high in (INT32[1], INT64[1]) and not value > high else f"{low} to {high}"


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int):
        return "a whole number"
    if isinstance(value, float):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "a mapping" if isinstance(value, Mapping) else "a list"
