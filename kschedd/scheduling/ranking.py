"""Scoring feasible nodes and choosing one of the best.

Source: Kubernetes v1.34, scheduler/schedule_one.go (prioritizeNodes, selectHost),
scheduler/framework/runtime/framework.go (RunPreScorePlugins, RunScorePlugins).
Units: normalised scores are 0 to 100, weighted ones times the plugin's weight; int64.
Shapes: one value for each feasible row, in the rows' order.
"""

from collections.abc import Callable, Generator
from typing import Any

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.cluster import Cluster
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.interface import MAX_NODE_SCORE
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import Code, Status, error
from kschedd.scheduling.feasible import Shards
from kschedd.scheduling.profile import RunningProfile, ScorePlugin, Sort
from kschedd.scheduling.remembered import Layer, Memory, Remembered

_SHARD = 64
_MOST_SHAPES = 4096


@attrs.frozen(eq=False)
class Scores:
    """Every plugin's part in the totals; made only for those who look."""

    rows: Rows
    raw: dict[str, Ints]
    weighted: dict[str, Ints]
    total: Ints


def _failure(text: str) -> Status:
    return Status(Code.ERROR, (text,))


@attrs.define(eq=False)
class Ranking:
    """Runs a profile's scores over a cluster."""

    profile: RunningProfile
    cluster: Cluster
    memory: Memory | None
    local: Layer = attrs.field(init=False)
    _by_shape: list[Any] = attrs.field(init=False)  # plugins whose PreScore is asked once for a shape
    _anew: list[Any] = attrs.field(init=False)
    _skipped: dict[int, set[str]] = attrs.field(factory=dict, init=False)  # shape -> who of the former said Skip

    def __attrs_post_init__(self) -> None:
        self.local = Layer(self.profile, None)
        self._by_shape = [p for p in self.profile.pre_scores if getattr(p, "pre_score_by_shape", False)]
        self._anew = [p for p in self.profile.pre_scores if p not in self._by_shape]

    def pre_score(self, state: CycleState, pod: Pod, rows: Rows) -> Status | None:
        number = pod.shape.number
        skipped = self._skipped.get(number)
        if skipped is None:
            if len(self._skipped) >= _MOST_SHAPES:
                self._skipped.clear()
            failure, skipped = self._pre_score(self._by_shape, state, pod, rows)
            if failure is not None:
                return failure
            self._skipped[number] = skipped
        failure, more = self._pre_score(self._anew, state, pod, rows)
        state.skip_score = skipped | more
        return failure

    def _pre_score(
        self, plugins: list[Any], state: CycleState, pod: Pod, rows: Rows
    ) -> tuple[Status | None, set[str]]:
        skipped = set()
        for plugin in plugins:
            try:
                status = plugin.pre_score(state, pod, self.cluster, rows)
            except Exception as fault:  # a plugin's fault ends here, not in the daemon
                status = error(f"{type(fault).__name__}: {fault}")
            if status is None:
                continue
            if status.code == Code.SKIP:
                skipped.add(plugin.name)
            elif status.code != Code.SUCCESS:
                text = f'running PreScore plugin "{plugin.name}": {status.message}'
                return Status(Code.ERROR, (text,), plugin.name), skipped
        return None, skipped

    def totals(
        self, state: CycleState, pod: Pod, rows: Rows, remembered: Remembered | None
    ) -> Generator[Shards, list[Any], Ints | Status]:
        """The total of each row, or the status of the plugin that failed."""
        if remembered is None:
            total, raw = self.local.score(state, pod, self.cluster.table, rows)
        else:
            assert self.memory is not None
            total, raw = self.memory.score(remembered, state, pod, rows)
        for score in self.profile.scores:
            if score.name in state.skip_score:
                continue
            if score.sort is Sort.LOCAL:
                if score.normalizes:
                    total += score.plugin.normalize(state, pod, raw[score.name]) * score.weight
                continue
            values = yield from self._ask(score, state, pod, rows)
            if isinstance(values, Status):
                return values
            total += values * score.weight
        return total

    def _ask(
        self, score: ScorePlugin, state: CycleState, pod: Pod, rows: Rows
    ) -> Generator[Shards, list[Any], Ints | Status]:
        """Normalised scores of a plugin that is asked anew each time."""
        raw = yield from self._raw(score, state, pod, rows)
        return raw if isinstance(raw, Status) else self._normal(score, state, pod, rows, raw)

    def _normal(self, score: ScorePlugin, state: CycleState, pod: Pod, rows: Rows, raw: Ints) -> Ints | Status:
        if score.trusted:
            normal: Ints = score.plugin.normalize(state, pod, raw) if score.normalizes else raw
            return normal
        try:
            normal = score.plugin.normalize(state, pod, raw) if score.normalizes else raw
            normal = np.asarray(normal, dtype=np.int64).reshape(len(rows))
        except Exception as fault:  # a plugin's fault ends here, not in the daemon
            return _failure(
                f'running Normalize on Score plugins: plugin "{score.name}" failed with: {type(fault).__name__}: {fault}'
            ).by(score.name)
        wrong = np.flatnonzero((normal < 0) | (normal > MAX_NODE_SCORE))
        if len(wrong):
            return _failure(
                f'applying score defaultWeights on Score plugins: plugin "{score.name}" returns an invalid score '
                f"{normal[wrong[0]]} (node {self.cluster.table.names[int(rows[wrong[0]])]}), it should be in the range of "
                f"[0, {MAX_NODE_SCORE}] after normalizing"
            ).by(score.name)
        return normal

    def _raw(
        self, score: ScorePlugin, state: CycleState, pod: Pod, rows: Rows
    ) -> Generator[Shards, list[Any], Ints | Status]:
        table = self.cluster.table
        if score.sort is not Sort.PLAIN:
            if score.trusted:
                values: Ints = score.plugin.score_rows(state, pod, table, rows)
                return values
            try:
                return np.asarray(score.plugin.score_rows(state, pod, table, rows), dtype=np.int64).reshape(len(rows))
            except Exception as fault:  # a plugin's fault ends here, not in the daemon
                return _score_failure(score, f"{type(fault).__name__}: {fault}")
        asked = rows.tolist()
        shards: Shards = [
            _score_shard(score, state, pod, table, asked[first : first + _SHARD])
            for first in range(0, len(asked), _SHARD)
        ]
        answers = [answer for part in (yield shards) for answer in part]
        failed = next((answer for answer in answers if isinstance(answer, Status)), None)
        return failed if failed is not None else np.array(answers, dtype=np.int64)

    def details(self, state: CycleState, pod: Pod, rows: Rows) -> Generator[Shards, list[Any], Scores | Status]:
        """Each plugin's raw and weighted scores, computed afresh."""
        raw_scores = {}
        weighted = {}
        total = np.zeros(len(rows), dtype=np.int64)
        for score in self.profile.scores:
            if score.name in state.skip_score:
                continue
            raw = yield from self._raw(score, state, pod, rows)
            normal = raw if isinstance(raw, Status) else self._normal(score, state, pod, rows, raw.copy())
            if isinstance(raw, Status) or isinstance(normal, Status):
                return raw if isinstance(raw, Status) else normal  # type: ignore[return-value]
            raw_scores[score.name] = raw
            weighted[score.name] = normal * score.weight
            total += weighted[score.name]
        return Scores(rows, raw_scores, weighted, total)


def _score_failure(score: ScorePlugin, why: str) -> Status:
    return _failure(f'running Score plugins: plugin "{score.name}" failed with: {why}').by(score.name)


def _score_shard(
    score: ScorePlugin, state: CycleState, pod: Pod, table: NodeTable, rows: list[int]
) -> Callable[[], list[int | Status]]:
    def run() -> list[int | Status]:
        answers: list[int | Status] = []
        for row in rows:
            try:
                said = score.plugin.score(state, pod, NodeInfo(table, row))
            except Exception as fault:  # a plugin's fault ends here, not in the daemon
                return [_score_failure(score, f"{type(fault).__name__}: {fault}")]
            if isinstance(said, bool) or not isinstance(said, int | np.integer):
                return [_score_failure(score, f"score returned {said!r}; an int from 0 to 100 is expected")]
            answers.append(int(said))
        return answers

    return run
