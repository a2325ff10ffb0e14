"""What configuration has to know of a plugin, in-tree or out-of-tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from kschedd.config.versions.rules import Rules

Guard = Callable[[Callable[[], Any]], Any]
"""Runs code of a plugin within limits.  Raises KscheddError for whatever it raises, and if it does not return."""


@attrs.frozen
class PluginInfo:
    points: frozenset[str]
    """The extension points that it implements, in one release or another."""
    args_type: type[Any] | None = None
    """An attrs class (`kschedd.config.args`); None: its arguments are left as they are written."""
    guard: Guard | None = attrs.field(default=None, eq=False)
    """For the code of `args_type`; None: it is trusted."""
    rule_of_point: Mapping[str, str] = attrs.field(factory=dict)
    """The rule that it takes for an extension point, where it takes one."""

    def points_under(self, rules: Rules) -> frozenset[str]:
        """The extension points that it implements where these rules hold."""
        missing = {point for point, rule in self.rule_of_point.items() if not getattr(rules, rule)}
        return self.points - missing
