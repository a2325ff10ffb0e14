"""Results of a run with node pools: the summary, and the nodes of the pools with their times and costs."""

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from kschedd.api.nodes import ZONE_LABEL, Node
from kschedd.controllers.scaling.node_pools import NodePools
from kschedd.pools.karpenter.provisioning import UNREGISTERED
from kschedd.pools.karpenter.requirements import CAPACITY_TYPE, INSTANCE_TYPE
from kschedd.pools.reading import pool_name
from kschedd.simulation.results.measures import RunMeasures
from kschedd.simulation.results.prices import NodePrices
from kschedd.simulation.simulation import Simulation
from kschedd.simulation.summary import PoolSummary
from kschedd.store.objects.log import DELETED, WatchEvent


def pool_summary(pools: NodePools, measures: RunMeasures) -> PoolSummary:
    totals = pools.totals
    return PoolSummary(pools.pools.autoscaler, totals.removed, totals.refused, measures.values())


@attrs.define(eq=False)
class _NodeTimes:
    node: Node
    created_s: float
    ready_s: float | None = None
    deleted_s: float | None = None
    reason: str = ""


class PoolNodes:
    """The nodes of a run, each with its times; create it before the first event."""

    def __init__(self, simulation: Simulation, pools: NodePools, prices: NodePrices) -> None:
        self._simulation = simulation
        self._pools = pools
        self._prices = prices
        self._nodes: list[_NodeTimes] = []
        self._last: dict[str, _NodeTimes] = {}  # by name; names are reused
        simulation.watch(self._follow)

    def _follow(self, events: Sequence[WatchEvent]) -> None:
        now_s = self._simulation.elapsed
        for event in events:
            node = event.new
            if not isinstance(node, Node):
                continue
            times = self._last.get(node.name)
            if times is None or times.deleted_s is not None:
                if times is not None:
                    self._note_reason(times)
                times = self._last[node.name] = _NodeTimes(node, now_s)
                self._nodes.append(times)
            times.node = node
            if times.ready_s is None and _is_ready(node):
                times.ready_s = now_s
            if event.type == DELETED:
                times.deleted_s = now_s

    def _note_reason(self, times: _NodeTimes) -> None:
        times.reason = self._pools.totals.reasons.get(times.node.name, "")

    def rows(self) -> Iterable[dict[str, Any]]:
        """Yield a row of the table `pool_nodes` for each node, in the order of creation."""
        for times in self._last.values():
            if times.deleted_s is not None:
                self._note_reason(times)
        for times in self._nodes:
            node, price = times.node, self._prices.of(times.node)
            end_s = self._simulation.elapsed if times.deleted_s is None else times.deleted_s
            yield {
                "node": node.name,
                "pool": pool_name(node) or None,
                "instance_type": node.labels.get(INSTANCE_TYPE),
                "zone": node.labels.get(ZONE_LABEL),
                "capacity_type": node.labels.get(CAPACITY_TYPE),
                "price": price,
                "created_s": round(times.created_s, 6),
                "ready_s": None if times.ready_s is None else round(times.ready_s, 6),
                "deleted_s": None if times.deleted_s is None else round(times.deleted_s, 6),
                "reason": times.reason or None,
                "cost": round(price * (end_s - times.created_s) / 3600, 6),
            }


def _is_ready(node: Node) -> bool:
    """Return whether pods can be scheduled to the node: ready, and without the taint of an unregistered node."""
    if any(taint.key == UNREGISTERED.key for taint in node.taints):
        return False
    return any(
        each.get("type") == "Ready" and each.get("status") == "True" for each in node.status.get("conditions") or ()
    )
