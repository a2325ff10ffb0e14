"""Explanations of why a pod is on its node, or why it has none. Remedies are in `kschedd.causes`.

`explain` evaluates every node with every plugin of the pod's profile in the present state, and returns an
`Explanation`. A pod with a node is evaluated as if it were not on that node. Other changes since the pod's attempt are
not undone, so nodes may have more or fewer free resources than at that time. The explanation includes the record of the
pod's last attempt.

The cluster does not change: `explain` works on a fork (`explain.fork`) with separate plugins and search start, and
lists ties instead of breaking them. Call `begin` between two attempts; `finish`, which takes longer, may run in any
thread. `explain` calls both.
"""

from collections.abc import Callable
from typing import Final

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.table import Rows
from kschedd.errors import KscheddError
from kschedd.explain import dumped, upstream_bugs
from kschedd.explain.answers import (
    DecisionAnswer,
    Explanation,
    PastAttempt,
    Rejection,
    Reserved,
    Score,
    SearchAnswer,
    Skipped,
    Took,
    VerdictAnswer,
)
from kschedd.explain.fork import Fork, fork_for, scheduler_on
from kschedd.explain.judging import NodeVerdict
from kschedd.explain.judgment import Judgment
from kschedd.explain.past import Past
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Code, Status, error
from kschedd.scheduling.attempt.node_search import nodes_to_find
from kschedd.scheduling.attempt.outcome import FitError
from kschedd.scheduling.attempt.ranking import Ranking, Scores
from kschedd.scheduling.attempt.scheduler import Scheduler
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.filtering.node_local_plugins import PluginFault
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.nominations.counted import Nominated
from kschedd.scheduling.records import AttemptRecord


@attrs.define(eq=False)
class NoProfile(KscheddError):
    """The error if the pod's schedulerName has no profile."""

    pod: str
    scheduler_name: str
    profiles: tuple[str, ...]

    def __str__(self) -> str:
        profiles = ", ".join(self.profiles)
        return f"pod {self.pod} requests scheduler {self.scheduler_name!r}; configured profiles: {profiles}"


def explain(
    machine: SchedulingMachine,
    pod: Pod,
    nominated: Nominated,
    *,
    recorded: DecisionAnswer | None = None,
    clock: Callable[[], float] | None = None,
) -> Explanation:
    """See the module.

    `recorded` is the record of the attempt that placed the pod. `clock` (seconds) times each step.
    """
    return finish(begin(machine, pod, nominated), recorded=recorded, clock=clock)


def begin(machine: SchedulingMachine, pod: Pod, nominated: Nominated) -> Fork:
    """Return the inputs of an explanation: the fork, and the pod's state. Raises NoProfile."""
    if pod.scheduler_name not in machine.schedulers:
        raise NoProfile(pod.key, pod.scheduler_name, tuple(machine.schedulers))
    return fork_for(machine, pod, nominated)


def of_past(fork: Fork, past: Past, observed: int) -> Fork:
    """Return the inputs for a past attempt, from a fork whose cluster has processed the writes up to `observed`."""
    return attrs.evolve(fork, nominated=past.nominated(fork.nominated), past=past, observed=observed)


def no_longer_kept(record: AttemptRecord, decision: DecisionAnswer, why: str) -> Explanation:
    """Return an explanation that only contains the attempt's record, because its cluster cannot be restored."""
    return Explanation(
        pod=record.pod,
        node=record.node or None,
        node_exists=None,
        as_if_absent=False,
        reserved=None,
        profile="" if record.attempted is None else record.attempted.scheduler_name,
        gated_by=None,
        pre_filter=None,
        verdicts=[],
        filters=[],
        skipped=Skipped([], []),
        scores={},
        weights={},
        totals={},
        chosen=record.node or None,
        ties=[],
        nominated=record.nominated_node or None,
        message=record.message,
        preemption=None,
        search=SearchAnswer(0, record.feasible, 0),
        took_us=[],
        notes=[f"the state of the time of attempt {record.attempt} is not kept any more: {why}"],
        attempt=PastAttempt(record.attempt, record.version, kept=False),
        decision=decision,
    )


