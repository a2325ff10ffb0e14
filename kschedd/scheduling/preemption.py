"""Dry run of preemption: which pods would have to be evicted from a node so that a more important pod fits.

For each given row, all pods of lower priority are removed; if the pod fits then, as many as possible are
reprieved: first those whose eviction would violate a PodDisruptionBudget, then the others, the more important ones
first in each group. The pods that cannot be reprieved are the victims.

Many rows are tried together in one copy of the table, in rounds: each round reprieves one pod on every row and
filters all rows at once. Plugins whose state follows the pods (spreading, affinity, disks) say in columns what differs
from row to row (`framework/dry_run`). Where an out-of-tree plugin takes part, or one without columns, every row has its
own clone of the state instead, made only once the row has passed the filters that need none.

Nothing is cached here: see `candidates` for what is kept from one preemption to the next.

Source: Kubernetes v1.34, plugins/defaultpreemption/default_preemption.go (SelectVictimsOnNode),
scheduler/util/utils.go (MoreImportantPod, GetEarliestPodStartTime).
Units: start times are microseconds since the epoch.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, Self

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.pod_batch import PodBatch
from kschedd.cache.table import Bools, Ints, Rows, TableCopy
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.interface import PreFilterExtensions
from kschedd.framework.postfilter import Candidate
from kschedd.framework.status import Status, error, unresolvable
from kschedd.scheduling.budgets import Budgets, Split
from kschedd.scheduling.filters import Filters, FiltersOfRows, PodsSince
from kschedd.scheduling.node_local_plugins import NodeLocalPlugins
from kschedd.scheduling.nominations import NominatedByRow
from kschedd.scheduling.row_pods import NOT_STARTED, RowPods, importance, started
from kschedd.scheduling.verdicts import PASSED, Places, Verdicts
from kschedd.values import fast_frozen

NO_VICTIMS: Final = unresolvable("No preemption victims found for incoming pod")


def earliest_start(victims: Sequence[Pod]) -> int:
    """When the first of the victims with the highest priority started."""
    if len(victims) == 1:
        return started(victims[0])
    priorities = [victim.signature.spec.priority for victim in victims]
    highest = max(priorities)
    starts = [started(victim) for victim, own in zip(victims, priorities, strict=True) if own == highest]
    return min(starts)


@fast_frozen(eq=False)
class DryRunResult:
    """Result of one row's dry run, and the keys of the budgets it depends on; by what its victims are ranked."""

    outcome: Candidate | Status
    covering: frozenset[str] = frozenset()
    highest: int = 0  # priority
    priorities: int = 0  # their sum
    earliest: int = 0  # start of those with the highest priority


_NOBODY_TO_EVICT: Final = DryRunResult(NO_VICTIMS)
_UNSPLIT: Final = Split([], [], frozenset())


def select_victims(
    filters: Filters,
    state: CycleState,
    pod: Pod,
    rows: Sequence[int],
    budgets: Budgets,
    counted: NominatedByRow,
    by_importance: Sequence[RowPods],
) -> list[DryRunResult]:
    """Dry-run preemption on these rows of the cluster's table, which have these pods. `counted`: the nominated pods
    that count, by row."""
    table, priority = filters.cluster.table, pod.priority
    tried = [_NOBODY_TO_EVICT] * len(rows)
    lesser = [own.below(priority) for own in by_importance]
    places = [place for place, own in enumerate(lesser) if own.pods]
    if not places:
        return tried
    copy = table.copy_rows(rows[place] for place in places)
    nominated = {number: counted[rows[place]] for number, place in enumerate(places) if rows[place] in counted}
    candidates = _LesserPods.of(copy, [lesser[place] for place in places])
    stage = _Stage(filters, state, pod, copy, nominated, candidates)
    for place, result in zip(places, _victims(stage, candidates, budgets), strict=True):
        tried[place] = result
    return tried


@attrs.frozen(eq=False)
class _LesserPods:
    """The pods of lower priority on each row, at least one, row after row, the more important ones first."""

    batch: PodBatch
    rows: Rows  # of each pod
    first: Ints  # by row: the place of its first pod
    many: Ints  # by row
    priorities: Ints  # of each pod
    starts: Ints  # of each pod

    @classmethod
    def of(cls, table: TableCopy, lesser: Sequence[RowPods]) -> Self:
        many = np.array([len(own.pods) for own in lesser], dtype=np.int64)
        rows = np.repeat(np.arange(len(lesser)), many)
        pods = [pod for own in lesser for pod in own.pods]
        batch = PodBatch.made(pods, table, [kind for own in lesser for kind in own.kinds])
        priorities = np.array([priority for own in lesser for priority in own.priorities], dtype=np.int64)
        starts = np.array([start for own in lesser for start in own.starts], dtype=np.int64)
        return cls(batch, rows, np.cumsum(many) - many, many, priorities, starts)

    def on(self, row: int) -> Sequence[Pod]:
        first = int(self.first[row])
        return self.batch.pods[first : first + int(self.many[row])]

    def ranked_by(self, places: Ints, rows: Rows) -> list[tuple[int, int, int]]:
        """Of the pods at these places, on these rows in ascending order, row by row: the highest priority, the sum of
        priorities, and the earliest start of those with the highest."""
        if not len(places):
            return []
        first = np.concatenate(((0,), np.diff(rows).nonzero()[0] + 1))
        priorities = self.priorities[places]
        highest = np.maximum.reduceat(priorities, first)
        on_row = np.diff(np.append(first, len(places)))
        starts = np.where(priorities == np.repeat(highest, on_row), self.starts[places], NOT_STARTED)
        columns = highest, np.add.reduceat(priorities, first), np.minimum.reduceat(starts, first)
        return list(zip(*(column.tolist() for column in columns), strict=True))


