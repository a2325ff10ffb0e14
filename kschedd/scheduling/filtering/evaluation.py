"""Evaluation: cached verdicts and scores of one class of pods on all nodes, in visiting order.

Pods of one class (equal spec, namespace and labels) get the same result from a plugin with `depends_on` until the row
that the plugin reads changes. An `Evaluation` stores these results as columns, one value for each node. A row that has
changed since its evaluation is STALE: its verdict is unknown. A search reads a window of the columns. When a window
first reaches a stale row, this row and other stale rows are evaluated in one call of each plugin.

The verdicts of filters that read only the Node object are stored separately (`NodeVerdicts`), because pods change often
and nodes rarely. Classes with equal keys for these filters (`VerdictKey`) share the verdicts.

Invariant: a row that is not stale has the verdict that the plugins would return now. The following rules ensure the
invariant:
* An evaluation belongs to a class, or to all classes that differ only in the node to which PreFilter narrowed the
  search. An evaluation is valid for one set of cached filters that PreFilter skips, and for one set of cache keys of
  the filter plugins. If one of these sets differs, a new evaluation replaces the old one.
* `follow` marks the rows whose Node object or pods changed since the last call. If the change log is too short, every
  row is marked. A new visiting order permutes the columns.
* If only the scoring changes (other scores skipped by PreScore, or another cache key), only the scores are dropped.
* An evaluation never includes nominated pods, or the verdicts of plugins that read more than the row. The codes of a
  plugin that reads more than the row may be cached in `by_state`, with a key that covers all its other inputs
  (`VerdictKey`).

A class gets its own evaluation at its second attempt. The first attempts of all classes share one evaluation, which is
cleared between attempts. If the evaluations exceed `NodeTable.most_evaluation_bytes`, the least recently used ones are
dropped.

Shapes: one value for each node, in visiting order; a position is an index into these columns. `place` maps a row of the
table to its position, or to -1 if the row has no node.
"""

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final, cast

import attrs
import numpy as np
from numpy import count_nonzero  # several times faster than `any` of a boolean array

from kschedd.api.pods import Pod
from kschedd.cache.recently_used import RecentlyUsed
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Bools, Ints, NodeTable
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.fast_path import CacheKey, VerdictKey
from kschedd.framework.interface import Plugin
from kschedd.scheduling.filtering.node_local_plugins import NodeLocalPlugins, filter_columns
from kschedd.scheduling.profiles.plugin_metrics import CacheUse
from kschedd.scheduling.profiles.profile import EnabledFilter, EvaluationStyle, Framework
from kschedd.scheduling.verdicts import PASSED, PASSED_ALL, Places
from kschedd.values import fast_frozen

Positions = Ints | slice
"""Positions to read from columns: a slice if they are consecutive."""

_BYTES_A_ROW: Final = 64
_BYTES_OF_VERDICTS: Final = 18  # per row
_BYTES_AN_ENTRY: Final = 8 << 10
MOST_AT_ONCE: Final = 512  # largest number of stale rows evaluated in one call
_FEWEST: Final = 8  # minimum number of stored evaluations, however large the cluster
_MOST: Final = 1024  # maximum number of stored evaluations, however small the cluster
_MOST_SEEN: Final = 4096  # classes
_MOST_KEYS: Final = 4096  # of classes
_MOST_STATES: Final = 16  # maximum number of code columns cached by one evaluation
STALE: Final = -1  # filter index of a row without a valid verdict
STALE_ALL: Final = np.array(STALE, dtype=np.int16)  # for comparing columns


