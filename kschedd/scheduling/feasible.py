"""Finding the nodes that fit: which nodes are asked, in which order, and when to stop.

Nodes are visited in the order of the table (zone by zone in turn), from where the last pod's search ended, until as
many feasible ones are found as the percentage of nodes to score asks for. The search takes windows of rows at a
time, so its cost follows the number of nodes looked at, not the size of the cluster; the outcome is that of
visiting one node after the other.

A search of every node that found none is remembered as a whole while nothing changes: pods that fit nowhere cost
little.

Source: Kubernetes v1.34, scheduler/schedule_one.go (findNodesThatPassFilters, numFeasibleNodesToFind).
"""

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Literal, TypeVar, cast

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.cluster import Cluster
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.fast_path import NeverRejects
from kschedd.framework.faults import PluginError
from kschedd.framework.guarded import GuardedPlugin
from kschedd.framework.interface import PRE_FILTER, Plugin, PreFilterExtensions
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import Code, Status, error, fault_text
from kschedd.scheduling.nominated import Counted, Crowds
from kschedd.scheduling.profile import EnabledFilter, EvaluationStyle, RunningProfile
from kschedd.scheduling.remembered import Layer, Memory, Remembered, filter_columns
from kschedd.scheduling.sifting import Sifted
from kschedd.scheduling.verdicts import PASSED, SPOKEN, Places, Verdicts
from kschedd.values import value

# Independent pieces of work; whoever drives the search runs them, side by side if it likes.
Answers = Sequence[Status | int | None]  # for each row of a shard: a filter's verdict, or a score
Shards = list[Callable[[], Answers]]
T = TypeVar("T")
Work = Generator[Shards, list[Answers], T]
Search = Work["Found"]

_FEWEST = 100  # nodes to find, at least
_PASSED_ONE = np.array([PASSED], dtype=np.int16), np.zeros(1, dtype=np.int64)
_SHARD = 64  # rows that one piece of plain Python work looks at


@value(eq=False)
class Found:
    """Feasible rows in visiting order, and the verdicts on all that were visited."""

    rows: Rows
    visited: int
    verdicts: Verdicts
    error: Status | None = None  # a filter failed on some node