def _victims(stage: "_Stage", lesser: _LesserPods, budgets: Budgets) -> list[DryRunResult]:
    stage.empty()
    count = len(lesser.many)
    verdicts = stage.judge(np.arange(count), stage.filters.local)
    open_ = np.flatnonzero(verdicts.failed == PASSED)
    order, splits = _reprieve_order(lesser, open_.tolist(), budgets)
    stays = np.zeros(len(order), dtype=np.bool_)  # by place in `order`
    for turn in range(int(lesser.many[open_].max(initial=0))):
        rows = open_[lesser.many[open_] > turn]
        places = lesser.first[rows] + turn
        stays[places] = stage.reprieve(rows, order[places])
    rejected = verdicts.failed != PASSED
    gone = ~stays & ~rejected[lesser.rows]
    ranks = iter(lesser.ranked_by(order[gone], lesser.rows[gone]))
    evicted = order[gone].tolist()
    ends = lesser.rows[gone].searchsorted(np.arange(count), side="right").tolist()
    pods, tried = lesser.batch.pods, []
    rejecting = rejected.tolist()
    for row, end in enumerate(ends):
        if rejecting[row]:
            status = verdicts.status(row)
            assert status is not None, "what some filter rejected has its status"
            tried.append(DryRunResult(status))
            continue
        split = splits.get(row, _UNSPLIT)
        victims = [pods[place] for place in evicted[ends[row - 1] if row else 0 : end]]
        name = stage.table.names[row]
        if not victims:
            tried.append(DryRunResult(error(f'expected at least one victim pod on node "{name}"'), split.covering))
            continue
        violations = 0
        if split.violating:
            first = int(lesser.first[row])
            violations = len(split.violating) - int(np.count_nonzero(stays[first : first + len(split.violating)]))
            victims.sort(key=importance)
        tried.append(DryRunResult(Candidate(name, tuple(victims), violations), split.covering, *next(ranks)))
    return tried


def _spans(lesser: _LesserPods) -> list[tuple[int, int]]:
    return list(zip(lesser.first.tolist(), (lesser.first + lesser.many).tolist(), strict=True))


def _reprieve_order(lesser: _LesserPods, rows: Sequence[int], budgets: Budgets) -> tuple[Ints, dict[int, Split]]:
    """The places of the pods in the order in which their row reprieves them, and how budgets split those of `rows`."""
    order = np.arange(len(lesser.rows))
    splits: dict[int, Split] = {}
    if not budgets.all:
        return order, splits
    spans = _spans(lesser)
    for row in rows:
        first, end = spans[row]
        splits[row] = split = budgets.split(lesser.on(row))
        if split.violating and split.others:
            violating = {pod.uid for pod in split.violating}
            breaks = [pod.uid in violating for pod in lesser.on(row)]
            order[first:end] = first + np.argsort(np.logical_not(breaks), kind="stable")
    return order, splits


