"""Configuration errors: every fault found, with its position and the allowed values."""

from __future__ import annotations

import json
from typing import Any

import attrs

from kschedd.errors import KscheddError


@attrs.define(eq=False)
class ConfigError(KscheddError):
    """A fault at one position of a configuration."""

    file: str
    """The name of the file; "" for a change at run time, whose message names only the value."""
    line: int
    """1-based; 0 if the configuration is not text."""
    path: str
    """For example `$.profiles[0].plugins.score.enabled[1].name`."""
    value: Any
    """The value at `path`; None if missing."""
    why: str
    allowed: str = ""
    """The allowed values, if they can be stated."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        shown = "" if self.value is None else f" {_short(self.value)}:"
        suggested = self.why.endswith("?")  # `did you mean ...?` instead of all values
        allowed = f" (allowed: {self.allowed})" if self.allowed and not suggested else ""
        if not place and shown:
            return f"{shown.lstrip()} {self.why}{allowed}"
        return f"{place}{': ' if place else ''}{self.path}:{shown} {self.why}{allowed}"


@attrs.define(eq=False)
class ConfigErrors(KscheddError):
    """The error for a rejected configuration, with all faults in text order."""

    errors: tuple[ConfigError, ...]
    warnings: tuple[ConfigError, ...] = ()
    """Additional findings; not part of the text."""

    def __str__(self) -> str:
        return "\n".join(map(str, self.errors))


def _short(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
