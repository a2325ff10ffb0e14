"""Preemption candidates: dry runs on enough nodes, a cache of their results, and the choice of the best candidate.

The result of a dry run is valid for every pod of the signature until one of these inputs changes: the row's node, its
pods, its nominated pods, and the budgets that cover its victims. Results are cached only if every plugin reads only the
row. For each signature, columns store the outcome and the ranking criteria of each row. Only rows that
changed are tried again, all in one batch.

Invariant: a cached result equals what `preemption.select_victims` would return now.

Source: Kubernetes v1.34, scheduler/framework/preemption/preemption.go (DryRunPreemption, pickOneNodeForPreemption).
Shapes: columns have one int64 for each row of the table. `outcome` is CANDIDATE, or the number of the rejecting status.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.pod_groups import PodGroups
from kschedd.cache.recently_used import RecentlyUsed
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.postfilter import Candidate, DryRun
from kschedd.framework.status import Code, Status
from kschedd.scheduling.debug.work import Work
from kschedd.scheduling.filtering.evaluation import Evaluation
from kschedd.scheduling.filtering.filters import Filters
from kschedd.scheduling.nominations.counted import NO_NOMINATED, NominatedByRow
from kschedd.scheduling.preemption.budgets import Budget, Budgets
from kschedd.scheduling.preemption.dry_run import NO_VICTIMS, DryRunResult, select_victims
from kschedd.scheduling.preemption.row_pods import PodsByImportance
from kschedd.scheduling.preemption.victims import select_among_groups
from kschedd.scheduling.verdicts import fit_error

CANDIDATE: Final = -1
NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"

Judge = Callable[[Pod, str, NominatedByRow], Work[Status | None]]
"""Returns why a pod does not fit on a node in its current state; None if it fits."""

_NEVER = -1
_HIGHEST = (1 << 31) - 1  # largest priority of a pod
_LIFT = 1 << 31  # added to every priority to make it positive, so that a further victim never lowers the sum
_BYTES_A_ROW = 56
_BYTES_A_SIGNATURE = 4 << 10  # regardless of its rows
_AHEAD: Final = 1  # number of additional windows; more would take over 20 ms
_MANY: Final = 8  # one in this many rows
_MOST_AT_ONCE = 32  # minimum number of rows in one dry run
_LOOKED_THROUGH = 8192  # rows searched for them
_FEWEST = 4  # minimum number of stored signatures, however large the cluster
_MOST = 1024  # maximum number of stored signatures, however small the cluster


class _Columns:
    """The cached dry-run results for one signature."""

    def __init__(self, table: NodeTable, budgets: Mapping[str, Budget], cached: Evaluation | None) -> None:
        size = table.capacity
        self.cached = cached  # evaluation for which the columns are valid
        self.in_use = False  # some rows were tried
        self.stamp = table.versions.now
        self.budgets = budgets
        self.counted = NO_NOMINATED
        self.tried_at: Ints = np.full(size, _NEVER, dtype=np.int64)
        self.outcome: Ints = np.zeros(size, dtype=np.int64)
        self.violations: Ints = np.zeros(size, dtype=np.int64)
        self.highest: Ints = np.zeros(size, dtype=np.int64)
        self.priorities: Ints = np.zeros(size, dtype=np.int64)
        self.victims: Ints = np.zeros(size, dtype=np.int64)
        self.earliest: Ints = np.zeros(size, dtype=np.int64)
        self.candidates = np.full(size, None, dtype=np.object_)
        self.statuses: list[Status] = []
        self._numbers: dict[Status, int] = {}
        self._covered: dict[str, set[int]] = {}  # key of a budget -> rows with a victim that the budget covers

    def invalidate(self, table: NodeTable, budgets: Mapping[str, Budget], counted: NominatedByRow) -> None:
        """Invalidate rows whose inputs changed since the last call."""
        versions = table.versions
        rows = versions.nodes.since(self.stamp)
        self.stamp = versions.now
        if rows is None:
            self.tried_at[:] = _NEVER
        elif rows:
            self.tried_at[rows] = _NEVER
        differing = counted.differing(self.counted)
        self.tried_at[slice(None) if differing is None else differing] = _NEVER
        self.counted = counted
        if budgets is not self.budgets:
            self._invalidate_budgets(budgets)

    def _invalidate_budgets(self, budgets: Mapping[str, Budget]) -> None:
        before, self.budgets = self.budgets, budgets
        for key in {*before, *budgets}:
            old, new = before.get(key), budgets.get(key)
            if old is new:
                continue
            if old is None or new is None or old.selector is not new.selector:
                self.tried_at[:] = _NEVER  # retry, because the changed budget may now cover other pods
                return
            covered = self._covered.get(key)
            if covered:
                self.tried_at[list(covered)] = _NEVER

    def stale(self, table: NodeTable, rows: Rows) -> Rows:
        """Return the rows without a valid result."""
        changed: Rows = rows[self.tried_at[rows] < table.versions.row_pods_at[rows]]
        return changed

    def learn_same(self, table: NodeTable, rows: Rows, outcome: Status) -> None:
        """Store the same outcome for all the given rows; the outcome must not depend on budgets."""
        self.tried_at[rows] = table.versions.now
        self.outcome[rows] = self._outcome(outcome)

    def learn(self, table: NodeTable, rows: list[int], tried: list[DryRunResult]) -> None:
        """Store the results of dry runs on these rows."""
        self.tried_at[rows] = table.versions.now
        outcomes = [self._outcome(result.outcome) for result in tried]
        self.outcome[rows] = outcomes
        for row, result in zip(rows, tried, strict=True):
            for key in result.covering:
                self._covered.setdefault(key, set()).add(row)
        found = [
            (row, result, result.outcome)
            for row, result in zip(rows, tried, strict=True)
            if isinstance(result.outcome, Candidate)
        ]
        if not found:
            return
        chosen = [row for row, _, _ in found]
        victims = [len(candidate.victims) for _, _, candidate in found]
        self.violations[chosen] = [candidate.pdb_violations for _, _, candidate in found]
        self.highest[chosen] = [result.highest for _, result, _ in found]
        self.priorities[chosen] = [
            result.priorities + _LIFT * many for (_, result, _), many in zip(found, victims, strict=True)
        ]
        self.victims[chosen] = victims
        self.earliest[chosen] = [result.earliest for _, result, _ in found]
        for row, _, candidate in found:
            self.candidates[row] = candidate

    def _outcome(self, outcome: Candidate | Status) -> int:
        if isinstance(outcome, Candidate):
            return CANDIDATE
        number = self._numbers.get(outcome)
        if number is None:
            number = self._numbers[outcome] = len(self.statuses)
            self.statuses.append(outcome)
        return number

    def best(self, rows: Rows) -> Rows:
        """Return the best candidates, including ties, by kube-scheduler's criteria in order."""
        for least in (self.violations, self.highest, self.priorities, self.victims):
            if len(rows) == 1:
                return rows
            values = least[rows]
            rows = rows[values == values.min()]
        starts = self.earliest[rows]
        latest: Rows = rows[starts == starts.max()]
        return latest


