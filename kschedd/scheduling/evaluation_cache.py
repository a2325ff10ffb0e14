"""Evaluations cached by pod signature: verdicts and scores of the node-local plugins, row by row.

Pods of one signature get the same verdict from a node-local plugin as long as the node is unchanged. So
each signature has its own columns with the index of the first node-local filter that failed, its code, and the
node-local plugins' scores, and which rows are valid.

Invariant: a cached value equals what the plugins would return now. It rests on these rules alone:

* An entry belongs to a signature (or to all that differ only in the node they are pinned to, where PreFilter has
  decided the node), to the set of skipped PreFilters, to every plugin's cache key, and to a table size. If one of the
  last three differs, a new entry replaces it.
* Before use, the rows whose Node object or pods changed after the entry's stamp are invalidated: for a Node
  everything, for pods what depends on them. Where the change log no longer reaches back, every row is.
* If the set of skipped PreScores differs, the scores are dropped and the verdicts stay.
* `CachedEvaluation.verdicts` is another number whenever the verdict on a row, or that there is one, may be another than
  before, and whenever scores are dropped.
* Nominated pods are never part of an entry (`nominated_pods`), nor are answers of plugins that read beyond the row.

There are two kinds of columns, because pods come and go all the time and nodes hardly ever change: plugins that read
the Node object only are called again when it changed, and only plugins that read a node's requested resources,
or its pods, when a pod was added or removed. A pod update that leaves the requests unchanged matters only to plugins
that read the pods.

A signature has an entry from its second attempt on; the least recently used are dropped beyond
`NodeTable.most_evaluation_bytes`.
"""

from collections.abc import Hashable
from typing import cast

import attrs
import numpy as np
from numpy import count_nonzero  # of a boolean column, several times faster than its `all` and `any`

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Bools, Ints, NodeTable, Rows
from kschedd.cache.versions import Versions
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.fast_path import CacheKey
from kschedd.framework.normalize import lowest
from kschedd.scheduling.alike_nodes import AlikeNodes
from kschedd.scheduling.node_local_plugins import NodeLocalPlugins
from kschedd.scheduling.plugin_metrics import CacheUse
from kschedd.scheduling.profile import EvaluationStyle, Framework
from kschedd.scheduling.recently_used import RecentlyUsed
from kschedd.scheduling.verdicts import PASSED, PASSED_ALL, Places

_BYTES_A_ROW = 64
_BYTES_AN_ENTRY = 8 << 10  # whatever its rows are: a small cluster has many kinds of pods, and little columns
_MOST_AT_ONCE = 512  # further rows evaluated beside the requested ones
_FEW_AT_ONCE = 32  # that are put in order faster than by a column
_FEWEST = 8  # entries kept, however large the cluster
_MOST = (
    1024  # entries kept, however small it is: where most pods are of a kind of their own, none of them is of use again
)
_MOST_SEEN = 4096
UNKNOWN = -1  # instead of a filter index: no valid verdict


