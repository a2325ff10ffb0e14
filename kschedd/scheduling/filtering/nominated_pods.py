"""Filters on nodes with nominated pods: a pod must also fit on these nodes if the nominated pods are added.

A pod nominated by preemption waits for its victims' deletion. Meanwhile, pods of lower priority must not take the freed
resources. Nominated pods of the same or higher priority are therefore treated as running on their node. If the incoming
pod fits with the nominated pods, the node is filtered again without them. The second call is needed because the pod may
fit only beside a nominated pod (required affinity), which may never run there.

If every plugin reads only the row, the verdict is cached by pod signature until the node, its pods or its nominations
change. An attempt evaluates only the changed rows (`nominations`).

Source: Kubernetes v1.34, scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods).
"""

from typing import Final
from weakref import WeakKeyDictionary

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Code, Status, fault_text
from kschedd.scheduling.filtering.evaluation import Evaluation
from kschedd.scheduling.filtering.filters import Filters
from kschedd.scheduling.filtering.what_if_rows import NominatedOnRows, WhatIfRows
from kschedd.scheduling.nominations.counted import NO_NOMINATED, NominatedByRow
from kschedd.scheduling.verdicts import EXPLICIT, PASSED, Places

_NEVER = -1


@attrs.frozen(eq=False)
class NominatedVerdicts:
    """The rows rejected with their nominated pods added.

    `rows` contains indices into the given rows; `explicit` contains the EXPLICIT statuses by row.
    """

    places: Ints
    failed: Places
    codes: Ints
    explicit_status: dict[int, Status]


_NO_PLACES: Final[Ints] = np.zeros(0, dtype=np.int64)
NONE_REJECTED: Final = NominatedVerdicts(_NO_PLACES, _NO_PLACES.astype(np.int16), _NO_PLACES, {})


class _Verdicts:
    """Cached verdicts on rows with their nominated pods added, for one signature.

    No verdict is EXPLICIT, because per-node filters are not called for a signature with cached verdicts.
    """

    def __init__(self, table: NodeTable) -> None:
        size = table.capacity
        self.stamp = table.versions.now
        self.counted = NO_NOMINATED
        self.judged_at: Ints = np.full(size, _NEVER, dtype=np.int64)
        self.failed: Places = np.zeros(size, dtype=np.int16)
        self.codes: Ints = np.zeros(size, dtype=np.int64)

    def invalidate(self, table: NodeTable, counted: NominatedByRow) -> None:
        """Invalidate rows whose node or nominated pods changed."""
        versions = table.versions
        nodes = versions.nodes.since(self.stamp) if versions.nodes.at > self.stamp else ()
        differing = counted.differing(self.counted)
        if nodes is None or differing is None:
            self.judged_at[:] = _NEVER
        else:
            self.judged_at[differing] = _NEVER
            if nodes:
                self.judged_at[nodes] = _NEVER
        self.stamp, self.counted = versions.now, counted


@attrs.define(eq=False)
class NominatedPodFilter:
    """A filter of rows with their nominated pods added, for one profile on one cluster."""

    filters: Filters
    _known: WeakKeyDictionary[Evaluation, _Verdicts] = attrs.field(factory=WeakKeyDictionary, init=False)

    def rejected(
        self, state: CycleState, pod: Pod, rows: Rows, counted: NominatedByRow, cached: Evaluation | None
    ) -> NominatedVerdicts:
        """Return the verdicts on the rows rejected with their nominated pods added.

        The caller must still filter all other rows without the nominated pods.
        """
        places = counted.places(rows)
        if not len(places):
            return NONE_REJECTED
        subset = rows[places]
        explicit_status: dict[int, Status] = {}
        if cached is not None and self.filters.row_by_row(state, pod):
            columns = self._judged(cached, state, pod, subset, counted)
            failed, codes = columns.failed[subset], columns.codes[subset]
        else:
            failed, codes, explicit_status = self._judge_with_nominated(state, pod, subset, counted)
        rejected = (failed != PASSED).nonzero()[0]
        return NominatedVerdicts(places[rejected], failed[rejected], codes[rejected], explicit_status)

    def _judged(
        self, cached: Evaluation, state: CycleState, pod: Pod, rows: Rows, counted: NominatedByRow
    ) -> _Verdicts:
        """Return the signature's columns, after updating them for these rows."""
        table = self.filters.cluster.table
        columns = self._known.get(cached)
        if columns is None or len(columns.judged_at) != table.capacity:
            columns = self._known[cached] = _Verdicts(table)
        columns.invalidate(table, counted)
        stale = rows[columns.judged_at[rows] < table.versions.row_pods_at[rows]]
        if len(stale):
            columns.failed[stale], columns.codes[stale], _ = self._judge_with_nominated(state, pod, stale, counted)
            columns.judged_at[stale] = table.versions.now
        return columns

    def _judge_with_nominated(
        self, state: CycleState, pod: Pod, rows: Rows, counted: NominatedByRow
    ) -> tuple[Places, Ints, dict[int, Status]]:
        """Return the filter indices and codes of these rows, and the EXPLICIT statuses by row."""
        filters, subset = self.filters, rows.tolist()
        on = WhatIfRows(filters, state, pod, filters.cluster.table.copy_rows(subset))
        nominated = NominatedOnRows(on, counted)
        numbers = np.arange(len(subset), dtype=np.int64)
        broken: dict[int, Status] = {}
        if on.notifies:
            for number in range(len(subset)):
                try:
                    nominated.add(numbers[number : number + 1])
                except Exception as fault:  # a plugin's exception fails the attempt, not the daemon
                    broken[number] = Status(Code.ERROR, (fault_text(fault),))
        else:
            nominated.add(numbers)
        failed, codes, explicit_status = on.judge(numbers, filters.local)
        for number, status in broken.items():
            failed[number], codes[number], explicit_status[number] = 0, EXPLICIT, status
        return failed, codes, {subset[number]: status for number, status in explicit_status.items()}
