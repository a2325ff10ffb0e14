"""Aggregation of the collected data into a report: nodes into rows of a heat map, sums into means, and examples.

A heat map has at most `MOST_ROWS` rows. If there are more nodes, neighboring nodes (of the same zone, by name) share a
row, whose color is their mean. No node is omitted.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np

from kschedd.api.amounts import amount
from kschedd.api.nodes import ZONE_LABEL
from kschedd.api.pods import Pod
from kschedd.clusters.virtual import MethodsOf
from kschedd.report.at_end import at_end
from kschedd.report.axis import Floats
from kschedd.report.collector import (
    ATTEMPTS,
    FAILED,
    OTHER_REASONS,
    PLACED,
    PREEMPTED,
    UNDER_WAY,
    WAITS,
    PendingReason,
    ReportCollector,
)
from kschedd.report.decisions import Decision
from kschedd.report.history import HistoryAnswer, history
from kschedd.report.model import (
    AtEnd,
    Checked,
    ColumnFacts,
    Columns,
    HeatMap,
    NodeGroup,
    PendingBand,
    Report,
    ResourceUse,
    ScoreMap,
    Spread,
    ZoneUse,
)
from kschedd.report.pools import use_of_pools
from kschedd.simulation.pending import pending_pods

MOST_ROWS: Final = 200
MOST_BANDS: Final = 9
MOST_SPREAD: Final = 20
_MOST_PODS: Final = 5
_NUMBERS: Final = re.compile(r"(\d+)")
_NOT_REASONS: Final = (WAITS, UNDER_WAY)


def report_of(
    collected: ReportCollector,
    title: str,
    facts: Sequence[tuple[str, str]],
    *,
    methods: MethodsOf,
    checked: Checked | None = None,
    virtual: bool = True,
    notes: Sequence[str] = (),
    pool_nodes: Sequence[Mapping[str, Any]] = (),
) -> Report:
    """Return the run's report.

    The engine is idle, or stopped during the run. `methods` are the methods of a fork of the cluster. `pool_nodes` are
    the nodes of pools, as in the table `pool_nodes`.
    """
    collected.idle()
    aggregation = _Aggregation(collected, virtual)
    report = aggregation.report(title, facts, checked, notes, at_end(collected.engine, methods))
    return attrs.evolve(report, pools=use_of_pools(pool_nodes, aggregation.columns))


def history_of(collected: ReportCollector) -> HistoryAnswer:
    """Return the nodes over the time that a daemon's log covers."""
    aggregation = _Aggregation(collected, virtual=False)
    groups, members, _ = aggregation.groups()
    decisions = {each.number: each for each in collected.first}
    return history(aggregation.columns, groups, aggregation.maps(members), aggregation.by_column(), decisions)


