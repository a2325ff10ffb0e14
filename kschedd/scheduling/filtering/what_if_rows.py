"""WhatIfRows: rows of a what-if copy that are filtered together after pods are added or removed.

Each row represents a separate cluster in which pods changed on this row only. Plugins whose PreFilter state depends on
pods (spreading, affinity, disks) compute columns with the differences between rows (`framework/dry_run`). If an
out-of-tree plugin or a plugin without columns takes part, every row has its own clone of the state, which is created on
first use.

Source: Kubernetes v1.34, scheduler/framework/runtime/framework.go (RunPreFilterExtensionAddPod,
RunPreFilterExtensionRemovePod, addGENominatedPods).
"""

from collections.abc import Iterable
from typing import Literal

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.pod_batch import PodBatch, PodKinds
from kschedd.cache.table import Bools, Ints, Rows, TableCopy
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.interface import PreFilterExtensions
from kschedd.framework.status import Status
from kschedd.scheduling.filtering.filters import Filters, FiltersOfRows, PodsSince
from kschedd.scheduling.filtering.node_local_plugins import NodeLocalPlugins
from kschedd.scheduling.nominations.counted import NominatedByRow
from kschedd.scheduling.verdicts import Places

Sign = Literal[-1, 1]


@attrs.define(eq=False)
class WhatIfRows:
    """Filtered rows of a what-if copy. Rows are row numbers of the copy; places are indices into a list of pods."""

    filters: Filters
    state: CycleState
    pod: Pod
    table: TableCopy
    _together: FiltersOfRows | None = attrs.field(default=None, init=False)  # None: rows are evaluated one by one
    _notified: list[PreFilterExtensions] = attrs.field(factory=list, init=False)
    _states: dict[int, CycleState] = attrs.field(factory=dict, init=False)  # states of rows that cannot share one state
    _changes: dict[int, list[tuple[Pod, Sign]]] = attrs.field(factory=dict, init=False)  # changes of other rows

    def __attrs_post_init__(self) -> None:
        if self.filters.row_by_row(self.state, self.pod):
            return
        self._together = self.filters.together(self.state, self.pod, self.table)
        if self._together is None:
            self._notified = self.filters.pre_filter_extensions(self.state)

    @property
    def notifies(self) -> bool:
        """True if plugins are called for each added or removed pod, with a separate state for each row."""
        return bool(self._notified)

    @property
    def follows(self) -> bool:
        """True if plugins update columns when pods are added or removed."""
        return self._together is not None and self._together.follows

    def add(self, batch: PodBatch, rows: Rows, places: Ints) -> None:
        """Add a pod to each of the given distinct rows."""
        for row, place in zip(rows.tolist(), places.tolist(), strict=True):
            self.table.pods[row].append(batch.pods[place])
        batch.count(self.table, rows, places, 1)
        self.follow(batch, rows, places, 1)

    def remove_last(self, batch: PodBatch, rows: Rows, places: Ints) -> None:
        """Remove from each of the given distinct rows the pod that was added last."""
        for row in rows.tolist():
            self.table.pods[row].pop()
        batch.count(self.table, rows, places, -1)
        self.follow(batch, rows, places, -1)

    def follow(self, pods: PodKinds, rows: Rows, places: Ints, sign: Sign) -> None:
        """Update the plugins' columns for pods added to (1) or removed from (-1) their rows; rows may repeat."""
        if self._together is not None:
            self._together.follow(rows, pods.kinds[places], pods.of, sign)
        elif self._notified:
            for row, place in zip(rows.tolist(), places.tolist(), strict=True):
                self.notify(row, pods.pods[place], sign)

    def notify(self, row: int, other: Pod, sign: Sign) -> None:
        """Call plugins for an added or removed pod, or queue the change if the row has no state yet."""
        state = self._states.get(row)
        if state is None:
            self._changes.setdefault(row, []).append((other, sign))
        else:
            self._notify(state, row, other, sign)

    def judge(
        self, rows: Rows, plugins: NodeLocalPlugins, since: PodsSince | None = None
    ) -> tuple[Places, Ints, dict[int, Status]]:
        """Return the verdicts of the given node-local filters and of all other filters.

        `since` contains the pods added to each row after its last verdict.
        """
        if self._together is not None:
            failed, codes = plugins.judge(self.state, self.pod, self.table, rows)
            return failed, codes, self._together.judge(rows, failed, codes, since)
        state_of = self.state_of if self._notified else None
        return self.filters.judge_rows(plugins, self.state, self.pod, self.table, rows, state_of)

    def state_of(self, row: int) -> CycleState:
        """Return the row's own CycleState, updated for the row's pods."""
        state = self._states.get(row)
        if state is None:
            state = self._states[row] = self.state.clone()
            for other, sign in self._changes.pop(row, ()):
                self._notify(state, row, other, sign)
        return state

    def _notify(self, state: CycleState, row: int, other: Pod, sign: Sign) -> None:
        method: Literal["add_pod", "remove_pod"] = "add_pod" if sign > 0 else "remove_pod"
        self.filters.notify(method, self._notified, state, self.pod, other, self.table, row)


