"""Finding the nodes that fit: which nodes are asked, in which order, and when to stop.

Nodes are visited in the order of the table (zone by zone in turn), from where the last pod's search ended, until as many
feasible ones are found as the percentage of nodes to score asks for. The search takes windows of rows at a time, so its cost
follows the number of nodes looked at, not the size of the cluster; the outcome is that of visiting one node after the other.

A node to which pods of the same or higher priority are nominated is judged twice, with them and without.

Source: Kubernetes v1.34, scheduler/schedule_one.go (findNodesThatPassFilters, numFeasibleNodesToFind),
scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods).
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.cluster import Cluster
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import Code, Status, error
from kschedd.scheduling.profile import FilterPlugin, RunningProfile, Sort
from kschedd.scheduling.remembered import Layer, Memory, Remembered
from kschedd.scheduling.verdicts import PASSED, SPOKEN, Places, Verdicts

Nominated = Mapping[str, Sequence[Pod]]  # node name -> pods nominated to it
Shards = list[
    Callable[[], Any]
]  # independent pieces of work; whoever drives the search runs them, side by side if it likes
Search = Generator[Shards, list[Any], "Found"]

_FEWEST = 100  # nodes to find, at least
_SHARD = 64  # rows that one piece of plain Python work looks at


@attrs.frozen(eq=False)
class Found:
    """Feasible rows in visiting order, and the verdicts on all that were visited."""

    rows: Rows
    visited: int
    verdicts: Verdicts
    error: Status | None = None  # a filter failed on some node


def nodes_to_find(nodes: int, percentage: int) -> int:
    """How many feasible nodes end the search among `nodes`; `percentage` 0 is adaptive."""
    if nodes < _FEWEST:
        return nodes
    if percentage == 0:
        percentage = max(50 - nodes // 125, 5)
    return max(nodes * min(percentage, 100) // 100, _FEWEST)


@attrs.define(eq=False)
class Filters:
    """Runs a profile's filters over a cluster; `memory` None: nothing is remembered."""

    profile: RunningProfile
    cluster: Cluster
    memory: Memory | None
    local: Layer = attrs.field(init=False)
    others: tuple[FilterPlugin, ...] = attrs.field(init=False)
    _per_feasible: float = attrs.field(default=1.0, init=False)  # rows visited for each that fits, lately

    def __attrs_post_init__(self) -> None:
        self.local = Layer(self.profile, None)
        self.others = tuple(filter_ for filter_ in self.profile.filters if filter_.sort is not Sort.LOCAL)

    def search(
        self,
        state: CycleState,
        pod: Pod,
        order: Rows,
        start: int,
        wanted: int,
        nominated: Nominated,
        remembered: Remembered | None,
    ) -> Search:
        """Visit `order` from `start`, round the end, until `wanted` rows fit. Yields shards of plain Python work."""
        total = len(order)
        batches: list[tuple[Rows, Places, Ints]] = []
        spoken: dict[int, Status] = {}
        feasible: list[Rows] = []
        lacking, visited = wanted, 0
        size = int(wanted * min(self._per_feasible, 8.0) * 1.06) + 1
        while lacking > 0 and visited < total:
            first = (start + visited) % total
            rows = order[first : first + min(size, total - visited)]
            failed, codes, said = yield from self._judge(state, pod, rows, nominated, remembered)
            fitting = np.flatnonzero(failed == PASSED)
            if len(fitting) >= lacking:
                seen = int(fitting[lacking - 1]) + 1
                rows, failed, codes, fitting = rows[:seen], failed[:seen], codes[:seen], fitting[:lacking]
            lacking -= len(fitting)
            visited += len(rows)
            feasible.append(rows[fitting])
            batches.append((rows, failed, codes))
            if said:
                spoken.update(said)
            size = max(size, 2 * len(rows))
        if wanted > 1 and lacking <= 0:
            self._per_feasible += 0.25 * (visited / wanted - self._per_feasible)
        if len(batches) == 1:
            rows, failed, codes = batches[0]
            found = feasible[0]
        elif batches:
            rows, failed, codes = (np.concatenate(part) for part in zip(*batches, strict=True))
            found = np.concatenate(feasible)
        else:
            rows = codes = found = order[:0]
            failed = order[:0].astype(np.int16)
        if spoken:
            there = set(rows.tolist())
            spoken = {row: status for row, status in spoken.items() if row in there}
        verdicts = Verdicts(self.cluster.table, self.profile.filters, state, pod, rows, failed, codes, spoken)
        broken = next((s for s in spoken.values() if not s.rejected), None)
        return Found(found, visited, verdicts, broken)

    def _judge(
        self, state: CycleState, pod: Pod, rows: Rows, nominated: Nominated, remembered: Remembered | None
    ) -> Generator[Shards, list[Any], tuple[Places, Ints, dict[int, Status]]]:
        if remembered is None:
            failed, codes = self.local.judge(state, pod, self.cluster.table, rows)
        else:
            assert self.memory is not None
            failed, codes = self.memory.judge(remembered, state, pod, rows)
        spoken = yield from self._judge_others(state, pod, self.cluster.table, rows, failed, codes)
        if nominated:
            self._judge_nominated(state, pod, rows, failed, codes, spoken, nominated)
        return failed, codes, spoken

    def _judge_others(
        self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, failed: Places, codes: Ints
    ) -> Generator[Shards, list[Any], dict[int, Status]]:
        """Let the other filters judge the rows that no earlier filter rejected."""
        spoken: dict[int, Status] = {}
        for filter_ in self.others:
            if filter_.name in state.skip_filter:
                continue
            open_ = failed > filter_.place
            if filter_.sort is Sort.COLUMNS:
                everywhere = open_.all()
                said = filter_.plugin.filter_rows(state, pod, table, rows if everywhere else rows[open_])
                if said is None:
                    continue
                places = np.flatnonzero(open_)[said != 0] if not everywhere else np.flatnonzero(said)
                failed[places] = filter_.place
                codes[places] = said[said != 0]
                continue
            places = np.flatnonzero(open_)
            asked = rows[places].tolist()
            shards: Shards = [
                _plain_shard(filter_, state, pod, table, asked[first : first + _SHARD])
                for first in range(0, len(asked), _SHARD)
            ]
            statuses = [status for answers in (yield shards) for status in answers]
            for place, row, status in zip(places.tolist(), asked, statuses, strict=True):
                if status is not None:
                    failed[place] = filter_.place
                    codes[place] = SPOKEN
                    spoken[row] = status
        return spoken

    # -- what if ----------------------------------------------------------------------------------------------

    def judge_copy(self, state: CycleState, pod: Pod, table: NodeTable) -> list[Status | None]:
        """The verdict on every row of a what-if copy, in words."""
        rows = np.arange(table.capacity, dtype=np.int64)
        failed, codes = self.local.judge(state, pod, table, rows)
        spoken = drive(self._judge_others(state, pod, table, rows, failed, codes))
        verdicts = Verdicts(table, self.profile.filters, state, pod, rows, failed, codes, spoken)
        return [verdicts.status(place) for place in range(len(rows))]

    def passes_copy(self, state: CycleState, pod: Pod, table: NodeTable) -> bool:
        """Whether the one row of a what-if copy passes."""
        rows = _FIRST_ROW
        failed, codes = self.local.judge(state, pod, table, rows)
        if failed[0] != PASSED:
            return False
        drive(self._judge_others(state, pod, table, rows, failed, codes))
        return bool(failed[0] == PASSED)

    def add_pod(self, state: CycleState, pod: Pod, other: Pod, table: NodeTable, row: int) -> None:
        """Count `other` on a row of a copy, and in the plugins' state."""
        table.add_pod(row, other)
        self._tell("add_pod", state, pod, other, table, row)

    def remove_pod(self, state: CycleState, pod: Pod, other: Pod, table: NodeTable, row: int) -> None:
        table.remove_pod(row, other)
        self._tell("remove_pod", state, pod, other, table, row)

    def _tell(self, method: str, state: CycleState, pod: Pod, other: Pod, table: NodeTable, row: int) -> None:
        for plugin in self.followers(state):
            getattr(plugin, method)(state, pod, other, NodeInfo(table, row))

    def followers(self, state: CycleState) -> list[Any]:
        """The plugins whose state follows pods that a what-if adds or takes away."""
        return [
            plugin
            for plugin in self.profile.at("pre_filter")
            if hasattr(plugin, "add_pod") and plugin.name not in state.skip_filter
        ]

    def _judge_nominated(
        self,
        state: CycleState,
        pod: Pod,
        rows: Rows,
        failed: Places,
        codes: Ints,
        spoken: dict[int, Status],
        nominated: Nominated,
    ) -> None:
        """Judge the rows to which pods are nominated again, with those pods there; a rejection counts first."""
        row_of = self.cluster.table.row_of
        counting: dict[int, list[Pod]] = {}
        for node_name, pods in nominated.items():
            row = row_of.get(node_name)
            others = [p for p in pods if p.uid != pod.uid and p.priority >= pod.priority]
            if row is not None and others:
                counting[row] = others
        if not counting:
            return
        place_of = {row: place for place, row in enumerate(rows.tolist()) if row in counting}
        if not place_of:
            return
        asked = list(place_of)
        if self.followers(state):
            for row in asked:
                self._with_nominated(state.clone(), pod, [row], place_of, failed, codes, spoken, counting)
        else:
            self._with_nominated(state, pod, asked, place_of, failed, codes, spoken, counting)

    def _with_nominated(
        self,
        state: CycleState,
        pod: Pod,
        asked: list[int],
        place_of: dict[int, int],
        failed: Places,
        codes: Ints,
        spoken: dict[int, Status],
        counting: dict[int, list[Pod]],
    ) -> None:
        copy = self.cluster.table.copy_rows(asked)
        for number, row in enumerate(asked):
            for other in counting[row]:
                self.add_pod(state, pod, other, copy, number)
        for row, status in zip(asked, self.judge_copy(state, pod, copy), strict=True):
            if status is not None:
                place = place_of[row]
                failed[place] = next(f.place for f in self.profile.filters if f.name == status.plugin)
                codes[place] = SPOKEN
                spoken[row] = status