class CachedEvaluation:
    """The columns of one signature. `base` sums the weighted scores of plugins that do not normalize; the others are in
    `raw`."""

    def __init__(
        self, table: NodeTable, cache_keys: tuple[Hashable, ...], skip_filter: frozenset[str], reads_pods: bool
    ) -> None:
        size = table.capacity
        self.size = size
        self.cache_keys = cache_keys
        self.skip_filter = skip_filter
        self.skip_score: frozenset[str] | None = None  # None until first scored
        self.stamp = table.versions.now
        self.reads_pods = reads_pods  # whether a pod update matters that leaves requests unchanged
        self.failed = np.full(size, UNKNOWN, dtype=np.int16)  # UNKNOWN: no valid verdict
        self.codes = np.zeros(size, dtype=np.int64)
        self.scored = np.zeros(size, dtype=np.bool_)  # scores are valid
        self.base = np.zeros(size, dtype=np.int64)
        self.raw: dict[str, Ints] = {}
        # The verdicts of only those plugins that read nothing but the Node object.
        self.node_failed = np.full(size, UNKNOWN, dtype=np.int16)
        self.node_codes = np.zeros(size, dtype=np.int64)
        self.node_scored = np.zeros(size, dtype=np.bool_)
        self.node_base = np.zeros(size, dtype=np.int64)
        # Rows invalidated since: evaluated in one batch with the next requested row.
        self.unjudged: set[int] = set()
        self.unscored: set[int] = set()
        self.verdicts = 0  # their number: see the module
        self.failed_search: object = None  # the last search, if it found no node (node_search.FailedSearch)

    def unknown(self, rows: Rows) -> int:
        """On how many of these rows there is no valid verdict, or no valid score."""
        failed = self.failed[rows]
        return int(count_nonzero((failed == UNKNOWN) | ((failed == PASSED_ALL) & ~self.scored[rows])))

    def invalidate(self, versions: Versions) -> list[int]:
        """Invalidate what changed since the entry's stamp, but for what depends on the pods of the rows that are
        returned: the caller invalidates that (`invalidate_pods`), or evaluates it now."""
        stamp, self.stamp = self.stamp, versions.now
        if versions.nodes.at > stamp:
            self.verdicts += 1
            rows = versions.nodes.since(stamp)
            chosen = slice(None) if rows is None else rows
            self.failed[chosen] = self.node_failed[chosen] = UNKNOWN
            self.scored[chosen] = self.node_scored[chosen] = False
        changed: list[int] = []
        for log in (versions.pods, versions.pod_updates) if self.reads_pods else (versions.pods,):
            if log.at > stamp:
                rows = log.since(stamp)
                if rows is None:
                    self.verdicts += 1
                    self.failed[:] = UNKNOWN
                    self.scored[:] = False
                    return []
                changed = changed + rows if changed else rows
        return changed

    def invalidate_pods(self, rows: list[int]) -> None:
        """Invalidate what depends on the pods of these rows."""
        self.verdicts += len(rows)
        if len(rows) < 8:
            for row in rows:
                self.failed[row] = UNKNOWN
                self.scored[row] = False
        else:
            self.failed[rows] = UNKNOWN
            self.scored[rows] = False
        if len(rows) < _MOST_AT_ONCE:
            self.unjudged.update(rows)
            self.unscored.update(rows)

    def forget_scores(self, skip_score: frozenset[str]) -> None:
        self.skip_score = skip_score
        self.verdicts += 1
        self.scored[:] = False
        self.node_scored[:] = False


