"""Dry run of preemption: which pods would have to be evicted from a node so that a more important pod fits.

For each given row, all pods of lower priority are removed; if the pod fits then, as many as possible are
reprieved: first those whose eviction would violate a PodDisruptionBudget, then the others, the more important ones
first in each group. The pods that cannot be reprieved are the victims.

Many rows are tried together in one copy of the table, in rounds: each round reprieves one pod on every row and
filters all rows at once. Where plugins' state follows the pods (spreading, affinity), every row has its own clone of
the state, made only once the row has passed the filters that need none.

Nothing is cached here: see `candidates` for what is kept from one preemption to the next.

Source: Kubernetes v1.34, plugins/defaultpreemption/default_preemption.go (SelectVictimsOnNode),
scheduler/util/utils.go (MoreImportantPod, GetEarliestPodStartTime).
Units: start times are microseconds since the epoch.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.api.times import micros
from kschedd.cache.table import Ints, Rows, TableCopy
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.interface import PreFilterExtensions
from kschedd.framework.postfilter import Candidate
from kschedd.framework.status import Status, error, unresolvable
from kschedd.scheduling.budgets import Budgets
from kschedd.scheduling.filters import Filters
from kschedd.scheduling.node_local_plugins import NodeLocalPlugins
from kschedd.scheduling.nominated_pods import NominatedByRow
from kschedd.scheduling.verdicts import PASSED, Places, Verdicts

NOT_STARTED: Final = (1 << 63) - 1
"""Later than any other start: upstream takes a pod without a start time to start now."""

NO_VICTIMS: Final = unresolvable("No preemption victims found for incoming pod")


def started(pod: Pod) -> int:
    """When the pod started; NOT_STARTED if it has not, or its start time cannot be read."""
    try:
        return micros(pod.start_time) if pod.start_time else NOT_STARTED
    except ValueError:
        return NOT_STARTED


def importance(pod: Pod) -> tuple[int, int]:
    """Sort key, more important pods first: higher priority, then earlier start."""
    return -pod.priority, started(pod)


def earliest_start(victims: Sequence[Pod]) -> int:
    """When the first of the victims with the highest priority started."""
    highest = max(victim.priority for victim in victims)
    return min(started(victim) for victim in victims if victim.priority == highest)


@attrs.frozen(eq=False)
class DryRunResult:
    """Result of one row's dry run, and the keys of the budgets it depends on."""

    outcome: Candidate | Status
    covering: frozenset[str] = frozenset()


_NOBODY_TO_EVICT: Final = DryRunResult(NO_VICTIMS)


def select_victims(
    filters: Filters, state: CycleState, pod: Pod, rows: Sequence[int], budgets: Budgets, counted: NominatedByRow
) -> list[DryRunResult]:
    """Dry-run preemption on these rows of the cluster's table. `counted`: the nominated pods that count, by row."""
    table, priority = filters.cluster.table, pod.priority
    tried = [_NOBODY_TO_EVICT] * len(rows)
    lesser = [[other for other in table.pods[row] if other.priority < priority] for row in rows]
    places = [place for place, pods in enumerate(lesser) if pods]
    if not places:
        return tried
    copy = table.copy_rows(rows[place] for place in places)
    nominated = {number: counted[rows[place]] for number, place in enumerate(places) if rows[place] in counted}
    stage = _Stage(filters, state, pod, copy, nominated)
    for place, result in zip(places, _victims(stage, [lesser[place] for place in places], budgets), strict=True):
        tried[place] = result
    return tried


def _victims(stage: "_Stage", lesser: list[list[Pod]], budgets: Budgets) -> list[DryRunResult]:
    stage.empty(lesser)
    verdicts = stage.judge(list(range(len(lesser))), stage.filters.local)
    rejected = [verdicts.status(row) for row in range(len(lesser))]
    splits = []
    queues: list[list[Pod]] = []  # by row: pods to reprieve, in this order
    for pods, status in zip(lesser, rejected, strict=True):
        split = None if status is not None else budgets.split(sorted(pods, key=importance))
        splits.append(split)
        queues.append([] if split is None else split.violating + split.others)
    back: list[list[bool]] = [[] for _ in queues]
    for turn in range(max(map(len, queues), default=0)):
        rows = [row for row, queue in enumerate(queues) if turn < len(queue)]
        for row, fits in zip(rows, stage.reprieve(rows, [queues[row][turn] for row in rows]), strict=True):
            back[row].append(fits)
    tried = []
    for row, (split, status) in enumerate(zip(splits, rejected, strict=True)):
        if split is None:
            assert status is not None
            tried.append(DryRunResult(status))
            continue
        victims = [pod for pod, stays in zip(queues[row], back[row], strict=True) if not stays]
        name = stage.table.names[row]
        if not victims:
            tried.append(DryRunResult(error(f'expected at least one victim pod on node "{name}"'), split.covering))
            continue
        violations = back[row][: len(split.violating)].count(False)
        if split.violating and split.others:
            victims.sort(key=importance)
        tried.append(DryRunResult(Candidate(name, tuple(victims), violations), split.covering))
    return tried


