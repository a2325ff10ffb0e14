"""What configuration has to know of a plugin, in-tree or out-of-tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

Guard = Callable[[Callable[[], Any]], Any]
"""Runs code of a plugin within limits.  Raises KscheddError for whatever it raises, and if it does not return."""


@attrs.frozen
class PluginInfo:
    points: frozenset[str]
    """The extension points that it implements."""
    args_type: type[Any] | None = None
    """An attrs class (`kschedd.config.args`); None: its arguments are left as they are written."""
    guard: Guard | None = attrs.field(default=None, eq=False)
    """For the code of `args_type`; None: it is trusted."""
