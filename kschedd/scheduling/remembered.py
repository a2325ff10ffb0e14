"""Evaluations remembered by shape of pod: verdicts and scores of the `local` plugins, row by row.

Pods of one shape get the same verdict from a local plugin as long as the row it looks at stays as it is. So each
shape has columns of its own with the place of the first local filter that failed, its code, and the local plugins'
scores, and says which rows still hold. Before use the rows that changed meanwhile are struck out (the table keeps
logs), and only rows that are asked about and not known are evaluated.

There are two layers, because pods come and go all the time and nodes hardly ever change: plugins that read the Node
object only are asked again when that changed, and only plugins that read the pods of a node when a pod came or went.

Invariant: what is remembered equals what the plugins would say now (a property test holds the two equal after any
changes). A shape is remembered from its second attempt on, and the ones not seen for longest are dropped beyond a
memory limit.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

import attrs
import numpy as np
from numpy import count_nonzero  # of a boolean column, several times faster than its `all` and `any`

from kschedd.api.pods import Pod
from kschedd.cache.cluster import Cluster
from kschedd.cache.table import Bools, Ints, NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.interface import MAX_NODE_SCORE
from kschedd.scheduling.profile import FilterPlugin, RunningProfile, ScorePlugin, Sort
from kschedd.scheduling.verdicts import PASSED, Places

_MEMORY = 192 << 20  # bytes of columns all shapes together may take
_BYTES_A_ROW = 64
_MOST_AT_ONCE = 512  # rows evaluated besides those asked about
_FEWEST = 8  # shapes, however large the cluster
_MOST_SEEN = 4096


@attrs.define(eq=False)
class PluginFault(Exception):
    """A plugin from elsewhere raised, or returned what it must not; the attempt ends with this error."""

    plugin: str
    message: str


def filter_columns(filter_: FilterPlugin, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints | None:
    """What a column filter says of the rows; None: all pass. Raises PluginFault."""
    if filter_.trusted:
        said: Ints | None = filter_.plugin.filter_rows(state, pod, table, rows)
        return said
    try:
        answer = filter_.plugin.filter_rows(state, pod, table, rows)
        return None if answer is None else np.asarray(answer, dtype=np.int64).reshape(len(rows))
    except Exception as fault:  # a plugin's fault ends here, not in the daemon
        text = f'running "{filter_.name}" filter plugin: {type(fault).__name__}: {fault}'
        raise PluginFault(filter_.name, text) from fault


def score_columns(score: ScorePlugin, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
    """A column plugin's raw scores of the rows. Raises PluginFault."""
    if score.trusted:
        said: Ints = score.plugin.score_rows(state, pod, table, rows)
        return said
    try:
        return np.asarray(score.plugin.score_rows(state, pod, table, rows), dtype=np.int64).reshape(len(rows))
    except Exception as fault:  # a plugin's fault ends here, not in the daemon
        text = f'running Score plugins: plugin "{score.name}" failed with: {type(fault).__name__}: {fault}'
        raise PluginFault(score.name, text) from fault


def check_range(score: ScorePlugin, values: Ints, table: NodeTable, rows: Rows) -> None:
    """Raises PluginFault where a final score is not within 0 and 100."""
    wrong = np.flatnonzero((values < 0) | (values > MAX_NODE_SCORE))
    if len(wrong):
        raise PluginFault(
            score.name,
            f'applying score defaultWeights on Score plugins: plugin "{score.name}" returns an invalid score '
            f"{values[wrong[0]]} (node {table.names[int(rows[wrong[0]])]}), it should be in the range of "
            f"[0, {MAX_NODE_SCORE}] after normalizing",
        )