@attrs.define(eq=False)
class _Stage:
    """Rows in a copy of the table, changed and filtered together. Rows are lists of row numbers in the copy."""

    filters: Filters
    state: CycleState
    pod: Pod
    table: TableCopy
    nominated: Mapping[int, Sequence[Pod]]
    _notified: list[PreFilterExtensions] = attrs.field(factory=list, init=False)
    _states: dict[int, CycleState] = attrs.field(factory=dict, init=False)  # of rows that needed their own state
    _gone: list[list[Pod]] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        if not self.filters.row_by_row(self.state, self.pod):
            self._notified = self.filters.pre_filter_extensions(self.state)

    def empty(self, lesser: list[list[Pod]]) -> None:
        """Remove all these pods, a list for each row."""
        self._gone = lesser
        for turn in range(max(map(len, lesser))):
            rows = [row for row, pods in enumerate(lesser) if turn < len(pods)]
            self.table.remove_each(rows, [lesser[row][-1 - turn] for row in rows])

    def reprieve(self, rows: list[int], pods: list[Pod]) -> list[bool]:
        """Add one pod back to each row; remove it again where the preemptor no longer fits. Returns where it fits."""
        self.table.add_each(rows, pods)
        self._tell("add_pod", rows, pods)
        # Verdicts that depend on the Node object alone are known and cannot change.
        fits: list[bool] = (self.judge(rows, self.filters.of_pods).failed == PASSED).tolist()
        if not all(fits):
            full = [row for row, stays in zip(rows, fits, strict=True) if not stays]
            unwanted = [pod for pod, stays in zip(pods, fits, strict=True) if not stays]
            self.table.remove_each(full, unwanted)
            self._tell("remove_pod", full, unwanted)
        return fits

    def judge(self, rows: list[int], plugins: NodeLocalPlugins) -> Verdicts:
        """The verdicts on these rows; where nominated pods count, first with them, and without them if they pass."""
        counting = [row for row in rows if row in self.nominated] if self.nominated else []
        rejected = self._with_nominated(counting, plugins) if counting else {}
        if not rejected:
            failed, codes, explicit_status = self._judge(rows, plugins)
        else:
            places = [place for place, row in enumerate(rows) if row not in rejected]
            failed, codes = np.zeros(len(rows), dtype=np.int16), np.zeros(len(rows), dtype=np.int64)
            failed[places], codes[places], explicit_status = self._judge([rows[place] for place in places], plugins)
            for place, row in enumerate(rows):
                if row in rejected:
                    failed[place], codes[place], status = rejected[row]
                    if status is not None:
                        explicit_status[row] = status
        asked = np.array(rows, dtype=np.int64)
        return Verdicts(
            self.table, self.filters.profile.filters, self.state, self.pod, asked, failed, codes, explicit_status
        )

    def _with_nominated(
        self, counting: list[int], plugins: NodeLocalPlugins
    ) -> dict[int, tuple[int, int, Status | None]]:
        """(filter index, code, status) of the rows that are rejected with their nominated pods added."""
        others = [(row, other) for row in counting for other in self.nominated[row]]
        for row, other in others:
            self._state_of(row)
            self.table.add_pod(row, other)
            self._tell("add_pod", [row], [other])
        failed, codes, explicit_status = self._judge(counting, plugins)
        for row, other in reversed(others):
            self.table.remove_pod(row, other)
            self._tell("remove_pod", [row], [other])
        rejected = np.flatnonzero(failed != PASSED).tolist()
        return {
            counting[place]: (int(failed[place]), int(codes[place]), explicit_status.get(counting[place]))
            for place in rejected
        }

    def _judge(self, rows: list[int], plugins: NodeLocalPlugins) -> tuple[Places, Ints, dict[int, Status]]:
        asked: Rows = np.array(rows, dtype=np.int64)
        state_of = self._state_of if self._notified else None
        return self.filters.judge_rows(plugins, self.state, self.pod, self.table, asked, state_of)

    def _state_of(self, row: int) -> CycleState:
        """The row's own CycleState, updated for the removed pods."""
        if not self._notified:
            return self.state
        state = self._states.get(row)
        if state is None:
            state = self._states[row] = self.state.clone()
            gone = self._gone[row]
            self._tell("remove_pod", [row] * len(gone), gone)
        return state

    def _tell(self, method: Literal["add_pod", "remove_pod"], rows: Iterable[int], pods: Iterable[Pod]) -> None:
        if not self._notified:
            return
        for row, other in zip(rows, pods, strict=True):
            state = self._states.get(row)
            if state is not None:
                self.filters.notify(method, self._notified, state, self.pod, other, self.table, row)