def finish(
    fork: Fork,
    *,
    recorded: DecisionAnswer | None = None,
    clock: Callable[[], float] | None = None,
) -> Explanation:
    """Return the explanation. The fork cannot be used afterwards."""
    pod, was_there = fork.pod, fork.known is not None and fork.past is None
    scheduler = scheduler_on(fork)
    nodes = [one for one in fork.cluster.table.nodes if one is not None]
    known = pod.node_name in fork.cluster.table.row_of
    found = _Explaining(scheduler, fork, clock).run()
    found.pod, found.node, found.node_exists = pod.key, pod.node_name or None, known if pod.node_name else None
    found.as_if_absent, found.profile = was_there, pod.scheduler_name
    if was_there:
        found.reserved = _reserved(fork)
        found.notes.insert(0, f"{pod.key} {_placed(fork)}; it is evaluated as if it were not there")
        if pod.pod_spec.resource_claims or pod.pod_spec.restricting_volumes:
            found.notes.insert(1, "its volumes and resource claims stay as they are, so they may bind it to this node")
    if pod.node_name and not known:
        found.notes.insert(
            0,
            f"spec.nodeName of {pod.key} is {pod.node_name}, which does not exist: nothing runs the pod, and "
            "no scheduler handles it; the result below is for the pod without a nodeName",
        )
    elif pod.node_name and not was_there:
        found.notes.insert(0, f"spec.nodeName puts {pod.key} on {pod.node_name}: no scheduler decides")
    if was_there and found.chosen is None and pod.node_name in found.ties:
        found.chosen = pod.node_name
    gated = found.gated_by is not None
    found.dumped = dumped.dumped_message(pod, nodes, found.message, gated=gated, version=fork.config.version)
    if fork.past is not None and fork.past.record is not None:
        found.attempt = _attempt(fork.past, fork.past.record, found)
    found.decision = recorded
    return found


def _placed(fork: Fork) -> str:
    """Return the node of a pod that is bound or assumed."""
    assert fork.known is not None, "a pod on a node is expected"
    if fork.pod.node_name:
        return f"is on {fork.pod.node_name}"
    return f"{'waits at Permit' if fork.permit_plugins else 'is being bound'} on {fork.known.node_name}"


def _reserved(fork: Fork) -> Reserved | None:
    if fork.known is None or fork.pod.node_name:
        return None
    return Reserved(fork.known.node_name, list(fork.permit_plugins))


def _attempt(past: Past, record: AttemptRecord, found: Explanation) -> PastAttempt:
    found.notes.append(
        f"attempt {record.attempt} worked out again: the cluster is as it was at version {record.version}, "
        f"{len(past.since)} writes ago; plugins and weights are those of now"
    )
    return PastAttempt(record.attempt, record.version, kept=True)


_FITS: Final = Rejection("", Code.SUCCESS.label, [])
_WITHOUT_PODS: Final = (
    "an extender with nodeCacheCapable: false answered with Node objects, which are scored as if no pods were on them "
    "(kubernetes#141781); nodeCacheCapable: true avoids it"
)


