"""Filters of a profile, called on rows of the cluster's table or of a what-if copy.

A filter is called only on the rows that no earlier filter rejected. Per-node filters, which evaluate one node at a
time, are yielded as shards of work, so that the caller of a search can run them in parallel (`drive` runs them one
after the other).

Source: Kubernetes v1.34, scheduler/framework/runtime/framework.go (RunEnabledFilters). Errors: PluginFault if a vector
filter fails. A failing per-node filter gives its node an Error status.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Generic, Literal, TypeVar, cast

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Bools, Ints, NodeTable, Rows, TableCopy
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.dry_run import AffectedBySomePods, DryRunColumns, KnownToPass, TriesRowsTogether
from kschedd.framework.exclusion import SchedulerLock
from kschedd.framework.fast_path import idle_for
from kschedd.framework.faults import PluginError
from kschedd.framework.guard import GuardedCall
from kschedd.framework.guarding.answers import Answer
from kschedd.framework.guarding.guarded import GuardedPlugin
from kschedd.framework.interface import PRE_FILTER, Plugin, PreFilterExtensions
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import Code, Status, error, fault_text
from kschedd.scheduling.debug.stepper import Stepper
from kschedd.scheduling.debug.work import Shards, Work, drive
from kschedd.scheduling.filter_pass import FilterPass
from kschedd.scheduling.filtering.node_local_plugins import NodeLocalPlugins, filter_columns
from kschedd.scheduling.profiles.plugin_metrics import ERROR, SUCCESS, UNSCHEDULABLE
from kschedd.scheduling.profiles.profile import EnabledFilter, EvaluationStyle, Framework
from kschedd.scheduling.verdicts import EXPLICIT, PASSED, Places

T = TypeVar("T")

PodsSince = tuple[Ints, Sequence[Pod]]
"""Pods added to rows one by one: the kind of each, and one pod of each kind."""

_EXTENSIONS: Final = {"add_pod": "PreFilterExtensionAddPod", "remove_pod": "PreFilterExtensionRemovePod"}
_SHARD = 64  # rows in one shard of per-node work


@attrs.define(eq=False)
class Filters:
    """The filters of a profile, run over a cluster."""

    profile: Framework
    cluster: SchedulerCache
    local: NodeLocalPlugins = attrs.field(init=False)
    of_pods: NodeLocalPlugins = attrs.field(init=False)
    others: tuple[EnabledFilter, ...] = attrs.field(init=False)  # filters that read more than one row
    _idle_for: list[tuple[str, Callable[[Pod], Collection[str]]]] = attrs.field(init=False)  # for each of `others`
    _notified: list[PreFilterExtensions] = attrs.field(init=False)  # plugins with PreFilter extensions

    def __attrs_post_init__(self) -> None:
        self.local = NodeLocalPlugins(self.profile, None)
        self.of_pods = NodeLocalPlugins(self.profile, True)
        self.others = tuple(filter_ for filter_ in self.profile.filters if filter_.style is not EvaluationStyle.CACHED)
        self._idle_for = [(one.name, idle_for(one.plugin)) for one in self.others]
        self._notified = [
            cast(PreFilterExtensions, plugin) for plugin in self.profile.at(PRE_FILTER) if hasattr(plugin, "add_pod")
        ]

    def run(
        self,
        state: CycleState,
        pod: Pod,
        rows: Rows,
        explicit_status: dict[int, Status],
        stepper: Stepper,
    ) -> Work[FilterPass]:
        """Call one filter after the other and return the rows that pass all of them.

        `explicit_status` receives the statuses of per-node filters.
        """
        done = FilterPass(rows)
        stepper.filtering(done, explicit_status, self.profile.filters)
        table = self.cluster.table
        for filter_ in self.profile.filters:
            if filter_.name in state.skip_filter:
                continue
            passing = done.passing
            if not len(passing):
                break
            yield from stepper.before("filter", filter_.name, passing)
            if filter_.style is not EvaluationStyle.PER_NODE:
                codes = filter_columns(filter_, state, pod, table, passing)
            else:
                codes = yield from _filter_per_node(filter_, state, pod, table, passing, explicit_status)
            if codes is not None:
                done.reject(filter_.place, codes)
                yield from stepper.filtered(filter_.name, passing, done.passing)
        return done

    def run_others(
        self,
        others: Sequence[EnabledFilter],
        state: CycleState,
        pod: Pod,
        table: NodeTable,
        rows: Rows,
        failed: Places,
        codes: Ints,
    ) -> Work[dict[int, Status]]:
        """Run the filters that read more than one row on the rows that no earlier filter rejected."""
        explicit_status: dict[int, Status] = {}
        for filter_ in others:
            places = (failed > filter_.place).nonzero()[0]
            if not len(places):
                continue
            open_ = rows if len(places) == len(rows) else rows[places]
            if filter_.style is not EvaluationStyle.PER_NODE:
                status = filter_columns(filter_, state, pod, table, open_)
            else:
                status = yield from _filter_per_node(filter_, state, pod, table, open_, explicit_status)
            if status is not None:
                rejected = status.nonzero()[0]
                if len(rejected):
                    failed[places[rejected]] = filter_.place
                    codes[places[rejected]] = status[rejected]
        return explicit_status

    # -- what if ----------------------------------------------------------------------------------------------

    def row_by_row(self, state: CycleState, pod: Pod) -> bool:
        """Return whether every filter that may reject the pod reads only the evaluated row."""
        skipped = state.skip_filter
        for name, idle in self._idle_for:
            if name not in skipped and "filter" not in idle(pod):
                return False
        return True

    def called(self, state: CycleState, pod: Pod) -> list[EnabledFilter]:
        """Return the filters that read more than the evaluated row and that PreFilter does not skip."""
        never = {name for name, idle in self._idle_for if "filter" in idle(pod)}
        return [one for one in self.others if one.name not in state.skip_filter and one.name not in never]

    def together(self, state: CycleState, pod: Pod, table: TableCopy) -> "FiltersOfRows | None":
        """Return the filters that read more than one row, for rows of a copy; each row represents a separate cluster.

        Return None if a plugin needs a separate CycleState for each row, or may read another plugin's state.
        """
        others = [filter_ for filter_ in self.others if filter_.name not in state.skip_filter]
        notified = self.pre_filter_extensions(state)
        if not all(filter_.in_tree for filter_ in others):
            return None
        if not all(plugin.name in self.profile.in_tree and hasattr(plugin, "dry_run_columns") for plugin in notified):
            return None
        columns = {}
        for plugin in notified:
            columns[plugin.name] = cast(TriesRowsTogether, plugin).dry_run_columns(state, pod, table)
        return FiltersOfRows(state, pod, table, others, columns)

    def judge_rows(
        self,
        plugins: NodeLocalPlugins,
        state: CycleState,
        pod: Pod,
        table: NodeTable,
        rows: Rows,
        state_of: Callable[[int], CycleState] | None = None,
    ) -> tuple[Places, Ints, dict[int, Status]]:
        """Return the verdicts of these node-local filters, and of all other filters, on rows of a what-if copy.

        With `state_of`, every row has its own CycleState, which is created only if a filter reads it.
        """
        failed, codes = plugins.judge(state, pod, table, rows)
        others = self.called(state, pod)
        if state_of is None:
            return failed, codes, drive(self.run_others(others, state, pod, table, rows, failed, codes))
        explicit_status: dict[int, Status] = {}
        first = min((filter_.place for filter_ in others), default=PASSED)
        for place in np.flatnonzero(failed > first).tolist():
            one = slice(place, place + 1)
            own = state_of(int(rows[place]))
            explicit_status.update(drive(self.run_others(others, own, pod, table, rows[one], failed[one], codes[one])))
        return failed, codes, explicit_status

    def pre_filter_extensions(self, state: CycleState) -> list[PreFilterExtensions]:
        """Return the plugins that update their state when a pod is added or removed in a what-if copy."""
        return [plugin for plugin in self._notified if plugin.name not in state.skip_filter]

    def notify(
        self,
        method: Literal["add_pod", "remove_pod"],
        plugins: list[PreFilterExtensions],
        state: CycleState,
        pod: Pod,
        other: Pod,
        table: NodeTable,
        row: int,
    ) -> None:
        """Call the plugins' AddPod or RemovePod for a pod added to or removed from a row of a copy."""
        point = _EXTENSIONS[method]
        for plugin in plugins:
            calls = self.profile.plugin_metrics.calls(plugin.name, point)
            began = calls.start()
            getattr(plugin, method)(state, pod, other, NodeInfo(table, row))
            calls.ended(began)


