"""Evaluations cached by pod signature: verdicts and scores of the node-local plugins, row by row.

Pods of one signature get the same verdict from a node-local plugin as long as the node it looks at stays as it is. So
each signature has columns of its own with the place of the first node-local filter that failed, its code, and the
node-local plugins' scores, and says which rows still hold.

The rule: a cached value equals what the plugins would say now. It is kept by these, and by nothing else:

* An entry belongs to a signature (or to those that differ in nothing but the node they are pinned to, where PreFilter
  has settled that), to what PreFilter skipped, to every plugin's cache key, and to a size of the table. If one of the
  last three differs, a new entry takes its place.
* Before use, the rows whose Node object or pods changed after the entry's stamp are invalidated: of the former all is
  forgotten, of the latter what depends on a node's pods. Where the log no longer reaches back, that goes for every row.
* PreScore's skips differ: the scores are forgotten, the verdicts stay.
* Nominated pods are never part of an entry (`nominated_pods`), nor is what a plugin says that looks beyond the row.

There are two kinds of columns, because pods come and go all the time and nodes hardly ever change: plugins that read
the Node object only are asked again when that changed, and only plugins that read what the pods of a node take of it,
or the pods themselves, when a pod came or went. A new version of a pod that takes the same as before matters only to
those that read the pods themselves.

A signature has an entry from its second attempt on; those not seen for longest are dropped beyond a memory limit.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import cast

import attrs
import numpy as np
from numpy import count_nonzero  # of a boolean column, several times faster than its `all` and `any`

from kschedd.api.pods import Pod
from kschedd.cache.cluster import Cluster
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.cache.versions import Versions
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.fast_path import CacheKey
from kschedd.scheduling.node_local_plugins import NodeLocalPlugins
from kschedd.scheduling.profile import EvaluationStyle, RunningProfile
from kschedd.scheduling.verdicts import PASSED, Places

_MEMORY = 192 << 20  # bytes of columns all entries together may take
_BYTES_A_ROW = 64
_MOST_AT_ONCE = 512  # rows evaluated besides those asked about
_FEWEST = 8  # entries, however large the cluster
_MOST_SEEN = 4096
UNKNOWN = -1  # in place of a plugin's place, where no verdict holds


class CachedEvaluation:
    """The columns of one signature. `base` sums the weighted scores of plugins that do not normalise; others' are in
    `raw`."""

    def __init__(
        self, table: NodeTable, cache_keys: tuple[Hashable, ...], skip_filter: frozenset[str], reads_pods: bool
    ) -> None:
        size = table.capacity
        self.size = size
        self.cache_keys = cache_keys
        self.skip_filter = skip_filter
        self.skip_score: frozenset[str] | None = None  # None until it was first scored
        self.stamp = table.versions.now
        self.reads_pods = reads_pods  # whether a new version of a pod matters even if it takes the same as before
        self.failed = np.full(size, UNKNOWN, dtype=np.int16)  # UNKNOWN where no verdict holds
        self.codes = np.zeros(size, dtype=np.int64)
        self.scored = np.zeros(size, dtype=np.bool_)  # scores hold
        self.base = np.zeros(size, dtype=np.int64)
        self.raw: dict[str, Ints] = {}
        # The verdicts of the plugins that read the Node object only, by themselves.
        self.node_failed = np.full(size, UNKNOWN, dtype=np.int16)
        self.node_codes = np.zeros(size, dtype=np.int64)
        self.node_scored = np.zeros(size, dtype=np.bool_)
        self.node_base = np.zeros(size, dtype=np.int64)
        # Rows invalidated since: evaluated in one go with the next row that has to be.
        self.unjudged: set[int] = set()
        self.unscored: set[int] = set()
        self.failed_search: object = None  # the last search, if it found nothing (node_search.FailedSearch)

    def invalidate(self, versions: Versions) -> None:
        """What changed since the last time is no longer known."""
        stamp, self.stamp = self.stamp, versions.now
        if versions.nodes.at > stamp:
            rows = versions.nodes.since(stamp)
            chosen = slice(None) if rows is None else rows
            self.failed[chosen] = self.node_failed[chosen] = UNKNOWN
            self.scored[chosen] = self.node_scored[chosen] = False
        if versions.pods.at > stamp:
            self._invalidate_pods(versions.pods.since(stamp))
        if self.reads_pods and versions.pod_updates.at > stamp:
            self._invalidate_pods(versions.pod_updates.since(stamp))

    def _invalidate_pods(self, rows: list[int] | None) -> None:
        """What runs on these rows has changed; None: on any."""
        if rows is None:
            self.failed[:] = UNKNOWN
            self.scored[:] = False
            return
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
        self.scored[:] = False
        self.node_scored[:] = False


@attrs.define(eq=False)
class EvaluationCache:
    """The cached evaluations of one profile over one cluster."""

    profile: RunningProfile
    cluster: Cluster
    of_nodes: NodeLocalPlugins = attrs.field(init=False)
    of_pods: NodeLocalPlugins = attrs.field(init=False)
    _with_cache_key: tuple[CacheKey, ...] = attrs.field(init=False)
    _ignoring_node: bool = attrs.field(init=False)  # whether pods pinned to different nodes may share an entry
    _entries: OrderedDict[int, CachedEvaluation] = attrs.field(factory=OrderedDict, init=False)  # by signature
    _seen: OrderedDict[int, None] = attrs.field(factory=OrderedDict, init=False)

    def __attrs_post_init__(self) -> None:
        self.of_nodes = NodeLocalPlugins(self.profile, False)
        self.of_pods = NodeLocalPlugins(self.profile, True)
        filters = [p for p in self.profile.filters if p.style is EvaluationStyle.CACHED]
        self._ignoring_node = all(p.in_tree for p in filters)
        local = [p.plugin for p in filters]
        local += [p.plugin for p in self.profile.scores if p.style is EvaluationStyle.CACHED]
        self._with_cache_key = tuple(
            {id(plugin): cast(CacheKey, plugin) for plugin in local if hasattr(plugin, "cache_key")}.values()
        )

    def of(self, pod: Pod, state: CycleState) -> CachedEvaluation | None:
        """The entry of the pod's signature, with all that changed invalidated; None if it has none (yet).

        To be called once an attempt, after PreFilter.
        """
        shape = pod.shape
        # Pods that differ in nothing but the node they are pinned to share an entry where PreFilter has seen to that.
        number = shape.kinship if state.already_filtered_by and self._ignoring_node else shape.number
        found = self._entries.get(number)
        if found is None and number not in self._seen:
            self._seen[number] = None
            if len(self._seen) > _MOST_SEEN:
                self._seen.popitem(last=False)
            return None
        table = self.cluster.table
        cache_keys = tuple([plugin.cache_key(self.cluster) for plugin in self._with_cache_key])
        if (
            found is None
            or found.size != table.capacity
            or found.cache_keys != cache_keys
            or found.skip_filter != state.skip_filter
        ):
            skipped = frozenset(state.skip_filter)
            found = self._entries[number] = CachedEvaluation(table, cache_keys, skipped, self.profile.reads_pods)
            most = max(_FEWEST, _MEMORY // (table.capacity * _BYTES_A_ROW))
            while len(self._entries) > most:
                self._entries.popitem(last=False)
        else:
            found.invalidate(table.versions)
        self._entries.move_to_end(number)
        return found

    def judge(self, found: CachedEvaluation, state: CycleState, pod: Pod, rows: Rows) -> tuple[Places, Ints]:
        """As `NodeLocalPlugins.judge` of both kinds together, but rows already known are looked up."""
        failed = found.failed[rows]
        if count_nonzero(failed == PASSED) == len(rows):
            return failed, np.zeros(len(rows), dtype=np.int64)
        unknown = failed == UNKNOWN
        if count_nonzero(unknown):
            fresh = self._with_others(rows[unknown], found.unjudged)
            self._judge_fresh(found, state, pod, fresh[found.failed[fresh] == UNKNOWN])
            failed = found.failed[rows]
        return failed, found.codes[rows]

    def _judge_fresh(self, found: CachedEvaluation, state: CycleState, pod: Pod, fresh: Rows) -> None:
        table, already_filtered_by = self.cluster.table, state.already_filtered_by
        node_failed = found.node_failed[fresh]
        unknown = node_failed == UNKNOWN
        if count_nonzero(unknown):
            stale = fresh[unknown]
            node_failed[unknown], found.node_codes[stale] = self.of_nodes.judge(
                state, pod, table, stale, already_filtered_by
            )
            found.node_failed[stale] = node_failed[unknown]
        failed, codes = self.of_pods.judge(state, pod, table, fresh, already_filtered_by)
        earlier = node_failed < failed
        if count_nonzero(earlier):
            failed[earlier] = node_failed[earlier]
            codes[earlier] = found.node_codes[fresh[earlier]]
        found.codes[fresh] = codes
        found.failed[fresh] = failed

    def score(self, found: CachedEvaluation, state: CycleState, pod: Pod, rows: Rows) -> Ints:
        """The weighted sum as of `NodeLocalPlugins.score` of both kinds together, but rows already known are looked up.

        The raw scores of these rows are in `found.raw` then.
        """
        if found.skip_score is None or found.skip_score != state.skip_score:
            found.forget_scores(frozenset(state.skip_score))
        scored = found.scored[rows]
        if count_nonzero(scored) != len(rows):
            fresh = self._with_others(rows[~scored], found.unscored)
            self._score_fresh(found, state, pod, fresh[~found.scored[fresh]])
        return found.base[rows]

    def _score_fresh(self, found: CachedEvaluation, state: CycleState, pod: Pod, fresh: Rows) -> None:
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
    def _keep_raw(found: CachedEvaluation, rows: Rows, raw: dict[str, Ints]) -> None:
        for name, values in raw.items():
            column = found.raw.get(name)
            if column is None:
                column = found.raw[name] = np.zeros(found.size, dtype=np.int64)
            column[rows] = values

    def _with_others(self, fresh: Rows, invalidated: set[int]) -> Rows:
        """The rows that have to be evaluated now, and others that soon will: a few hundred cost hardly more than one.

        Those invalidated lately, and where hardly any is asked about (pods that can go to one node only) its
        neighbours. Some of them may be known; none is there twice.
        """
        if len(fresh) >= _MOST_AT_ONCE:
            return fresh
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
