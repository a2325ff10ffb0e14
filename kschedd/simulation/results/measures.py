"""Measures of a run, by name: waiting times, slowdowns, disruptions, fragmentation and balance.

| measure | meaning |
|---|---|
| placed, pending, attempts | pods that got a node; pods without one at their end or the run's; attempts |
| preempted, evicted | pods removed by preemption; by an eviction, a taint, a kubelet or the pod garbage collector |
| queue_moves | moves of pods between the parts of the scheduling queue |
| wait_s_mean, _p50, _p90, _p99, _max | from creation to the node, over the pods that got one |
| slowdown_mean, _p50, _p90, _p99, _max | time from creation to end by time on the node, over the pods that ended |
| RESOURCE_used_mean, _max, _end | requested share of the capacity of all nodes |
| RESOURCE_fragmented | share of the capacity that is free and cannot be used (`fragmentation.py`), at the end |
| unusable_nodes, nodes_used | share of the nodes on which no target fits; with pods; at the end |
| cost_hour, cost_hour_used | price of all nodes, and of those with pods, in an hour, at the end; with prices only |
| cost_total, cost_total_used | costs of all nodes, and of those with pods, during the run; with prices only |
| launched, failed_launches | nodes that the autoscaler launched; launches that failed; with node pools only |
| removed_nodes, disrupted | nodes that it removed; pods that it evicted for this; with node pools only |
| most_nodes | largest number of nodes; with node pools only |
| zone_imbalance | largest less smallest requested CPU share of a zone, at the end; absent with one zone |

RESOURCE is the last part of the resource's name, with `_` for `-`: `alibabacloud.com/gpu-milli` becomes `gpu_milli`.
The slowdown is bounded: times below 10 s count as 10 s (Feitelson and Rudolph, 1998). By default the targets are the
pods that were created, weighted by their number. Times are virtual seconds; shares are from 0 to 1; values are rounded
to 6 digits.
"""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import attrs
import numpy as np

from kschedd.api.nodes import ZONE_LABEL
from kschedd.api.pods import Pod
from kschedd.cache.table import CPU, NodeTable
from kschedd.queue.entry import Move, QueuedPod
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.records import Happened
from kschedd.simulation.results.fragmentation import Fragmentation, TargetSet
from kschedd.simulation.results.prices import NodeCosts, NodePrices
from kschedd.simulation.simulation import Simulation
from kschedd.store.objects.log import DELETED, WatchEvent

if TYPE_CHECKING:
    from kschedd.controllers.scaling.node_pools import NodePools

#: names of the measures that require prices
COSTS: Final = ("cost_hour", "cost_hour_used", "cost_total", "cost_total_used")
#: names of the measures that require node pools
OF_POOLS: Final = ("launched", "failed_launches", "removed_nodes", "disrupted", "most_nodes")
#: names of the measures that do not depend on a resource
FIXED: Final = (
    *("placed", "pending", "attempts", "preempted", "evicted", "queue_moves"),
    *(f"{what}_{of}" for what in ("wait_s", "slowdown") for of in ("mean", "p50", "p90", "p99", "max")),
    *("unusable_nodes", "nodes_used", "zone_imbalance", *COSTS, *OF_POOLS, "virtual_s"),
)
#: suffixes of the names of measures for each resource
BY_RESOURCE: Final = ("_used_mean", "_used_max", "_used_end", "_fragmented")
_SHORTEST_S: Final = 10.0
_DIGITS: Final = 6
_PREEMPTED: Final = "PreemptionByScheduler"


@attrs.define(eq=False)
class PodTimes:
    """The times of a pod, in virtual seconds since the start of the run."""

    pod: Pod
    created_s: float
    scheduled_s: float | None = None
    ended_s: float | None = None
    disruption: str = ""  # reason in the pod's condition DisruptionTarget

    @property
    def wait_s(self) -> float | None:
        return None if self.scheduled_s is None else self.scheduled_s - self.created_s


