"""Scoring of feasible nodes, and the choice of one of the nodes with the highest total.

Source: Kubernetes v1.34, scheduler/schedule_one.go (prioritizeNodes, selectHost),
scheduler/framework/runtime/framework.go (RunPreScorePlugins, RunScorePlugins). Units: a normalized score is 0 to 100,
and a weighted score is the normalized score times the plugin's weight; both are int64. Shapes: one value for each
feasible row, in the rows' order.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.cache.table_without_pods import TableWithoutPods
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.faults import PluginError
from kschedd.framework.guarding.answers import Answer
from kschedd.framework.interface import PRE_SCORE, PreScorePlugin
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import Code, Status, error, fault_text
from kschedd.scheduling.debug.stepper import Stepper
from kschedd.scheduling.debug.work import Shards, Work, drive
from kschedd.scheduling.filtering.evaluation import Evaluation, Evaluations, Positions
from kschedd.scheduling.filtering.filters import NodeCalls, as_one_call
from kschedd.scheduling.filtering.node_local_plugins import (
    PluginFault,
    check_range,
    invalid_score,
    out_of_range,
    score_columns,
)
from kschedd.scheduling.profiles import plugin_metrics as points
from kschedd.scheduling.profiles.plugin_metrics import CallCounter
from kschedd.scheduling.profiles.profile import EnabledScore, EvaluationStyle, Framework

_SHARD = 64

CountedPreScore = tuple[PreScorePlugin, CallCounter]
"""A plugin with the counter for its PreScore calls."""


@attrs.frozen(eq=False)
class Scores:
    """Each plugin's contribution to the totals, computed only on request."""

    rows: Rows
    raw: dict[str, Ints]
    weighted: dict[str, Ints]
    total: Ints