class Layer:
    """The local filters and scores of one layer, in the profile's order."""

    def __init__(self, profile: RunningProfile, of_pods: bool | None) -> None:
        """`of_pods` True: plugins that read the pods of a node; False: those that do not; None: both."""

        def belongs(plugin: FilterPlugin | ScorePlugin) -> bool:
            return plugin.sort is Sort.LOCAL and (of_pods is None or ("pods" in plugin.plugin.reads) is of_pods)

        self.filters = tuple(filter_ for filter_ in profile.filters if belongs(filter_))
        self.scores = tuple(score for score in profile.scores if belongs(score))

    def judge(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> tuple[Places, Ints]:
        """The place of the first filter that rejects each row (PASSED: none does), and its code."""
        failed = np.full(len(rows), PASSED, dtype=np.int16)
        codes = np.zeros(len(rows), dtype=np.int64)
        skipped = state.skip_filter
        for filter_ in self.filters:
            if filter_.name in skipped:
                continue
            said = filter_columns(filter_, state, pod, table, rows)
            if said is None:
                continue
            rejected = said != 0
            if count_nonzero(rejected):
                rejected &= failed == PASSED
                failed[rejected] = filter_.place
                codes[rejected] = said[rejected]
        return failed, codes

    def score(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> tuple[Ints, dict[str, Ints]]:
        """Weighted sum of the scores that are final as they come, and the raw scores of those still to normalise."""
        base = np.zeros(len(rows), dtype=np.int64)
        raw = {}
        for score in self.scores:
            if score.name in state.skip_score:
                continue
            values = score_columns(score, state, pod, table, rows)
            if score.normalizes:
                raw[score.name] = values
            else:
                if not score.trusted:
                    check_range(score, values, table, rows)
                base += values if score.weight == 1 else values * score.weight
        return base, raw


class Remembered:
    """One shape's columns. `base` sums the weighted scores of plugins that do not normalise; others' are in `raw`."""

    def __init__(self, table: NodeTable, epochs: tuple[Hashable, ...], skip_filter: frozenset[str]) -> None:
        size = table.capacity
        self.size = size
        self.epochs = epochs
        self.skip_filter = skip_filter
        self.skip_score: frozenset[str] | None = None  # None until it was first scored
        self.node_position = table.node_changes.position
        self.pod_position = table.pod_changes.position
        self.known = np.zeros(size, dtype=np.bool_)  # verdicts hold
        self.failed = np.zeros(size, dtype=np.int16)
        self.codes = np.zeros(size, dtype=np.int64)
        self.scored = np.zeros(size, dtype=np.bool_)  # scores hold
        self.base = np.zeros(size, dtype=np.int64)
        self.raw: dict[str, Ints] = {}
        # The layer of the Node objects by itself.
        self.node_known = np.zeros(size, dtype=np.bool_)
        self.node_failed = np.zeros(size, dtype=np.int16)
        self.node_codes = np.zeros(size, dtype=np.int64)
        self.node_scored = np.zeros(size, dtype=np.bool_)
        self.node_base = np.zeros(size, dtype=np.int64)
        # Rows struck out since: evaluated in one go with the next row that has to be.
        self.unjudged: set[int] = set()
        self.unscored: set[int] = set()

    def strike_out(self, table: NodeTable) -> None:
        """What changed since the last time is no longer known."""
        changes = table.node_changes
        if self.node_position != changes.position:
            rows = changes.since(self.node_position)
            self.node_position = changes.position
            chosen = slice(None) if rows is None else rows
            for column in (self.known, self.scored, self.node_known, self.node_scored):
                column[chosen] = False
        changes = table.pod_changes
        if self.pod_position != changes.position:
            rows = changes.since(self.pod_position)
            self.pod_position = changes.position
            if rows is None:
                self.known[:] = False
                self.scored[:] = False
            else:
                if len(rows) < 8:
                    for row in rows:
                        self.known[row] = False
                        self.scored[row] = False
                else:
                    self.known[rows] = False
                    self.scored[rows] = False
                if len(rows) < _MOST_AT_ONCE:
                    self.unjudged.update(rows)
                    self.unscored.update(rows)

    def forget_scores(self, skip_score: frozenset[str]) -> None:
        self.skip_score = skip_score
        self.scored[:] = False
        self.node_scored[:] = False


@attrs.define(eq=False)
class Memory:
    """The remembered evaluations of one profile over one cluster."""

    profile: RunningProfile
    cluster: Cluster
    of_nodes: Layer = attrs.field(init=False)
    of_pods: Layer = attrs.field(init=False)
    _with_epochs: tuple[Any, ...] = attrs.field(init=False)
    _shapes: OrderedDict[int, Remembered] = attrs.field(factory=OrderedDict, init=False)
    _seen: OrderedDict[int, None] = attrs.field(factory=OrderedDict, init=False)

    def __attrs_post_init__(self) -> None:
        self.of_nodes = Layer(self.profile, False)
        self.of_pods = Layer(self.profile, True)
        local: list[Any] = [p.plugin for p in self.profile.filters if p.sort is Sort.LOCAL]
        local += [p.plugin for p in self.profile.scores if p.sort is Sort.LOCAL]
        self._with_epochs = tuple({id(plugin): plugin for plugin in local if hasattr(plugin, "epoch")}.values())

    def of(self, pod: Pod, state: CycleState) -> Remembered | None:
        """The pod's shape as remembered, with all that changed struck out; None if it is not remembered (yet).

        To be called once an attempt, after PreFilter.
        """
        number = pod.shape.number
        found = self._shapes.get(number)
        if found is None and number not in self._seen:
            self._seen[number] = None
            if len(self._seen) > _MOST_SEEN:
                self._seen.popitem(last=False)
            return None
        table = self.cluster.table
        epochs = tuple([plugin.epoch(self.cluster) for plugin in self._with_epochs])
        if (
            found is None
            or found.size != table.capacity
            or found.epochs != epochs
            or found.skip_filter != state.skip_filter
        ):
            found = self._shapes[number] = Remembered(table, epochs, frozenset(state.skip_filter))
            most = max(_FEWEST, _MEMORY // (table.capacity * _BYTES_A_ROW))
            while len(self._shapes) > most:
                self._shapes.popitem(last=False)
        else:
            found.strike_out(table)
        self._shapes.move_to_end(number)
        return found

    def judge(self, found: Remembered, state: CycleState, pod: Pod, rows: Rows) -> tuple[Places, Ints]:
        """As `Layer.judge` of both layers together, but rows already known are looked up."""
        known = found.known[rows]
        if count_nonzero(known) != len(rows):
            fresh = _with_others(rows[~known], found.known, found.unjudged, self.cluster.table)
            self._judge_fresh(found, state, pod, fresh)
        return found.failed[rows], found.codes[rows]

    def _judge_fresh(self, found: Remembered, state: CycleState, pod: Pod, fresh: Rows) -> None:
        table = self.cluster.table
        node_known = found.node_known[fresh]
        if count_nonzero(node_known) != len(fresh):
            stale = fresh[~node_known]
            found.node_failed[stale], found.node_codes[stale] = self.of_nodes.judge(state, pod, table, stale)
            found.node_known[stale] = True
        failed, codes = self.of_pods.judge(state, pod, table, fresh)
        node_failed = found.node_failed[fresh]
        earlier = node_failed < failed
        if count_nonzero(earlier):
            failed[earlier] = node_failed[earlier]
            codes[earlier] = found.node_codes[fresh[earlier]]
        found.failed[fresh] = failed
        found.codes[fresh] = codes
        found.known[fresh] = True

    def score(self, found: Remembered, state: CycleState, pod: Pod, rows: Rows) -> tuple[Ints, dict[str, Ints]]:
        """As `Layer.score` of both layers together, but rows already known are looked up."""
        if found.skip_score is None or found.skip_score != state.skip_score:
            found.forget_scores(frozenset(state.skip_score))
        scored = found.scored[rows]
        if count_nonzero(scored) != len(rows):
            fresh = _with_others(rows[~scored], found.scored, found.unscored, self.cluster.table)
            self._score_fresh(found, state, pod, fresh)
        raw = {name: column[rows] for name, column in found.raw.items() if name not in state.skip_score}
        return found.base[rows], raw

    def _score_fresh(self, found: Remembered, state: CycleState, pod: Pod, fresh: Rows) -> None:
        table = self.cluster.table
        node_scored = found.node_scored[fresh]
        if count_nonzero(node_scored) != len(fresh):
            stale = fresh[~node_scored]
            base, raw = self.of_nodes.score(state, pod, table, stale)
            found.node_base[stale] = base
            self._keep_raw(found, stale, raw)
            found.node_scored[stale] = True
        base, raw = self.of_pods.score(state, pod, table, fresh)
        found.base[fresh] = base + found.node_base[fresh]
        self._keep_raw(found, fresh, raw)
        found.scored[fresh] = True

    @staticmethod
    def _keep_raw(found: Remembered, rows: Rows, raw: dict[str, Ints]) -> None:
        for name, values in raw.items():
            column = found.raw.get(name)
            if column is None:
                column = found.raw[name] = np.zeros(found.size, dtype=np.int64)
            column[rows] = values


def _with_others(fresh: Rows, holds: Bools, struck_out: set[int], table: NodeTable) -> Rows:
    """The rows that have to be evaluated now, and others that soon will: a few hundred rows cost hardly more than one.

    Those struck out lately, and where hardly any is asked about (pods that can go to one node only), its neighbours.
    """
    if len(fresh) >= _MOST_AT_ONCE:
        return fresh
    more = np.fromiter(struck_out, dtype=np.int64, count=len(struck_out))
    struck_out.clear()
    if len(fresh) < 4 and len(more) < 4:
        first = int(fresh[0])
        neighbours = np.arange(first, min(first + _MOST_AT_ONCE // 2, table.capacity))
        more = np.concatenate((more, neighbours[table.alive[neighbours]]))
    more = more[~holds[more]]
    return np.union1d(fresh, more) if len(more) else fresh
