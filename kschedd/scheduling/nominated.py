"""Nodes to which pods are nominated: they are judged with those pods there, too.

A pod that preemption gave a node to waits for its victims to go. Others of lower priority must not take its room
meanwhile, so a node counts its nominated pods of the same or higher priority as if they were there; only if the
newcomer fits then is the node judged as it is, because a pod may need what the nominated ones would bring along, or
the contrary.

Where no plugin looks beyond the row, what came out is remembered by shape of pod until node, pods or nominations
change.

Source: Kubernetes v1.34, scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods).
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import attrs
import numpy as np

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.cache.table import NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Code, Status, fault_text
from kschedd.scheduling.remembered import Remembered
from kschedd.scheduling.verdicts import PASSED, SPOKEN

if TYPE_CHECKING:
    from kschedd.scheduling.feasible import Filters

Nominated = Mapping[str, Iterable[Pod]]  # node name -> pods nominated to it
Counted = Mapping[int, tuple[Pod, ...]]  # row -> those of them that count

_FEW = 64  # rows up to which looking them up one by one is cheaper
NOBODY: Final[Counted] = {}


@attrs.define(eq=False)
class Counting:
    """The nominated pods that count for one pod: those at least as important. Worked out when asked for."""

    table: NodeTable
    pod: Pod
    nominated: Nominated
    _everywhere: Counted | None = attrs.field(default=None, init=False)

    @property
    def everywhere(self) -> Counted:
        if self._everywhere is None:
            self._everywhere = self._among(self.nominated) if self.nominated else NOBODY
        return self._everywhere

    def at(self, node_name: str) -> Counted:
        """Those nominated to this node only."""
        pods = self.nominated.get(node_name)
        return self._among({node_name: pods}) if pods else NOBODY

    def _among(self, nominated: Nominated) -> Counted:
        row_of, uid, priority = self.table.row_of, self.pod.uid, self.pod.priority
        counted: dict[int, tuple[Pod, ...]] = {}
        for node_name, pods in nominated.items():
            # Most often all count, and then the tuple itself is kept: it tells that nothing changed.
            if not all([other.priority >= priority and other.uid != uid for other in pods]):
                pods = tuple([other for other in pods if other.priority >= priority and other.uid != uid])
            row = row_of.get(node_name)
            if pods and row is not None:
                counted[row] = tuple(pods)
        return counted


@attrs.frozen
class Crowded:
    """The verdict on one row with these nominated pods there."""

    pods: tuple[Pod, ...]
    node: Node | None
    version: int  # of the row's pods
    failed: int
    code: int
    spoken: Status | None = None


@attrs.define(eq=False)
class Crowds:
    """Judges rows with their nominated pods, for one profile over one cluster."""

    filters: "Filters"
    _known: WeakKeyDictionary[Remembered, dict[int, Crowded]] = attrs.field(factory=WeakKeyDictionary, init=False)

    def rejected(
        self, state: CycleState, pod: Pod, rows: Rows, counted: Counted, remembered: Remembered | None
    ) -> dict[int, Crowded]:
        """The verdicts on those of the rows that are rejected with their nominated pods there, by place among `rows`.

        The others are to be judged as they are.
        """
        places = _places(rows, counted)
        if not places:
            return {}
        known: dict[int, Crowded] = {}
        if remembered is not None and self.filters.row_by_row(state, pod):
            known = self._known.setdefault(remembered, {})
        table = self.filters.cluster.table
        stale = [row for row in places if not _holds(known.get(row), table, row, counted[row])]
        if stale:
            self._look_again(known, state, pod, stale, counted)
        return {place: known[row] for row, place in places.items() if known[row].failed != PASSED}

    def _look_again(
        self, known: dict[int, Crowded], state: CycleState, pod: Pod, stale: list[int], counted: Counted
    ) -> None:
        filters = self.filters
        table = filters.cluster.table
        copy = table.copy_rows(stale)
        followers = [] if filters.row_by_row(state, pod) else filters.followers(state)
        states = {number: state.clone() for number in range(len(stale))} if followers else {}
        broken: dict[int, Status] = {}
        for number, row in enumerate(stale):
            try:
                for other in counted[row]:
                    copy.add_pod(number, other)
                    if followers:
                        filters.tell("add_pod", followers, states[number], pod, other, copy, number)
            except Exception as fault:  # a plugin's fault ends here, not in the daemon
                broken[number] = Status(Code.ERROR, (fault_text(fault),))
        rows = np.arange(len(stale), dtype=np.int64)
        failed, codes, spoken = filters.judge_rows(
            filters.local, state, pod, copy, rows, states.__getitem__ if followers else None
        )
        for number, status in broken.items():
            failed[number], codes[number], spoken[number] = 0, SPOKEN, status
        for number, row in enumerate(stale):
            version = int(table.pods_version[row])
            verdict = int(failed[number]), int(codes[number])
            known[row] = Crowded(counted[row], table.nodes[row], version, *verdict, spoken.get(number))


def _holds(crowded: Crowded | None, table: NodeTable, row: int, pods: tuple[Pod, ...]) -> bool:
    return (
        crowded is not None
        and crowded.pods == pods
        and crowded.node is table.nodes[row]
        and crowded.version == table.pods_version[row]
    )


def _places(rows: Rows, counted: Counted) -> dict[int, int]:
    """Row -> its place among `rows`, of the rows that count nominated pods."""
    if len(rows) <= _FEW:
        return {row: place for place, row in enumerate(rows.tolist()) if row in counted}
    wanted = np.fromiter(counted, dtype=np.int64, count=len(counted))
    place_of = np.full(max(int(rows.max()), int(wanted.max())) + 1, -1, dtype=np.int64)
    place_of[rows] = np.arange(len(rows))
    places = place_of[wanted]
    return {row: place for row, place in zip(wanted.tolist(), places.tolist(), strict=True) if place >= 0}
