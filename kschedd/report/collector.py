"""ReportCollector: collects the data for a report while a cluster runs.

The collector observes an engine from the engine's creation on (`simulation.observing`), reads the node table, and
changes nothing. Its memory is bounded by the number of nodes and the number of kinds of reasons. The memory does not
depend on the run's length or the number of pods:

* amounts that last for some time (utilization of each node, pending pods by reason, pods by zone) as sums per column of
  time;
* attempts as counts per column, with details of a few: the first of each column, the first of each kind of reason,
  those whose pods waited longest, and a sample;
* the scores of the sampled attempts. The scores are computed again, because a search stores only totals: at first for
  each attempt, then for every second, every fourth, and so on. Out-of-tree plugins are omitted, because they must not
  be called twice.
"""

from collections.abc import Sequence
from heapq import heappush, heapreplace
from typing import Final, Self

import attrs
import numpy as np

from kschedd.api.nodes import ZONE_LABEL
from kschedd.cache.table import Ints, Rows
from kschedd.queue.entry import SECOND, Move, QueuedPod, SubQueue
from kschedd.report.axis import Counts, Examples, Floats, Levels, TimeAxis
from kschedd.report.decisions import Decision, best_of, funnel_of
from kschedd.report.reasons import reasons_of
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.attempt.ranking import Ranking, Scores
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.filtering.node_local_plugins import PluginFault
from kschedd.scheduling.records import AttemptRecord, Happened, PodPreempted
from kschedd.simulation.engine import Engine

MOST_REASONS: Final = 48
MOST_RESOURCES: Final = 6
MOST_LONGEST: Final = 25
_PER_COLUMN: Final = 2
_SAMPLED_AT_EACH_STRIDE: Final = 64
_MOST_SAMPLES_SHOWN: Final = 24

WAITS: Final = "waits for its turn"
UNDER_WAY: Final = "is being tried or bound"
OTHER_REASONS: Final = "other reasons"
ATTEMPTS, PLACED, FAILED, PREEMPTED = "attempts", "placed", "failed", "preempted"

_TRIED_LATER: Final = (SubQueue.BACKOFF, SubQueue.ERROR_BACKOFF, SubQueue.UNSCHEDULABLE)


@attrs.define(eq=False)
class PendingReason:
    """A kind of reason.

    `failures` is the number of attempts that failed for the reason; `pods` are the first few pods.
    """

    text: str
    number: int
    failures: int = 0
    pods: list[str] = attrs.field(factory=list)
    example: Decision | None = None


class ScoreSums:
    """Weighted sums of the scores of sampled attempts, by plugin and node."""

    def __init__(self) -> None:
        self.plugins: dict[str, int] = {}
        self.sums: Floats = np.zeros((1, 64))
        self.weights: Floats = np.zeros((1, 64))
        self.samples = 0

    def add(self, plugin: str, slots: Ints, scores: Ints, weight: int) -> None:
        number = self.plugins.setdefault(plugin, len(self.plugins))
        rows, columns = self.sums.shape
        if number >= rows or int(slots.max()) >= columns:
            wider = max(int(slots.max()) + 1, 2 * columns) if int(slots.max()) >= columns else columns
            more = ((0, max(number + 1 - rows, 0)), (0, wider - columns))
            self.sums, self.weights = np.pad(self.sums, more), np.pad(self.weights, more)
        self.sums[number, slots] += scores * weight
        self.weights[number, slots] += weight


