"""Runs: attempts for several popped pods together, with the same results as single attempts.

A run consists of pods whose attempts are prepared and cannot wait. Pods that do not affect each other are attempted
independently, because no two searches of a run visit the same node. Each search begins where the previous one ended,
and the columns of a class are read once for all its pods. Pods that were attempted together are assumed together
afterwards. Pods that affect each other are attempted one after the other, for example all pods of a cluster with so few
nodes that each search visits every node.

Shapes: positions and rows as in `node_search`; a matrix has one row for each attempt.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints, Rows
from kschedd.scheduling.attempt.node_search import NodeSearch, StartNode, Turn, nodes_wanted
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.attempt.prepared import Preparations, PreparedAttempt
from kschedd.scheduling.attempt.ranking import Ranking
from kschedd.scheduling.attempt.ties import Choose
from kschedd.scheduling.debug.work import Work, drive
from kschedd.scheduling.filtering.evaluation import Evaluations, Positions
from kschedd.scheduling.filtering.node_local_plugins import PluginFault
from kschedd.scheduling.profiles.profile import Framework

AttemptWithin = Callable[[Pod, int], Work[ScheduleResult | FitError | None]]
"""An attempt that returns None if it would visit more nodes than the given number, or find none."""

_MOST_NAMED: Final = 64  # largest number of attempts in a run for pods that name their nodes
_MOST_IN_TURN: Final = 16  # attempts in a run for pods that affect each other; each takes about 100 µs


@attrs.frozen(eq=False)
class Runs:
    """The runs of one profile without extenders."""

    cluster: SchedulerCache
    profile: Framework
    choose: Choose
    start: StartNode
    preparations: Preparations
    evaluations: Evaluations
    search: NodeSearch
    ranking: Ranking

    def longest(self, pod: Pod) -> int:
        """Return the estimated length of a run that begins with this pod. A run shorter than 2 saves nothing."""
        prepared = self._prepared(pod)
        if prepared is None or self.profile.plugin_metrics.sampling.due:
            return 0
        if prepared.named:
            return _MOST_NAMED
        windows = self._windows(prepared)
        return windows if windows > 1 else _MOST_IN_TURN

    def alone(self, pod: Pod) -> bool:
        """Return whether all pods of a run that begins with this pod may be assumed after the last attempt."""
        prepared = self._prepared(pod)
        return prepared is not None and prepared.alone and (prepared.named or self._windows(prepared) > 1)

    def _windows(self, prepared: PreparedAttempt) -> int:
        """Return the estimated number of attempts that visit different nodes; 1 if attempts affect each other."""
        if not prepared.alone:
            return 1
        nodes = len(self.cluster.table.order)
        return nodes // max(1, min(nodes, self.search.expected(nodes_wanted(self.profile, nodes))))

    def _prepared(self, pod: Pod) -> PreparedAttempt | None:
        """Return the prepared attempt for a pod, or None if the attempt may yield work."""
        prepared = self.preparations.of(pod)
        return None if prepared is None or not prepared.immediate else prepared

    def in_turn(self, pods: Sequence[Pod], attempt_within: AttemptWithin, alone: bool) -> Iterator[ScheduleResult]:
        """Attempt these unnominated pods in order, and yield the results until no node is feasible for a pod.

        Unless the run is `alone`, each pod must be assumed on its node before the next result is requested.
        """
        left = self.cluster.table.node_count  # number of nodes that no attempt of the run has visited
        for pod in pods:
            prepared = self._prepared(pod)
            if prepared is None or prepared.named or (alone and not prepared.alone):
                return
            start, result = self.start.index, None
            try:
                result = drive(attempt_within(pod, left))
            finally:
                if not isinstance(result, ScheduleResult):
                    self.start.index = start  # the attempt is repeated without the run
            if not isinstance(result, ScheduleResult):
                return
            if alone:
                left -= result.visited
            yield result

    def together(self, pods: Sequence[Pod]) -> list[ScheduleResult]:
        """Return the results for the first of these pods, or none if no two attempts can be made together.

        The run that begins with the first pod must be `alone`.
        """
        prepared = self._prepared(pods[0])
        assert prepared is not None, "the run is alone"
        if prepared.named:
            return self._named(pods, prepared)
        turns = self._turns(pods)
        nodes = len(self.cluster.table.order)
        wanted, start = nodes_wanted(self.profile, nodes), self.start.index % nodes
        if len(turns) < 2:
            return []
        times = self.profile.times
        began = times.start()
        try:
            windows = self.search.windows([turn.turn for turn in turns], start, wanted)
            many = len(windows.visited)
            if not many:
                return []
            searched = times.start()
            for known in {id(turn): turn for turn in turns[:many]}.values():
                self._score(known, windows.feasible(known.turn), wanted)
        except PluginFault:
            return []
        times.repeated_several(many, (searched - began) / many, (times.start() - searched) / many)
        self.start.index = (start + sum(windows.visited)) % nodes
        return [
            self._choice(pod, turn, visited) for pod, turn, visited in zip(pods, turns, windows.visited, strict=False)
        ]

    def _turns(self, pods: Sequence[Pod]) -> list["_Class"]:
        """Return the class of each of the first pods, up to the first pod that cached evaluations cannot decide."""
        turns, by_signature = list[_Class](), dict[int, _Class]()
        for pod in pods:
            found = by_signature.get(pod.signature.id)
            if found is None:
                prepared = self._prepared(pod)
                if prepared is None or not prepared.alone or prepared.named:
                    break
                known = self.evaluations.of(pod, prepared.state)
                if known.shared:
                    break
                found = by_signature[pod.signature.id] = _Class(Turn(known, prepared.state, pod), prepared)
            elif found.prepared.owner != pod.owner:
                break
            turns.append(found)
        return turns

    def _score(self, scored: "_Class", at: Positions, wanted: int) -> None:
        """Score the nodes that the searches for one class found. Raises PluginFault."""
        turn, prepared = scored.turn, scored.prepared
        rows = turn.known.order[at]
        many = len(rows) // wanted
        scores = prepared.constant, prepared.scores
        totals = drive(self.ranking.totals(turn.state, turn.pod, rows, turn.known, at, None, scores, many))
        scored.rows, scored.totals = rows.reshape(many, wanted), totals.reshape(many, wanted)
        highest = scored.totals.max(axis=1)
        best = (scored.totals == highest[:, np.newaxis]).ravel().nonzero()[0]
        scored.highest, scored.best = highest.tolist(), best
        scored.ends = best.searchsorted(np.arange(0, totals.size + 1, wanted)).tolist()

    def _choice(self, pod: Pod, scored: "_Class", visited: int) -> ScheduleResult:
        """Return the result of the next attempt for this class, with one of the best nodes."""
        number = scored.chosen
        scored.chosen += 1
        names, metrics = self.cluster.table.names, self.profile.plugin_metrics
        rows, totals, score = scored.rows[number], scored.totals[number], scored.highest[number]
        first, end = scored.ends[number], scored.ends[number + 1]
        if end - first == 1:
            row = scored.rows.item(scored.best.item(first))
        else:
            places = scored.best[first:end] - number * len(rows)
            row = self.choose(rows[places], names, places)
        if metrics.sampling.plugins:
            metrics.chosen(totals, score, end - first)
        return ScheduleResult(
            pod, names[row], self.profile, scored.turn.state, rows, visited, totals, score, end - first, None
        )

    def _named(self, pods: Sequence[Pod], prepared: PreparedAttempt) -> list[ScheduleResult]:
        """Return the results for the first of the given pods, which must differ only in the node that each pod names.

        The results end before a pod that names the same node as an earlier pod.
        """
        first, state, table, times = pods[0], prepared.state, self.cluster.table, self.profile.times
        began, template, rows = times.start(), first.signature.signature_ignoring_node, dict[int, None]()
        for pod in pods:
            row = table.row_of.get(pod.signature.spec.required_node or "")
            if row is None or row in rows:
                break
            if pod.signature.signature_ignoring_node != template or pod.owner != prepared.owner:
                break
            rows[row] = None
        known = self.evaluations.of(first, state)
        if known.shared:
            return []
        visited = np.fromiter(rows, np.int64, len(rows))
        at = known.place[visited]
        try:
            self.evaluations.judge(known, state, first, at)
        except PluginFault:
            return []
        rejected = (~known.passes[at]).nonzero()[0]
        many = int(rejected[0]) if len(rejected) else len(at)
        if not many:
            return []
        self.evaluations.use.hits += many
        times.repeated_several(many, (times.start() - began) / many)
        self.start.index = (self.start.index + many) % table.node_count
        return [
            ScheduleResult(pod, table.names[row], self.profile, state, only, 1, None, None, 1, None)
            for pod, row, only in zip(pods[:many], rows, visited.reshape(-1, 1), strict=False)
        ]


@attrs.define(eq=False)
class _Class:
    """The attempts of a run for pods of one class; `rows` and `totals` have one row for each attempt."""

    turn: Turn
    prepared: PreparedAttempt
    rows: Rows = attrs.field(init=False)
    totals: Ints = attrs.field(init=False)
    highest: list[int] = attrs.field(init=False)  # the highest total of each attempt
    best: Ints = attrs.field(init=False)  # indices of the best nodes of all attempts
    ends: list[int] = attrs.field(init=False)  # index in `best` at which each attempt begins, and the end
    chosen: int = attrs.field(default=0, init=False)  # number of attempts with a selected node