class InVisitingOrder:
    """Columns in the table's visiting order.

    `columns` lists the names of the columns. For new rows, the columns in `marks` are True.
    """

    columns: ClassVar[tuple[str, ...]]
    marks: ClassVar[tuple[str, ...]] = ()
    failed: Places

    def __init__(self, table: NodeTable) -> None:
        self.stamp = table.versions.now
        self.order = table.order
        self.place = _place_of(table)
        self.size = len(self.order)  # at least 1

    def positions(self, rows: list[int] | None) -> Positions | int:
        """Return the positions of these rows; None means all positions."""
        if rows is None:
            return slice(None)
        # A row without a node has position -1, so the last position may be evaluated unnecessarily.
        return self.place.item(rows[0]) if len(rows) == 1 else self.place[rows]

    def reorder(self, table: NodeTable) -> Ints:
        """Permute the columns to the table's visiting order; new rows become stale. Return the previous positions."""
        before, self.order, self.place = self.place, table.order, _place_of(table)
        self.size = len(self.order)
        known = np.full(max(table.capacity, len(before)), -1, dtype=np.int64)
        known[: len(before)] = before
        source: Ints = known[self.order]
        absent = source < 0
        for name in (*self.columns, *self.marks):
            setattr(self, name, getattr(self, name)[source])
        self.failed[absent] = STALE
        for name in self.marks:
            getattr(self, name)[absent] = True
        return source


class NodeVerdicts(InVisitingOrder):
    """The verdicts of the filters that read only the Node object, for all classes with the same key."""

    columns = ("failed", "codes")

    def __init__(self, table: NodeTable) -> None:
        super().__init__(table)
        self.failed = np.full(self.size, STALE, dtype=np.int16)
        self.codes: Ints = np.zeros(self.size, dtype=np.int64)

    def may_pass(self, table: NodeTable) -> Bools:
        """Return a mask of the rows that passed in their last evaluation, or were not evaluated yet."""
        if self.order is not table.order:
            return np.ones(len(table.order), dtype=np.bool_)
        passes: Bools = (self.failed == PASSED_ALL) | (self.failed == STALE_ALL)
        return passes

    def follow(self, table: NodeTable) -> None:
        """Mark the rows that changed since the last call."""
        versions = table.versions
        stamp, self.stamp = self.stamp, versions.now
        if table.order is not self.order:
            self.reorder(table)
        if versions.nodes.at > stamp:
            self.failed[self.positions(versions.nodes.since(stamp))] = STALE


@fast_frozen(eq=False)
class CodesOf:
    """A filter's codes on all nodes, for a filter that reads more than one row; `key` identifies the state it read.

    `clear` is True for the rows that the filter passes.
    """

    key: Hashable
    place: int  # index of the filter
    codes: Ints
    clear: Bools


