"""Repetition: attempts for pods like one that was attempted before, without the calls whose answers are known.

Most pods come in numbers, from one template: the attempts for them differ in the rows that are visited and in the pods
that came to these rows, and in nothing else. Where that holds, what PreFilter and PreScore left in the CycleState, and
the sum of the scores that are the same on all nodes, are kept from one attempt to the next (a `Pattern`), and the
attempt is a search through the cached evaluation and a choice.

Invariant: the result is that of a whole attempt. A pattern is learnt from a whole attempt, of a profile whose filters
and scores are all in-tree, and only where

* PreFilter rejected nothing, and narrowed the nodes to none but the one that the pod's own affinity names, if any;
  every plugin that was asked at PreFilter and PreScore answers the same
  for all such pods until some part of the cluster changes that `Versions.at` dates (`RepeatsWhileUnchanged`);
* no filter takes part that reads more than the row it judges, and every score is the same on all nodes, or depends on
  its row alone before it is normalized.

It holds for pods of one signature and one controller, until such a part changes; a DaemonSet's pods, which differ in
the node that they name, have one pattern. Where a search finds fewer than two nodes (no node, of a pod that names one)
the whole attempt is made instead; so it is with nominated pods, for pods that are nominated themselves, with extenders,
and step by step.
"""

from typing import cast

import attrs
import numpy as np

from kschedd.api.base import OwnerReference
from kschedd.api.pods import Pod, PodSignature
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.fast_path import RepeatsWhileUnchanged, SkipsPreFilter
from kschedd.framework.interface import PRE_FILTER, PRE_SCORE, Plugin, PreFilterResult
from kschedd.scheduling.evaluation_cache import EvaluationCache
from kschedd.scheduling.metrics import NoTimes, PointTimes
from kschedd.scheduling.node_local_plugins import PluginFault
from kschedd.scheduling.node_search import Found, NodeSearch, narrowed_status
from kschedd.scheduling.profile import EnabledScore, EvaluationStyle, Framework
from kschedd.scheduling.ranking import by_signature

_MOST_PATTERNS = 4096


@attrs.frozen(eq=False)
class Pattern:
    """What is the same in all attempts for such pods. `state` None: nothing is, and whole attempts are made."""

    stamp: int
    owner: OwnerReference | None
    state: CycleState | None
    constant: int = 0  # the weighted sum of the scores that all nodes have in common
    normalized: tuple[EnabledScore, ...] = ()  # of cached scores


@attrs.define(eq=False)
class Repetition:
    """The patterns of one profile on one cluster."""

    _profile: Framework
    _cluster: SchedulerCache
    _cache: EvaluationCache
    _search: NodeSearch
    _in_tree: bool = attrs.field(init=False)
    _patterns: dict[int, Pattern] = attrs.field(
        factory=dict, init=False
    )  # by signature, ignoring the node that is named

    def __attrs_post_init__(self) -> None:
        profile = self._profile
        self._in_tree = all(one.in_tree for one in profile.filters) and all(one.in_tree for one in profile.scores)

    def attempt(
        self, pod: Pod, start: int, wanted: int, times: PointTimes | NoTimes
    ) -> tuple[CycleState, Found, Ints | None] | None:
        """The state, the feasible nodes and their totals (None: of one node); None to make a whole attempt instead."""
        spec, table = pod.signature.spec, self._cluster.table
        pattern = self._patterns.get(pod.signature.signature_ignoring_node)
        if (
            pattern is None
            or pattern.state is None
            or pattern.stamp != table.versions.parts_at
            or pod.nominated_node_name
            or pod.node_name
            or table.wraps
            or pattern.owner != pod.owner
        ):
            return None
        common = pattern.state
        state = CycleState(common.data.copy(), common.skip_filter, common.already_filtered_by, common.skip_score)
        began = times.start()
        if common.already_filtered_by:
            row = table.row_of.get(spec.required_node or "")
            cached = None if row is None else self._cache.of(pod, state)
            if cached is None:
                return None
            found = self._search.cached(state, pod, np.array([row], dtype=np.int64), 0, 1, cached)
            if not len(found.rows):
                return None
            found.verdicts.default_status = narrowed_status((common.already_filtered_by,))
            times.repeated(times.start() - began)
            return state, found, None
        cached = self._cache.of(pod, state)
        if cached is None:
            return None
        order = table.order
        found = self._search.cached(state, pod, order, start % len(order), wanted, cached)
        if len(found.rows) < 2:
            return None
        searched = times.start()
        try:
            totals = self._cache.score(cached, state, pod, found.rows)
        except PluginFault:
            return None
        totals += pattern.constant
        for score in pattern.normalized:
            totals += score.extensions.normalize(state, pod, cached.raw[score.name][found.rows]) * score.weight
        times.repeated(searched - began, times.start() - searched)
        return state, found, totals

    def learn(self, pod: Pod, state: CycleState, narrowed: PreFilterResult | None) -> None:
        """Keep what pods like this one have in common, after a whole attempt that has found nodes for it; `narrowed` is
        what PreFilter came to."""
        stamp, owner, number = self._cluster.versions.parts_at, pod.owner, pod.signature.signature_ignoring_node
        known = self._patterns.get(number)
        if known is not None and known.stamp == stamp and known.owner == owner:
            return
        if len(self._patterns) >= _MOST_PATTERNS:
            self._patterns.clear()
        pattern = None
        if self._in_tree and self._repeats(pod, state):
            pattern = Pattern(stamp, owner, state.clone())
            if narrowed is None:
                pattern = self._with_scores(pattern, pod, state)
            elif not state.already_filtered_by or narrowed.node_names != {pod.signature.spec.required_node}:
                pattern = None
        self._patterns[number] = pattern or Pattern(stamp, owner, None)

    def _repeats(self, pod: Pod, state: CycleState) -> bool:
        """Whether what PreFilter, Filter and PreScore do for such pods follows from the cached evaluation."""
        profile, signature = self._profile, pod.signature
        if signature.spec.resource_requests.wraps or not self._search.filters.row_by_row(state, pod):
            return False
        pre_filters = [plugin for plugin in profile.at(PRE_FILTER) if not _skips_pre_filter(plugin, signature)]
        pre_scores = [plugin for plugin in profile.at(PRE_SCORE) if not by_signature(plugin)]
        return all(_repeats(plugin, pod, self._cluster) for plugin in (*pre_filters, *pre_scores))

    def _with_scores(self, pattern: Pattern, pod: Pod, state: CycleState) -> Pattern | None:
        """The pattern with what has to be added to the cached scores; None where some score cannot be cached."""
        total = 0
        normalized = []
        for score in self._profile.scores:
            local = score.style is EvaluationStyle.CACHED
            if score.name in state.skip_score or (local and not score.normalizes):
                continue
            constant = None if score.constant is None else score.constant(pod, self._cluster.table)
            if constant is not None:
                total += constant * score.weight
            elif local:
                normalized.append(score)
            else:
                return None
        return attrs.evolve(pattern, constant=total, normalized=tuple(normalized))


def _repeats(plugin: Plugin, pod: Pod, cluster: SchedulerCache) -> bool:
    return hasattr(plugin, "repeats_while_unchanged") and cast(RepeatsWhileUnchanged, plugin).repeats_while_unchanged(
        pod, cluster
    )


def _skips_pre_filter(plugin: Plugin, signature: PodSignature) -> bool:
    return hasattr(plugin, "skips_pre_filter") and cast(SkipsPreFilter, plugin).skips_pre_filter(signature)
