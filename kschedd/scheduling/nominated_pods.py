"""Filters on nodes with nominated pods: such a node must pass with those pods added, too.

A pod nominated by preemption waits for its victims' deletion. Pods of lower priority must not take the freed resources
meanwhile, so a node counts its nominated pods of the same or higher priority as if they ran there; only if the
incoming pod fits then is the node filtered again without them: the pod may fit only because of a nominated pod
(required affinity to it), which may never arrive.

Where no plugin reads beyond the row, the verdict is cached by pod signature until node, pods or nominations
change.

Source: Kubernetes v1.34, scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods).
"""

from collections.abc import Iterable, Mapping
from typing import Final
from weakref import WeakKeyDictionary

import attrs
import numpy as np

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.cache.table import NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Code, Status, fault_text
from kschedd.scheduling.evaluation_cache import CachedEvaluation
from kschedd.scheduling.filters import Filters
from kschedd.scheduling.verdicts import EXPLICIT, PASSED

Nominated = Mapping[str, Iterable[Pod]]  # node name -> pods nominated to it
NominatedByRow = Mapping[int, tuple[Pod, ...]]  # row -> nominated pods that count

_FEW = 64  # up to so many rows, single lookups are cheaper
NO_NOMINATED: Final[NominatedByRow] = {}


@attrs.define(eq=False)
class NominatedPods:
    """The nominated pods that count for one pod: those of equal or higher priority. Computed on demand."""

    table: NodeTable
    pod: Pod
    nominated: Nominated
    _everywhere: NominatedByRow | None = attrs.field(default=None, init=False)

    @property
    def everywhere(self) -> NominatedByRow:
        if self._everywhere is None:
            self._everywhere = self._among(self.nominated) if self.nominated else NO_NOMINATED
        return self._everywhere

    def at(self, node_name: str) -> NominatedByRow:
        """The counting pods nominated to this node, by row."""
        pods = self.nominated.get(node_name)
        return self._among({node_name: pods}) if pods else NO_NOMINATED

    def _among(self, nominated: Nominated) -> NominatedByRow:
        row_of, uid, priority = self.table.row_of, self.pod.uid, self.pod.priority
        counted: dict[int, tuple[Pod, ...]] = {}
        for node_name, pods in nominated.items():
            # Most often all count; then the same tuple object is kept, whose identity shows that nothing changed.
            if not all([other.priority >= priority and other.uid != uid for other in pods]):
                pods = tuple([other for other in pods if other.priority >= priority and other.uid != uid])
            row = row_of.get(node_name)
            if pods and row is not None:
                counted[row] = tuple(pods)
        return counted


@attrs.frozen
class NominatedVerdict:
    """Cached verdict on one row with these nominated pods added."""

    pods: tuple[Pod, ...]
    node: Node | None
    stamp: int
    failed: int
    code: int
    explicit_status: Status | None = None


@attrs.define(eq=False)
class NominatedPodFilter:
    """Filters rows with their nominated pods added, for one profile on one cluster."""

    filters: Filters
    _known: WeakKeyDictionary[CachedEvaluation, dict[int, NominatedVerdict]] = attrs.field(
        factory=WeakKeyDictionary, init=False
    )

    def rejected(
        self, state: CycleState, pod: Pod, rows: Rows, counted: NominatedByRow, cached: CachedEvaluation | None
    ) -> dict[int, NominatedVerdict]:
        """The verdicts on the rows rejected with their nominated pods added, by index in `rows`.

        The other rows must still be filtered without them.
        """
        places = _places(rows, counted)
        if not places:
            return {}
        known: dict[int, NominatedVerdict] = {}
        if cached is not None and self.filters.row_by_row(state, pod):
            known = self._known.setdefault(cached, {})
        table = self.filters.cluster.table
        stale = [row for row in places if not _holds(known.get(row), table, row, counted[row])]
        if stale:
            self._judge_with_nominated(known, state, pod, stale, counted)
        return {place: known[row] for row, place in places.items() if known[row].failed != PASSED}

    def _judge_with_nominated(
        self, known: dict[int, NominatedVerdict], state: CycleState, pod: Pod, stale: list[int], counted: NominatedByRow
    ) -> None:
        filters = self.filters
        table = filters.cluster.table
        copy = table.copy_rows(stale)
        notified = [] if filters.row_by_row(state, pod) else filters.pre_filter_extensions(state)
        states = {number: state.clone() for number in range(len(stale))} if notified else {}
        broken: dict[int, Status] = {}
        for number, row in enumerate(stale):
            try:
                for other in counted[row]:
                    copy.add_pod(number, other)
                    if notified:
                        filters.notify("add_pod", notified, states[number], pod, other, copy, number)
            except Exception as fault:  # a plugin's fault ends here, not in the daemon
                broken[number] = Status(Code.ERROR, (fault_text(fault),))
        rows = np.arange(len(stale), dtype=np.int64)
        failed, codes, explicit_status = filters.judge_rows(
            filters.local, state, pod, copy, rows, states.__getitem__ if notified else None
        )
        for number, status in broken.items():
            failed[number], codes[number], explicit_status[number] = 0, EXPLICIT, status
        for number, row in enumerate(stale):
            judged = int(failed[number]), int(codes[number])
            known[row] = NominatedVerdict(
                counted[row], table.nodes[row], table.versions.now, *judged, explicit_status.get(number)
            )


def _holds(verdict: NominatedVerdict | None, table: NodeTable, row: int, pods: tuple[Pod, ...]) -> bool:
    return (
        verdict is not None
        and verdict.pods == pods
        and verdict.node is table.nodes[row]
        and verdict.stamp >= table.versions.row_pods_at[row]
    )


def _places(rows: Rows, counted: NominatedByRow) -> dict[int, int]:
    """Row -> its index in `rows`, for the rows with counting nominated pods."""
    if len(rows) <= _FEW:
        return {row: place for place, row in enumerate(rows.tolist()) if row in counted}
    wanted = np.fromiter(counted, dtype=np.int64, count=len(counted))
    place_of = np.full(max(int(rows.max()), int(wanted.max())) + 1, -1, dtype=np.int64)
    place_of[rows] = np.arange(len(rows))
    places = place_of[wanted]
    return {row: place for row, place in zip(wanted.tolist(), places.tolist(), strict=True) if place >= 0}