class _Aggregation:
    def __init__(self, collected: ReportCollector, virtual: bool) -> None:
        self._got = collected
        self._table = collected.engine.machine.cluster.table
        # A run in which no time has passed has one column, which shows the final state.
        until = max(collected.now_s, 1.0)
        last = collected.axis.column(until)
        width = collected.axis.width_s
        count = last + (until > last * width)
        self._until = until
        self.columns = Columns(count, width, until, collected.start_s, virtual)
        seconds = np.full(count, float(width))
        seconds[-1] = until - (count - 1) * width
        self._seconds = seconds
        self._waiting = pending_pods(collected.engine)
        self._still: dict[str, list[str]] = {}  # the first few pods that are pending at the end, by reason
        for pod in self._waiting:
            still = self._still.setdefault(collected.reason_of(pod.uid), [])
            if len(still) < _MOST_PODS:
                still.append(pod.key)

    def report(
        self, title: str, facts: Sequence[tuple[str, str]], checked: Checked | None, notes: Sequence[str], end: AtEnd
    ) -> Report:
        groups, members, in_row = self.groups()
        decisions = self._decisions()
        pending = self._pending()
        by_column = self.by_column()
        zones = self._zones()
        return Report(
            title,
            facts,
            self.columns,
            self._use(),
            groups,
            in_row,
            self.maps(members),
            pending,
            end,
            self._scores(members),
            zones,
            self._spread([zone.name for zone in zones]),
            decisions,
            self._slowest(),
            by_column,
            checked,
            tuple(notes),
        )

    def _means(self, sums: Floats) -> Floats:
        means: Floats = sums[:, : self.columns.count] / self._seconds
        return means

    # -- nodes ----------------------------------------------------------------------------------------------------

    def _use(self) -> list[ResourceUse]:
        got, table = self._got, self._table
        sums = got.totals.sums(len(got.resources), self._until)
        means = self._means(sums)
        found = []
        for name, number in got.resources.items():
            capacity = (
                int(table.allowed_pods[table.alive].sum())
                if name == "pods"
                else int(table.allocatable[table.resources[name], table.alive].sum())
            )
            series = means[number]
            if not capacity and not series.any():
                continue
            found.append(
                ResourceUse(
                    name,
                    series,
                    float(sums[number, : self.columns.count].sum() / self._until),
                    float(series.max()),
                    got.totals.value(number),
                    amount(name, capacity),
                )
            )
        used = [use for use in found if use.most] or found
        return sorted(used, key=lambda use: (use.resource == "pods", use.resource))

    def groups(self) -> tuple[list[NodeGroup], list[list[int]], int]:
        """Return the rows of the heat maps, their rows of the node table, and the number of nodes that share a row."""
        table, got = self._table, self._got
        zones = table.label(ZONE_LABEL)

        def zone(name: str) -> str:
            row = table.row_of.get(name)
            return "" if row is None or zones.ids[row] < 0 else zones.values[zones.ids[row]]

        by_zone: dict[str, list[str]] = {}
        for name in got.slots:
            by_zone.setdefault(zone(name), []).append(name)
        in_row = 1
        while sum(-(-len(names) // in_row) for names in by_zone.values()) > MOST_ROWS:
            in_row += 1
        groups: list[NodeGroup] = []
        members: list[list[int]] = []
        for name in sorted(by_zone):
            names = sorted(by_zone[name], key=_natural)
            for first in range(0, len(names), in_row):
                chosen = names[first : first + in_row]
                label = chosen[0] if len(chosen) == 1 else f"{chosen[0]} … {chosen[-1]}"
                groups.append(NodeGroup(label, name, tuple(chosen)))
                members.append([got.slots[each] for each in chosen])
        return groups, members, in_row

    def maps(self, members: list[list[int]]) -> list[HeatMap]:
        got = self._got
        levels = {"the fullest resource": got.fullest, **got.use}
        if len(got.use) == 1:
            levels = dict(got.use)
        found = []
        for name, each in levels.items():
            means = self._means(each.sums(len(got.slots), self._until))
            cells = np.array([means[slots].mean(axis=0) for slots in members]) if members else np.zeros((0, 1))
            found.append(HeatMap(name, cells))
        return found

    def _scores(self, members: list[list[int]]) -> ScoreMap | None:
        scores = self._got.scores
        if not scores.samples:
            return None
        plugins = tuple(scores.plugins)
        cells = np.full((len(members), len(plugins)), np.nan)
        width = scores.sums.shape[1]
        for row, slots in enumerate(members):
            known = [slot for slot in slots if slot < width]
            sums, weights = (
                scores.sums[: len(plugins), known].sum(axis=1),
                scores.weights[: len(plugins), known].sum(axis=1),
            )
            cells[row] = np.where(weights > 0, sums / np.maximum(weights, 1), np.nan)
        weight_of = {
            each.name: each.weight
            for scheduler in self._got.engine.machine.schedulers.values()
            for each in scheduler.profile.scores
        }
        weights = tuple(weight_of.get(plugin, 1) for plugin in plugins)
        return ScoreMap(plugins, weights, cells, scores.samples, tuple(self._got.unscored))

    # -- pods -----------------------------------------------------------------------------------------------------

    def _pending(self) -> list[PendingBand]:
        got = self._got
        sums = got.pending.sums(len(got.reasons), self._until)
        means = self._means(sums)
        found = [self._band(reason, means, sums) for reason in got.reasons.values()]
        shown = [each for each in found if each.pod_s or each.end or each.failures]
        shown.sort(key=lambda each: (each.reason in _NOT_REASONS, -each.pod_s, -each.failures))
        if len(shown) <= MOST_BANDS:
            return shown
        kept, rest = shown[: MOST_BANDS - 1], shown[MOST_BANDS - 1 :]
        more = PendingBand(
            f"{len(rest)} more kinds of reasons" if OTHER_REASONS not in got.reasons else OTHER_REASONS,
            np.sum([each.series for each in rest], axis=0),
            sum(each.pod_s for each in rest),
            sum(each.end for each in rest),
            sum(each.failures for each in rest),
            tuple(pod for each in rest for pod in each.pods[:1])[:_MOST_PODS],
            next((each.example for each in rest if each.example is not None), None),
        )
        return [*kept, more]

    def _band(self, reason: PendingReason, means: Floats, sums: Floats) -> PendingBand:
        return PendingBand(
            reason.text,
            means[reason.number],
            float(sums[reason.number].sum()),
            round(self._got.pending.value(reason.number)),
            reason.failures,
            tuple(dict.fromkeys((*self._still.get(reason.text, ()), *reason.pods)))[:_MOST_PODS],
            None if reason.example is None else reason.example.number,
        )

    def _zones(self) -> list[ZoneUse]:
        got, table = self._got, self._table
        if not got.zones:
            return []
        means = self._means(got.zone_pods.sums(len(got.zones), self._until))
        column = table.label(ZONE_LABEL)
        found = []
        for name in sorted(got.zones):
            number = column.numbers.get(name)
            rows = (
                np.zeros(0, dtype=np.int64) if number is None else np.flatnonzero((column.ids == number) & table.alive)
            )
            use = {}
            for resource, place in table.resources.items():
                there = int(table.allocatable[place, rows].sum())
                if there and resource in got.use:
                    use[resource] = int(table.requested[place, rows].sum()) / there
            found.append(ZoneUse(name, len(rows), int(table.pod_count[rows].sum()), use, means[got.zones[name]]))
        return found

    def _spread(self, zones: list[str]) -> list[Spread]:
        """Return workloads with at least two placed pods, the least evenly spread first."""
        if len(zones) < 2:
            return []
        places = {name: number for number, name in enumerate(zones)}
        counts: dict[str, list[int]] = {}
        for row in sorted(self._table):
            node = self._table.nodes[row]
            zone = "" if node is None else node.labels.get(ZONE_LABEL, "")
            if zone in places:
                for pod in self._table.pods[row]:
                    counts.setdefault(_workload(pod), [0] * len(zones))[places[zone]] += 1
        found = [Spread(name, tuple(each), max(each) - min(each)) for name, each in counts.items() if sum(each) > 1]
        return sorted(found, key=lambda each: (-each.skew, -sum(each.pods), each.workload))[:MOST_SPREAD]

    # -- decisions ------------------------------------------------------------------------------------------------

    def _decisions(self) -> dict[int, Decision]:
        got = self._got
        kept = {each.number: each for each in got.first}
        kept.update((each.number, each) for _, _, each in got.longest)
        kept.update((reason.example.number, reason.example) for reason in got.reasons.values() if reason.example)
        kept.update((each.number, each) for each in got.sampled)
        return {number: kept[number] for number in sorted(kept)}

    def _slowest(self) -> list[int]:
        ordered = sorted(self._got.longest, key=lambda item: (-item[0], -item[1]))
        return [decision.number for _, _, decision in ordered]

    def by_column(self) -> list[ColumnFacts]:
        counts = self._got.counts
        return [
            ColumnFacts(
                int(counts.of(ATTEMPTS)[column]),
                int(counts.of(PLACED)[column]),
                int(counts.of(FAILED)[column]),
                int(counts.of(PREEMPTED)[column]),
                tuple(each.number for each in self._got.first.of(column)),
            )
            for column in range(self.columns.count)
        ]


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key that orders `node-2` before `node-10`."""
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in _NUMBERS.split(name)]


def _workload(pod: Pod) -> str:
    owner = next((each for each in pod.metadata.get("ownerReferences") or () if each.get("controller")), None)
    if owner is None:
        return f"pods of {pod.namespace} without a controller"
    return f"{owner.get('kind')} {pod.namespace}/{owner.get('name')}"