@attrs.frozen(eq=False)
class FiltersOfRows:
    """Filters that read more than one row, for rows of a what-if copy, in the profile's order."""

    _state: CycleState
    _pod: Pod
    _table: TableCopy
    _filters: list[EnabledFilter]
    # columns of the plugins that follow added and removed pods; None: all rows pass
    _columns: Mapping[str, DryRunColumns | None]
    _affected: dict[str, tuple[Sequence[Pod], Bools]] = attrs.field(factory=dict, init=False)

    @property
    def follows(self) -> bool:
        """True if a plugin updates its state when pods are added or removed."""
        return any(columns is not None for columns in self._columns.values())

    def follow(self, rows: Rows, kinds: Ints, of: Sequence[Pod], amount: int) -> None:
        """Update the plugins' columns for a pod added to (`amount` 1) or removed from (-1) each of these rows.

        `of` contains one pod of each kind; `kinds` contains the index of each row's pod.
        """
        for columns in self._columns.values():
            if columns is not None:
                columns.follow(rows, kinds, of, amount)

    def judge(self, rows: Rows, failed: Places, codes: Ints, since: PodsSince | None) -> dict[int, Status]:
        """Run the filters on these rows of the copy.

        `since` contains the pods added to each row after its last verdict. A filter is called only on rows where these
        pods affect it.
        """
        explicit_status: dict[int, Status] = {}
        for filter_ in self._filters:
            open_ = failed > filter_.place
            if since is not None and hasattr(filter_.plugin, "affected_by"):
                kinds, of = since
                open_ &= self._affecting(filter_, of)[kinds]
            places = open_.nonzero()[0]
            if not len(places):
                continue
            status = self._filter_each(filter_, rows[places], explicit_status)
            if status is not None:
                rejected = status.nonzero()[0]
                failed[places[rejected]] = filter_.place
                codes[places[rejected]] = status[rejected]
        return explicit_status

    def _affecting(self, filter_: EnabledFilter, of: Sequence[Pod]) -> Bools:
        """Return which of these pods affect the filter. The result is cached for one list of pods."""
        known = self._affected.get(filter_.name)
        if known is None or known[0] is not of:
            affected_by = cast(AffectedBySomePods, filter_.plugin).affected_by
            known = self._affected[filter_.name] = of, np.array([affected_by(pod.pod_spec) for pod in of])
        return known[1]

    def _filter_each(self, filter_: EnabledFilter, rows: Rows, explicit_status: dict[int, Status]) -> Ints | None:
        state, pod, table = self._state, self._pod, self._table
        if filter_.name in self._columns:
            columns = self._columns[filter_.name]
            if columns is None:
                return None
            codes = columns.codes(rows)
            if filter_.style is EvaluationStyle.PER_NODE:
                for place in codes.nonzero()[0].tolist():
                    explicit_status[int(rows[place])] = columns.status(int(codes[place])).by(filter_.name)
                    codes[place] = EXPLICIT
            return codes
        if filter_.style is not EvaluationStyle.PER_NODE:
            return filter_columns(filter_, state, pod, table, rows)
        return drive(_filter_per_node(filter_, state, pod, table, rows, explicit_status))


