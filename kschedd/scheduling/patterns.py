"""Patterns: what the attempts for pods like one that was attempted before have in common.

That is what PreFilter and PreScore left in the CycleState, and the sum of the scores that are the same on all nodes.

Invariant: an attempt with what a pattern holds comes to what a whole attempt comes to. A pattern is learnt from a whole
attempt, of a profile whose filters and scores are all in-tree, and only where

* PreFilter rejected nothing, and narrowed the nodes to none but the one that the pod's own affinity names, if any;
* every plugin that was asked at PreFilter and PreScore answers the same for all such pods until some part of the
  cluster changes that `Versions.at` dates (`RepeatsWhileUnchanged`), or is asked anew each time (`counting_plugins`);
* no other filter takes part that reads more than the row it judges, and every other score is the same on all nodes, or
  depends on its row alone before it is normalized.

It holds for pods of one signature and one controller, until such a part changes; a DaemonSet's pods, which differ in
the node that they name, have one pattern. For a pod with a node or a nomination of its own none holds.

Owns the patterns of one profile on one cluster.
"""

from collections.abc import Sequence
from typing import Final, cast

import attrs

from kschedd.api.base import OwnerReference
from kschedd.api.pods import Pod, PodSignature
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.fast_path import RepeatsWhileUnchanged, SkipsPreFilter
from kschedd.framework.interface import PRE_FILTER, PRE_SCORE, Plugin, PreFilterResult
from kschedd.scheduling.counting_plugins import CountingPlugins
from kschedd.scheduling.filters import Filters
from kschedd.scheduling.profile import EnabledScore, EvaluationStyle, Framework
from kschedd.scheduling.ranking import by_signature

_MOST_PATTERNS: Final = 4096


@attrs.frozen(eq=False)
class Pattern:
    """What is the same in all attempts for such pods. If nothing `repeats`, whole attempts are made."""

    stamp: int
    owner: OwnerReference | None
    state: CycleState
    repeats: bool = True
    constant: int = 0  # the weighted sum of the scores that all nodes have in common
    normalized: tuple[EnabledScore, ...] = ()  # of cached scores
    counting: CountingPlugins | None = None  # those that are asked anew in each attempt


@attrs.define(eq=False)
class Patterns:
    """See the module."""

    _profile: Framework
    _cluster: SchedulerCache
    _filters: Filters
    _in_tree: bool = attrs.field(init=False)
    _patterns: dict[int, Pattern] = attrs.field(factory=dict, init=False)  # by signature, ignoring the named node

    def __attrs_post_init__(self) -> None:
        profile = self._profile
        self._in_tree = all(one.in_tree for one in profile.filters) and all(one.in_tree for one in profile.scores)

    def of(self, pod: Pod) -> Pattern | None:
        """The pattern of such pods, if there is one and it holds for this one now."""
        table = self._cluster.table
        pattern = self._patterns.get(pod.signature.signature_ignoring_node)
        if (
            pattern is None
            or not pattern.repeats
            or pattern.stamp != table.versions.parts_at
            or pod.nominated_node_name
            or pod.node_name
            or table.wraps
            or pattern.owner != pod.owner
        ):
            return None
        return pattern

    def learnt(self, pod: Pod) -> Pattern | None:
        """The pattern of such pods, whether it holds for this one now or not."""
        pattern = self._patterns.get(pod.signature.signature_ignoring_node)
        return None if pattern is None or not pattern.repeats else pattern

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
        changing = self._changing(pod, state) if self._in_tree else None
        if changing is not None:
            pattern = Pattern(stamp, owner, state.clone())
            if narrowed is None:
                pattern = self._with_scores(pattern, pod, state, changing)
            elif changing or not state.already_filtered_by or narrowed.node_names != {pod.signature.spec.required_node}:
                pattern = None
        self._patterns[number] = pattern or Pattern(stamp, owner, CycleState(), repeats=False)

    def _changing(self, pod: Pod, state: CycleState) -> list[Plugin] | None:
        """The plugins that may say something else in the next attempt for such a pod; None if what PreFilter, Filter
        and PreScore of the others do does not follow from the cached evaluation."""
        profile, signature = self._profile, pod.signature
        if signature.spec.resource_requests.wraps:
            return None
        pre_filters = [plugin for plugin in profile.at(PRE_FILTER) if not _skips_pre_filter(plugin, signature)]
        pre_scores = [plugin for plugin in profile.at(PRE_SCORE) if not by_signature(plugin)]
        changing = [one for one in (*pre_filters, *pre_scores) if not _repeats(one, pod, self._cluster)]
        without = attrs.evolve(state, skip_filter=state.skip_filter | {plugin.name for plugin in changing})
        return changing if self._filters.row_by_row(without, pod) else None

    def _with_scores(self, pattern: Pattern, pod: Pod, state: CycleState, changing: Sequence[Plugin]) -> Pattern | None:
        """The pattern with what has to be added to the cached scores; None where some score cannot be cached."""
        counting = CountingPlugins.of(self._profile, self._cluster, changing, pod) if changing else None
        if changing and counting is None:
            return None
        asked = frozenset[str]() if counting is None else counting.names
        total = 0
        normalized = []
        for score in self._profile.scores:
            local = score.style is EvaluationStyle.CACHED
            if score.name in asked or score.name in state.skip_score or (local and not score.normalizes):
                continue
            constant = None if score.constant is None else score.constant(pod, self._cluster.table)
            if constant is not None:
                total += constant * score.weight
            elif local:
                normalized.append(score)
            else:
                return None
        return attrs.evolve(pattern, constant=total, normalized=tuple(normalized), counting=counting)


def _repeats(plugin: Plugin, pod: Pod, cluster: SchedulerCache) -> bool:
    return hasattr(plugin, "repeats_while_unchanged") and cast(RepeatsWhileUnchanged, plugin).repeats_while_unchanged(
        pod, cluster
    )


def _skips_pre_filter(plugin: Plugin, signature: PodSignature) -> bool:
    return hasattr(plugin, "skips_pre_filter") and cast(SkipsPreFilter, plugin).skips_pre_filter(signature)
