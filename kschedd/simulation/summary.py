"""The results of a simulation: scheduled pods, pending pods with reasons, and the utilization of the cluster.

`Utilisation` reads the requested amounts whenever the scheduler has no work left, and weights them by their duration.
`Summary` is printed as a table or as JSON. Programs read the JSON, so fields are only ever added.
Units: shares are 0 to 1; seconds are virtual, except in names with `wall`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import attrs
import numpy as np

from kschedd.api.amounts import amount
from kschedd.cache.table import NodeTable
from kschedd.printing.reports.placements import LONG, summary_text
from kschedd.simulation.placements import PlacementSummary

if TYPE_CHECKING:
    from kschedd.explain.audit import Auditor, MissedWakeUp
    from kschedd.queue.requeue_stats import RequeueStats

_MOST_PENDING: Final = 20
_MOST_PLACED: Final = 60
#: measures of a run with node pools
_OF_POOLS: Final = (
    *("launched", "failed_launches", "removed_nodes", "disrupted", "most_nodes", "cost_hour", "cost_total"),
    *("wait_s_mean", "wait_s_p50", "wait_s_p90", "wait_s_p99", "wait_s_max"),
)


@attrs.frozen
class Use:
    """Utilization of a resource, over all nodes."""

    mean: float
    most: float
    last: float
    capacity: int  # at the end of the run

    def as_json(self) -> dict[str, float | int]:
        return {
            "mean": round(self.mean, 6),
            "max": round(self.most, 6),
            "end": round(self.last, 6),
            "capacity": self.capacity,
        }


class Utilisation:
    """The requested share of each resource, over time.

    Utilization is sampled at every event of a run, which changes only one or two rows. Sums are therefore plain
    numbers, updated from the changed rows; this is faster than array operations. Index 0 of each list belongs to the
    resource `pods`.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._since = 0.0
        self._span = 0.0
        self._stamp = -1
        self._numbering = -1  # version of the table's resource columns at the last full count
        self._names = ["pods"]  # of the places
        self._rows: list[list[int]] = []  # requests of the pods, by row
        self._used: list[int] = [0]  # of it all
        self._there: list[int] = [0]
        self._now: list[float] = [0.0]  # share of each resource at the last sample
        self._sum: list[float] = [0.0]
        self._most: list[float] = [0.0]

    def sample(self, elapsed_s: float) -> None:
        """Take a sample. The current requests apply to the time since the last sample, because the cluster is idle."""
        span = elapsed_s - self._since
        if span > 0:
            sums = self._sum
            for place, share in enumerate(self._now):
                sums[place] += share * span
            self._span += span
            self._since = elapsed_s
        table = self._table
        versions = table.versions
        nodes_changed = versions.nodes.at > self._stamp
        if not nodes_changed and versions.pods.at <= self._stamp:
            return
        columns_changed = table.numbering != self._numbering or len(table.resources) + 1 != len(self._names)
        rows = None if nodes_changed or columns_changed else versions.pods.since(self._stamp)
        self._stamp = versions.now
        if rows is None:
            self._count_all()
        else:
            for row in rows if len(rows) == 1 else set(rows):
                self._count(row)
        now, most = self._now, self._most
        for place, there in enumerate(self._there):
            now[place] = share = self._used[place] / there if there > 0 else 0.0
            if share > most[place]:
                most[place] = share

    def _count_all(self) -> None:
        """Count every row, for all resources of nodes, even if no pod requests them."""
        table = self._table
        table.make_every_resource()
        self._numbering = table.numbering
        rows = np.vstack((table.pod_count, table.requested))
        self._rows = rows.T.tolist()
        self._used = rows.sum(axis=1).tolist()
        self._there = [int(table.allowed_pods.sum()), *table.allocatable.sum(axis=1).tolist()]
        before, self._names = self._names, ["pods", *table.resources]
        if before != self._names:
            for by_place in (self._sum, self._most, self._now):
                by_name = dict(zip(before, by_place, strict=True))
                by_place[:] = [by_name.get(name, 0.0) for name in self._names]

    def _count(self, row: int) -> None:
        """Update the sums for the changes of this row of the table."""
        table, used, before = self._table, self._used, self._rows[row]
        self._rows[row] = after = [table.pod_count.item(row), *table.requested[:, row].tolist()]
        for place, requested in enumerate(after):
            used[place] += requested - before[place]

    def by_resource(self) -> dict[str, Use]:
        """Return the utilization of each resource of the nodes."""
        mean = [total / self._span for total in self._sum] if self._span else self._now
        return {
            self._names[place]: Use(mean[place], self._most[place], self._now[place], self._there[place])
            for place in (*range(1, len(self._names)), 0)
            if self._there[place] > 0
        }


