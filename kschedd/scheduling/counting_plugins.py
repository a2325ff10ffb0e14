"""The plugins of a repeated attempt that are asked anew in each: those that count the pods that are there.

What PodTopologySpread and InterPodAffinity say changes with every pod that gets a node, for pods of one template as
well. All else about such an attempt may repeat (`repetition`), and what the nodes themselves come to may be known ahead
(`lookahead`): so only these plugins are called, on the rows that all others pass.

A plugin may be among them if it is in-tree, looks at columns, and comes after all cached filters in the profile's
order; so an earlier verdict never hides theirs.
"""

from collections.abc import Collection, Hashable, Sequence
from typing import Self, cast

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.fast_path import FilterStateKey, SkipsWhileUnchanged
from kschedd.framework.interface import PRE_FILTER, PRE_SCORE, Plugin, PreFilterPlugin, PreScorePlugin
from kschedd.framework.status import Code, Status
from kschedd.scheduling import plugin_metrics as points
from kschedd.scheduling.filter_pass import FilterPass
from kschedd.scheduling.node_local_plugins import filter_columns, score_columns
from kschedd.scheduling.plugin_metrics import CallCounter
from kschedd.scheduling.profile import EnabledFilter, EnabledScore, EvaluationStyle, Framework

_BOTH = ("pre_filter", "pre_score")


@attrs.frozen(eq=False)
class CountingPlugins:
    """Those of one profile that are asked in each attempt for pods of one template, in the profile's order."""

    names: frozenset[str]
    filters: tuple[EnabledFilter, ...]
    scores: tuple[EnabledScore, ...]
    _cluster: SchedulerCache
    _pre_filters: tuple[tuple[PreFilterPlugin, CallCounter], ...]
    _pre_scores: tuple[tuple[PreScorePlugin, CallCounter], ...]
    _may_filter: frozenset[str]  # those of `_pre_filters`: of the others it is known that they skip it
    _may_score: frozenset[str]  # and those of `_pre_scores`

    @classmethod
    def of(cls, profile: Framework, cluster: SchedulerCache, plugins: Sequence[Plugin], pod: Pod) -> Self | None:
        """For pods like this one. None: one of these plugins cannot be among them."""
        names = frozenset(plugin.name for plugin in plugins)
        filters = tuple(one for one in profile.filters if one.name in names)
        scores = tuple(one for one in profile.scores if one.name in names)
        first = min((one.place for one in filters), default=len(profile.filters))
        cached_after = any(one.style is EvaluationStyle.CACHED for one in profile.filters[first:])
        styles = {one.style for one in filters} | {one.style for one in scores}
        if not names <= profile.in_tree or not styles <= {EvaluationStyle.VECTOR} or cached_after:
            return None
        calls = profile.plugin_metrics.calls
        skips = {plugin.name: _skips(plugin, pod, cluster) for plugin in plugins}
        pre_filters = [one for one in profile.at(PRE_FILTER) if "pre_filter" not in skips.get(one.name, _BOTH)]
        pre_scores = [one for one in profile.at(PRE_SCORE) if "pre_score" not in skips.get(one.name, _BOTH)]
        return cls(
            names,
            filters,
            scores,
            cluster,
            tuple((one, calls(one.name, points.PRE_FILTER)) for one in pre_filters),
            tuple((one, calls(one.name, points.PRE_SCORE)) for one in pre_scores),
            frozenset(one.name for one in pre_filters),
            frozenset(one.name for one in pre_scores),
        )

    def pre_filter(self, state: CycleState, pod: Pod) -> bool:
        """Prepare the attempt whose state this is; False if one of them says more than that it takes part, or not."""
        state.skip_filter -= self._may_filter
        for plugin, calls in self._pre_filters:
            began = calls.start()
            said = plugin.pre_filter(state, pod, self._cluster)
            calls.answered(began, said)
            if said is None:
                continue
            if not isinstance(said, Status) or said.code != Code.SKIP:
                return False
            state.skip_filter.add(plugin.name)
        return True

    def filter_state_key(self, state: CycleState) -> Hashable:
        """What these filters' codes depend on that changes with every pod; None if some filter does not say."""
        skipped = state.skip_filter
        keys = []
        for filter_ in self.filters:
            if filter_.name not in skipped:
                plugin = filter_.plugin
                key = (
                    cast(FilterStateKey, plugin).filter_state_key(state)
                    if hasattr(plugin, "filter_state_key")
                    else None
                )
                if key is None:
                    return None
                keys.append((filter_.name, key))
        return tuple(keys)

    def passed(self, state: CycleState, pod: Pod, rows: Rows) -> FilterPass:
        """Of these rows, which all other filters pass, those that pass."""
        done = FilterPass(rows)
        for filter_ in self.filters:
            if filter_.name in state.skip_filter:
                continue
            passing = done.passing
            if not len(passing):
                break
            codes = filter_columns(filter_, state, pod, self._cluster.table, passing)
            if codes is not None:
                done.reject(filter_.place, codes)
        return done

    def pre_score(self, state: CycleState, pod: Pod, rows: Rows) -> bool:
        """Likewise, before the scores; False if one of them fails."""
        state.skip_score -= self._may_score
        for plugin, calls in self._pre_scores:
            began = calls.start()
            status = plugin.pre_score(state, pod, self._cluster, rows)
            calls.answered(began, status)
            if status is None:
                continue
            if status.code != Code.SKIP:
                return False
            state.skip_score.add(plugin.name)
        return True

    def add_scores(self, totals: Ints, state: CycleState, pod: Pod, rows: Rows) -> None:
        """Add their weighted scores to the totals of these rows."""
        for score in self.scores:
            if score.name in state.skip_score:
                continue
            values = score_columns(score, state, pod, self._cluster.table, rows)
            if score.normalizes:
                began = score.normalizing.start()
                values = score.extensions.normalize(state, pod, values)
                score.normalizing.ended(began)
            totals += values if score.weight == 1 else values * np.int64(score.weight)


def _skips(plugin: Plugin, pod: Pod, cluster: SchedulerCache) -> Collection[str]:
    if not hasattr(plugin, "skips_while_unchanged"):
        return ()
    return cast(SkipsWhileUnchanged, plugin).skips_while_unchanged(pod, cluster)
