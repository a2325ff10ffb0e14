"""Counts of a controller of node pools since its start."""

from collections.abc import Mapping

import attrs


@attrs.define(eq=False)
class ScalingTotals:
    """The counts; `removed` is keyed by the reason of a removal, `refused` are evictions that a budget refused.

    `reasons` contains the reason of the last removal of a node with this name; names are reused.
    """

    launched: int = 0
    failed: int = 0
    evicted: int = 0
    refused: int = 0
    removed: dict[str, int] = attrs.field(factory=dict)
    reasons: dict[str, str] = attrs.field(factory=dict)
    most_nodes: int = 0

    def remove(self, name: str, reason: str) -> None:
        self.removed[reason] = self.removed.get(reason, 0) + 1
        self.reasons[name] = reason

    def values(self) -> Mapping[str, float]:
        """Return the counts as measures of a run."""
        return {
            "launched": self.launched,
            "failed_launches": self.failed,
            "removed_nodes": sum(self.removed.values()),
            "disrupted": self.evicted,
            "most_nodes": self.most_nodes,
        }