@attrs.frozen
class Pending:
    """A pod that is not bound, or was deleted before it was bound, or a workload whose pods cannot be created."""

    key: str
    message: str
    kind: str = "Pod"
    gone: bool = False


@attrs.frozen
class Audit:
    """The auditor's findings: unschedulable pods although a node fits (missed wake-ups), and requeue statistics."""

    missed: "Sequence[MissedWakeUp]"
    known: "Sequence[MissedWakeUp]"  # pods that kube-scheduler 1.34 would also leave unschedulable
    wakeups: "RequeueStats"
    tried: int

    @classmethod
    def of(cls, auditor: "Auditor") -> Self:
        missed = [each for each in auditor.missed if not each.upstream_gap]
        known = [each for each in auditor.missed if each.upstream_gap]
        return cls(missed, known, auditor.wakeups, auditor.tried)

    def as_json(self) -> dict[str, Any]:
        return {
            "missed": [each.as_data() for each in self.missed],
            "missed_upstream_too": [{**each.as_data(), "gap": each.upstream_gap} for each in self.known],
            "wakeups": self.wakeups.as_data(),
            "late": self.wakeups.late,
            "dry_runs": self.tried,
        }

    def lines(self) -> Iterator[str]:
        counts = self.wakeups.counts.values()
        helped, fruitless = sum(worth.helped for worth in counts), sum(worth.in_vain for worth in counts)
        yield f"audit: {len(self.missed):,} missed wake-ups in {self.tried:,} dry runs"
        yield f"wake-ups: {helped:,} helped, {fruitless:,} in vain, {self.wakeups.late:,} only by timeout"
        for each in self.missed:
            yield from str(each).splitlines()
        if self.known:
            yield f"{len(self.known):,} more are missed by kube-scheduler 1.34 as well; -o json has them"
        rows = [each for each in self.wakeups.as_data() if each["in_vain"]]
        if rows:
            cells = [
                (each["plugin"] or "-", each["event"], f"{each['helped']:,}", f"{each['in_vain']:,}") for each in rows
            ]
            yield from columns([("WOKEN BY", "EVENT", "HELPED", "IN VAIN"), *cells])


class WhyPending(Protocol):
    """A function that returns the causes of pending pods."""

    def text(self) -> str: ...

    def as_json(self) -> dict[str, Any]: ...


@attrs.frozen
class PoolSummary:
    """Results of the autoscaler of node pools. `measures` are those of the run; `removed` is keyed by the reason."""

    autoscaler: str
    removed: Mapping[str, int]
    refused_evictions: int
    measures: Mapping[str, float]

    def as_json(self) -> dict[str, Any]:
        return {
            "autoscaler": self.autoscaler,
            "removed": dict(sorted(self.removed.items())),
            "refused_evictions": self.refused_evictions,
            **{name: self.measures[name] for name in _OF_POOLS if name in self.measures},
        }

    def lines(self) -> Iterator[str]:
        found = self.measures
        why = ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.removed.items()))
        yield (
            f"{self.autoscaler}: {found['launched']:,} nodes launched, {found['failed_launches']:,} launches failed, "
            f"{found['removed_nodes']:,} removed{f' ({why})' if why else ''}, at most {found['most_nodes']:,} nodes"
        )
        yield (
            f"{found['disrupted']:,} pods evicted for removals, {self.refused_evictions:,} evictions refused by "
            "disruption budgets"
        )
        yield f"cost: {found['cost_total']:.4g}, now {found['cost_hour']:.4g} per hour"
        if "wait_s_mean" in found:
            yield (
                f"time without a node: mean {span(found['wait_s_mean'])}, p99 {span(found['wait_s_p99'])}, "
                f"longest {span(found['wait_s_max'])}"
            )


