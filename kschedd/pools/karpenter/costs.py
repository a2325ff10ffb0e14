"""Costs of disruptions: of an eviction, and of a node with all its pods; and the score of the Balanced policy.

Source: sigs.k8s.io/karpenter, pkg/utils/disruption/disruption.go, pkg/controllers/disruption/types.go and balanced.go.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from kschedd.api.pods import Pod

#: disruption cost of a node without pods
NODE_COST: Final = 1.0
BALANCED_K: Final = 2
_LIMIT: Final = 10.0
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"


def eviction_cost(pod: Pod) -> float:
    """Return the cost of evicting the pod, between -10 and 10; 1 for a pod without priority and annotation."""
    cost = 1.0 + _deletion_cost(pod) / 2**27 + (pod.spec.get("priority") or 0) / 2**25
    return min(_LIMIT, max(-_LIMIT, cost))


def _deletion_cost(pod: Pod) -> float:
    """Return the deletion cost in the pod's annotation; as upstream, text that is no number counts as 0."""
    try:
        return float(pod.annotations.get(_DELETION_COST, 0))
    except ValueError:
        return 0.0


def disruption_cost(pods: Iterable[Pod]) -> float:
    """Return the disruption cost of a node whose pods must be rescheduled."""
    return NODE_COST + sum(max(0.0, eviction_cost(pod)) for pod in pods)


@attrs.frozen
class CostTotals:
    """Sums over all nodes of a pool."""

    price: float
    disruption: float


@attrs.frozen
class BalancedScore:
    """The share of the pool's price that a move saves, and the move's share of the pool's disruption cost."""

    savings: float
    disruption: float
    k: int = BALANCED_K

    @property
    def value(self) -> float:
        if self.savings <= 0:
            return 0.0
        return self.savings / self.disruption if self.disruption else math.inf

    @property
    def approved(self) -> bool:
        return self.value >= 1.0 / self.k


def balanced_score(savings: float, disruption: float, totals: CostTotals | None, k: int = BALANCED_K) -> BalancedScore:
    """Return the score of a move in a pool; None or zero totals score 0."""
    if totals is None or totals.price <= 0 or totals.disruption <= 0:
        return BalancedScore(0.0, 0.0, k)
    return BalancedScore(savings / totals.price, disruption / totals.disruption, k)


@attrs.frozen
class PricedNode:
    """A node with its price and disruption cost. `balanced`: its pool has the policy Balanced."""

    name: str
    pool: str
    price: float
    disruption: float
    balanced: bool = False

    @property
    def savings_ratio(self) -> float:
        return self.price / self.disruption


def by_savings(nodes: Iterable[PricedNode]) -> list[PricedNode]:
    """Return the nodes in the order in which consolidation tries them; upstream orders equal nodes randomly."""
    return sorted(nodes, key=lambda node: -node.savings_ratio)


def totals_by_pool(nodes: Iterable[PricedNode]) -> dict[str, CostTotals]:
    found: dict[str, CostTotals] = {}
    for node in nodes:
        before = found.get(node.pool, CostTotals(0.0, 0.0))
        found[node.pool] = CostTotals(before.price + node.price, before.disruption + node.disruption)
    return found


@attrs.frozen
class BalancedVerdict:
    """Whether a move is approved, and its score in each pool with the policy Balanced."""

    approved: bool
    scores: Mapping[str, BalancedScore]


def judge_balanced(
    nodes: Sequence[PricedNode], totals: Mapping[str, CostTotals], replacement_price: float = 0.0
) -> BalancedVerdict:
    """Return the verdict on removing these nodes together; each Balanced pool must approve.

    The savings are divided among the pools by their share of the price.
    """
    price = sum(node.price for node in nodes)
    pools = {node.pool for node in nodes}
    scores = {}
    for pool in sorted(pools):
        own = [node for node in nodes if node.pool == pool]
        if not own[0].balanced:
            continue
        savings = price - replacement_price
        if price > 0 and len(pools) > 1:
            savings *= sum(node.price for node in own) / price
        scores[pool] = balanced_score(savings, sum(node.disruption for node in own), totals.get(pool))
    return BalancedVerdict(bool(nodes) and all(score.approved for score in scores.values()), scores)