class RunMeasures:
    """An observer of a run; add it to a simulation before the first event.

    `on_end` is called with each pod that ends.
    """

    def __init__(
        self,
        simulation: Simulation,
        targets: TargetSet | None = None,
        on_end: Callable[[PodTimes], None] | None = None,
        prices: NodePrices | None = None,
        pools: "NodePools | None" = None,
    ) -> None:
        self.simulation = simulation
        self.targets = TargetSet() if targets is None else targets
        self._counts_targets = targets is None
        self._on_end = on_end
        self.costs = None if prices is None else NodeCosts(simulation.machine.cluster.table, prices)
        self.pods: dict[str, PodTimes] = {}  # by uid; those that run
        self.running = 0  # pods that have a node
        self._waits, self._slowdowns = array("d"), array("d")
        self._evicted = self._queue_moves = self._unplaced = 0
        self._pools = pools
        simulation.watch(self._follow)
        simulation.observe(self)

    # -- the observer -------------------------------------------------------------------------------------------

    def attempted(self, entry: QueuedPod, result: ScheduleResult | FitError) -> None: ...

    def happened(self, entries: Sequence[Happened]) -> None: ...

    def moved(self, move: Move) -> None:
        self._queue_moves += 1

    def idle(self) -> None:
        if self.costs is not None:
            self.costs.sample(self.simulation.elapsed)

    def _follow(self, events: Sequence[WatchEvent]) -> None:
        now_s = self.simulation.elapsed
        for event in events:
            pod = event.new
            if not isinstance(pod, Pod):
                continue
            times = self.pods.get(pod.uid)
            if times is None:
                if event.type == DELETED or pod.finished:
                    continue
                times = self.pods[pod.uid] = PodTimes(pod, now_s)
                if self._counts_targets:
                    self.targets.add(pod.pod_spec)
                if pod.node_name:  # False for a pod that already had a node before the run
                    times.scheduled_s = now_s
                    self.running += 1
                    continue
            times.pod = pod
            if times.scheduled_s is None and pod.node_name:
                times.scheduled_s = now_s
                self.running += 1
                self._waits.append(now_s - times.created_s)
            if not times.disruption and "conditions" in pod.status:
                self._note_disruption(times)
            if event.type == DELETED or pod.finished:
                self._end(times, now_s)

    def _note_disruption(self, times: PodTimes) -> None:
        for condition in times.pod.status.get("conditions") or ():
            if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
                times.disruption = condition.get("reason") or "DisruptionTarget"
                self._evicted += times.disruption != _PREEMPTED

    def _end(self, times: PodTimes, now_s: float) -> None:
        del self.pods[times.pod.uid]
        times.ended_s = now_s
        if times.scheduled_s is None:
            self._unplaced += 1
        else:
            self.running -= 1
            ran_s = max(now_s - times.scheduled_s, _SHORTEST_S)
            self._slowdowns.append(max(1.0, (now_s - times.created_s) / ran_s))
        if self._on_end is not None:
            self._on_end(times)

    # -- results ------------------------------------------------------------------------------------------------

    def values(self) -> dict[str, float]:
        """Return the measures at the end of the run, by name."""
        simulation = self.simulation
        table = simulation.machine.cluster.table
        found: dict[str, float] = {
            "placed": simulation.placed,
            "pending": len(self.pods) - self.running + self._unplaced,
            "attempts": simulation.decisions,
            "preempted": simulation.preempted,
            "evicted": self._evicted,
            "queue_moves": self._queue_moves,
            **dict(_distribution("wait_s", self._waits)),
            **dict(_distribution("slowdown", self._slowdowns)),
        }
        uses = simulation.utilisation
        short = short_names(uses)
        for name, use in uses.items():
            of_name = {"mean": use.mean, "max": use.most, "end": use.last}
            found |= {f"{short[name]}_used_{of}": share for of, share in of_name.items()}
        fragmentation = Fragmentation.of(table, self.targets)
        found |= {f"{short[name]}_fragmented": share for name, share in fragmentation.fragmented.items()}
        found["unusable_nodes"] = fragmentation.unusable
        found["nodes_used"] = int((table.pod_count[table.alive] > 0).sum()) / max(1, table.node_count)
        found |= _zone_imbalance(table)
        found |= self.costs_now()
        if self._pools is not None:
            found |= self._pools.totals.values()
        found["virtual_s"] = simulation.elapsed
        return {name: value if isinstance(value, int) else round(value, _DIGITS) for name, value in found.items()}

    def costs_now(self) -> dict[str, float]:
        """Return the measures of costs so far; empty without prices."""
        costs = self.costs
        if costs is None:
            return {}
        costs.sample(self.simulation.elapsed)
        return dict(zip(COSTS, (costs.hour, costs.hour_used, costs.total, costs.total_used), strict=True))


def short_names(resources: Mapping[str, object] | Sequence[str]) -> dict[str, str]:
    """Return a short name of each resource: the last part of its name, or the whole name if two share the last part."""
    short = {name: name.rpartition("/")[2].replace("-", "_") for name in resources}
    shared = {last for last in short.values() if list(short.values()).count(last) > 1}
    return {name: name.replace("-", "_") if last in shared else last for name, last in short.items()}


def _distribution(name: str, values: "array[float]") -> Iterator[tuple[str, float]]:
    if not values:
        return
    found = np.frombuffer(values)
    yield f"{name}_mean", float(found.mean())
    for percentile in (50, 90, 99):
        yield f"{name}_p{percentile}", float(np.percentile(found, percentile))
    yield f"{name}_max", float(found.max())


def _zone_imbalance(table: NodeTable) -> dict[str, float]:
    zones = table.label(ZONE_LABEL).ids
    shares = [
        float(table.requested[CPU][chosen].sum() / table.allocatable[CPU][chosen].sum())
        for zone in np.unique(zones[table.alive & (zones >= 0)])
        if table.allocatable[CPU][chosen := table.alive & (zones == zone)].sum() > 0
    ]
    return {"zone_imbalance": max(shares) - min(shares)} if len(shares) > 1 else {}
