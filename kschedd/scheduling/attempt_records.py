"""AttemptRecords: log entries and metrics of attempts, and of bindings that fail after their attempt.

Each attempt adds a log entry to the driver's effects. A failed attempt is also counted in the metrics. A successful
attempt is counted when its binding begins and when it ends. The class makes no decisions. The class owns two counters
since the start: attempts and failed attempts.
"""

import numpy as np

from kschedd.cache.table import NodeTable
from kschedd.framework.interface import PostFilterResult
from kschedd.framework.postfilter import Preemption
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.profiles.metrics import ERROR, UNSCHEDULABLE, AttemptEnded, SchedulingMetrics
from kschedd.scheduling.records import AttemptRecord, Lead


class AttemptRecords:
    """The log entries and metrics of attempts.

    If `metrics` is None, nothing is counted. With `table`, each record contains the score difference between the
    selected and the second-best node.
    """

    def __init__(self, effects: Effects, metrics: SchedulingMetrics | None) -> None:
        self._effects = effects
        self._metrics = metrics
        self.table: NodeTable | None = None
        self.attempts = 0
        self.failures = 0

    def note(
        self,
        entry: QueuedPod,
        result: ScheduleResult | FitError,
        now: float,
        took_s: float,
        failed: FailedAttempt | None,
        version: int,
        of_binding: bool = False,
    ) -> None:
        """`failed` contains the reason why the pod got no node.

        `of_binding` is true if the attempt was recorded before, and its binding has failed now. `version` is the
        resource version of the last write that the scheduler had observed.
        """
        if not of_binding:
            self.attempts += 1
            self.failures += failed is not None
        if failed is not None and self._metrics is not None:
            self._metrics.found_no_node(_ended_attempt(failed, result, took_s, of_binding))
        node, feasible, visited, ties, score, lead = "", 0, 0, 0, None, None
        if isinstance(result, ScheduleResult):
            feasible, visited, ties, score = len(result.feasible), result.visited, result.ties, result.score
            node = "" if failed is not None else result.node_name
            if self.table is not None:
                lead = _lead(result, self.table)
        elif result.diagnosis.verdicts is not None:
            visited = len(result.diagnosis.verdicts.rows)
        self._effects.happened.append(
            AttemptRecord(
                now,
                entry.key,
                entry.pod.uid,
                entry.attempts,
                node,
                feasible,
                visited,
                ties,
                score,
                took_s,
                "" if failed is None else failed.message,
                "" if failed is None else failed.nominated_node or "",
                of_binding,
                version,
                entry.pod,
                lead,
            )
        )


def _lead(result: ScheduleResult, table: NodeTable) -> Lead | None:
    if result.totals is None or len(result.totals) < 2:
        return None
    others = result.totals.copy()
    others[result.feasible == table.row_of[result.node_name]] = np.iinfo(np.int64).min
    second = int(np.argmax(others))
    return Lead(int(result.score or 0) - int(others[second]), table.names[int(result.feasible[second])])


def _violations(post: PostFilterResult | None) -> int:
    """Return the number of victims whose budget does not allow the eviction."""
    details = None if post is None else post.details
    if post is None or not isinstance(details, Preemption):
        return 0
    return next((one.pdb_violations for one in details.candidates if one.node_name == post.nominated_node), 0)


def _ended_attempt(
    failed: FailedAttempt, result: ScheduleResult | FitError, took_s: float, of_binding: bool
) -> AttemptEnded:
    post = verdicts = None
    if isinstance(result, FitError):
        post, verdicts = result.post_filter, result.diagnosis.verdicts
    rejections = () if verdicts is None else verdicts.distinct_statuses()
    return AttemptEnded(
        failed.entry.pod.scheduler_name,
        UNSCHEDULABLE if failed.reason == "Unschedulable" else ERROR,
        took_s,
        of_binding,
        post is not None,
        len(failed.victims),
        _violations(post),
        [(status.plugin, reason, nodes) for status, nodes in rejections for reason in status.reasons],
    )