_FIRST_ROW = np.zeros(1, dtype=np.int64)


def _plain_shard(
    filter_: FilterPlugin, state: CycleState, pod: Pod, table: NodeTable, rows: list[int]
) -> Callable[[], list[Status | None]]:
    def run() -> list[Status | None]:
        answers: list[Status | None] = []
        for row in rows:
            answers.append(filter_status(filter_, state, pod, NodeInfo(table, row)))
        return answers

    return run


def filter_status(filter_: FilterPlugin, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
    """One plain filter's verdict on one node; a plugin's fault is an Error status that names it."""
    try:
        said = filter_.plugin.filter(state, pod, node)
    except Exception as fault:  # a plugin's fault ends here, not in the daemon
        said = error(f"{type(fault).__name__}: {fault}")
    if said is None or (isinstance(said, Status) and said.code == Code.SUCCESS):
        return None
    if not isinstance(said, Status):
        said = error(f"filter returned {said!r}; a Status or None is expected")
    if not said.rejected:
        said = Status(Code.ERROR, (f'running "{filter_.name}" filter plugin: {said.message}',))
    return said.by(filter_.name)


def drive(work: Generator[Shards, list[Any], Any]) -> Any:
    """Run a search to its end here and now, one shard after the other."""
    answers: list[Any] | None = None
    try:
        while True:
            shards = work.send(answers)  # type: ignore[arg-type]
            answers = [shard() for shard in shards]
    except StopIteration as end:
        return end.value