class _Explaining:
    """An explanation in progress, with its own scheduler."""

    def __init__(self, scheduler: Scheduler, fork: Fork, clock: Callable[[], float] | None) -> None:
        self._scheduler = scheduler
        self._profile = scheduler.profile
        self._table = scheduler.cluster.table
        self._pod = fork.judged
        self._clock = clock
        self._since = 0.0
        self._took: list[Took] = []
        self._judgment = Judgment(fork, scheduler, self._tick)
        self._notes: list[str] = []

    def run(self) -> Explanation:
        judgment = self._judgment
        extenders, outcome = judgment.extenders, judgment.outcome
        gated = judgment.gated
        self._begin()
        verdicts = judgment.verdicts
        self._notes += extenders.failures()
        if extenders.lose_pods:
            self._notes.append(_WITHOUT_PODS)
        feasible = np.array([v.row for v in verdicts if not v.rejections], dtype=np.int64)
        scores, failure = self._scores(judgment.state, feasible)
        by_extender = extenders.scores(self._named(feasible))
        if scores is not None and by_extender:
            more = [sum(one[name].weighted for one in by_extender.values()) for name in self._named(feasible)]
            scores = attrs.evolve(scores, total=scores.total + np.array(more, dtype=np.int64))
        chosen, ties = self._choice(feasible, scores)
        message = outcome.message if isinstance(outcome, FitError) else ""
        if isinstance(outcome, FitError) and outcome.status.code == Code.ERROR:
            chosen, ties = None, []  # a score is out of range, and is shown as it is
        if failure is not None:
            message = failure.message
        enough = self._enough(verdicts)
        if len(feasible) > enough:
            self._notes.append(
                f"a search ends at {enough} feasible nodes; here all {len(feasible)} are scored against each other"
            )
        balanced = getattr(self._profile.plugins.get("NodeResourcesBalancedAllocation"), "resources", ())
        self._notes += upstream_bugs.notes(self._pod, self._scheduler.cluster, self._profile.rules, balanced)
        names = self._table.names
        totals = (
            {}
            if scores is None
            else {names[row]: total for row, total in zip(feasible.tolist(), scores.total.tolist(), strict=True)}
        )
        verdict_answers = self._verdict_answers(verdicts)
        return Explanation(
            pod=self._pod.key,
            node=None,
            node_exists=None,
            as_if_absent=False,
            reserved=None,
            profile=self._pod.scheduler_name,
            gated_by=_rejected_by(gated),
            pre_filter=_rejected_by(judgment.pre_filtered.status),
            verdicts=verdict_answers,
            filters=[each.name for each in self._profile.filters],
            skipped=Skipped(sorted(judgment.state.skip_filter), sorted(judgment.state.skip_score)),
            scores={**self._by_plugin(scores), **by_extender},
            weights={**{score.name: score.weight for score in self._profile.scores}, **extenders.weights(by_extender)},
            totals=totals,
            chosen=chosen,
            ties=ties,
            nominated=self._pod.nominated_node_name or None,
            message=message,
            preemption=judgment.preemption,
            search=SearchAnswer(self._table.node_count, len(feasible), enough),
            took_us=self._took,
            notes=self._notes,
            pod_group=judgment.pod_group or None,
        )

    def _named(self, rows: Rows) -> list[str]:
        return [self._table.names[row] for row in rows.tolist()]

    # -- steps --------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._clock is not None:
            self._since = self._clock()

    def _tick(self, point: str, plugin: str) -> None:
        if self._clock is not None:
            now = self._clock()
            self._took.append(Took(point, plugin, round((now - self._since) * 1e6)))
            self._since = now

    def _enough(self, verdicts: list[NodeVerdict]) -> int:
        return nodes_to_find(len(verdicts), self._profile.percentage) if self._profile.scores else 1

    def _scores(self, state: CycleState, rows: Rows) -> tuple[Scores | None, Status | None]:
        if not len(rows):
            return None, None
        self._begin()
        failure = self._scheduler.ranking.pre_score(state, self._pod, rows)
        self._tick("PreScore", "")
        if failure is not None:
            return None, failure
        raw, weighted = {}, {}
        unscored = not self._profile.scores and not self._scheduler.extenders  # then each node has 1
        total = np.full(len(rows), int(unscored), dtype=np.int64)
        for score in self._profile.scores:
            if score.name in state.skip_score:
                continue
            alone = Ranking(attrs.evolve(self._profile, scores=(score,)), self._scheduler.cluster, None)
            self._begin()
            try:
                part: Scores = drive(alone.details(state, self._pod, rows))
            except PluginFault as fault:
                return None, error(fault.message).by(fault.plugin)
            finally:
                self._tick("Score", score.name)
            raw.update(part.raw)
            weighted.update(part.weighted)
            total += part.total
        return Scores(rows, raw, weighted, total), None

    def _choice(self, feasible: Rows, scores: Scores | None) -> tuple[str | None, list[str]]:
        names = self._table.names
        wished = self._pod.nominated_node_name
        if wished and self._table.row_of.get(wished, -1) in feasible.tolist():
            self._notes.append(f"it is nominated to {wished}, which is chosen without evaluating other nodes")
            return wished, [wished]
        if len(feasible) == 1:
            return names[int(feasible[0])], [names[int(feasible[0])]]
        if scores is None:
            return None, []
        best = feasible[scores.total == scores.total.max()].tolist()
        ties = [names[row] for row in best]
        if len(ties) > 1:
            how = (
                "the first in kube-scheduler's order is taken" if self._profile.rules.ties_in_order else "one is drawn"
            )
            self._notes.append(f"{len(ties)} nodes are equally good; {how}")
        return (ties[0] if len(ties) == 1 else None), ties

    # -- words --------------------------------------------------------------------------------------------------

    def _verdict_answers(self, verdicts: list[NodeVerdict]) -> list[VerdictAnswer]:
        names = self._table.names
        known: dict[tuple[Status, ...], list[Rejection]] = {}  # nodes with equal rejections share one answer
        verdict_answers = []
        for verdict in verdicts:
            reasons = known.get(verdict.rejections)
            if reasons is None:
                reasons = known[verdict.rejections] = [_rejection(status) for status in verdict.rejections]
            first = reasons[0] if reasons else _FITS
            plugin = first.plugin if reasons else None
            nominated = [other.key for other in verdict.nominated] if verdict.nominated else []
            verdict_answers.append(
                VerdictAnswer(names[verdict.row], plugin, first.code, first.reasons, reasons[1:], nominated)
            )
        return verdict_answers

    def _by_plugin(self, scores: Scores | None) -> dict[str, dict[str, Score]]:
        if scores is None:
            return {}
        names = [self._table.names[row] for row in scores.rows.tolist()]
        found: dict[str, dict[str, Score]] = {}
        for score in self._profile.scores:
            if score.name not in scores.raw:
                continue
            raw, weighted = scores.raw[score.name], scores.weighted[score.name]
            if raw.min() == raw.max() and weighted.min() == weighted.max():
                # Usually all nodes have the same scores, so one copy is enough.
                raw, weighted = raw[:1], weighted[:1]
            normalized = (weighted // max(score.weight, 1)).tolist()
            each = zip(raw.tolist(), normalized, weighted.tolist(), strict=True)
            parts = [Score(*values) for values in each]
            if len(parts) == 1:
                found[score.name] = dict.fromkeys(names, parts[0])
            else:
                found[score.name] = dict(zip(names, parts, strict=True))
        return found


def _rejected_by(status: Status | None) -> Rejection | None:
    return None if status is None else _rejection(status)


def _rejection(status: Status) -> Rejection:
    return Rejection(status.plugin, status.code.label, list(status.reasons))
