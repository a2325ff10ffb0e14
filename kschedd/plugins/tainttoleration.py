"""TaintToleration: rejects nodes with NoSchedule and NoExecute taints that the pod does not tolerate.

PreferNoSchedule taints that the pod does not tolerate lower the node's score. Many nodes share few taint sets, so each
pod signature is evaluated once per taint set.

Rules: untolerated_taints_unnamed.

Source: Kubernetes v1.34 and v1.36, plugins/tainttoleration/taint_toleration.go.
Codes: 1 + the number of the first untolerated taint.
Shapes: one verdict and one score (int64) for each taint set of the table.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Self

import attrs
import numpy as np

from kschedd.api.pods import Pod, PodSignature
from kschedd.api.selecting.terms import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint, Toleration
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.cache.versions import TAINT_SETS
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import (
    QUEUE,
    QUEUE_SKIP,
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    on,
)
from kschedd.framework.handle import Handle
from kschedd.framework.interface import MAX_NODE_SCORE
from kschedd.framework.normalize import default_normalize
from kschedd.framework.status import Status, unresolvable

_MOST_SHAPES = 1024
_MOST_TAINTS = 4096


def untolerated(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> Taint | None:
    """Return the first NoSchedule or NoExecute taint that the pod does not tolerate."""
    for taint in taints:
        if taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not any(t.tolerates(taint) for t in tolerations):
            return taint
    return None


def intolerable(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> int:
    """Return the number of PreferNoSchedule taints that the pod does not tolerate."""
    soft = [t for t in tolerations if t.effect in ("", PREFER_NO_SCHEDULE)]
    return sum(taint.effect == PREFER_NO_SCHEDULE and not any(t.tolerates(taint) for t in soft) for taint in taints)


def with_taint(taint: Taint) -> str:
    return f"node(s) had untolerated taint {taint}"


def without_taint(taint: Taint) -> str:
    return "node(s) had untolerated taint(s)"


@attrs.define(eq=False)
class _Judged:
    verdicts: Ints
    scores: Ints
    passes_all: bool
    minds_none: bool
    stamp: int


@attrs.define(eq=False)
class TaintToleration:
    name: ClassVar = "TaintToleration"
    idle_points: ClassVar = frozenset({"pre_score"})
    without_pre_score: ClassVar = 'failed to read "PreScoreTaintToleration" from cycleState: not found'
    depends_on: ClassVar = frozenset({"node"})
    _cluster: SchedulerCache
    _reason: Callable[[Taint], str]
    _taints: list[Taint] = attrs.field(factory=list)
    _numbers: dict[Taint, int] = attrs.field(factory=dict)
    _judged: dict[tuple[Toleration, ...], _Judged] = attrs.field(factory=dict)
    _renumbered: int = 0  # number of times that taint codes were reassigned

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        return cls(handle.cluster, without_taint if handle.rules.untolerated_taints_unnamed else with_taint)

    def cache_key(self, cluster: SchedulerCache) -> int:
        """Return a key that changes when taint codes are reassigned. At most _MOST_TAINTS codes are in use."""
        if len(self._taints) > _MOST_TAINTS:
            self._taints.clear()
            self._numbers.clear()
            self._judged.clear()
            self._renumbered += 1
        return self._renumbered

    def verdict_key(self, pod: Pod, state: CycleState) -> tuple[Toleration, ...]:
        return pod.pod_spec.tolerations

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints | None:
        judged = self._judge(pod.signature)
        return None if judged.passes_all else judged.verdicts[table.taints[table.places(rows)]]

    def code_status(self, state: CycleState, pod: Pod, code: int) -> Status:
        return unresolvable(self._reason(self._taints[code - 1]))

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        return self._judge(pod.signature).scores[table.taints[rows]]

    def constant_score(self, pod: Pod, table: NodeTable) -> int | None:
        return MAX_NODE_SCORE if self._judge(pod.signature).minds_none else None

    def normalize(self, state: CycleState, pod: Pod, scores: Ints) -> Ints:
        return default_normalize(scores, reverse=True)

    def _judge(self, signature: PodSignature) -> _Judged:
        tolerations = signature.spec.tolerations
        judged = self._judged.get(tolerations)
        versions, sets = self._cluster.versions, self._cluster.table.taint_sets
        if judged is None or judged.stamp < versions.at[TAINT_SETS]:
            verdicts = np.zeros(len(sets), dtype=np.int64)
            scores = np.zeros(len(sets), dtype=np.int64)
            for number, taints in enumerate(sets):
                taint = untolerated(taints, tolerations)
                if taint is not None:
                    verdicts[number] = 1 + self._number(taint)
                scores[number] = intolerable(taints, tolerations)
            if len(self._judged) >= _MOST_SHAPES:
                self._judged.clear()
            judged = self._judged[tolerations] = _Judged(
                verdicts, scores, not verdicts.any(), not scores.any(), versions.now
            )
        return judged

    def _number(self, taint: Taint) -> int:
        number = self._numbers.get(taint)
        if number is None:
            number = self._numbers[taint] = len(self._taints)
            self._taints.append(taint)
        return number

    def events_to_register(self) -> list[ClusterEventWithHint]:
        return [
            on(
                EventResource.NODE,
                ActionType.ADD | ActionType.UPDATE_NODE_TAINT,
                self._after_node,
                by_signature=True,
            ),
            on(EventResource.POD, ActionType.UPDATE_POD_TOLERATION, self._after_toleration, by_signature=True),
        ]

    def _after_node(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        tolerations = pod.pod_spec.tolerations
        kept_away = old is None or untolerated(old.taints, tolerations) is not None
        return QUEUE if kept_away and untolerated(new.taints, tolerations) is None else QUEUE_SKIP

    def _after_toleration(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        return QUEUE if new is not None and new.uid == pod.uid else QUEUE_SKIP
