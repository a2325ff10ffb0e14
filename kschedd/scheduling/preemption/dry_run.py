"""Dry run of preemption: the pods that would have to be evicted from a node so that a more important pod fits.

For each given row, all pods of lower priority are removed. If the pod then fits, as many removed pods as possible are
reprieved: first the pods whose eviction would violate a PodDisruptionBudget, then the other pods; in
both cases, more important pods first. The pods that cannot be reprieved are the victims.

Many rows are tried together in one copy of the table (`what_if_rows`). Each round reprieves one pod on every row and
filters all rows together. This module caches nothing; `candidates` caches results across preemptions.

Source: Kubernetes v1.34, plugins/defaultpreemption/default_preemption.go (SelectVictimsOnNode),
scheduler/util/utils.go (MoreImportantPod, GetEarliestPodStartTime).
Units: start times are microseconds since the epoch.
"""

from collections.abc import Sequence
from typing import Final, Self

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.pod_batch import PodBatch
from kschedd.cache.table import Bools, Ints, Rows, TableCopy
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.postfilter import Candidate
from kschedd.framework.status import Status, error, unresolvable
from kschedd.scheduling.filtering.filters import Filters, PodsSince
from kschedd.scheduling.filtering.node_local_plugins import NodeLocalPlugins
from kschedd.scheduling.filtering.what_if_rows import NominatedOnRows, WhatIfRows
from kschedd.scheduling.nominations.counted import NominatedByRow
from kschedd.scheduling.preemption.budgets import Budgets, Split
from kschedd.scheduling.preemption.row_pods import NOT_STARTED, RowPods, by_importance, started
from kschedd.scheduling.verdicts import EXPLICIT, PASSED, Places, Verdicts
from kschedd.values import fast_frozen

NO_VICTIMS: Final = unresolvable("No preemption victims found for incoming pod")


def earliest_start(victims: Sequence[Pod]) -> int:
    """Return the earliest start time among the victims with the highest priority."""
    if len(victims) == 1:
        return started(victims[0])
    priorities = [victim.signature.spec.priority for victim in victims]
    highest = max(priorities)
    starts = [started(victim) for victim, own in zip(victims, priorities, strict=True) if own == highest]
    return min(starts)


@fast_frozen(eq=False)
class DryRunResult:
    """The result of a row's dry run, with the keys of the budgets it depends on and the victims' ranking criteria."""

    outcome: Candidate | Status
    covering: frozenset[str] = frozenset()
    highest: int = 0  # highest priority
    priorities: int = 0  # sum of priorities
    earliest: int = 0  # earliest start in microseconds among the pods with the highest priority


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
    """Try preemption on these rows of the cluster's table, without changing the table.

    `by_importance` contains the pods of the rows. `counted` contains the nominated pods to add, by row.
    """
    table, priority = filters.cluster.table, pod.priority
    tried = [_NOBODY_TO_EVICT] * len(rows)
    lesser = [own.below(priority) for own in by_importance]
    places = [place for place, own in enumerate(lesser) if own.pods]
    if not places:
        return tried
    copy = table.copy_rows(rows[place] for place in places)
    candidates, on = _LesserPods.of(copy, [lesser[place] for place in places]), WhatIfRows(filters, state, pod, copy)
    stage = _Stage(on, candidates, NominatedOnRows(on, counted))
    for place, result in zip(places, _victims(stage, candidates, budgets), strict=True):
        tried[place] = result
    return tried


@attrs.frozen(eq=False)
class _LesserPods:
    """The pods of lower priority by row, the most important first, without rows that have no such pod."""

    batch: PodBatch
    rows: Rows  # the row of each pod
    first: Ints  # by row: index of the row's first pod
    many: Ints  # number of pods by row
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
        """Return the ranking criteria of the pods with these indices, by row.

        The criteria are the highest priority, the sum of priorities, and the earliest start of the pods with the
        highest priority. The pods' `rows` are in ascending order.
        """
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
    verdicts = stage.judge(np.arange(count), stage.rows.filters.local)
    open_ = np.flatnonzero(verdicts.failed == PASSED)
    order, splits = _reprieve_order(lesser, open_.tolist(), budgets)
    stays = np.zeros(len(order), dtype=np.bool_)  # by index in `order`
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
    for row, (end, rejection) in enumerate(zip(ends, _rejections(verdicts), strict=True)):
        if rejection is not None:
            tried.append(rejection)
            continue
        split = splits.get(row, _UNSPLIT)
        victims = [pods[place] for place in evicted[ends[row - 1] if row else 0 : end]]
        name = stage.rows.table.names[row]
        if not victims:
            tried.append(DryRunResult(error(f'expected at least one victim pod on node "{name}"'), split.covering))
            continue
        violations = 0
        if split.violating:
            first = int(lesser.first[row])
            violations = len(split.violating) - int(np.count_nonzero(stays[first : first + len(split.violating)]))
            if split.others:
                in_order = stage.rows.filters.profile.rules.unstarted_pods_in_order
                victims = [*by_importance(victims, in_order)[0]]
        tried.append(DryRunResult(Candidate(name, tuple(victims), violations), split.covering, *next(ranks)))
    return tried