class Evaluation(InVisitingOrder):
    """The columns of one class.

    `base` is the sum of the weighted scores of plugins that do not normalize; `raw` contains the raw scores of each
    plugin that normalizes. `shared` is true if other classes use the evaluation as well, one attempt after the other.
    """

    columns = ("failed", "codes", "base", "unscored", "node_base")
    marks = ("passes", "node_unscored")

    def __init__(
        self,
        table: NodeTable,
        of_nodes: NodeVerdicts,
        keys: tuple[Hashable, ...],
        skip_filter: frozenset[str],
        already_filtered_by: str = "",
        *,
        shared: bool = False,
    ) -> None:
        super().__init__(table)
        self.of_nodes = of_nodes
        self.keys = keys
        self.skip_filter = skip_filter
        self.skip_score: frozenset[str] = frozenset()
        self.already_filtered_by = already_filtered_by
        self.shared = shared
        size = self.size
        self.failed = np.full(size, STALE, dtype=np.int16)
        self.codes: Ints = np.zeros(size, dtype=np.int64)
        self.passes = of_nodes.may_pass(table)  # by the last verdict
        self.changes = 0  # number of changes of `passes` so far
        self._passing: Ints | None = None  # positions of the rows that pass
        self._passing_by: dict[Hashable, tuple[int, Ints]] = {}  # positions that also pass further filters
        self.base: Ints = np.zeros(size, dtype=np.int64)
        self.unscored: Bools = np.zeros(size, dtype=np.bool_)  # rows that passed but have no valid scores
        self.node_base: Ints = np.zeros(size, dtype=np.int64)  # scores of plugins that read only the Node object
        self.node_unscored: Bools = np.ones(size, dtype=np.bool_)
        self.raw: dict[str, Ints] = {}
        self.nothing: object = None  # last search without a feasible node; None if a verdict has changed since then
        self.by_state: dict[Hashable, CodesOf | None] = {}  # None: the key has been used once
        self.by_state_at = 0  # `Versions.parts_at` when these codes were stored

    def follow(self, table: NodeTable, reads_pods: bool) -> None:
        """Mark the rows that changed since the last call.

        If `reads_pods` is true, a row is also marked when a pod update leaves the requests equal.
        """
        versions = table.versions
        stamp, self.stamp = self.stamp, versions.now
        if table.order is not self.order:
            self.reorder(table)
        failed = self.failed
        if versions.nodes.at > stamp:
            at = self.positions(versions.nodes.since(stamp))
            failed[at], self.node_unscored[at], self.nothing = STALE, True, None
        if versions.pods.at > stamp:
            failed[self.positions(versions.pods.since(stamp))], self.nothing = STALE, None
        if reads_pods and versions.pod_updates.at > stamp:
            failed[self.positions(versions.pod_updates.since(stamp))], self.nothing = STALE, None

    def reorder(self, table: NodeTable) -> Ints:
        """Permute the columns to the table's visiting order; new rows become stale."""
        source = super().reorder(table)
        self.unscored[self.failed == STALE_ALL] = False
        self.raw = {name: values[source] for name, values in self.raw.items()}
        self._changed()
        return source

    def _changed(self) -> None:
        self.changes += 1
        self._passing = None

    def judged(self, at: Positions, failed: Places, codes: Ints) -> None:
        """Store the verdicts at these positions."""
        passes = failed == PASSED_ALL
        self.failed[at], self.codes[at], self.unscored[at] = failed, codes, passes
        if count_nonzero(self.passes[at] != passes):
            self.passes[at] = passes
            self._changed()

    def passing(self, others: Sequence["CodesOf"]) -> Ints:
        """Return the positions of the rows with a passing verdict that also pass these filters."""
        if not others:
            if self._passing is None:
                self._passing = self.passes.nonzero()[0]
            return self._passing
        key = tuple([other.key for other in others])
        known = self._passing_by.get(key)
        if known is None or known[0] != self.changes:
            passes = self.passes
            for other in others:
                passes = passes & other.clear
            known = self._passing_by[key] = self.changes, passes.nonzero()[0]
        return known[1]

    def forget(self, table: NodeTable, of_nodes: NodeVerdicts, skip_filter: frozenset[str]) -> None:
        """Mark every row as stale, because a pod of another class uses the evaluation next."""
        self.of_nodes, self.skip_filter = of_nodes, skip_filter
        self.failed.fill(STALE)
        self.passes = of_nodes.may_pass(table)
        self.node_unscored.fill(True)
        self._changed()

    def forget_states(self) -> None:
        """Drop the codes of filters that read more than one row."""
        self.by_state.clear()
        self._passing_by.clear()

    def forget_scores(self) -> None:
        """Drop every score, because the scoring plugins or their keys changed."""
        self.node_unscored.fill(True)
        np.equal(self.failed, PASSED_ALL, out=self.unscored)

    def window(self, start: int, count: int) -> Positions:
        """Return the positions of `count` nodes from `start` on, wrapping around, but each node at most once."""
        end = start + count
        if end <= self.size:
            return slice(start, end)
        return np.concatenate((np.arange(start, self.size), np.arange(end - self.size)))


