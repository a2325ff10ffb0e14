"""Disruption budgets of a NodePool: how many of its nodes may be disrupted at the same time.

Source: sigs.k8s.io/karpenter, pkg/apis/v1/nodepool.go and pkg/controllers/disruption/helpers.go. Times are seconds
since the epoch, schedules are in UTC.
"""

from collections.abc import Iterable, Sequence
from enum import Enum

import attrs

from kschedd.api.cron_schedule import ScheduleError, parse_schedule


class DisruptionReason(Enum):
    EMPTY = "Empty"
    DRIFTED = "Drifted"
    UNDERUTILIZED = "Underutilized"


@attrs.frozen
class DisruptionBudget:
    """A budget. `nodes` is a number or a percentage. `reasons`: None applies to all reasons."""

    nodes: str = "10%"
    reasons: Sequence[str] | None = None
    schedule: str | None = None
    duration_s: float | None = None

    def is_active(self, now_s: float) -> bool:
        """Return whether the schedule began at most `duration_s` ago. Raises ScheduleError."""
        if self.schedule is None and self.duration_s is None:
            return True
        started = parse_schedule(self.schedule or "").next_after(now_s - (self.duration_s or 0.0))
        return started is not None and started <= now_s

    def limit(self, node_count: int) -> int:
        """Return the number of nodes, percentages rounded up; 0 for a value that is neither."""
        share = self.nodes.removesuffix("%")
        if not (share.isascii() and share.isdigit()):
            return 0
        return -(-int(share) * node_count // 100) if self.nodes.endswith("%") else int(share)


def allowed_disruptions(
    budgets: Iterable[DisruptionBudget], node_count: int, reason: DisruptionReason, now_s: float
) -> int | None:
    """Return how many of a pool's nodes may be disrupted; None: any number. A wrong schedule allows no disruption."""
    least: int | None = None
    for budget in budgets:
        try:
            active = budget.is_active(now_s)
        except ScheduleError:
            return 0
        if active and (budget.reasons is None or reason.value in budget.reasons):
            number = budget.limit(node_count)
            least = number if least is None else min(least, number)
    return least