def _rejections(verdicts: Verdicts) -> list[DryRunResult | None]:
    """Return the results of the rows that a filter rejects, by row; most rejected rows share one reason."""
    failed = verdicts.failed.tolist()
    shared: dict[tuple[int, int], DryRunResult] = {}
    results: list[DryRunResult | None] = [None] * len(failed)
    for row, key in enumerate(zip(failed, verdicts.codes.tolist(), strict=True)):
        if key[0] == PASSED:
            continue
        result = shared.get(key)
        if result is None:
            status = verdicts.status(row)
            assert status is not None, "what some filter rejected has its status"
            result = DryRunResult(status)
            if key[1] != EXPLICIT:
                shared[key] = result
        results[row] = result
    return results


def _spans(lesser: _LesserPods) -> list[tuple[int, int]]:
    return list(zip(lesser.first.tolist(), (lesser.first + lesser.many).tolist(), strict=True))


def _reprieve_order(lesser: _LesserPods, rows: Sequence[int], budgets: Budgets) -> tuple[Ints, dict[int, Split]]:
    """Return the indices of the pods in their order of reprieve, and whether each eviction violates a budget."""
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


@attrs.frozen(eq=False)
class _Stage:
    """The tried rows, their pods of lower priority, and the nominated pods to add."""

    rows: WhatIfRows
    lesser: _LesserPods
    nominated: NominatedOnRows

    def empty(self) -> None:
        """Remove all pods of lower priority."""
        lesser, table, priority = self.lesser, self.rows.table, self.rows.pod.priority
        many = lesser.many.tolist()
        for row, pods in enumerate(table.pods):
            table.pods[row] = (
                [] if many[row] == len(pods) else [pod for pod in pods if pod.signature.spec.priority >= priority]
            )
        lesser.batch.count_all(table, np.arange(len(lesser.many)), lesser.first, -1)
        self.rows.follow(lesser.batch, lesser.rows, np.arange(len(lesser.rows)), -1)

    def reprieve(self, rows: Rows, places: Ints) -> Bools:
        """Add one pod back to each row.

        If the preemptor does not fit on a row with the restored pod, remove the pod again. Return where it fits.
        """
        batch = self.lesser.batch
        self.rows.add(batch, rows, places)
        # Verdicts that depend only on the Node object cannot change here.
        since = batch.kinds[places], batch.of
        fits: Bools = self.judge(rows, self.rows.filters.of_pods, since).failed == PASSED
        if not fits.all():
            self.rows.remove_last(batch, rows[~fits], places[~fits])
        return fits

    def judge(self, rows: Rows, plugins: NodeLocalPlugins, since: PodsSince | None = None) -> Verdicts:
        """Return the verdicts on these rows.

        Rows with nominated pods are evaluated with these pods first. Rows that pass with their nominated pods are also
        evaluated without these pods. `since` contains the pods added to each row after its last verdict.
        """
        counting = self.nominated.among(rows)
        if counting.any():
            failed, codes, explicit_status = self._judge_with_nominated(rows, counting, plugins)
            passed = failed == PASSED
            failed[passed], codes[passed], others = self.rows.judge(rows[passed], plugins)
            explicit_status.update(others)
        else:
            failed, codes, explicit_status = self.rows.judge(rows, plugins, since)
        on, filters = self.rows, self.rows.filters.profile.filters
        return Verdicts(on.table, filters, on.state, on.pod, rows, failed, codes, explicit_status)

    def _judge_with_nominated(
        self, rows: Rows, counting: Bools, plugins: NodeLocalPlugins
    ) -> tuple[Places, Ints, dict[int, Status]]:
        """Return the verdicts on the `counting` rows with their nominated pods added; other rows pass."""
        failed, codes = np.full(len(rows), PASSED, dtype=np.int16), np.zeros(len(rows), dtype=np.int64)
        self.nominated.add(rows[counting])
        failed[counting], codes[counting], explicit_status = self.rows.judge(rows[counting], plugins)
        self.nominated.remove(rows[counting])
        return failed, codes, explicit_status