@attrs.frozen
class Summary:
    seed: int
    nodes: int
    placed: int  # pods scheduled in this run
    pending: Sequence[Pending]
    utilisation: Mapping[str, Use]
    decisions: int
    wall_s: float
    virtual_s: float
    preempted: int
    placements: Mapping[str, str]  # pod -> node, at the end of the run
    errors: Sequence[str] = ()
    warnings: Sequence[str] = ()
    at_rest: bool = True
    audit: Audit | None = None
    why: WhyPending | None = None
    groups: PlacementSummary | None = None
    pools: PoolSummary | None = None

    @property
    def decisions_per_second(self) -> float:
        return self.decisions / self.wall_s if self.wall_s > 0 else 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "nodes": self.nodes,
            "placed": self.placed,
            "pending": len(self.pending),
            "pending_pods": [
                {"pod": each.key, "message": each.message, "kind": each.kind, "deleted": each.gone}
                for each in self.pending
            ],
            "utilisation": {name: use.as_json() for name, use in self.utilisation.items()},
            "decisions": self.decisions,
            "decisions_per_second": round(self.decisions_per_second, 1),
            "preempted": self.preempted,
            "virtual_seconds": round(self.virtual_s, 3),
            "wall_seconds": round(self.wall_s, 3),
            "at_rest": self.at_rest,
            "summary": None if self.groups is None else attrs.asdict(self.groups),
            "placements": dict(sorted(self.placements.items())),
            "errors": list(self.errors),
            "warnings": list(self.warnings),
            **({} if self.audit is None else {"audit": self.audit.as_json()}),
            **({} if self.why is None else {"why": self.why.as_json()}),
            **({} if self.pools is None else {"pools": self.pools.as_json()}),
        }

    def json_text(self) -> str:
        return json.dumps(self.as_json(), indent=2, ensure_ascii=False)

    def text(self) -> str:
        lines = [*self._lines()]
        if self.why is not None:
            lines += ["", self.why.text()]
        return "\n".join(lines)

    def _lines(self) -> Iterator[str]:
        yield f"{self.nodes:,} nodes, {span(self.virtual_s)} of virtual time, seed {self.seed}"
        if not self.at_rest:
            yield "work was still in progress at the end; --until sets how long to run"
        yield f"{self.placed:,} pods placed, {len(self.pending):,} pending, {self.preempted:,} preempted"
        rate = f"{self.decisions_per_second:,.0f} a second"
        yield f"{self.decisions:,} decisions in {self.wall_s:.2f} s ({rate})"
        if self.pools is not None:
            yield from self.pools.lines()
        if self.groups is not None and len(self.placements) + len(self.pending) >= LONG:
            yield ""
            yield from summary_text(attrs.asdict(self.groups), compared=False).splitlines()[:-1]
        if self.utilisation:
            yield ""
            yield from columns(
                [
                    ("RESOURCE", "MEAN", "MAX", "END", "CAPACITY"),
                    *(
                        (name, _percent(use.mean), _percent(use.most), _percent(use.last), amount(name, use.capacity))
                        for name, use in self.utilisation.items()
                    ),
                ]
            )
        if self.placements and len(self.placements) <= _MOST_PLACED:
            yield ""
            by_node: dict[str, list[str]] = {}
            for pod, node in sorted(self.placements.items()):
                by_node.setdefault(node, []).append(pod)
            yield from columns([("NODE", "PODS"), *((node, " ".join(by_node[node])) for node in sorted(by_node))])
        if self.pending:
            yield ""
            yield from self._pending()
        if self.audit is not None:
            yield ""
            yield from self.audit.lines()

    def _pending(self) -> Iterator[str]:
        by_message: dict[str, list[Pending]] = {}
        for each in self.pending:
            by_message.setdefault(each.message, []).append(each)
        shown = sorted(by_message.items(), key=lambda item: -len(item[1]))
        for message, pods in shown[:_MOST_PENDING]:
            first = pods[0]
            what = "" if first.kind == "Pod" else f"{first.kind} "
            gone = ", deleted since" if first.gone else ""
            more = f" and {len(pods) - 1} more" if len(pods) > 1 else ""
            yield f"pending: {what}{first.key}{more}{gone}"
            yield f"  {message}"
        if len(shown) > _MOST_PENDING:
            yield f"... and {len(shown) - _MOST_PENDING} more reasons; -o json has them all"


def _percent(share: float) -> str:
    return f"{share * 100:.1f}%"


def span(seconds: float) -> str:
    """Return a duration for people: `3d4h`, `2m10s`, `1.5s`."""
    if seconds >= 86_400:
        days, rest = divmod(seconds, 86_400)
        return f"{int(days)}d{int(rest // 3600)}h"
    if seconds >= 60:
        hours, rest = divmod(int(seconds), 3600)
        minutes, left = divmod(rest, 60)
        return f"{hours}h{minutes}m{left}s" if hours else f"{minutes}m{left}s"
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