@attrs.define(eq=False)
class NominatedOnRows:
    """The nominated pods on rows of a what-if copy; they are added to or removed from many rows together."""

    _on: WhatIfRows
    _counted: NominatedByRow
    _there: Bools = attrs.field(init=False)  # by row of the copy
    # Pod kinds, and the row of each pod; None until needed
    _kinds: tuple[PodKinds, Rows] | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        table = self._on.table
        self._there = np.zeros(table.capacity, dtype=np.bool_)
        if self._counted:
            self._there[self._counted.places(table.rows_of_whole)] = True

    def among(self, rows: Rows) -> Bools:
        """Return the given rows that have nominated pods."""
        having: Bools = self._there[rows]
        return having

    def add(self, rows: Rows) -> None:
        """Add the nominated pods of the given rows; each row must have at least one nominated pod.

        An out-of-tree plugin may raise any exception.
        """
        on, table = self._on, self._on.table
        table.joined.update(rows.tolist())
        if on.notifies:
            for row, pods in self._of(rows):
                on.state_of(row)
                for other in pods:
                    table.add_pod(row, other)
                    on.notify(row, other, 1)
            return
        for row, pods in self._of(rows):
            table.pods[row].extend(pods)
        self._count(rows, 1)

    def remove(self, rows: Rows) -> None:
        """Remove the nominated pods that were last added to these rows."""
        on, table = self._on, self._on.table
        if on.notifies:
            for row, pods in self._of(rows):
                for other in reversed(pods):
                    table.remove_pod(row, other)
                    on.notify(row, other, -1)
            return
        for row, pods in self._of(rows):
            del table.pods[row][-len(pods) :]
        self._count(rows, -1)

    def _of(self, rows: Rows) -> Iterable[tuple[int, tuple[Pod, ...]]]:
        """Return each of the given rows with its nominated pods."""
        of = self._on.table.rows_of_whole[rows].tolist()
        return zip(rows.tolist(), [self._counted[row] for row in of], strict=True)

    def _count(self, rows: Rows, sign: Sign) -> None:
        self._counted.count(self._on.table, rows, sign)
        if self._on.follows:
            pods, row_of = self._pods()
            places = np.isin(row_of, rows).nonzero()[0]
            self._on.follow(pods, row_of[places], places, sign)

    def _pods(self) -> tuple[PodKinds, Rows]:
        """Return the nominated pods of all rows, and the row of each pod."""
        if self._kinds is None:
            by_row = dict(self._of(self._there.nonzero()[0]))
            pods = PodKinds.among([pod for pods in by_row.values() for pod in pods])
            self._kinds = pods, np.repeat(list(by_row), [len(pods) for pods in by_row.values()])
        return self._kinds