def _filter_per_node(
    filter_: EnabledFilter,
    state: CycleState,
    pod: Pod,
    table: NodeTable,
    rows: Rows,
    explicit_status: dict[int, Status],
) -> Work[Ints]:
    """Return a per-node filter's codes on the rows, with EXPLICIT for a rejected row.

    The function adds the statuses of the rejected rows to `explicit_status`.
    """
    began = filter_.calls.start()
    open_ = _not_known_to_pass(filter_, state, pod, table, rows)
    order = rows.tolist() if open_ is None else rows[open_].tolist()
    shards: Shards = [
        plain_shard(filter_, state, pod, table, order[first : first + _SHARD]) for first in range(0, len(order), _SHARD)
    ]
    statuses = [status for answers in (yield shards) for status in answers]
    rejected = {row: status for row, status in zip(order, statuses, strict=True) if isinstance(status, Status)}
    explicit_status.update(rejected)
    broken = any(not status.rejected for status in rejected.values())
    none_passes = UNSCHEDULABLE if len(rejected) == len(rows) else SUCCESS
    filter_.calls.ended(began, ERROR if broken else none_passes, len(rows))
    explicit = np.array([EXPLICIT if status is not None else 0 for status in statuses], dtype=np.int64)
    if open_ is None:
        return explicit
    codes = np.zeros(len(rows), dtype=np.int64)
    codes[open_] = explicit
    return codes


