"""A report from data that a daemon stores in any case: its log and its pods.

A daemon collects no data for reports. Instead, the node table of a fork of the cluster is set back to the beginning of
the log. Pods bound later are removed from their nodes, and pods deleted later are added again. After these corrections,
the entries of the log are replayed in the order of their times, and data is collected as in an observed run.

The report shows the present nodes. Objects that were deleted before the beginning of the store's log are missing.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

import attrs

from kschedd.api.pods import Pod
from kschedd.api.text.times import seconds
from kschedd.log.log import Entry
from kschedd.queue.entry import SECOND, Move
from kschedd.report.collector import ReportCollector
from kschedd.report.decisions import funnel_of
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.records import AttemptRecord, PodPreempted
from kschedd.simulation.engine import Engine
from kschedd.simulation.pending import pending_pods
from kschedd.store.objects.log import DELETED, WatchEvent

_MOST_TRIED: Final = 10
# order of entries with the same time: the reason of an attempt precedes the move of its pod
_POD, _ATTEMPT, _MOVE = range(3)

Change = tuple[int, Pod, int]  # row, pod, and 1 (the pod is added) or -1 (it is removed)


@attrs.frozen(eq=False)
class KeptHistory:
    """`written` are the latest events of the store, as far back as its log goes."""

    entries: Sequence[Entry]
    written: Sequence[WatchEvent] = ()

    def begins(self, now_s: float) -> float:
        return min(map(_time_of, self.entries), default=now_s)


def _time_of(entry: Entry) -> float:
    return entry.when / SECOND if isinstance(entry, Move) else entry.at_s


def of_kept(engine: Engine, kept: KeptHistory, *, trying: bool = True) -> ReportCollector:
    """Collect the data. When this function returns, the engine's table is unchanged.

    With `trying`, a pending pod of each kind of reason is attempted, because the records contain no filter results.
    """
    start_s = kept.begins(engine.now)
    collector = ReportCollector(engine, start_s=start_s)
    changes = _wound_back(engine, kept, start_s)
    collector.moment_s = start_s
    collector.idle()
    happened: list[tuple[float, int, int, Change | Entry]] = []
    happened += [(at_s, _POD, n, change) for n, (at_s, change) in enumerate(changes)]
    for n, entry in enumerate(kept.entries):
        happened.append((_time_of(entry), _MOVE if isinstance(entry, Move) else _ATTEMPT, n, entry))
    happened.sort(key=lambda each: each[:3])
    table = engine.machine.cluster.table
    for at_s, of_moment in groupby(happened, key=lambda each: each[0]):
        collector.moment_s = min(max(at_s, start_s), engine.now)
        for _, _, _, what in of_moment:
            if isinstance(what, AttemptRecord):
                collector.recorded(what)
            elif isinstance(what, Move):
                collector.moved(what)
            elif isinstance(what, PodPreempted):
                collector.preempted()
            elif isinstance(what, tuple):
                row, pod, sign = what
                (table.add_pod if sign > 0 else table.remove_pod)(row, pod)
        collector.idle()
    collector.moment_s = None
    if trying:
        _try_pending(engine, collector)
    return collector


def _try_pending(engine: Engine, collector: ReportCollector) -> None:
    """Return the filter results of one pending pod for each kind of reason, because the records do not contain them."""
    tried: set[str] = set()
    for pod in pending_pods(engine):
        reason = collector.reasons.get(collector.reason_of(pod.uid))
        if reason is None or reason.example is None or reason.text in tried or len(tried) >= _MOST_TRIED:
            continue
        tried.add(reason.text)
        scheduler = engine.machine.schedulers[pod.scheduler_name]
        result = drive(scheduler.attempt(pod, engine.driver.nominator.by_node(), every_node=True))
        funnel = funnel_of(result, engine.machine.cluster.table)
        reason.example = attrs.evolve(reason.example, pod=pod.key, funnel=funnel)


def _wound_back(engine: Engine, kept: KeptHistory, start_s: float) -> list[tuple[float, Change]]:
    """Set the table back to that time; return the changes of the table since then."""
    table = engine.machine.cluster.table
    placed = {entry.uid: entry.at_s for entry in kept.entries if isinstance(entry, AttemptRecord) and entry.node}
    changes: list[tuple[float, Change]] = []
    for row in sorted(table):
        for pod in list(table.pods[row]):
            at_s = placed.get(pod.uid, _scheduled_s(pod))
            if at_s > start_s:
                table.remove_pod(row, pod)
                changes.append((at_s, (row, pod, 1)))
    for pod, gone_s in _gone(kept.written, engine.now):
        row_then = table.row_of.get(pod.node_name)
        at_s = placed.get(pod.uid, _scheduled_s(pod))
        if row_then is None or gone_s <= start_s:
            continue
        if at_s > start_s:
            changes.append((min(at_s, gone_s), (row_then, pod, 1)))
        else:
            table.add_pod(row_then, pod)
        changes.append((gone_s, (row_then, pod, -1)))
    return changes


def _gone(written: Iterable[WatchEvent], now_s: float) -> list[tuple[Pod, float]]:
    """Return the pods that had a node and are no longer on it, with the time of the change."""
    found: dict[str, tuple[Pod, float]] = {}
    for event in written:
        pod = event.new
        if isinstance(pod, Pod) and pod.node_name and pod.uid not in found:
            if event.type == DELETED or pod.finished:
                ended = pod.metadata.get("deletionTimestamp")
                found[pod.uid] = pod, seconds(ended) if ended else _changed_s(pod, now_s)
    return list(found.values())


def _scheduled_s(pod: Pod) -> float:
    for condition in pod.status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
            if condition.get("lastTransitionTime"):
                return seconds(condition["lastTransitionTime"])
    created = pod.metadata.get("creationTimestamp")
    return seconds(created) if created else 0.0


def _changed_s(pod: Pod, now_s: float) -> float:
    """Return the time of the last change of the pod's status."""
    times = [condition.get("lastTransitionTime") for condition in pod.status.get("conditions") or ()]
    known = [seconds(time) for time in times if time]
    return max(known, default=now_s)


NOTES: Final = (
    "A daemon's report reaches back as far as its log: the latest 100,000 attempts, bindings, and moves in its queue. "
    "Nodes are those of now. The log does not contain filter results and scores: "
    "the filter results are those of pending pods, as they would be attempted now.",
)