@attrs.define(eq=False)
class _Stage:
    """Rows in a copy of the table, changed and filtered together. Rows are numbers of rows of the copy, places those of
    pods in the batch."""

    filters: Filters
    state: CycleState
    pod: Pod
    table: TableCopy
    nominated: Mapping[int, Sequence[Pod]]
    lesser: _LesserPods
    _together: FiltersOfRows | None = attrs.field(default=None, init=False)  # None: row by row, with `_states`
    _notified: list[PreFilterExtensions] = attrs.field(factory=list, init=False)
    _states: dict[int, CycleState] = attrs.field(factory=dict, init=False)  # of rows that needed their own state

    def __attrs_post_init__(self) -> None:
        if self.filters.row_by_row(self.state, self.pod):
            return
        self._together = self.filters.together(self.state, self.pod, self.table)
        if self._together is None:
            self._notified = self.filters.pre_filter_extensions(self.state)

    def empty(self) -> None:
        """Remove all pods of lower priority."""
        lesser, priority = self.lesser, self.pod.priority
        many = lesser.many.tolist()
        for row, pods in enumerate(self.table.pods):
            self.table.pods[row] = (
                [] if many[row] == len(pods) else [pod for pod in pods if pod.signature.spec.priority >= priority]
            )
        lesser.batch.count_all(self.table, np.arange(len(lesser.many)), lesser.first, -1)
        if self._together is not None:
            self._together.follow(lesser.rows, lesser.batch.kinds, lesser.batch.of, -1)

    def reprieve(self, rows: Rows, places: Ints) -> Bools:
        """Add one pod back to each row; remove it again where the preemptor no longer fits. Returns where it fits."""
        pods = self.lesser.batch.pods
        for row, place in zip(rows.tolist(), places.tolist(), strict=True):
            self.table.pods[row].append(pods[place])
        self._count(rows, places, 1)
        # Verdicts that depend on the Node object alone are known and cannot change.
        since = self.lesser.batch.kinds[places], self.lesser.batch.of
        fits: Bools = self.judge(rows, self.filters.of_pods, since).failed == PASSED
        if not fits.all():
            full = rows[~fits]
            for row in full.tolist():
                self.table.pods[row].pop()
            self._count(full, places[~fits], -1)
        return fits

    def _count(self, rows: Rows, places: Ints, sign: Literal[-1, 1]) -> None:
        batch = self.lesser.batch
        batch.count(self.table, rows, places, sign)
        if self._together is not None:
            self._together.follow(rows, batch.kinds[places], batch.of, sign)
        elif self._notified:
            for row, place in zip(rows.tolist(), places.tolist(), strict=True):
                self._notify(row, batch.pods[place], sign)

    def judge(self, rows: Rows, plugins: NodeLocalPlugins, since: PodsSince | None = None) -> Verdicts:
        """The verdicts on these rows; where nominated pods count, first with them, and without them if they pass.
        `since`: the pods that came to rows which passed before."""
        counting = [row for row in rows.tolist() if row in self.nominated] if self.nominated else []
        rejected = self._with_nominated(counting, plugins) if counting else {}
        if not rejected:
            failed, codes, explicit_status = self._judge(rows, plugins, None if counting else since)
        else:
            outside = np.ones(self.table.capacity, dtype=np.bool_)
            outside[list(rejected)] = False
            there = outside[rows]
            failed, codes = np.zeros(len(rows), dtype=np.int16), np.zeros(len(rows), dtype=np.int64)
            failed[there], codes[there], explicit_status = self._judge(rows[there], plugins)
            for place, row in enumerate(rows.tolist()):
                if row in rejected:
                    failed[place], codes[place], status = rejected[row]
                    if status is not None:
                        explicit_status[row] = status
        filters = self.filters.profile.filters
        return Verdicts(self.table, filters, self.state, self.pod, rows, failed, codes, explicit_status)

    def _with_nominated(
        self, counting: list[int], plugins: NodeLocalPlugins
    ) -> dict[int, tuple[int, int, Status | None]]:
        """(filter index, code, status) of the rows that are rejected with their nominated pods added."""
        others = [(row, other) for row in counting for other in self.nominated[row]]
        for row, other in others:
            self._state_of(row)
            self.table.add_pod(row, other)
            self._follow(row, other, 1)
        failed, codes, explicit_status = self._judge(np.array(counting, dtype=np.int64), plugins)
        for row, other in reversed(others):
            self.table.remove_pod(row, other)
            self._follow(row, other, -1)
        rejected = np.flatnonzero(failed != PASSED).tolist()
        return {
            counting[place]: (int(failed[place]), int(codes[place]), explicit_status.get(counting[place]))
            for place in rejected
        }

    def _judge(
        self, rows: Rows, plugins: NodeLocalPlugins, since: PodsSince | None = None
    ) -> tuple[Places, Ints, dict[int, Status]]:
        if self._together is not None:
            failed, codes = plugins.judge(self.state, self.pod, self.table, rows)
            return failed, codes, self._together.judge(rows, failed, codes, since)
        state_of = self._state_of if self._notified else None
        return self.filters.judge_rows(plugins, self.state, self.pod, self.table, rows, state_of)

    def _follow(self, row: int, other: Pod, sign: Literal[-1, 1]) -> None:
        """A single pod was added to a row or removed from it."""
        if self._together is not None:
            self._together.follow(np.array([row]), np.array([0]), [other], sign)
        elif self._notified:
            self._notify(row, other, sign)

    def _state_of(self, row: int) -> CycleState:
        """The row's own CycleState, updated for the removed pods."""
        if not self._notified:
            return self.state
        state = self._states.get(row)
        if state is None:
            state = self._states[row] = self.state.clone()
            for other in self.lesser.on(row):
                self._notify(row, other, -1)
        return state

    def _notify(self, row: int, other: Pod, sign: Literal[-1, 1]) -> None:
        """Update the row's own CycleState, if it has one."""
        state = self._states.get(row)
        if state is not None:
            method: Literal["add_pod", "remove_pod"] = "add_pod" if sign > 0 else "remove_pod"
            self.filters.notify(method, self._notified, state, self.pod, other, self.table, row)
