"""The information about an in-tree or out-of-tree plugin that the configuration needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from kschedd.config.versions.rules import Rules

Guard = Callable[[Callable[[], Any]], Any]
"""Runs code of a plugin within limits.  Raises KscheddError if the code raises or does not return."""


@attrs.frozen
class PluginInfo:
    points: frozenset[str]
    """The extension points that it implements, in any release."""
    args_type: type[Any] | None = None
    """An attrs class (`kschedd.config.args`); None: its arguments stay as written."""
    guard: Guard | None = attrs.field(default=None, eq=False)
    """For the code of `args_type`; None: it is trusted."""
    rule_of_point: Mapping[str, str] = attrs.field(factory=dict)
    """The rule required for an extension point, if any."""

    def points_under(self, rules: Rules) -> frozenset[str]:
        """Return the extension points that the plugin implements with these rules."""
        missing = {point for point, rule in self.rule_of_point.items() if not getattr(rules, rule)}
        return self.points - missing