@attrs.define(eq=False)
class Evaluations:
    """The evaluations of one profile on one cluster.

    With `remember` False, no evaluation is stored between attempts.
    """

    profile: Framework
    cluster: SchedulerCache
    remember: bool = True
    use: CacheUse = attrs.field(init=False)
    of_nodes: NodeLocalPlugins = attrs.field(init=False)  # plugins that read only the Node object
    of_pods: NodeLocalPlugins = attrs.field(init=False)
    _first_of_pods: int = attrs.field(init=False)  # index of the first filter of `of_pods`
    _filters: frozenset[str] = attrs.field(init=False)  # names of the cached filters
    _scores: frozenset[str] = attrs.field(init=False)
    _all_keyed: bool = attrs.field(init=False)  # True if all filters that read only the Node object have a cache key
    _keyed: tuple[CacheKey, ...] = attrs.field(init=False)  # plugins with a cache key; plugins that filter come first
    _keyed_filters: int = attrs.field(init=False)  # number of plugins in `_keyed` that filter
    _keyed_nodes: tuple[CacheKey, ...] = attrs.field(init=False)  # plugins with a cache key and only the Node as input
    _ignoring_node: bool = attrs.field(init=False)  # True if pods pinned to different nodes may share an evaluation
    _entries: RecentlyUsed[int, Evaluation] = attrs.field(factory=RecentlyUsed, init=False)
    _seen: RecentlyUsed[int, None] = attrs.field(factory=RecentlyUsed, init=False)
    _once: Evaluation | None = attrs.field(default=None, init=False)  # evaluation shared by classes without their own
    _of_nodes: RecentlyUsed[Hashable, NodeVerdicts] = attrs.field(factory=RecentlyUsed, init=False)
    _node_keys: dict[int, tuple[Hashable, ...]] = attrs.field(factory=dict, init=False)  # by signature without amounts

    def __attrs_post_init__(self) -> None:
        self.use = self.profile.plugin_metrics.cache
        self.of_nodes = NodeLocalPlugins(self.profile, False)
        self.of_pods = NodeLocalPlugins(self.profile, True)
        self._first_of_pods = min((filter_.place for filter_ in self.of_pods.filters), default=PASSED)
        filters = [filter_ for filter_ in self.profile.filters if filter_.style is EvaluationStyle.CACHED]
        scores = [score for score in self.profile.scores if score.style is EvaluationStyle.CACHED]
        self._all_keyed = all(one.in_tree and hasattr(one.plugin, "verdict_key") for one in self.of_nodes.filters)
        self._filters = frozenset(filter_.name for filter_ in filters)
        self._scores = frozenset(score.name for score in scores)
        self._ignoring_node = all(filter_.in_tree for filter_ in filters)
        by_id: dict[int, Plugin] = {id(one.plugin): one.plugin for one in filters}
        only_score = {id(one.plugin): one.plugin for one in scores if id(one.plugin) not in by_id}
        of_nodes = [one.plugin for one in self.of_nodes.filters if hasattr(one.plugin, "cache_key")]
        self._keyed_nodes = tuple([cast(CacheKey, plugin) for plugin in of_nodes])
        keyed_filters, keyed_scores = (
            [cast(CacheKey, plugin) for plugin in plugins.values() if hasattr(plugin, "cache_key")]
            for plugins in (by_id, only_score)
        )
        self._keyed, self._keyed_filters = (*keyed_filters, *keyed_scores), len(keyed_filters)

    @property
    def _bytes_an_entry(self) -> int:
        return self.cluster.table.capacity * _BYTES_A_ROW + _BYTES_AN_ENTRY

    @property
    def bytes_held(self) -> int:
        """The approximate size of all evaluations, in bytes."""
        return len(self._entries) * self._bytes_an_entry

    def of(self, pod: Pod, state: CycleState) -> Evaluation:
        """Return the up-to-date evaluation of the pod's class.

        Call this method once per attempt, after PreFilter.
        """
        signature, table = pod.signature, self.cluster.table
        pinned_by = state.already_filtered_by if self._ignoring_node else ""
        number = signature.signature_ignoring_node if pinned_by else signature.id
        found = self._entries.get(number)
        if found is None and (not self.remember or self._seen.keep_new(number, None, _MOST_SEEN)):
            return self.once(pod, state)
        cluster = self.cluster
        keys = tuple([plugin.cache_key(cluster) for plugin in self._keyed])
        skipped = self._filters.intersection(state.skip_filter)
        if (
            found is not None
            and found.keys != keys
            and found.keys[: self._keyed_filters] == keys[: self._keyed_filters]
        ):
            found.keys = keys
            found.forget_scores()
        if found is None or found.keys != keys or found.skip_filter != skipped:
            made = Evaluation(table, self._nodes_of(pod, skipped, pinned_by), keys, skipped, pinned_by)
            most = max(_FEWEST, min(_MOST, table.most_evaluation_bytes // self._bytes_an_entry))
            return self._entries.keep(number, made, most)
        if found.stamp != table.versions.now or found.order is not table.order:
            found.follow(table, self.profile.reads_pods)
        self._entries.move_to_end(number)
        return found

    def once(self, pod: Pod, state: CycleState) -> Evaluation:
        """Return an evaluation for one attempt; every row is stale."""
        table, found = self.cluster.table, self._once
        skipped = self._filters.intersection(state.skip_filter)
        of_nodes = self._nodes_of(pod, skipped, "")
        if found is None or found.order is not table.order:
            found = self._once = Evaluation(table, of_nodes, (), skipped, shared=True)
        else:
            found.forget(table, of_nodes, skipped)
        return found

    def apart(self, state: CycleState) -> Evaluation:
        """Return a new evaluation for another search in the same attempt."""
        table = self.cluster.table
        return Evaluation(table, NodeVerdicts(table), (), self._filters.intersection(state.skip_filter), shared=True)

    def _nodes_of(self, pod: Pod, skipped: frozenset[str], pinned_by: str) -> NodeVerdicts:
        """Return the verdicts of the filters that read only the Node object, which pods with equal keys share."""
        table, filters = self.cluster.table, self.of_nodes.filters
        if not self.remember or not self._all_keyed:
            return NodeVerdicts(table)
        keys = [
            None if one.name in skipped or one.name == pinned_by else own
            for one, own in zip(filters, self._filter_keys(pod), strict=True)
        ]
        key = (*[plugin.cache_key(self.cluster) for plugin in self._keyed_nodes], *keys)
        found = self._of_nodes.get(key)
        if found is None:
            most = max(_FEWEST, min(_MOST, table.most_evaluation_bytes // (table.capacity * _BYTES_OF_VERDICTS)))
            return self._of_nodes.keep(key, NodeVerdicts(table), most)
        self._of_nodes.move_to_end(key)
        return found

    def _filter_keys(self, pod: Pod) -> tuple[Hashable, ...]:
        """Return a key for each filter that reads only the Node object, made of the pod fields it reads."""
        signature = pod.signature
        keys = self._node_keys.get(signature.signature_ignoring_amounts)
        if keys is None:
            if len(self._node_keys) >= _MOST_KEYS:
                self._node_keys.clear()
            found = [cast(VerdictKey, one.plugin).verdict_key(pod, CycleState()) for one in self.of_nodes.filters]
            keys = self._node_keys[signature.signature_ignoring_amounts] = tuple(found)
        return keys

    def judge(self, found: Evaluation, state: CycleState, pod: Pod, at: Positions) -> None:
        """Update the stale verdicts at these positions. Raises PluginFault."""
        wanted = found.failed[at] == STALE_ALL
        lacking = int(count_nonzero(wanted))
        if lacking:
            if lacking == len(wanted) and found.shared:
                positions = at
            else:
                positions = _to_evaluate(found, found.failed == STALE_ALL, at, wanted, lacking)
            found.nothing = None
            self._judge(found, state, pod, positions)

    def _judge(self, found: Evaluation, state: CycleState, pod: Pod, at: Positions) -> None:
        table, rows, pinned_by, of_nodes = (
            self.cluster.table,
            found.order[at],
            found.already_filtered_by,
            found.of_nodes,
        )
        if of_nodes.stamp != table.versions.now or of_nodes.order is not table.order:
            of_nodes.follow(table)
        self.use.misses += len(rows)
        failed = of_nodes.failed[at]
        stale = failed == STALE_ALL
        if count_nonzero(stale):
            fresh = stale.nonzero()[0] + at.start if isinstance(at, slice) else at[stale]
            of_nodes.failed[fresh], of_nodes.codes[fresh] = self.of_nodes.judge(
                state, pod, table, rows[stale], pinned_by
            )
            failed = of_nodes.failed[at]
        left = (failed > self._first_of_pods).nonzero()[0]
        if len(left) == len(rows):
            by_pods, codes = self.of_pods.judge(state, pod, table, rows, pinned_by)
            earlier = failed < by_pods
            if count_nonzero(earlier):
                codes[earlier] = of_nodes.codes[at][earlier]
                by_pods[earlier] = failed[earlier]
            failed = by_pods
        else:
            codes = of_nodes.codes[at]
            if isinstance(at, slice):
                failed, codes = failed.copy(), codes.copy()
            if len(left):
                by_pods, codes_of_pods = self.of_pods.judge(state, pod, table, rows[left], pinned_by)
                earlier = by_pods < failed[left]
                failed[left[earlier]], codes[left[earlier]] = by_pods[earlier], codes_of_pods[earlier]
        found.judged(at, failed, codes)

    def known_codes(self, found: Evaluation, state: CycleState, pod: Pod, filter_: EnabledFilter) -> "CodesOf | None":
        """Return the cached codes on all nodes of a filter that reads more than one row, if its key was seen before.

        Returns None if the codes are not cached. Raises PluginFault.
        """
        if found.shared or not filter_.in_tree or not hasattr(filter_.plugin, "verdict_key"):
            return None
        own = cast(VerdictKey, filter_.plugin).verdict_key(pod, state)
        if own is None:
            return None
        key, known, parts_at = (filter_.name, own), found.by_state, self.cluster.versions.parts_at
        if found.by_state_at != parts_at:
            found.forget_states()
            found.by_state_at = parts_at
        if key not in known:
            if len(known) >= _MOST_STATES:
                found.forget_states()
            known[key] = None
            return None
        kept = known[key]
        if kept is None:
            verdicts = filter_columns(filter_, state, pod, self.cluster.table, found.order)
            codes = np.zeros(found.size, dtype=np.int64) if verdicts is None else verdicts
            kept = known[key] = CodesOf(key, filter_.place, codes, codes == 0)
        return kept

    def score(self, found: Evaluation, state: CycleState, pod: Pod, at: Positions) -> Ints:
        """Return the weighted sum of the scores that need no normalizing.

        The raw scores of all other plugins are stored in `found.raw`. The verdicts at these positions must be up to
        date. Raises PluginFault.
        """
        skipped = self._scores.intersection(state.skip_score)
        if found.skip_score != skipped:
            found.skip_score = skipped
            found.forget_scores()
        wanted = found.unscored[at]
        if lacking := int(count_nonzero(wanted)):
            self._score(found, state, pod, _to_evaluate(found, found.unscored, at, wanted, lacking))
        base = found.base[at]
        return base.copy() if isinstance(at, slice) else base

    def _score(self, found: Evaluation, state: CycleState, pod: Pod, at: Ints) -> None:
        table = self.cluster.table
        stale = found.node_unscored[at]
        if count_nonzero(stale):
            fresh = at[stale]
            base = self._keep_raw(found, fresh, *self.of_nodes.score(state, pod, table, found.order[fresh]))
            found.node_base[fresh] = base
            found.node_unscored[fresh] = False
        rows = found.order[at]
        base = self._keep_raw(found, at, *self.of_pods.score(state, pod, table, rows))
        found.base[at] = base + found.node_base[at]
        found.unscored[at] = False

    @staticmethod
    def _keep_raw(found: Evaluation, at: Ints, base: Ints, raw: dict[str, Ints]) -> Ints:
        for name, values in raw.items():
            column = found.raw.get(name)
            if column is None:
                column = found.raw[name] = np.zeros(found.size, dtype=np.int64)
            column[at] = values
        return base


def _to_evaluate(found: Evaluation, marks: Bools, at: Positions, wanted: Bools, lacking: int) -> Ints:
    """Return the stale positions in `wanted`, and other stale positions that are needed soon."""
    if not found.shared:
        marked: Ints = marks.nonzero()[0]
        if len(marked) <= MOST_AT_ONCE or len(marked) == lacking:
            return marked
        if isinstance(at, slice):  # the next window begins at the end of this one
            first = int(marked.searchsorted(at.start))
            return marked[first : first + max(lacking, MOST_AT_ONCE)]
        if lacking < MOST_AT_ONCE // 2:  # pods that name their nodes usually name consecutive nodes
            first = int(marked.searchsorted(at[0]))
            return np.union1d(at[wanted], marked[first : first + MOST_AT_ONCE // 2])
    chosen: Ints = wanted.nonzero()[0] + at.start if isinstance(at, slice) else at[wanted]
    return chosen


def _place_of(table: NodeTable) -> Ints:
    place = np.full(table.capacity, -1, dtype=np.int64)
    place[table.order] = np.arange(len(table.order))
    return place
