"""Zones of nodes: the disruption state of each zone, and the rate at which its nodes get NoExecute taints.

A zone is in PartialDisruption if more than two of its nodes are not Ready, and if these are at least the fraction
`unhealthy_zone_threshold` of its nodes. A zone is in FullDisruption if no node is Ready. In a
Normal or fully disrupted zone nodes are tainted at `node_eviction_rate`. In a partially disrupted zone, nodes are
tainted at `secondary_node_eviction_rate`, or not at all if the zone has `large_cluster_size_threshold` nodes or fewer.
If every zone is fully disrupted, no node is tainted.

Upstream's state Initial, before the first check of a zone, has no effect and is not implemented. The rate is a token
bucket with one token at the start, so the first node need not wait. Source: Kubernetes v1.34,
controller/nodelifecycle/node_lifecycle_controller.go (ComputeZoneState, ReducedQPSFunc, setLimiterInZone),
scheduler/rate_limited_queue.go (SwapLimiter); cmd/kube-controller-manager/app/options for defaults. Units: seconds, and
nodes per second.
"""

import math
from typing import Final, Literal, Self

import attrs

ZoneState = Literal["Normal", "PartialDisruption", "FullDisruption"]
NORMAL: Final = "Normal"
PARTIAL: Final = "PartialDisruption"
FULL: Final = "FullDisruption"
_FEW: Final = 2  # maximum number of nodes that may be not Ready without a disruption of the zone
_ROUNDING: Final = 1e-9  # tolerance for comparing shares, because upstream compares 32-bit floats


@attrs.frozen
class NodeLifecycleConfig:
    """Options of kube-controller-manager, with its names and defaults."""

    node_monitor_period_s: float = 5.0
    node_monitor_grace_period_s: float = 50.0
    node_startup_grace_period_s: float = 60.0
    node_eviction_rate: float = 0.1
    secondary_node_eviction_rate: float = 0.01
    large_cluster_size_threshold: int = 50
    unhealthy_zone_threshold: float = 0.55


def compute_zone_state(ready: int, not_ready: int, unhealthy_zone_threshold: float = 0.55) -> ZoneState:
    if not ready and not_ready:
        return FULL
    if not_ready > _FEW and not_ready / (ready + not_ready) >= unhealthy_zone_threshold - _ROUNDING:
        return PARTIAL
    return NORMAL


def eviction_rate(state: ZoneState, size: int, config: NodeLifecycleConfig) -> float:
    """Return the number of nodes per second that may be tainted in a zone with this state."""
    if state != PARTIAL:
        return config.node_eviction_rate
    return config.secondary_node_eviction_rate if size > config.large_cluster_size_threshold else 0.0


@attrs.define
class TaintRate:
    """A token bucket for one token, full at first. A bucket with rate 0 never gets a token."""

    per_s: float
    _full_at_s: float = -math.inf

    def try_accept(self, now: float) -> bool:
        if self.per_s <= 0 or now < self._full_at_s:
            return False
        self._full_at_s = now + 1 / self.per_s
        return True

    def next_s(self) -> float | None:
        """Return the time at which a token is available, or None for never."""
        return self._full_at_s if self.per_s > 0 else None

    def swapped(self, per_s: float, now: float) -> Self:
        """Return the bucket with another rate and the same token, if any."""
        if per_s == self.per_s:
            return self
        rate = type(self)(per_s)
        if not self.try_accept(now):
            rate.try_accept(now)
        return rate


@attrs.define(eq=False)
class Zone:
    """A zone: its taint queue, and its nodes' counts by readiness, without nodes excluded from disruption checks."""

    rate: TaintRate
    state: ZoneState = NORMAL
    ready: int = 0
    not_ready: int = 0
    members: int = 0  # includes excluded nodes
    waiting: dict[str, None] = attrs.field(factory=dict)  # nodes queued for a NoExecute taint, in order

    @property
    def size(self) -> int:
        return self.ready + self.not_ready
