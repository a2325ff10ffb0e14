"""AttemptRecords: what is reported of each attempt, and of each binding that has failed after one.

An entry of the log among the driver's effects; of what found no node, figures for the
metrics (what finds one is counted where its binding begins and ends). Decides nothing.

Owns the counts of attempts and of those that failed, since the start.
"""

import numpy as np

from kschedd.cache.table import NodeTable
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.profiles.metrics import ERROR, UNSCHEDULABLE, AttemptEnded, SchedulingMetrics
from kschedd.scheduling.records import AttemptRecord, Lead


class AttemptRecords:
    """See the module. `metrics` None: nobody counts. With `table`, the records have the lead of the chosen node."""

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
        """An attempt came to this; `failed`: why its pod has no node after all. `of_binding`: the attempt was noted
        before, and now its binding has failed. `version`: of the last write that the scheduler had seen.
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
        [(status.plugin, reason, nodes) for status, nodes in rejections for reason in status.reasons],
    )