@attrs.define(eq=False)
class Ranking:
    """The score plugins of a profile on a cluster."""

    profile: Framework
    cluster: SchedulerCache
    evaluations: Evaluations | None  # None if only `details` is used
    scored: Scores | None = attrs.field(default=None, init=False)  # scores of the attempt, if every score is recorded
    _plugins: list[CountedPreScore] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        calls = self.profile.plugin_metrics.calls
        self._plugins = [(plugin, calls(plugin.name, points.PRE_SCORE)) for plugin in self.profile.at(PRE_SCORE)]

    def pre_score(self, state: CycleState, pod: Pod, rows: Rows) -> Status | None:
        """Run PreScore without a stepper."""
        return drive(self.pre_scoring(state, pod, rows, None))

    def pre_scoring(
        self,
        state: CycleState,
        pod: Pod,
        rows: Rows,
        stepper: Stepper | None,
        only: Sequence[CountedPreScore] | None = None,
    ) -> Work[Status | None]:
        """Run PreScore of all plugins, or of the plugins in `only`; return the status of the first failure."""
        if only is not None:
            failure, skips = self._pre_score(only, state, pod, rows)
            state.skip_score |= skips
            return failure
        if stepper is not None:
            for plugin in self.profile.at(PRE_SCORE):
                yield from stepper.before("preScore", plugin.name, rows)
                calls = self.profile.plugin_metrics.calls(plugin.name, points.PRE_SCORE)
                failure, skips = self._pre_score([(plugin, calls)], state, pod, rows)
                if failure is not None:
                    return failure
                state.skip_score |= skips
            return None
        failure, state.skip_score = self._pre_score(self._plugins, state, pod, rows)
        return failure

    def _pre_score(
        self, plugins: Sequence[CountedPreScore], state: CycleState, pod: Pod, rows: Rows
    ) -> tuple[Status | None, set[str]]:
        skipped = set()
        for plugin, calls in plugins:
            began = calls.start() if calls.sampling.plugins else None
            try:
                status = plugin.pre_score(state, pod, self.cluster, rows)
            except Exception as fault:  # an exception of a plugin must end the attempt and not the daemon
                status = error(fault_text(fault))
            if status is None and began is None:
                calls.evaluations += 1
                continue
            calls.answered(began, status)
            if status is None:
                continue
            if status.code == Code.SKIP:
                skipped.add(plugin.name)
            elif status.code != Code.SUCCESS:
                text = f'running PreScore plugin "{plugin.name}": {status.message}'
                return Status(Code.ERROR, (text,), plugin.name), skipped
        return None, skipped

    def totals(
        self,
        state: CycleState,
        pod: Pod,
        rows: Rows,
        known: Evaluation,
        at: Positions,
        stepper: Stepper | None = None,
        prepared: tuple[int, Sequence[EnabledScore]] | None = None,
        attempts: int = 1,
    ) -> Work[Ints]:
        """Return the total of each row; `at` are the positions of the rows in the evaluation. Raises PluginFault.

        `prepared` holds the weighted sum of the scores that are the same on all nodes, and the scores to add to it. The
        rows of several `attempts` follow one another, with the same number of rows for each attempt. Scores are
        normalized for each attempt.
        """
        table, self.scored = self.cluster.table, None
        if table.wraps or pod.pod_spec.resource_requests.wraps:
            return (yield from self._checked(state, pod, rows, stepper))
        if stepper is not None or state.scores_without_pods:
            scores = yield from self.details(state, pod, rows, stepper)
            return scores.total if stepper is None or not stepper.replaced else stepper.totals()
        if self.profile.plugin_metrics.sampling.scores:
            self.scored = yield from self.details(state, pod, rows)
            return self.scored.total
        assert self.evaluations is not None, "totals are of an attempt"
        total = self.evaluations.score(known, state, pod, at)
        constant, scores_left = self.not_cached(state, pod) if prepared is None else prepared
        if constant:
            total += constant
        for score in scores_left:
            if score.name in state.skip_score:
                continue
            if score.style is EvaluationStyle.CACHED:
                values = known.raw[score.name][at]
                if not score.in_tree and isinstance(at, slice):
                    values = values.copy()
            else:
                values = yield from self._raw(score, state, pod, rows)
            if attempts == 1:
                normal = self._normal(score, state, pod, rows, values)
            else:
                parts = [self._normal(score, state, pod, rows, part) for part in values.reshape(attempts, -1)]
                normal = np.concatenate(parts)
            total += normal * score.weight
        return total

    def not_cached(self, state: CycleState, pod: Pod) -> tuple[int, list[EnabledScore]]:
        """Return the weighted sum of scores that are equal on all nodes, and the remaining uncached scores."""
        constant, left = 0, []
        for score in self.profile.scores:
            if score.name in state.skip_score or (score.style is EvaluationStyle.CACHED and not score.normalizes):
                continue
            same = None if score.constant is None else score.constant(pod, self.cluster.table)
            if same is None:
                left.append(score)
            else:
                constant += same * score.weight
        return constant, left

    def _checked(self, state: CycleState, pod: Pod, rows: Rows, stepper: Stepper | None) -> Work[Ints]:
        """Return the totals, computed exactly if sums may overflow.

        Raise PluginFault if an in-tree plugin's score is out of range.
        """
        scores: Scores = yield from self.details(state, pod, rows, stepper)
        weights = {score.name: score.weight for score in self.profile.scores}
        final = {name: weighted // weights[name] for name, weighted in scores.weighted.items()}
        wrong = [(int(places[0]), name) for name in final if len(places := out_of_range(final[name]))]
        if wrong:
            # Upstream iterates over nodes, and for each node over the plugins. Upstream reports the first error in that
            # order.
            place, name = min(wrong, key=lambda found: found[0])
            raise invalid_score(name, int(final[name][place]))
        return scores.total if stepper is None or not stepper.replaced else stepper.totals()

    def _normal(self, score: EnabledScore, state: CycleState, pod: Pod, rows: Rows, raw: Ints) -> Ints:
        """Return the plugin's normalized scores, 0 to 100. Raises PluginFault."""
        if not score.normalizes:
            normal = raw
        else:
            calls = score.normalizing
            began = calls.start() if calls.sampling.plugins else None
            try:
                normal = score.extensions.normalize(state, pod, raw)
                if began is not None:
                    calls.ended(began)
            except Exception as fault:  # an exception of a plugin must end the attempt and not the daemon
                if score.in_tree:
                    raise
                calls.ended(began, points.ERROR)
                what = fault_text(fault)
                text = f'running Normalize on Score plugins: plugin "{score.name}" failed with: {what}'
                raise PluginFault(score.name, text) from fault
        if not score.in_tree:
            check_range(score, normal)
        return normal

    def _raw(self, score: EnabledScore, state: CycleState, pod: Pod, rows: Rows) -> Work[Ints]:
        """Return the plugin's raw scores. Raises PluginFault."""
        table = TableWithoutPods(self.cluster.table) if state.scores_without_pods else self.cluster.table
        if score.style is not EvaluationStyle.PER_NODE:
            return score_columns(score, state, pod, table, rows)
        places = rows.tolist()
        began = score.calls.start()
        shards: Shards = [
            _score_shard(score, state, pod, table, places[first : first + _SHARD])
            for first in range(0, len(places), _SHARD)
        ]
        answers = [answer for part in (yield shards) for answer in part]
        failed = next((answer for answer in answers if isinstance(answer, Status)), None)
        score.calls.ended(began, points.SUCCESS if failed is None else points.ERROR, len(places))
        if failed is not None:
            raise PluginFault(score.name, failed.message)
        return np.array(answers, dtype=np.int64)

    def raw_scores(self, state: CycleState, pod: Pod, rows: Rows) -> Work[dict[str, Ints]]:
        """Return each plugin's raw scores, computed without caches. Raises PluginFault."""
        found = {}
        for score in self.profile.scores:
            if score.name not in state.skip_score:
                found[score.name] = yield from self._raw(score, state, pod, rows)
        return found

    def totals_of(self, state: CycleState, pod: Pod, rows: Rows, raw: Mapping[str, Sequence[int]]) -> Ints:
        """Return the total of each row from these raw scores; a plugin without a raw score counts 0.

        Raises PluginFault.
        """
        total = np.zeros(len(rows), dtype=np.int64)
        for score in self.profile.scores:
            if score.name not in state.skip_score:
                values = np.array(raw.get(score.name) or [0] * len(rows), dtype=np.int64)
                total += self._normal(score, state, pod, rows, values) * score.weight
        return total

    def details(self, state: CycleState, pod: Pod, rows: Rows, stepper: Stepper | None = None) -> Work[Scores]:
        """Return each plugin's raw and weighted scores, computed without caches. Raises PluginFault."""
        raw_scores = {}
        weighted = {}
        total = np.zeros(len(rows), dtype=np.int64)
        for score in self.profile.scores:
            if score.name in state.skip_score:
                continue
            if stepper is not None:
                yield from stepper.before("score", score.name, rows)
            raw = yield from self._raw(score, state, pod, rows)
            raw_scores[score.name] = raw
            normal = self._normal(score, state, pod, rows, raw.copy())
            if stepper is not None:
                stepper.scored(score.name, score.weight, raw, normal)
            weighted[score.name] = normal * score.weight
            total += weighted[score.name]
        return Scores(rows, raw_scores, weighted, total)


def _score_failure(score: EnabledScore, why: str) -> Status:
    return Status(Code.ERROR, (f'running Score plugins: plugin "{score.name}" failed with: {why}',), score.name)


def _score_shard(
    score: EnabledScore, state: CycleState, pod: Pod, table: NodeTable, rows: list[int]
) -> Callable[[], list[int | Status]]:
    def run() -> list[int | Status]:
        answers: list[int | Status] = []
        for row in rows:
            try:
                result = score.per_node.score(state, pod, NodeInfo(table, row))
            except Exception as fault:  # an exception of a plugin must end the attempt and not the daemon
                return [_score_failure(score, fault_text(fault))]
            if isinstance(result, Status):
                return [_score_failure(score, result.message)]
            answers.append(result)
        return answers

    def elsewhere(result: list[Answer | PluginError]) -> list[int | Status]:
        for answer in result:
            if isinstance(answer, PluginError):
                return [_score_failure(score, fault_text(answer))]
            if isinstance(answer, Status):
                return [_score_failure(score, answer.message)]
        return cast(list[int | Status], result)

    return as_one_call(score.plugin, "score", NodeCalls(state, pod, table, rows), run, elsewhere)