class _LowestPriorities:
    """The lowest pod priority on each row, updated on use.

    In a cluster without priorities, most rows have no pod of lower priority to evict.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._values: Ints = np.zeros(0, dtype=np.int64)
        self._at: Ints = np.zeros(0, dtype=np.int64)  # stamps

    def on(self, rows: Rows) -> Ints:
        table, versions = self._table, self._table.versions
        if len(self._values) != table.capacity:
            self._values = np.zeros(table.capacity, dtype=np.int64)
            self._at = np.full(table.capacity, _NEVER, dtype=np.int64)
        stale = rows[self._at[rows] < versions.row_pods_at[rows]]
        if len(stale):
            # Read the row's list: Reading `pod.priority` would double the time.
            self._values[stale] = [
                min([pod.signature.spec.priority for pod in table.pods[row]], default=_HIGHEST)
                for row in stale.tolist()
            ]
            self._at[stale] = versions.now
        lowest: Ints = self._values[rows]
        return lowest


@attrs.define(eq=False)
class Candidates:
    """The dry runs of one profile on one cluster."""

    filters: Filters
    groups: PodGroups | None = None  # PodGroups whose pods may have to be evicted together; None: no PodGroups
    judged_on: Judge | None = None  # set if there are groups
    budgets: Budgets = attrs.field(init=False)
    _lowest: "_LowestPriorities" = attrs.field(init=False)
    _by_importance: PodsByImportance = attrs.field(init=False)
    _signatures: RecentlyUsed[int, _Columns] = attrs.field(factory=RecentlyUsed, init=False)

    def __attrs_post_init__(self) -> None:
        self.budgets = Budgets(self.filters.cluster, self.filters.profile.rules.first_violated_budget_only)
        self._lowest = _LowestPriorities(self.filters.cluster.table)
        in_order = self.filters.profile.rules.unstarted_pods_in_order
        self._by_importance = PodsByImportance(self.filters.cluster.table, in_order)

    @property
    def _bytes_a_signature(self) -> int:
        return self.filters.cluster.table.capacity * _BYTES_A_ROW + _BYTES_A_SIGNATURE

    @property
    def bytes_held(self) -> int:
        """The approximate size of the columns of all signatures, in bytes."""
        return len(self._signatures) * self._bytes_a_signature

    def dry_run(
        self,
        state: CycleState,
        pod: Pod,
        rows: Rows,
        offset: int,
        wanted: int,
        counted: NominatedByRow,
        cached: Evaluation | None,
    ) -> DryRun:
        """Run a dry run of preemption, for `FailedAttemptView.dry_run`.

        If `cached` is None, the results are not cached.
        """
        table = self.filters.cluster.table
        self.budgets.refresh()
        if self.groups is not None and self.groups.keys():
            cached = None  # dry runs with groups also read other rows, so their results are not cached
        if not len(rows):
            return DryRun((), None, (), fit_error(table.node_count, {NOT_HELPFUL: table.node_count}))
        columns = self._columns(state, pod, counted, cached)
        order = np.concatenate((rows[offset:], rows[:offset])) if offset else rows
        calm: list[Rows] = []  # candidates without budget violations first, then candidates with violations
        violating: list[Rows] = []
        some_calm, found, visited = False, 0, 0
        size = wanted + (wanted >> 4) + 1
        while visited < len(order) and not (wanted and some_calm and found >= wanted):
            window = order[visited : visited + size]
            visited += len(window)
            self._try_stale(columns, state, pod, window, order[visited:], counted)
            among = window[columns.outcome[window] == CANDIDATE]
            is_calm = columns.violations[among] == 0
            # The search ends at the wanted number of candidates, but continues until one candidate violates no budget.
            last = max(0, wanted - found - 1)
            if not some_calm:
                last = max(last, int(is_calm.argmax()) if is_calm.any() else len(among))
            if wanted and last < len(among):
                among, is_calm = among[: last + 1], is_calm[: last + 1]
            found += len(among)
            some_calm = some_calm or bool(is_calm.any())
            calm.append(among[is_calm][:wanted])
            violating.append(among[~is_calm])
            if not found and self._nobody_to_evict(columns, pod, order[visited:]):
                break
            # Double the window, unless the current rate of candidates requires fewer rows.
            size *= 2
            if wanted and some_calm:
                size = min(size, (wanted - found) * visited // found + _MOST_AT_ONCE)
        chosen = np.concatenate((*calm, np.concatenate((*violating, order[:0]))[:wanted]))
        if len(chosen):
            return _chosen(table, columns, chosen)
        return _fruitless(table, columns, order)

    def _columns(self, state: CycleState, pod: Pod, counted: NominatedByRow, cached: Evaluation | None) -> _Columns:
        table, budgets = self.filters.cluster.table, self.budgets.all
        if cached is None or not self.filters.row_by_row(state, pod):
            return _Columns(table, budgets, None)
        number = pod.signature.id
        columns = self._signatures.get(number)
        if columns is None or columns.cached is not cached or len(columns.tried_at) != table.capacity:
            most = max(_FEWEST, min(_MOST, table.most_preemption_bytes // self._bytes_a_signature))
            columns = self._signatures.keep(number, _Columns(table, budgets, cached), most)
        columns.invalidate(table, budgets, counted)
        self._signatures.move_to_end(number)
        return columns

    def _nobody_to_evict(self, columns: _Columns, pod: Pod, rows: Rows) -> bool:
        """Return whether none of the next rows has a pod to evict. If none has, store this outcome.

        Rows without a pod to evict are the usual case in a cluster without priorities. Very long lists of rows are not
        checked.
        """
        if self.groups is not None and self.groups.keys():
            return False
        if not 0 < len(rows) <= _LOOKED_THROUGH or np.count_nonzero(self._lowest.on(rows) < pod.priority):
            return False
        columns.learn_same(self.filters.cluster.table, rows, NO_VICTIMS)
        return True

    def _try_stale(
        self, columns: _Columns, state: CycleState, pod: Pod, window: Rows, others: Rows, counted: NominatedByRow
    ) -> None:
        """Run dry runs for the window's rows without a valid result. If results are cached, add more rows.

        Each pod's window begins at a different row. Without additional rows, the first 10 to 20 pods of a signature
        would each find most of their window without results. Later pods find rows that earlier preemptions have
        changed.
        """
        table = self.filters.cluster.table
        stale = columns.stale(table, window)
        if not len(stale):
            return
        if columns.in_use and columns.cached is not None:
            further = 0
            if len(stale) < _MOST_AT_ONCE:
                further = _MOST_AT_ONCE - len(stale)
                others = others[:_LOOKED_THROUGH]
            elif len(stale) * _MANY > len(window):
                further = _AHEAD * len(window)
                others = others[:further]
            stale = np.concatenate((stale, columns.stale(table, others)[:further])) if further else stale
        columns.in_use = True
        if self.groups is not None and self.groups.keys():
            stale = self._try_groups(columns, pod, stale, counted, self.groups)
        evictable = self._lowest.on(stale) < pod.priority
        if not evictable.all():
            columns.learn_same(table, stale[~evictable], NO_VICTIMS)
            stale = stale[evictable]
        if len(stale):
            rows, pods = stale.tolist(), self._by_importance.on(stale)
            columns.learn(table, rows, select_victims(self.filters, state, pod, rows, self.budgets, counted, pods))

    def _try_groups(self, columns: _Columns, pod: Pod, rows: Rows, counted: NominatedByRow, groups: PodGroups) -> Rows:
        """Run dry runs for the rows with pods of PodGroups, and return the other rows."""
        table, judge = self.filters.cluster.table, self.judged_on
        assert judge is not None, "where there are groups, victims are tried one by one"
        there = [any(one.signature.spec.pod_group_name for one in table.pods[row]) for row in rows.tolist()]
        of_groups = rows[np.array(there, dtype=np.bool_)].tolist()
        columns.learn(
            table, of_groups, [select_among_groups(groups, pod, row, self.budgets, counted, judge) for row in of_groups]
        )
        others: Rows = rows[~np.array(there, dtype=np.bool_)]
        return others


def _chosen(table: NodeTable, columns: _Columns, rows: Rows) -> DryRun:
    ties = {table.names[row]: row for row in columns.best(rows).tolist()}
    best = min(ties)
    candidates: tuple[Candidate, ...] = tuple(columns.candidates[rows].tolist())
    return DryRun(candidates, columns.candidates[ties[best]], tuple(sorted(ties)))


def _fruitless(table: NodeTable, columns: _Columns, rows: Rows) -> DryRun:
    counts = np.bincount(columns.outcome[rows][columns.outcome[rows] >= 0], minlength=len(columns.statuses)).tolist()
    reasons: Counter[str] = Counter()
    faults: dict[str, None] = {}
    for status, count in zip(columns.statuses, counts, strict=True):
        if not count:
            continue
        if status.code == Code.ERROR:
            faults[status.message] = None
        for reason in status.reasons:
            reasons[reason] += count
    rejected = sum(counts)
    if rejected < table.node_count:
        reasons[NOT_HELPFUL] += table.node_count - rejected
    return DryRun((), None, (), fit_error(table.node_count, reasons), _aggregate(list(faults)))


def _aggregate(faults: Sequence[str]) -> str:
    if len(faults) < 2:
        return "".join(faults)
    return f"[{', '.join(faults)}]"