class ReportCollector:
    """Collects the data for a report while a cluster runs."""

    def __init__(self, engine: Engine, *, start_s: float | None = None) -> None:
        self.engine = engine
        self.start_s = engine.now if start_s is None else start_s  # since the epoch
        self.moment_s: float | None = None  # the time of the observed entry; None: the engine's time
        self.axis = TimeAxis()
        self.counts = Counts(self.axis, (ATTEMPTS, PLACED, FAILED, PREEMPTED))
        self.slots: dict[str, int] = {}  # number of each node by name, including nodes that were deleted
        self.use: dict[str, Levels] = {}  # utilization of each node, by resource
        self.fullest = Levels(self.axis)  # for each node the utilization of its scarcest resource
        self.totals = Levels(self.axis)  # utilization of the whole cluster, by resource
        self.resources: dict[str, int] = {"pods": 0}
        self.zones: dict[str, int] = {}
        self.zone_pods = Levels(self.axis)
        self.pending = Levels(self.axis)
        self.reasons: dict[str, PendingReason] = {}
        self.first = Examples[Decision](self.axis, _PER_COLUMN)
        # a heap, ordered by how long the pod waited or the attempt took
        self.longest: list[tuple[float, int, Decision]] = []
        self.sampled: list[Decision] = []
        self.scores = ScoreSums()
        self.unscored: dict[str, None] = {}  # names of out-of-tree Score plugins, whose scores the report omits
        self._stamp = -1
        self._named: dict[int, str] = {}  # node by row
        self._attempts = 0
        self._stride, self._at_stride, self._scored = 1, 0, 0
        self._counted: dict[str, int] = {}  # uid -> reason number
        self._failed: dict[str, PendingReason] = {}  # reason of each pod's last failure, by UID
        self._numbers: list[int] = []  # pods by reason number
        self._first_active: dict[str, float] = {}  # start of the waiting time of pods without a node, by UID

    @classmethod
    def observing(cls, engine: Engine) -> Self:
        """Return a collector that observes this engine from now on."""
        made = cls(engine)
        for entry in engine.queue.entries():
            made._place(entry.uid, entry.key, entry.place, entry.gating_plugin)
        made.idle()
        engine.observe(made)
        return made

    @property
    def now_s(self) -> float:
        """Seconds since the report's start."""
        return (self.engine.now if self.moment_s is None else self.moment_s) - self.start_s

    # -- nodes --------------------------------------------------------------------------------------------------

    def idle(self) -> None:
        table, now = self.engine.machine.cluster.table, self.now_s
        versions = table.versions
        if not versions.rows_changed(self._stamp):
            return
        changed = self._changed_rows()
        self._stamp = versions.now
        slots: list[int] = []
        rows: list[int] = []
        gone: list[int] = []
        for row in changed:
            name, before = table.names[row], self._named.get(row, "")
            if before and before != name:
                gone.append(self.slots[before])
            self._named[row] = name
            if name:
                rows.append(row)
                slots.append(self.slots.setdefault(name, len(self.slots)))
        self._note_use(np.array(rows, dtype=np.int64), slots, now)
        for slot in sorted(set(gone) - set(slots)):
            for levels in (self.fullest, *self.use.values()):
                levels.set_one(slot, 0.0, now)
        self._note_cluster(now)

    def _changed_rows(self) -> list[int]:
        versions = self.engine.machine.cluster.table.versions
        if self._stamp < 0:
            return sorted(self.engine.machine.cluster.table)
        nodes, pods = versions.nodes.since(self._stamp), versions.pods.since(self._stamp)
        if nodes is None or pods is None:
            return sorted({*self.engine.machine.cluster.table, *self._named})
        return sorted({*nodes, *pods})

    def _note_use(self, rows: Rows, slots: Sequence[int], now: float) -> None:
        if not len(rows):
            return
        table = self.engine.machine.cluster.table
        fullest = np.zeros(len(rows))
        for name, number in table.resources.items():
            requested = table.requested[number, rows]
            if name not in self.use:
                if not requested.any() or len(self.use) >= MOST_RESOURCES:
                    continue
                self.use[name] = Levels(self.axis)
            there = table.allocatable[number, rows]
            share = np.where(there > 0, requested / np.maximum(there, 1), 0.0)
            self.use[name].set(slots, share.tolist(), now)
            fullest = np.maximum(fullest, share)
        self.fullest.set(slots, fullest.tolist(), now)

    def _note_cluster(self, now: float) -> None:
        """Return the utilization of each row; 0 for rows without a node."""
        table = self.engine.machine.cluster.table
        requested, there = table.requested.sum(axis=1).tolist(), table.allocatable.sum(axis=1).tolist()
        used = {"pods": (int(table.pod_count.sum()), int(table.allowed_pods.sum()))}
        used.update((name, (requested[number], there[number])) for name, number in table.resources.items())
        for name, (some, all_there) in used.items():
            number = self.resources.setdefault(name, len(self.resources))
            self.totals.set_one(number, some / all_there if all_there else 0.0, now)
        zones = table.label(ZONE_LABEL)
        pods = np.bincount(zones.ids + 1, weights=table.pod_count, minlength=len(zones.values) + 1).tolist()
        present = {name: pods[number + 1] for number, name in enumerate(zones.values) if name}
        for name in present:
            self.zones.setdefault(name, len(self.zones))
        for name, number in self.zones.items():
            self.zone_pods.set_one(number, present.get(name, 0.0), now)

    # -- pending pods -------------------------------------------------------------------------------------------

    def moved(self, move: Move) -> None:
        self._place(move.uid, move.pod, move.target, move.plugin)

    def _place(self, uid: str, key: str, place: SubQueue, plugin: str) -> None:
        if place is SubQueue.OUTSIDE:
            self._failed.pop(uid, None)
            self._first_active.pop(uid, None)
            self._count(uid, None)
            return
        if place is SubQueue.ACTIVE:
            self._first_active.setdefault(uid, self.now_s)
        if place is SubQueue.GATED:
            reason = self._reason(f"gated by {plugin}" if plugin else "gated")
        elif place in _TRIED_LATER:
            reason = self._failed.get(uid) or self._reason("rejected before the report began")
        else:
            reason = self._reason(UNDER_WAY if place is SubQueue.IN_FLIGHT else WAITS)
        self._count(uid, reason, key)

    def _reason(self, text: str) -> PendingReason:
        found = self.reasons.get(text)
        if found is None:
            if len(self.reasons) >= MOST_REASONS and text != OTHER_REASONS:
                return self._reason(OTHER_REASONS)
            found = self.reasons[text] = PendingReason(text, len(self.reasons))
            self._numbers.append(0)
        return found

    def _count(self, uid: str, reason: PendingReason | None, key: str = "") -> None:
        number = None if reason is None else reason.number
        before = self._counted.get(uid)
        if before == number:
            return
        now = self.now_s
        if before is not None:
            self._numbers[before] -= 1
            self.pending.set_one(before, self._numbers[before], now)
        if reason is None:
            del self._counted[uid]
            return
        self._counted[uid] = reason.number
        self._numbers[reason.number] += 1
        self.pending.set_one(reason.number, self._numbers[reason.number], now)
        if len(reason.pods) < 5 and key not in reason.pods:
            reason.pods.append(key)

    def reason_of(self, uid: str) -> str:
        """Return the reason why the pod's last attempt failed; "" if it did not fail."""
        found = self._failed.get(uid)
        return "" if found is None else found.text

    # -- attempts -----------------------------------------------------------------------------------------------

    def attempted(self, entry: QueuedPod, result: ScheduleResult | FitError) -> None:
        now = self.now_s
        self._attempts += 1
        self.counts.add(ATTEMPTS, now)
        failed = isinstance(result, FitError)
        self.counts.add(FAILED if failed else PLACED, now)
        since = entry.initial_attempt
        waited = None if since is None else max(self.engine.now - since / SECOND, 0.0)
        reason = None
        if isinstance(result, FitError):
            reason = self._failed[entry.uid] = self._reason(reasons_of(result.message))
            reason.failures += 1
        scores = self._sampled_scores(entry, result)
        long_s = 0.0 if failed else waited or 0.0
        if scores is not None or self._wants(reason, long_s):
            decision = self._decision(entry, result, waited, scores)
            self._keep(decision, reason, long_s)
            if scores is not None and len(self.sampled) < _MOST_SAMPLES_SHOWN:
                self.sampled.append(decision)

    def recorded(self, record: AttemptRecord) -> None:
        """Add an attempt of which only the record is available."""
        now = self.now_s
        reason = None
        if not record.of_binding:
            self._attempts += 1
            self.counts.add(ATTEMPTS, now)
            self.counts.add(PLACED if record.node else FAILED, now)
        if not record.node:
            reason = self._failed[record.uid] = self._reason(reasons_of(record.message))
            reason.failures += 1
        if self._wants(reason, record.took_s):
            since = self._first_active.get(record.uid)
            waited = None if since is None else max(now - since, 0.0)
            self._keep(_of_record(record, self._attempts, now, waited), reason, record.took_s)

    def _wants(self, reason: PendingReason | None, long_s: float) -> bool:
        return (
            (reason is not None and reason.example is None)
            or self._among_longest(long_s)
            or self.first.wants(self.now_s)
        )

    def _keep(self, decision: Decision, reason: PendingReason | None, long_s: float) -> None:
        if self.first.wants(decision.time_s):
            self.first.add(decision.time_s, decision)
        if reason is not None and reason.example is None:
            reason.example = decision
        if self._among_longest(long_s):
            item = long_s, -decision.number, decision
            if len(self.longest) < MOST_LONGEST:
                heappush(self.longest, item)
            else:
                heapreplace(self.longest, item)

    def _among_longest(self, seconds: float) -> bool:
        return seconds > (self.longest[0][0] if len(self.longest) == MOST_LONGEST else 0.0)

    def _decision(
        self, entry: QueuedPod, result: ScheduleResult | FitError, waited: float | None, scores: Scores | None
    ) -> Decision:
        table, now = self.engine.machine.cluster.table, self.now_s
        funnel = funnel_of(result, table)
        if isinstance(result, FitError):
            verdicts = result.diagnosis.verdicts
            victims = () if result.post_filter is None else result.post_filter.victims
            return Decision(
                self._attempts,
                now,
                entry.key,
                entry.attempts,
                "",
                waited,
                None,
                0,
                0 if verdicts is None else len(verdicts.rows),
                0,
                None,
                result.message,
                result.nominated_node or "",
                tuple(pod.key for pod in victims),
                funnel,
            )
        plugins, best = ((), ()) if scores is None else best_of(scores, table, result.node_name)
        return Decision(
            self._attempts,
            now,
            entry.key,
            entry.attempts,
            result.node_name,
            waited,
            None,
            len(result.feasible),
            result.visited,
            result.ties,
            result.score,
            "",
            "",
            (),
            funnel,
            plugins,
            best,
        )

    def _sampled_scores(self, entry: QueuedPod, result: ScheduleResult | FitError) -> Scores | None:
        """Return each plugin's scores if this attempt is in the sample; otherwise None."""
        if isinstance(result, FitError) or result.totals is None:
            return None
        self._scored += 1
        if self._scored % self._stride:
            return None
        self._at_stride += 1
        weight = self._stride
        if self._at_stride == _SAMPLED_AT_EACH_STRIDE:
            self._stride, self._at_stride = 2 * self._stride, 0
        profile = result.framework
        self.unscored.update(dict.fromkeys(each.name for each in profile.scores if not each.in_tree))
        own = attrs.evolve(profile, scores=tuple(each for each in profile.scores if each.in_tree))
        cluster = self.engine.machine.cluster
        try:
            scores: Scores = drive(Ranking(own, cluster, None).details(result.state, entry.pod, result.feasible))
        except PluginFault:
            return None  # the scores are out of range; the attempt itself reports this error
        names = cluster.table.names
        slots = np.array(
            [self.slots.setdefault(names[row], len(self.slots)) for row in result.feasible.tolist()], dtype=np.int64
        )
        for plugin, weighted in scores.weighted.items():
            self.scores.add(plugin, slots, weighted, weight)
        self.scores.samples += 1
        return scores

    def happened(self, entries: Sequence[Happened]) -> None:
        for entry in entries:
            if isinstance(entry, PodPreempted):
                self.preempted()
            elif isinstance(entry, AttemptRecord) and not entry.node:
                uid, before = entry.uid, self._failed.get(entry.uid)
                reason = self._failed[uid] = self._reason(reasons_of(entry.message))
                if uid in self._counted and before is not reason:
                    queued = self.engine.queue.entry(entry.pod)
                    if queued is not None and queued.uid == uid and queued.place in _TRIED_LATER:
                        self._count(uid, reason, entry.pod)  # the attempt succeeded and the binding failed

    def preempted(self) -> None:
        """Count a pod that was preempted."""
        self.counts.add(PREEMPTED, self.now_s)


def _of_record(record: AttemptRecord, number: int, time_s: float, waited: float | None) -> Decision:
    return Decision(
        number,
        time_s,
        record.pod,
        record.attempt,
        record.node,
        waited,
        record.took_s,
        record.feasible,
        record.visited,
        record.ties,
        record.score,
        record.message,
        record.nominated_node,
    )
