"""SelectorSpread: spreads the pods of a Service or controller over nodes and, with double weight, over zones.

A node scores higher if the node and its zone have fewer pods that match the pod's Services and controller. Pods
with topology spread constraints are not scored. The plugin belongs to older releases; now PodTopologySpread with its
System defaults replaces it.

Source: Kubernetes v1.22, plugins/selectorspread/selector_spread.go.
Units: raw scores are numbers of pods; normalized scores are 0 to 100, computed in float64 and truncated.
"""

from typing import ClassVar, Final, Self

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.api.selecting.selectors import EVERYTHING
from kschedd.cache.counts import spread_matcher
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.handle import Handle
from kschedd.framework.interface import MAX_NODE_SCORE
from kschedd.framework.status import Status
from kschedd.plugins.topology.podtopologyspread_default_selector import DefaultSelectors

_ZONE_WEIGHT: Final = 2.0 / 3.0


@attrs.frozen(eq=False)
class _Prepared:
    counts: Ints  # number of matching pods by row of the whole table
    rows: Rows  # the feasible rows
    zones: Ints  # zone number of each row; -1: the node has no zone


@attrs.define(eq=False)
class SelectorSpread:
    name: ClassVar = "SelectorSpread"
    without_pre_score: ClassVar = 'Error reading "PreScoreSelectorSpread" from cycleState: not found'
    _selectors: DefaultSelectors

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        return cls(DefaultSelectors(handle.cluster))

    def pre_score(self, state: CycleState, pod: Pod, cluster: SchedulerCache, rows: Rows) -> Status | None:
        if pod.signature.spread_constraints:
            return None
        selector = self._selectors.of(pod)
        if selector == EVERYTHING:
            counts = np.zeros(cluster.table.capacity, dtype=np.int64)
        else:
            counts = cluster.counts.matching(spread_matcher(pod.namespace, selector)).rows()
        state.data[self.name] = _Prepared(counts, rows, _zones(cluster.table, rows))
        return None

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        prepared: _Prepared | None = state.data.get(self.name)
        if prepared is None:
            return np.zeros(len(rows), dtype=np.int64)
        return prepared.counts[rows]

    def normalize(self, state: CycleState, pod: Pod, scores: Ints) -> Ints:
        prepared: _Prepared | None = state.data.get(self.name)
        if prepared is None or not len(scores):
            return scores
        points = _fewest_first(scores, int(scores.max()))
        zones = prepared.zones
        in_zone = zones >= 0
        if in_zone.any():
            by_zone = np.zeros(int(zones.max()) + 1, dtype=np.int64)
            np.add.at(by_zone, zones[in_zone], scores[in_zone])
            zone_points = _fewest_first(by_zone, int(by_zone.max()))[zones]
            points = np.where(in_zone, points * (1.0 - _ZONE_WEIGHT) + _ZONE_WEIGHT * zone_points, points)
        return points.astype(np.int64)


def _fewest_first(counts: Ints, most: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    if most <= 0:
        return np.full(len(counts), float(MAX_NODE_SCORE))
    return MAX_NODE_SCORE * ((most - counts) / float(most))


def _zones(table: NodeTable, rows: Rows) -> Ints:
    numbers: dict[str, int] = {"": -1}
    found = []
    for row in rows.tolist():
        node = table.nodes[row]
        zone = "" if node is None else node.zone
        found.append(numbers.setdefault(zone, len(numbers) - 1))
    return np.array(found, dtype=np.int64)