@attrs.define(eq=False)
class EvaluationCache:
    """The cached evaluations of one profile on one cluster."""

    profile: Framework
    cluster: SchedulerCache
    use: CacheUse = attrs.field(init=False)
    of_nodes: NodeLocalPlugins = attrs.field(init=False)
    of_pods: NodeLocalPlugins = attrs.field(init=False)
    _alike: AlikeNodes = attrs.field(init=False)  # for `of_pods`
    _with_cache_key: tuple[CacheKey, ...] = attrs.field(init=False)
    _ignoring_node: bool = attrs.field(init=False)  # whether pods pinned to different nodes may share an entry
    _entries: RecentlyUsed[int, CachedEvaluation] = attrs.field(factory=RecentlyUsed, init=False)  # by signature
    _seen: RecentlyUsed[int, None] = attrs.field(factory=RecentlyUsed, init=False)

    def __attrs_post_init__(self) -> None:
        self.use = self.profile.plugin_metrics.cache
        self.of_nodes = NodeLocalPlugins(self.profile, False)
        self.of_pods = NodeLocalPlugins(self.profile, True)
        self._alike = AlikeNodes(self.of_pods)
        filters = [p for p in self.profile.filters if p.style is EvaluationStyle.CACHED]
        self._ignoring_node = all(p.in_tree for p in filters)
        local = [p.plugin for p in filters]
        local += [p.plugin for p in self.profile.scores if p.style is EvaluationStyle.CACHED]
        self._with_cache_key = tuple(
            {id(plugin): cast(CacheKey, plugin) for plugin in local if hasattr(plugin, "cache_key")}.values()
        )

    @property
    def _bytes_an_entry(self) -> int:
        return self.cluster.table.capacity * _BYTES_A_ROW + _BYTES_AN_ENTRY

    @property
    def bytes_held(self) -> int:
        """About what all entries take."""
        return len(self._entries) * self._bytes_an_entry

    def cache_keys(self) -> tuple[Hashable, ...]:
        """Each plugin's, as they are now."""
        return tuple([plugin.cache_key(self.cluster) for plugin in self._with_cache_key])

    def of(self, pod: Pod, state: CycleState, *, many: bool = False) -> CachedEvaluation | None:
        """The entry of the pod's signature, brought up to date; None if it has none (yet).

        To be called once an attempt, after PreFilter. `many`: a search of many rows follows, by a state that PreScore
        has been asked for. Then rows that pods have changed are judged and scored at once, which costs less than to
        find out which of them it comes to (what rejects a pod needs no score); raises PluginFault.
        """
        signature = pod.signature
        # Pods pinned to different nodes share one cache entry where PreFilter has already checked the node.
        number = (
            signature.signature_ignoring_node if state.already_filtered_by and self._ignoring_node else signature.id
        )
        found = self._entries.get(number)
        if found is None and self._seen.keep_new(number, None, _MOST_SEEN):
            return None
        table = self.cluster.table
        cache_keys = self.cache_keys()
        if (
            found is None
            or found.size != table.capacity
            or found.cache_keys != cache_keys
            or found.skip_filter != state.skip_filter
        ):
            made = CachedEvaluation(table, cache_keys, frozenset(state.skip_filter), self.profile.reads_pods)
            most = max(_FEWEST, min(_MOST, table.most_evaluation_bytes // self._bytes_an_entry))
            return self._entries.keep(number, made, most)
        changed = found.invalidate(table.versions)
        if many and found.skip_score is not None and found.skip_score == state.skip_score:
            self._refresh(found, state, pod, changed)
        else:
            found.invalidate_pods(changed)
        self._entries.move_to_end(number)
        return found

    def _refresh(self, found: CachedEvaluation, state: CycleState, pod: Pod, changed: list[int]) -> None:
        """Evaluate these rows, and others that were invalidated, where they are few."""
        rows = found.unjudged.union(found.unscored, changed) if found.unjudged or found.unscored else set(changed)
        if len(rows) >= _MOST_AT_ONCE:
            found.invalidate_pods(changed)
        elif rows:
            fresh = np.fromiter(rows, np.int64, len(rows))
            kinds = self._alike.kinds_of(self.cluster.table, fresh)
            try:
                passed = self._judge_fresh(found, state, pod, fresh, kinds)
                if passed is not None:
                    found.scored[fresh] = False
                    fresh, kinds = fresh[passed], None if kinds is None else kinds[passed]
                if len(fresh):
                    self._score_fresh(found, state, pod, fresh, kinds)
            except Exception:  # raised again
                found.invalidate_pods(changed)
                raise
            self.use.misses += len(rows)
            found.unjudged.clear()
            found.unscored.clear()

    def judge(self, found: CachedEvaluation, state: CycleState, pod: Pod, rows: Rows) -> tuple[Places, Ints]:
        """As `NodeLocalPlugins.judge` of both kinds together, but cached rows are looked up."""
        at = self.cluster.table.places(rows)
        failed = found.failed[at]
        use = self.use
        if count_nonzero(failed == PASSED_ALL) == len(rows):
            use.hits += len(rows)
            return failed.copy(), np.zeros(len(rows), dtype=np.int64)
        unknown = failed == UNKNOWN
        use.hits += len(rows)
        if lacking := int(count_nonzero(unknown)):
            fresh = self._with_others(rows[unknown], found.unjudged)
            fresh = fresh[found.failed[fresh] == UNKNOWN]
            use.hits -= lacking
            use.misses += len(fresh)
            self._judge_fresh(found, state, pod, fresh, self._alike.kinds_of(self.cluster.table, fresh))
            failed = found.failed[at]
        return failed.copy(), found.codes[at].copy()

    def _judge_fresh(
        self, found: CachedEvaluation, state: CycleState, pod: Pod, fresh: Rows, kinds: Ints | None
    ) -> Bools | None:
        """Judge these rows, of these kinds, and return which of them pass; None: all do."""
        table, already_filtered_by = self.cluster.table, state.already_filtered_by
        node_failed = found.node_failed[fresh]
        least_of_nodes = lowest(node_failed)
        if least_of_nodes == UNKNOWN:
            unknown = node_failed == UNKNOWN
            stale = fresh[unknown]
            node_failed[unknown], found.node_codes[stale] = self.of_nodes.judge(
                state, pod, table, stale, already_filtered_by
            )
            found.node_failed[stale] = node_failed[unknown]
        failed, codes = self._alike.judge(state, pod, table, fresh, kinds, already_filtered_by)
        if least_of_nodes != PASSED and count_nonzero(earlier := node_failed < failed):
            failed[earlier] = node_failed[earlier]
            codes[earlier] = found.node_codes[fresh[earlier]]
        passed = None if lowest(failed) == PASSED else failed == PASSED_ALL
        before = found.failed[fresh]
        # Most rows passed before and do now: there is nothing to write.
        if passed is not None or lowest(before) != PASSED:
            found.verdicts += int(count_nonzero((failed != before) | (codes != found.codes[fresh])))
            found.codes[fresh] = codes
            found.failed[fresh] = failed
        return passed

    def score(self, found: CachedEvaluation, state: CycleState, pod: Pod, rows: Rows) -> Ints:
        """The weighted sum as of `NodeLocalPlugins.score` of both kinds together, but cached rows are looked up.

        Afterwards the raw scores of these rows are in `found.raw`.
        """
        if found.skip_score is None or found.skip_score != state.skip_score:
            found.forget_scores(frozenset(state.skip_score))
        at = self.cluster.table.places(rows)
        scored = found.scored[at]
        if count_nonzero(scored) != len(rows):
            fresh = self._with_others(rows[~scored], found.unscored)
            fresh = fresh[~found.scored[fresh]]
            self._score_fresh(found, state, pod, fresh, self._alike.kinds_of(self.cluster.table, fresh))
        base = found.base[at]
        return base.copy() if isinstance(at, slice) else base

    def _score_fresh(
        self, found: CachedEvaluation, state: CycleState, pod: Pod, fresh: Rows, kinds: Ints | None
    ) -> None:
        """Score these rows, of these kinds."""
        table = self.cluster.table
        node_scored = found.node_scored[fresh]
        if count_nonzero(node_scored) != len(fresh):
            stale = fresh[~node_scored]
            base, raw = self.of_nodes.score(state, pod, table, stale)
            found.node_base[stale] = base
            self._keep_raw(found, stale, raw)
            found.node_scored[stale] = True
        base, raw = self._alike.score(state, pod, table, fresh, kinds)
        found.base[fresh] = base + found.node_base[fresh]
        self._keep_raw(found, fresh, raw)
        found.scored[fresh] = True

    @staticmethod
    def _keep_raw(found: CachedEvaluation, rows: Rows, raw: dict[str, Ints]) -> None:
        for name, values in raw.items():
            column = found.raw.get(name)
            if column is None:
                column = found.raw[name] = np.zeros(found.size, dtype=np.int64)
            column[rows] = values

    def _with_others(self, fresh: Rows, invalidated: set[int]) -> Rows:
        """The rows to evaluate now, and others needed soon: a few hundred rows cost hardly more than one.

        Those invalidated lately, and where few are requested (pods that fit one node only) neighbouring rows.
        Some of them may be valid already; no row is repeated.
        """
        if len(fresh) >= _MOST_AT_ONCE:
            return fresh
        if 4 <= len(fresh) and len(invalidated) <= _FEW_AT_ONCE:
            found = np.array(sorted(invalidated.union(fresh.tolist())), dtype=np.int64)
            invalidated.clear()
            return found
        table = self.cluster.table
        wanted = np.zeros(table.capacity, dtype=np.bool_)
        wanted[list(invalidated)] = True
        if len(fresh) < 4 and len(invalidated) < 4:
            first = int(fresh[0])
            neighbours = slice(first, first + _MOST_AT_ONCE // 2)
            wanted[neighbours] = table.alive[neighbours]
        wanted[fresh] = True
        invalidated.clear()
        return wanted.nonzero()[0]