def _not_known_to_pass(
    filter_: EnabledFilter, state: CycleState, pod: Pod, table: NodeTable, rows: Rows
) -> Ints | None:
    """Return the indices of the rows on which a per-node filter must be called; None means all rows."""
    if not filter_.in_tree or not hasattr(filter_.plugin, "known_to_pass"):
        return None
    passes = cast(KnownToPass, filter_.plugin).known_to_pass(state, pod, table, rows)
    return (~passes).nonzero()[0]


def plain_shard(
    filter_: EnabledFilter, state: CycleState, pod: Pod, table: NodeTable, rows: list[int]
) -> Callable[[], list[Status | None]]:
    """Return a per-node filter's verdicts on these rows, as one piece of work."""

    def run() -> list[Status | None]:
        return [filter_status(filter_, state, pod, NodeInfo(table, row)) for row in rows]

    def elsewhere(status: list[Answer | PluginError]) -> list[Status | None]:
        return [_verdict(filter_, cast(Status | PluginError | None, answer)) for answer in status]

    return as_one_call(filter_.plugin, "filter", NodeCalls(state, pod, table, rows), run, elsewhere)


@attrs.frozen(eq=False)
class NodeCalls:
    """The arguments for calling a plugin on one node after the other."""

    state: CycleState
    pod: Pod
    table: NodeTable
    rows: list[int]


def as_one_call(
    plugin: Plugin,
    method: str,
    order: NodeCalls,
    work: Callable[[], T],
    elsewhere: Callable[[list[Answer | PluginError]], T],
) -> Callable[[], T]:
    """Return work that calls a plugin once per node. A guarded plugin is called with one time limit for all nodes.

    If the plugin has worker processes, the calls run in a worker process, and `elsewhere` converts the answers.
    """
    return PluginBatch(plugin, method, order, work, elsewhere) if isinstance(plugin, GuardedPlugin) else work


@attrs.frozen(eq=False)
class PluginBatch(Generic[T]):
    """Calls of one method of an out-of-tree plugin on several nodes, with one time limit."""

    _plugin: GuardedPlugin
    _method: str
    _calls: NodeCalls
    _work: Callable[[], T]
    _elsewhere: Callable[[list[Answer | PluginError]], T]

    @property
    def limit_s(self) -> float:
        """The time limit of the thread that runs the batch."""
        # The thread needs no time limit, because a hanging worker process is killed.
        return math.inf if self._plugin.elsewhere is not None else self._plugin.guard.limit_of(self._method)

    def guarded_call(self, scheduler: SchedulerLock) -> GuardedCall:
        """Return the guarded call for a thread. The call contains the plugin's name, even if it never begins."""
        return GuardedCall(
            calling=self._plugin.guard, method=self._method, args=(self._calls.pod,), scheduler=scheduler
        )

    @property
    def at_once(self) -> int | None:
        """The maximum number of concurrent batches; None means unlimited."""
        return None if self._plugin.elsewhere is None else self._plugin.worker_processes

    def __call__(self) -> T:
        order = self._calls
        if self._plugin.elsewhere is not None:
            status = self._plugin.call_elsewhere(self._method, order.state, order.pod, order.table, order.rows)
            return self._elsewhere(status)
        done: T = self._plugin.batch(self._method, self._work, order.pod)
        return done


def filter_status(filter_: EnabledFilter, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
    """Return a per-node filter's verdict on one node; an exception becomes an Error status that names the plugin."""
    try:
        status = filter_.per_node.filter(state, pod, node)
    except Exception as fault:  # a plugin's exception fails the attempt, not the daemon
        return _verdict(filter_, fault)
    return _verdict(filter_, status)


def _verdict(filter_: EnabledFilter, status: Status | Exception | None) -> Status | None:
    if isinstance(status, Exception):
        status = error(fault_text(status))
    if status is None or status.code == Code.SUCCESS:
        return None
    if not status.rejected:
        status = Status(Code.ERROR, (f'running "{filter_.name}" filter plugin: {status.message}',))
    return status.by(filter_.name)
