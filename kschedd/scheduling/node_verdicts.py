"""Verdicts of the filters that read a Node alone, kept by what they read of a pod.

A signature says all of a pod. These filters read little of it (tolerations, node selector, required node affinity), so
that pods which are each of a kind of their own share few keys (`FilterKey`). A key's entry has the verdicts on all
nodes, and the nodes that pass in visiting order: a search visits these alone, and knows of the others between them.

Only the filters with which a profile begins take part, as far as each has a key: what rejects a node first is what
counts, and is the same whatever later filters say. One that never rejects the pod is passed over.

Invariant: an entry equals what the filters would say now. It holds for a table size and the filters' cache keys; rows
whose Node object has changed after its stamp are judged again. Its arrays are replaced, never written: verdicts that
were found with it may be read later.

A key has an entry from the second pod on; the least recently used are dropped beyond `_MOST_BYTES`.
"""

from collections.abc import Hashable
from typing import cast

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.fast_path import CacheKey, FilterKey, NeverRejects
from kschedd.scheduling.node_local_plugins import NODE_ONLY, judge
from kschedd.scheduling.profile import EnabledFilter, EvaluationStyle, Framework
from kschedd.scheduling.recently_used import RecentlyUsed
from kschedd.scheduling.verdicts import PASSED, Places

_BYTES_A_ROW = 32
_MOST_BYTES = 128 << 20
_MOST = 256  # entries, however small the cluster
_FEWEST = 8  # and however large
_MOST_SEEN = 1024
_MOST_KEYS = 4096  # of signatures


@attrs.define(eq=False)
class NodeVerdictsEntry:
    """`failed` and `codes` by row, as in `Verdicts`; of `order`, the rows that pass and the places they have there."""

    stamp: int
    cache_keys: tuple[Hashable, ...]
    failed: Places
    codes: Ints
    order: Rows
    places: Ints
    rows: Rows


@attrs.define(eq=False)
class NodeVerdicts:
    """The entries of one profile on one cluster. `filters` take part; `others` are the profile's after them."""

    profile: Framework
    cluster: SchedulerCache
    filters: tuple[EnabledFilter, ...] = attrs.field(init=False)
    others: tuple[EnabledFilter, ...] = attrs.field(init=False)
    _keyed: tuple[tuple[str, FilterKey], ...] = attrs.field(init=False)
    _never_reject: tuple[NeverRejects, ...] = attrs.field(init=False)  # as long as they say so
    _with_cache_key: tuple[CacheKey, ...] = attrs.field(init=False)
    _entries: RecentlyUsed[tuple[Hashable, ...], NodeVerdictsEntry] = attrs.field(factory=RecentlyUsed, init=False)
    _seen: RecentlyUsed[tuple[Hashable, ...], None] = attrs.field(factory=RecentlyUsed, init=False)
    _keys: dict[int, tuple[Hashable, ...]] = attrs.field(factory=dict, init=False)  # by signature ignoring amounts

    def __attrs_post_init__(self) -> None:
        keyed: list[EnabledFilter] = []
        never_reject: list[NeverRejects] = []
        between: list[NeverRejects] = []  # the last one with a key and the next
        for filter_ in self.profile.filters:
            cached = filter_.style is EvaluationStyle.CACHED and filter_.depends_on == NODE_ONLY
            if filter_.in_tree and cached and hasattr(filter_.plugin, "filter_key"):
                keyed.append(filter_)
                never_reject += between
                between.clear()
            elif filter_.in_tree and not cached and hasattr(filter_.plugin, "never_rejects"):
                between.append(cast(NeverRejects, filter_.plugin))
            else:
                break
        self.filters = tuple(keyed)
        last = keyed[-1].place if keyed else -1
        self._never_reject = tuple(never_reject)
        self.others = tuple(filter_ for filter_ in self.profile.filters if filter_.place > last)
        self._keyed = tuple((filter_.name, cast(FilterKey, filter_.plugin)) for filter_ in keyed)
        self._with_cache_key = tuple(
            cast(CacheKey, filter_.plugin) for filter_ in keyed if hasattr(filter_.plugin, "cache_key")
        )

    def of(self, state: CycleState, pod: Pod) -> NodeVerdictsEntry | None:
        """The entry of the pod's key, brought up to date; None if it has none (yet). To be called after PreFilter."""
        skipped = state.skip_filter
        if not self._keyed or not all([plugin.never_rejects(pod) for plugin in self._never_reject]):
            return None
        keys = self._keys_of(pod)
        key = tuple([None if name in skipped else own for (name, _), own in zip(self._keyed, keys, strict=True)])
        known = self._entries.get(key)
        if known is None and self._seen.keep_new(key, None, _MOST_SEEN):
            return None
        table = self.cluster.table
        cache_keys = tuple([plugin.cache_key(self.cluster) for plugin in self._with_cache_key])
        if known is not None and (len(known.failed) != table.capacity or known.cache_keys != cache_keys):
            known = None
        if known is None:
            self._seen.pop(key, None)  # once dropped, it is to be of use again before it is made again
            most = max(_FEWEST, min(_MOST, _MOST_BYTES // (table.capacity * _BYTES_A_ROW)))
            return self._entries.keep(key, self._made(state, pod, cache_keys), most)
        if table.versions.nodes.at > known.stamp or known.order is not table.order:
            self._renew(known, state, pod)
        self._entries.move_to_end(key)
        return known

    def _keys_of(self, pod: Pod) -> tuple[Hashable, ...]:
        """Each filter's key."""
        number = pod.signature.signature_ignoring_amounts
        keys = self._keys.get(number)
        if keys is None:
            if len(self._keys) >= _MOST_KEYS:
                self._keys.clear()
            keys = self._keys[number] = tuple([plugin.filter_key(pod) for _, plugin in self._keyed])
        return keys

    def _made(self, state: CycleState, pod: Pod, cache_keys: tuple[Hashable, ...]) -> NodeVerdictsEntry:
        table = self.cluster.table
        failed = np.full(table.capacity, PASSED, dtype=np.int16)
        codes = np.zeros(table.capacity, dtype=np.int64)
        order = table.order
        failed[order], codes[order] = judge(self.filters, state, pod, table, order)
        places = (failed[order] == PASSED).nonzero()[0]
        return NodeVerdictsEntry(table.versions.now, cache_keys, failed, codes, order, places, order[places])

    def _renew(self, known: NodeVerdictsEntry, state: CycleState, pod: Pod) -> None:
        table = self.cluster.table
        changed = table.versions.nodes.since(known.stamp)
        nodes, order = table.nodes, table.order
        rows = order
        if changed is not None:
            rows = np.array([row for row in set(changed) if nodes[row] is not None], dtype=np.int64)
        failed, codes = known.failed.copy(), known.codes.copy()
        failed[rows], codes[rows] = judge(self.filters, state, pod, table, rows)
        known.stamp = table.versions.now
        known.failed, known.codes, known.order = failed, codes, order
        known.places = (failed[order] == PASSED).nonzero()[0]
        known.rows = order[known.places]
