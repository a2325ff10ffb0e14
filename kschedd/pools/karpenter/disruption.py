"""A round of disruption: the next command of Karpenter, and the reason why each node is kept.

Methods are tried in upstream's order: Emptiness, Drift, consolidation of several nodes, consolidation of one node.

Source: sigs.k8s.io/karpenter, pkg/controllers/disruption (controller.go, emptiness.go, drift.go, consolidation.go).
"""

from collections.abc import Generator, Iterable, Sequence
from functools import cached_property
from typing import Final

import attrs

from kschedd.api.objects import Object
from kschedd.pools.karpenter.budgets import DisruptionReason
from kschedd.pools.karpenter.candidates import (
    ManagedNode,
    may_be_consolidated,
    may_be_emptied,
    may_drift,
    remaining_disruptions,
    why_no_candidate,
    within_budgets,
)
from kschedd.pools.karpenter.costs import CostTotals, PricedNode, by_savings, judge_balanced, totals_by_pool
from kschedd.pools.karpenter.launching import Launch
from kschedd.pools.karpenter.node_pools import NodePool
from kschedd.pools.karpenter.removals import (
    ConsolidatedCluster,
    NodeRemoval,
    removal_of,
    remove_one,
    remove_several,
    replacement_of,
)
from kschedd.values import in_parts, run_steps

_PART: Final = 20  # nodes that are examined between two pauses


class DisruptionUnsupported(Exception):
    """The error for a command whose rules are not implemented."""


@attrs.frozen(eq=False)
class DisruptionCommand:
    """Nodes to remove together, and the node that replaces them."""

    reason: DisruptionReason
    nodes: Sequence[ManagedNode]
    launch: Launch | None = None


CommandSteps = Generator[None, None, DisruptionCommand | None]
"""A decision with pauses: the command, or None."""


