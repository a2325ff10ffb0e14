"""What is wrong with a configuration: every fault found in it, with its place and what would be right."""

from __future__ import annotations

import json
from typing import Any

import attrs

from kschedd.errors import KscheddError


@attrs.define(eq=False)
class ConfigError(KscheddError):
    """One place in a configuration that cannot be used as written."""

    file: str
    line: int
    """1-based; 0 where there is no text to count lines in."""
    path: str
    """For example `$.profiles[0].plugins.score.enabled[1].name`."""
    value: Any
    """What stands there; None for what is missing."""
    why: str
    allowed: str = ""
    """What may stand there instead, if that can be said."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        shown = "" if self.value is None else f" {_short(self.value)}:"
        allowed = f" (allowed: {self.allowed})" if self.allowed else ""
        return f"{place}: {self.path}:{shown} {self.why}{allowed}"


@attrs.define(eq=False)
class ConfigErrors(KscheddError):
    """A configuration that is refused, with all that is wrong with it, in the order of the text."""

    errors: tuple[ConfigError, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.errors))


def _short(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