@attrs.frozen(eq=False)
class Vain:
    """A search of every node that found none, which comes to the same until something changes."""

    found: Found
    order: Rows
    start: int | None  # None: nominated pods counted, so that it tells only how much there is to look at
    positions: tuple[int, int, int]  # of the table's logs

    def holds(self, order: Rows, start: int, positions: tuple[int, int, int]) -> bool:
        return self.order is order and self.start == start and self.positions == positions


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
    of_pods: Layer = attrs.field(init=False)
    others: tuple[EnabledFilter, ...] = attrs.field(init=False)
    crowds: Crowds = attrs.field(init=False)
    _beyond: list[tuple[str, Callable[[Pod], bool]]] = attrs.field(init=False)
    _following: list[PreFilterExtensions] = attrs.field(init=False)
    _per_feasible: float = attrs.field(default=1.0, init=False)  # rows visited for each that fits, lately

    def __attrs_post_init__(self) -> None:
        self.local = Layer(self.profile, None)
        self.of_pods = Layer(self.profile, True)
        self.others = tuple(filter_ for filter_ in self.profile.filters if filter_.style is not EvaluationStyle.CACHED)
        self.crowds = Crowds(self)
        self._beyond = [
            (f.name, cast(NeverRejects, f.plugin).never_rejects if hasattr(f.plugin, "never_rejects") else _never)
            for f in self.others
        ]
        self._following = [
            cast(PreFilterExtensions, plugin) for plugin in self.profile.at(PRE_FILTER) if hasattr(plugin, "add_pod")
        ]

    def search(
        self,
        state: CycleState,
        pod: Pod,
        order: Rows,
        start: int,
        wanted: int,
        counted: Counted,
        remembered: Remembered | None,
    ) -> Search:
        """Visit `order` from `start`, round the end, until `wanted` rows fit. Yields shards of plain Python work."""
        total = len(order)
        by_itself = self.row_by_row(state, pod)
        # What may hold for later searches.
        kept = remembered if by_itself and order is self.cluster.table.order else None
        vain: Vain | None = None if kept is None else kept.vain
        if vain is not None and not counted and vain.holds(order, start, self._positions()):
            return vain.found
        if total == 1 and by_itself and not counted and remembered is not None:
            # Most of the pods that can go to one node only: there is nothing to do but to look that one up.
            if remembered.failed[order[0]] == PASSED:
                table = self.cluster.table
                return Found(order, 1, Verdicts(table, self.profile.filters, state, pod, order, *_PASSED_ONE))
        batches: list[Sifted] = []
        spoken: dict[int, Status] = {}
        lacking, visited = wanted, 0
        size = total if vain is not None else int(wanted * min(self._per_feasible, 8.0) * 1.06) + 1
        while lacking > 0 and visited < total:
            first = (start + visited) % total
            rows = order[first : first + min(size, total - visited)]
            sifted: Sifted
            if remembered is None and not counted:
                sifted = yield from self._sift(state, pod, rows, spoken)
            else:
                sifted = yield from self._look_up(state, pod, rows, counted, remembered, by_itself, spoken)
            sifted.cut(lacking)
            batches.append(sifted)
            lacking -= len(sifted.passing)
            visited += len(sifted.rows)
            size = max(size, 2 * len(sifted.rows))
        if wanted > 1 and lacking <= 0:
            self._per_feasible += 0.25 * (visited / wanted - self._per_feasible)
        rows, found = order[:0], order[:0]
        if batches:
            rows, found = batches[0].rows, batches[0].passing
        if len(batches) > 1:
            rows = np.concatenate([batch.rows for batch in batches])
            found = np.concatenate([batch.passing for batch in batches])
        if spoken:
            there = set(rows.tolist())
            spoken = {row: status for row, status in spoken.items() if row in there}
        verdicts = Verdicts(
            self.cluster.table,
            self.profile.filters,
            state,
            pod,
            rows,
            None,
            None,
            spoken,
            work_out=lambda: _together(batches),
        )
        broken = next((s for s in spoken.values() if not s.rejected), None)
        result = Found(found, visited, verdicts, broken)
        if kept is not None:
            nothing = not len(found)
            kept.vain = Vain(result, order, None if counted else start, self._positions()) if nothing else None
        return result

    def _positions(self) -> tuple[int, int, int]:
        """Where the logs are of all that the local filters read."""
        table = self.cluster.table
        updates = table.pod_updates.position if self.profile.reads_pods else 0
        return table.node_changes.position, table.pod_changes.position, updates

    def _look_up(
        self,
        state: CycleState,
        pod: Pod,
        rows: Rows,
        counted: Counted,
        remembered: Remembered | None,
        by_itself: bool,
        spoken: dict[int, Status],
    ) -> Work[Sifted]:
        """The rows by what is remembered of them and what the other filters say, with their nominated pods."""
        if remembered is None:
            failed, codes = self.local.judge(state, pod, self.cluster.table, rows)
        else:
            assert self.memory is not None
            failed, codes = self.memory.judge(remembered, state, pod, rows)
        rejected = self.crowds.rejected(state, pod, rows, counted, remembered) if counted else {}
        if not by_itself:
            if rejected:
                # What a node's nominated pods rejected is not looked at without them, so no filter hears of it then.
                places = np.delete(np.arange(len(rows)), list(rejected))
                some_failed, some_codes = failed[places], codes[places]
                table = self.cluster.table
                said = yield from self._judge_others(state, pod, table, rows[places], some_failed, some_codes)
                failed[places], codes[places] = some_failed, some_codes
            else:
                said = yield from self._judge_others(state, pod, self.cluster.table, rows, failed, codes)
            spoken.update(said)
        for place, crowded in rejected.items():
            failed[place], codes[place] = crowded.failed, crowded.code
            if crowded.spoken is not None:
                spoken[int(rows[place])] = crowded.spoken
        return Sifted.told(rows, failed, codes)

    def _sift(self, state: CycleState, pod: Pod, rows: Rows, spoken: dict[int, Status]) -> Work[Sifted]:
        """The rows as one filter after the other lets them pass."""
        sifted = Sifted(rows)
        table = self.cluster.table
        for filter_ in self.profile.filters:
            if filter_.name in state.skip_filter:
                continue
            passing = sifted.passing
            if not len(passing):
                break
            if filter_.style is not EvaluationStyle.PER_NODE:
                codes = filter_columns(filter_, state, pod, table, passing)
            else:
                codes = yield from self._ask_plain(filter_, state, pod, table, passing, spoken)
            if codes is not None:
                sifted.reject(filter_.place, codes)
        return sifted

    def _ask_plain(
        self,
        filter_: EnabledFilter,
        state: CycleState,
        pod: Pod,
        table: NodeTable,
        rows: Rows,
        spoken: dict[int, Status],
    ) -> Work[Ints]:
        """A plain filter's codes on the rows, SPOKEN where it rejects one; its words go to `spoken`."""
        asked = rows.tolist()
        shards: Shards = [
            _plain_shard(filter_, state, pod, table, asked[first : first + _SHARD])
            for first in range(0, len(asked), _SHARD)
        ]
        statuses = [status for answers in (yield shards) for status in answers]
        rejected = {row: status for row, status in zip(asked, statuses, strict=True) if isinstance(status, Status)}
        spoken.update(rejected)
        return np.array([SPOKEN if status is not None else 0 for status in statuses], dtype=np.int64)

    def _judge_others(
        self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, failed: Places, codes: Ints
    ) -> Work[dict[int, Status]]:
        """Let the other filters judge the rows that no earlier filter rejected."""
        spoken: dict[int, Status] = {}
        for filter_ in self.others:
            if filter_.name in state.skip_filter:
                continue
            places = (failed > filter_.place).nonzero()[0]
            open_ = rows if len(places) == len(rows) else rows[places]
            if filter_.style is not EvaluationStyle.PER_NODE:
                said = filter_columns(filter_, state, pod, table, open_)
            else:
                said = yield from self._ask_plain(filter_, state, pod, table, open_, spoken)
            if said is not None:
                rejected = said.nonzero()[0]
                failed[places[rejected]] = filter_.place
                codes[places[rejected]] = said[rejected]
        return spoken

    # -- what if ----------------------------------------------------------------------------------------------

    def row_by_row(self, state: CycleState, pod: Pod) -> bool:
        """Whether no filter that has a say looks beyond the row it judges."""
        skipped = state.skip_filter
        for name, never_rejects in self._beyond:
            if name not in skipped and not never_rejects(pod):
                return False
        return True

    def judge_rows(
        self,
        layer: Layer,
        state: CycleState,
        pod: Pod,
        table: NodeTable,
        rows: Rows,
        state_of: Callable[[int], CycleState] | None = None,
    ) -> tuple[Places, Ints, dict[int, Status]]:
        """The verdicts of a layer of the local filters and of all others on rows of a what-if copy, here and now.

        With `state_of` every row has a state of its own, asked for only if a filter wants to see it.
        """
        failed, codes = layer.judge(state, pod, table, rows)
        if state_of is None:
            return failed, codes, drive(self._judge_others(state, pod, table, rows, failed, codes))
        spoken: dict[int, Status] = {}
        first = min((filter_.place for filter_ in self.others if filter_.name not in state.skip_filter), default=PASSED)
        for place in np.flatnonzero(failed > first).tolist():
            one = slice(place, place + 1)
            own = state_of(int(rows[place]))
            spoken.update(drive(self._judge_others(own, pod, table, rows[one], failed[one], codes[one])))
        return failed, codes, spoken

    def followers(self, state: CycleState) -> list[PreFilterExtensions]:
        """The plugins whose state follows pods that a what-if adds or takes away."""
        return [plugin for plugin in self._following if plugin.name not in state.skip_filter]

    def tell(
        self,
        method: Literal["add_pod", "remove_pod"],
        followers: list[PreFilterExtensions],
        state: CycleState,
        pod: Pod,
        other: Pod,
        table: NodeTable,
        row: int,
    ) -> None:
        """Keep the plugins' state in step with a pod put on (`add_pod`) or taken off (`remove_pod`) a row of a copy."""
        for plugin in followers:
            getattr(plugin, method)(state, pod, other, NodeInfo(table, row))