@attrs.define(eq=False, slots=False)
class DisruptionRound:
    """The parts of a cluster that a round reads. `budgets` are PodDisruptionBudgets."""

    nodes: Sequence[ManagedNode]
    cluster: ConsolidatedCluster
    budgets: Sequence[Object]
    now_s: float
    _candidates: list[ManagedNode] | None = attrs.field(default=None, init=False)

    @cached_property
    def pools(self) -> dict[str, NodePool]:
        return {pool.name: pool for pool in self.cluster.offers.pools}

    def pool_of(self, each: ManagedNode) -> NodePool:
        return self.pools[each.pool or ""]

    def candidates(self) -> list[ManagedNode]:
        return run_steps(self._examined())

    def _examined(self) -> Generator[None, None, list[ManagedNode]]:
        """Return the candidates, with pauses; they are computed once."""
        if self._candidates is None:
            found = []
            for part in in_parts(self.nodes, _PART):
                yield
                found += [each for each in part if not self.why_no_candidate(each)]
            for part in in_parts(found, _PART):
                yield
                for each in part:
                    _ = each.disruption_cost  # cached for the decision
            self._candidates = found
        return list(self._candidates)

    def why_no_candidate(self, each: ManagedNode, *, eventual: bool = False) -> str:
        return why_no_candidate(each, self.pools, self.budgets, self.now_s, eventual=eventual)

    def remaining(self, reason: DisruptionReason) -> dict[str, int | None]:
        return remaining_disruptions(self.nodes, self.pools.values(), reason, self.now_s)

    def empty(self) -> list[ManagedNode]:
        """Return the candidates that Emptiness deletes."""
        empty = [each for each in self.candidates() if may_be_emptied(each, self.pool_of(each))]
        return within_budgets(empty, self.remaining(DisruptionReason.EMPTY))

    def possible(self) -> list[ManagedNode]:
        """Return the candidates of consolidation, in the order in which it tries them."""
        found = [each for each in self.candidates() if may_be_consolidated(each, self.pool_of(each))]
        by_name = {each.name: each for each in found}
        return [by_name[each.name] for each in by_savings(self.priced(found))]

    def command(self) -> CommandSteps:
        """Return the next command, with pauses. Raises DisruptionUnsupported."""
        yield from self._examined()
        if empty := self.empty():
            return DisruptionCommand(DisruptionReason.EMPTY, empty)
        yield
        return (yield from self._drift()) or (yield from self._consolidation())

    def _drift(self) -> CommandSteps:
        remaining = self.remaining(DisruptionReason.DRIFTED)
        for number, each in enumerate(self.nodes):
            if not number % _PART:
                yield
            if not may_drift(each) or self.why_no_candidate(each, eventual=True) or remaining[each.pool or ""] == 0:
                continue
            if self.pool_of(each).static:
                raise DisruptionUnsupported("the drift of static pools")
            if (found := (yield from replacement_of([each], self.cluster))) is not None:
                return DisruptionCommand(DisruptionReason.DRIFTED, [each], found.launch)
        return None

    def _consolidation(self) -> CommandSteps:
        yield
        possible = self.possible()
        yield
        remaining = self.remaining(DisruptionReason.UNDERUTILIZED)
        allowed = [each for each in possible if remaining[each.pool or ""] != 0]
        if not allowed:
            return None
        found = yield from remove_several(within_budgets(possible, remaining), self.cluster, self.approves)
        found = found or (yield from remove_one(allowed, self.cluster, self.approves))
        return None if found is None else DisruptionCommand(DisruptionReason.UNDERUTILIZED, found.nodes, found.launch)

    @cached_property
    def _totals(self) -> dict[str, CostTotals]:
        return totals_by_pool(self.priced(self.nodes))

    def approves(self, removal: NodeRemoval) -> bool:
        """Return whether the pools with the policy Balanced approve the removal."""
        if not any(self.pool_of(each).policy == "Balanced" for each in removal.nodes):
            return True
        price = 0.0 if removal.launch is None else removal.launch.cheapest_price()
        return judge_balanced(self.priced(removal.nodes), self._totals, price).approved

    def priced(self, nodes: Iterable[ManagedNode]) -> list[PricedNode]:
        return [
            PricedNode(
                each.name,
                each.pool or "",
                self.cluster.prices.get(each.name, 0.0),
                each.disruption_cost,
                each.pool in self.pools and self.pools[each.pool].policy == "Balanced",
            )
            for each in nodes
        ]

    # -- one node -----------------------------------------------------------------------------------------------

    def removal(self, each: ManagedNode) -> DisruptionCommand | tuple[str, str]:
        """Return the command that removes only this node, or the rule that keeps the node and its values."""
        if why := self.why_no_candidate(each):
            return "candidate", why
        pool, empty = self.pool_of(each), each.empty
        if why := _why_not_consolidated(each, pool):
            return "pool", why
        reason = DisruptionReason.EMPTY if empty else DisruptionReason.UNDERUTILIZED
        if self.remaining(reason)[pool.name] == 0:
            return "budget", f"a disruption budget of the pool {pool.name} allows no more node ({reason.value})"
        if empty:
            return DisruptionCommand(reason, [each])
        possible = run_steps(replacement_of([each], self.cluster))
        if possible is None:
            return "pods", "its pods fit neither on the other nodes nor on one new node"
        found = possible if possible.launch is None else run_steps(removal_of([each], self.cluster))
        if found is None:
            return "price", "some of its pods need a new node, and no cheaper instance type can hold them"
        if not self.approves(found):
            return "Balanced", "the savings are too small for the disruption, by the policy Balanced"
        return DisruptionCommand(reason, found.nodes, found.launch)


def _why_not_consolidated(each: ManagedNode, pool: NodePool) -> str:
    if pool.static:
        return f"the pool {pool.name} is static (replicas)"
    if pool.consolidate_after_s is None:
        return f"consolidateAfter of the pool {pool.name} is Never"
    if pool.policy == "WhenEmpty" and not each.empty:
        return f"consolidationPolicy of the pool {pool.name} is WhenEmpty, and the node has pods"
    if not each.is_true("Consolidatable"):
        return f"pods came or left within the last {pool.consolidate_after_s:g} s (consolidateAfter)"
    return "" if not (each.empty and each.buffered) else "the node hosts pods of a capacity buffer"
