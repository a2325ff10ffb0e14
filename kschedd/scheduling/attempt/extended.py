"""Extenders in an attempt: filter the nodes that passed all plugins, add to scores, and choose victims of preemption.

Each function is a part of an attempt: it yields calls (`ExtenderCall`) and continues with the extenders' answers.
Extenders filter one after the other; each call contains the nodes that the previous extender left. All prioritize calls
run concurrently. A failed filter call ends the attempt unless the extender is ignorable; a failed prioritize call never
ends an attempt.

Source: Kubernetes v1.34, scheduler/schedule_one.go (findNodesThatPassExtenders, prioritizeNodes),
scheduler/framework/preemption/preemption.go (callExtenders, pickOneNodeForPreemption).
Errors: ExtenderFailure.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.extenders.calls import ExtenderFailure
from kschedd.extenders.extender import HTTPExtender
from kschedd.extenders.messages import FilterResult, MetaVictims
from kschedd.framework.postfilter import Candidate, DryRun
from kschedd.framework.status import Status, unresolvable, unschedulable
from kschedd.scheduling.attempt.node_search import Found
from kschedd.scheduling.debug.work import Shards, Work
from kschedd.scheduling.preemption.dry_run import earliest_start

NO_CANDIDATE = "no candidate node for preemption"

_LIFT = 1 << 31


@attrs.define(eq=False)
class CandidatesFound(Exception):
    """The candidates of a dry run, raised when extenders must be called before PostFilter can choose a candidate."""

    tried: DryRun


def filtered(extenders: Sequence[HTTPExtender], pod: Pod, table: NodeTable, found: Found) -> Work[Found]:
    """Return the nodes that also pass the extenders, and the statuses of the nodes that the extenders reject.

    Raises ExtenderFailure.
    """
    rows, without_pods = found.rows.tolist(), False
    statuses: dict[int, Status] = {}
    elsewhere: list[Status] = []
    for extender in extenders:
        if not rows:
            break
        if not extender.filters or not extender.is_interested(pod):
            continue
        calls: Shards = [extender.filter(pod, table, rows)]
        answer: Any = (yield calls)[0]
        try:
            if isinstance(answer, ExtenderFailure):
                raise answer
            rows = extender.passed(answer, {table.names[row]: row for row in rows})
        except ExtenderFailure:
            if extender.ignorable:
                continue
            raise
        without_pods = without_pods or extender.loses_pods(answer)
        for name, status in rejections(answer):
            row = table.row_of.get(name)
            if row is None:
                elsewhere.append(status)
            else:
                statuses[row] = status
    verdicts = found.verdicts.overruled(statuses, elsewhere) if statuses or elsewhere else found.verdicts
    left = np.array(rows, dtype=np.int64)
    return attrs.evolve(found, rows=left, verdicts=verdicts, without_pods=without_pods, at=None)


def rejections(answer: FilterResult) -> Iterable[tuple[str, Status]]:
    """Yield each node that the extender rejected, with its status."""
    for name, why in answer.unresolvable.items():
        yield name, unresolvable(why)
    for name, why in answer.failed.items():
        if name not in answer.unresolvable:
            yield name, unschedulable(why)


def scored(extenders: Sequence[HTTPExtender], pod: Pod, table: NodeTable, rows: Rows, totals: Ints) -> Work[Ints]:
    """Return the totals with the extenders' scores; the same array if no extender scored a node."""
    asked = [extender for extender in extenders if extender.prioritizes and extender.is_interested(pod)]
    if not asked:
        return totals
    calls: Shards = [extender.prioritize(pod, table, rows.tolist()) for extender in asked]
    answers: list[Any] = yield calls
    places = {table.names[row]: place for place, row in enumerate(rows.tolist())}
    more, any_scored = np.zeros(len(rows), dtype=np.int64), False
    for extender, answer in zip(asked, answers, strict=True):
        if isinstance(answer, ExtenderFailure):
            continue
        known = [(places[name], extender.weighted(score)) for name, score in answer if name in places]
        if known:
            any_scored = True
            np.add.at(more, *np.array(known, dtype=np.int64).T)  # names may repeat; sums wrap as in Go
    return totals + more if any_scored else totals


# -- preemption -------------------------------------------------------------------------------------------------------


def preempting(extenders: Sequence[HTTPExtender], pod: Pod) -> tuple[HTTPExtender, ...]:
    """Return the extenders that take part in preemption for this pod."""
    return tuple(extender for extender in extenders if extender.preempts and extender.is_interested(pod))


def candidates_left(extenders: Sequence[HTTPExtender], pod: Pod, table: NodeTable, tried: DryRun) -> Work[DryRun]:
    """Return the dry run reduced to the candidates and victims that the extenders accept."""
    candidates = tried.candidates
    for extender in extenders:
        calls: Shards = [extender.preempt(pod, candidates)]
        answer: Any = (yield calls)[0]
        try:
            if isinstance(answer, ExtenderFailure):
                raise answer
            candidates = _candidates(extender, table, answer)
        except ExtenderFailure as failure:
            if extender.ignorable:
                continue
            return DryRun((), None, (), fault=str(failure))
        if not candidates:
            break
    if not candidates:
        return DryRun((), None, (), NO_CANDIDATE, nominated_node=None)
    best = min(map(_rank, candidates))
    ties = sorted((candidate for candidate in candidates if _rank(candidate) == best), key=lambda one: one.node_name)
    return DryRun(candidates, ties[0], tuple(one.node_name for one in ties))


def _candidates(extender: HTTPExtender, table: NodeTable, answer: dict[str, MetaVictims]) -> tuple[Candidate, ...]:
    """Convert an extender's answer to candidates.

    Raises ExtenderFailure if the answer names a node or pod that does not exist, or a node without victims.
    """
    found = []
    for node_name, victims in answer.items():
        row = table.row_of.get(node_name)
        if row is None:
            raise ExtenderFailure(f'nodeinfo not found for node name "{node_name}"')
        by_uid = {pod.uid: pod for pod in table.pods[row]}
        missing = next((uid for uid in victims.uids if uid not in by_uid), None)
        if missing is not None:
            raise ExtenderFailure(
                f"extender: {extender.url} claims to preempt pod (UID: &MetaPod{{UID:{missing},}}) on node: "
                f"{node_name}, but the pod is not found on that node"
            )
        if victims.uids:
            pods = tuple([by_uid[uid] for uid in dict.fromkeys(victims.uids)])
            found.append(Candidate(node_name, pods, victims.pdb_violations))
        elif not extender.ignorable:
            raise ExtenderFailure(f'expected at least one victim pod on node "{node_name}"')
    return tuple(found)


def _rank(candidate: Candidate) -> tuple[int, ...]:
    """Return the sort key of a candidate, best first, by the criteria of `kschedd.scheduling.preemption.candidates`."""
    pods = candidate.victims
    priorities = sum(pod.priority + _LIFT for pod in pods)
    return candidate.pdb_violations, pods[0].priority, priorities, len(pods), -earliest_start(pods)