def _together(batches: list[Sifted]) -> tuple[Places, Ints]:
    """The columns of all batches, one after the other."""
    if len(batches) == 1:
        return batches[0].columns()
    columns = [batch.columns() for batch in batches]
    if not columns:
        return np.zeros(0, dtype=np.int16), np.zeros(0, dtype=np.int64)
    return np.concatenate([failed for failed, _ in columns]), np.concatenate([codes for _, codes in columns])


def _never(pod: Pod) -> bool:
    return False


def _plain_shard(
    filter_: EnabledFilter, state: CycleState, pod: Pod, table: NodeTable, rows: list[int]
) -> Callable[[], list[Status | None]]:
    def run() -> list[Status | None]:
        return [filter_status(filter_, state, pod, NodeInfo(table, row)) for row in rows]

    return as_one_call(filter_.plugin, "filter", run)


def as_one_call(plugin: Plugin, method: str, work: Callable[[], T]) -> Callable[[], T]:
    """Work that calls a plugin once for each node, as one call under one limit if the plugin is guarded."""
    return partial(plugin.batch, method, work) if isinstance(plugin, GuardedPlugin) else work


def filter_status(filter_: EnabledFilter, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
    """One plain filter's verdict on one node; a plugin's fault is an Error status that names it."""
    try:
        said = filter_.per_node.filter(state, pod, node)
    except Exception as fault:  # a plugin's fault ends here, not in the daemon
        said = error(fault_text(fault))
    if said is None or said.code == Code.SUCCESS:
        return None
    if not said.rejected:
        said = Status(Code.ERROR, (f'running "{filter_.name}" filter plugin: {said.message}',))
    return said.by(filter_.name)


def drive(work: Work[T]) -> T:
    """Run a search to its end here and now, one shard after the other."""
    answers: list[Answers] | None = None
    try:
        while True:
            shards = work.send(answers)  # type: ignore[arg-type]
            try:
                answers = [shard() for shard in shards]
            except PluginError as fault:
                work.throw(fault)
                raise AssertionError("a search ends with the fault of a plugin") from fault
    except StopIteration as end:
        value: T = end.value
        return value
