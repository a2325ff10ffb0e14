"""PreparedAttempt: the part of an attempt that is the same for all pods of a class until the cluster changes.

Pods often arrive in groups made from one template. While these pods are scheduled, most plugins return the same result
from PreFilter and PreScore, whatever pods are on the nodes. A `PreparedAttempt` stores what these plugins wrote to the
CycleState, and lists the other plugins, which must be called for every pod. A prepared attempt takes the same steps as
any other attempt but calls fewer plugins.

Invariant: a prepared attempt has the same result as an unprepared one. A prepared attempt is created after a complete
attempt that found a node. It is valid
* only for pods of one class and one controller (pods of a DaemonSet, which differ only in the node they name, share a
  prepared attempt),
* only for pods without a node and without a nomination,
* only until a part of the cluster that `Versions.at` covers changes.

A plugin that does not implement `RepeatsWhileUnchanged`, or that is out-of-tree and has PreFilter or PreScore, is
called for every pod.
"""

from collections.abc import Collection, Sequence
from typing import Final, cast

import attrs

from kschedd.api.base import OwnerReference
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.fast_path import RepeatsWhileUnchanged, idle_for
from kschedd.framework.interface import PRE_FILTER, PRE_SCORE, Plugin, PreFilterPlugin, PreScorePlugin
from kschedd.scheduling.attempt.pre_filtering import PreFiltered
from kschedd.scheduling.attempt.ranking import Ranking
from kschedd.scheduling.filtering.filters import Filters
from kschedd.scheduling.profiles import plugin_metrics as points
from kschedd.scheduling.profiles.plugin_metrics import CallCounter
from kschedd.scheduling.profiles.profile import EnabledFilter, EnabledScore, EvaluationStyle, Framework

_MOST: Final = 4096


@attrs.frozen(eq=False)
class PreparedAttempt:
    """The part of an attempt that is the same for all pods of a class. `state` is copied for each attempt (`begin`).

    `named`: PreFilter narrows the search to the node that the pod's affinity names. `alone`: every plugin reads
    only the evaluated row, so attempts that visit different rows do not affect each other. `immediate`: no plugin
    evaluates nodes one by one, so the attempt yields no work.
    """

    stamp: int
    owner: OwnerReference | None
    state: CycleState
    pre_filters: tuple[tuple[PreFilterPlugin, CallCounter], ...]
    pre_scores: tuple[tuple[PreScorePlugin, CallCounter], ...]
    constant: int  # weighted sum of the scores that are the same on all nodes
    scores: tuple[EnabledScore, ...]  # scores that are added to the constant and the cached sum
    named: bool
    others: tuple[EnabledFilter, ...]  # filters that read more than the evaluated row
    alone: bool
    immediate: bool

    def begin(self) -> CycleState:
        """Return the state of a new attempt, before the remaining PreFilter plugins are called."""
        state = self.state
        return CycleState(
            state.data.copy(),
            state.skip_filter.copy() if self.pre_filters else state.skip_filter,
            state.already_filtered_by,
            state.skip_score.copy() if self.pre_scores else state.skip_score,
        )


@attrs.define(eq=False)
class Preparations:
    """The prepared attempts for the classes of one profile on one cluster."""

    _profile: Framework
    _cluster: SchedulerCache
    _filters: Filters
    _ranking: Ranking
    _by_class: dict[int, PreparedAttempt] = attrs.field(factory=dict, init=False)  # by signature without the named node

    def of(self, pod: Pod) -> PreparedAttempt | None:
        """Return the prepared attempt for the pod if it is still valid."""
        table = self._cluster.table
        prepared = self._by_class.get(pod.signature.signature_ignoring_node)
        if (
            prepared is None
            or prepared.stamp != table.versions.parts_at
            or pod.nominated_node_name
            or pod.node_name
            or table.wraps
            or prepared.owner != pod.owner
        ):
            return None
        return prepared

    def learn(self, pod: Pod, state: CycleState, pre_filtered: PreFiltered) -> None:
        """Prepare attempts for pods of the same class, after a complete attempt that found a node for this pod."""
        signature, profile = pod.signature, self._profile
        if signature.spec.resource_requests.wraps:
            return
        repeats = {
            plugin.name: self._repeats(plugin, pod) for plugin in (*profile.at(PRE_FILTER), *profile.at(PRE_SCORE))
        }
        pre_filters = tuple(
            plugin
            for plugin in profile.at(PRE_FILTER)
            if "pre_filter" not in repeats[plugin.name] and "pre_filter" not in idle_for(plugin)(pod)
        )
        pre_scores = tuple(plugin for plugin in profile.at(PRE_SCORE) if "pre_score" not in repeats[plugin.name])
        narrowed_by = pre_filtered.narrowed_by - {plugin.name for plugin in pre_filters}
        named = bool(narrowed_by)
        if named and (pre_filters or not state.already_filtered_by):
            return
        if len(self._by_class) >= _MOST:
            self._by_class.clear()
        self._by_class[signature.signature_ignoring_node] = self._made(pod, state, pre_filters, pre_scores, named)

    def _made(
        self,
        pod: Pod,
        state: CycleState,
        pre_filters: Sequence[PreFilterPlugin],
        pre_scores: Sequence[PreScorePlugin],
        named: bool,
    ) -> PreparedAttempt:
        calls, state = self._profile.plugin_metrics.calls, state.clone()
        state.skip_filter -= {plugin.name for plugin in pre_filters}
        state.skip_score -= {plugin.name for plugin in pre_scores}
        constant, scores = (0, []) if named else self._ranking.not_cached(state, pod)  # one node needs no score
        others = self._filters.called(state, pod)
        styles = {filter_.style for filter_ in others} | {score.style for score in scores}
        return PreparedAttempt(
            self._cluster.versions.parts_at,
            pod.owner,
            state,
            tuple((plugin, calls(plugin.name, points.PRE_FILTER)) for plugin in pre_filters),
            tuple((plugin, calls(plugin.name, points.PRE_SCORE)) for plugin in pre_scores),
            constant,
            tuple(scores),
            named,
            tuple(others),
            not pre_filters and not pre_scores and styles <= {EvaluationStyle.CACHED},
            EvaluationStyle.PER_NODE not in styles,
        )

    def _repeats(self, plugin: Plugin, pod: Pod) -> Collection[str]:
        if not hasattr(plugin, "repeats_while_unchanged"):  # a GuardedPlugin never has it
            return ()
        return cast(RepeatsWhileUnchanged, plugin).repeats_while_unchanged(pod, self._cluster)
