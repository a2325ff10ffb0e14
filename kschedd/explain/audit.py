"""The auditor: finds pods that stay among the queue's unschedulable pods although they would fit.

Each unschedulable pod is tried in the present state by a dry run of the filters, which changes nothing. If the pod fits
and no event for it is in transit, a wake-up was missed: no plugin is registered for the change, or a queueing hint
returned QueueSkip. The report contains the events since the pod's last attempt began, and for each event the hints of
the plugins that rejected the pod. Unnecessary wake-ups are counted from the queue's moves.

The queue must have received all events when the auditor is called. For pods with the same signature, only one pod is
tried. If nothing has changed since the last audit, only pods with new signatures are tried, so that a simulation can
call the auditor after every step. Pods rejected by Reserve, Permit or an extender are omitted (`undecided`), because
filters cannot evaluate them.

Reads queue and driver. The auditor has its own schedulers, with the same plugins and the same cluster. The auditor is
an event listener and recorder of a queue.
"""

from collections import deque
from collections.abc import Collection, Hashable, Iterator
from typing import Any

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.explain.upstream_gaps import gap_for
from kschedd.framework.events import ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE, ClusterEvent
from kschedd.framework.interface import PERMIT, PRE_ENQUEUE, PRE_FILTER
from kschedd.queue.entry import SECOND, Move, QueuedPod, SubQueue
from kschedd.queue.hints import Strategy
from kschedd.queue.requeue_stats import RequeueStats
from kschedd.queue.scheduling_queue import SchedulingQueue
from kschedd.scheduling.attempt.node_search import StartNode
from kschedd.scheduling.attempt.outcome import ScheduleResult
from kschedd.scheduling.attempt.scheduler import Scheduler
from kschedd.scheduling.attempt.ties import by_name
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.driver import SchedulingDriver

_EVENTS_KEPT = 512
_EVENTS_SHOWN = 20


@attrs.frozen(eq=False)
class HintAnswers:
    """One event, with the queueing hints of the plugins that rejected the pod."""

    when: int
    event: str
    subject: str  # "Node/node-1"
    answers: tuple[tuple[str, str], ...]  # plugin -> Queue, QueueSkip, or "not registered"


@attrs.frozen(eq=False)
class MissedWakeUp:
    pod: str
    uid: str
    node: str  # one on which it fits
    asleep_since: int  # ns
    attempts: int
    rejected_by: tuple[str, ...]
    events: tuple[HintAnswers, ...]  # events since the pod's last attempt began, oldest first, at most 512
    events_missing: bool  # true if older events were dropped
    upstream_gap: str = ""  # known reason why kube-scheduler also misses the event
    version: str = ""  # of kube-scheduler

    def __str__(self) -> str:
        plugins = ", ".join(self.rejected_by) or "no plugin"
        lines = [f"{self.pod} fits on {self.node} and sleeps since {self.asleep_since / SECOND:.3f} s ({plugins})"]
        for heard in self.events:
            answers = ", ".join(f"{plugin}: {answer}" for plugin, answer in heard.answers)
            lines.append(f"  {heard.when / SECOND:.3f} s {heard.event} {heard.subject}: {answers}")
        if self.events_missing:
            lines.insert(1, "  (earlier events are not shown)")
        if self.upstream_gap:
            lines.append(f"  kube-scheduler {self.version} misses it too: {self.upstream_gap}")
        return "\n".join(lines)

    def as_data(self) -> dict[str, Any]:
        return {
            "pod": self.pod,
            "node": self.node,
            "asleep_since_s": self.asleep_since / SECOND,
            "attempts": self.attempts,
            "rejected_by": list(self.rejected_by),
            "events": [
                {
                    "time_s": heard.when / SECOND,
                    "event": heard.event,
                    "subject": heard.subject,
                    "answers": dict(heard.answers),
                }
                for heard in self.events
            ],
            "events_missing": self.events_missing,
            "upstream_gap": self.upstream_gap,
        }


@attrs.frozen(eq=False)
class _Event:
    number: int
    when: int
    event: ClusterEvent
    old: Any
    new: Any


class Auditor:
    """See the module.

    `wakeups` counts wake-ups by result. `missed` contains all reports, at most one for each time that a pod becomes
    unschedulable.
    """

    def __init__(self, queue: SchedulingQueue, driver: SchedulingDriver) -> None:
        self.queue = queue
        self.nominator = driver.nominator
        self.machine = driver.machine
        self.wakeups = RequeueStats()
        self.missed: list[MissedWakeUp] = []
        self.undecided = 0  # number of kinds of pods that the last audit could not evaluate
        self.tried = 0  # dry runs made so far
        self._events: deque[_Event] = deque(maxlen=_EVENTS_KEPT)
        self._heard = 0
        self._popped: dict[str, int] = {}  # uid -> number of events received before the attempt began
        # name -> (machine's scheduler, auditor's scheduler)
        self._schedulers: dict[str, tuple[Scheduler, Scheduler]] = {}
        self._seen_at: Hashable = None
        self._fits_nowhere: set[Hashable] = set()  # kinds of pods that fit on no node, in the state `_seen_at`
        self._reported: set[tuple[str, int]] = set()  # uid, attempts
        queue.event_listener = self._listen
        self._before = queue.recorder
        queue.recorder = self._record

    # -- listening --------------------------------------------------------------------------------------------

    def _listen(self, event: ClusterEvent, old: Any, new: Any, now: int) -> None:
        self._heard += 1
        self._events.append(_Event(self._heard, now, event, old, new))

    def _record(self, move: Move) -> None:
        if self._before is not None:
            self._before(move)
        self.wakeups(move)
        if move.target is SubQueue.IN_FLIGHT:
            self._popped[move.uid] = self._heard
        elif move.target is SubQueue.OUTSIDE:
            self._popped.pop(move.uid, None)

    # -- auditing ---------------------------------------------------------------------------------------------

    def audit(self) -> list[MissedWakeUp]:
        """Try the unschedulable pods, and return the missed wake-ups that were not reported before."""
        state = self._state()
        if state != self._seen_at:
            self._seen_at = state
            self._fits_nowhere.clear()
        self.undecided = 0
        found = []
        for pods in self.queue.unschedulable_kinds():
            for entries, kind in self._to_try(pods):
                node = self._node_for(entries[0].pod)
                if node:
                    found += [
                        self._report(entry, node)
                        for entry in entries
                        if not self._will_be_woken(entry) and self._is_new(entry)
                    ]
                elif kind:
                    self._fits_nowhere.add(kind)
        self.missed += found
        return found

    def _state(self) -> Hashable:
        """Return all state on which the filters' verdicts depend."""
        schedulers = tuple(map(id, self.machine.schedulers.values()))
        versions = self.machine.cluster.versions
        # In-tree filters read no field in which pods with equal signatures differ.
        updates = versions.pod_updates.at if self.machine.registry.added else 0
        return versions.last, updates, self.nominator.version, schedulers

    def _to_try(self, pods: Collection[QueuedPod]) -> Iterator[tuple[list[QueuedPod], Hashable]]:
        """Yield groups of pods with the same signature.

        Only the first pod of a group is tried; its result applies to the whole group. The signature is None if a pod of
        the group is omitted.
        """
        one = next(iter(pods))
        scheduler = self._scheduler(one.pod.scheduler_name)
        if scheduler is None or not self._judged_by_filters(scheduler, one):
            self.undecided += 1
            return
        spec = one.pod.pod_spec
        alone = bool(spec.volumes or spec.resource_claims)  # names of claims may contain the pod's name
        nominator = self.nominator
        kind = (one.pod.signature.id, one.unschedulable_plugins, one.pending_plugins)
        if not alone and not nominator and kind in self._fits_nowhere:
            return
        together = []
        for entry in pods:
            if self.machine.skips(entry.pod):
                continue
            # A pod's own nomination must not be added, but nominations of other pods with its signature must.
            if alone or nominator.node_of(entry.uid):
                yield [entry], None
            else:
                together.append(entry)
        if together and kind not in self._fits_nowhere:
            yield together, kind

    @staticmethod
    def _judged_by_filters(scheduler: Scheduler, entry: QueuedPod) -> bool:
        """Return whether all plugins that rejected the pod are filters."""
        profile = scheduler.profile
        filtering = {filter_.name for filter_ in profile.filters} | {p.name for p in profile.at(PRE_FILTER)}
        permitting = {plugin.name for plugin in profile.at(PERMIT)}
        rejecting = entry.unschedulable_plugins | entry.pending_plugins
        return rejecting <= filtering - permitting | {p.name for p in profile.at(PRE_ENQUEUE)}

    def _node_for(self, pod: Pod) -> str:
        """Return a node on which the pod currently passes all filters, or ""."""
        scheduler = self._scheduler(pod.scheduler_name)
        assert scheduler is not None, "only pods of a profile are tried"
        self.tried += 1
        nominated = self.nominator.by_node()
        result = drive(scheduler.attempt(pod, nominated))
        return result.node_name if isinstance(result, ScheduleResult) else ""

    def _will_be_woken(self, entry: QueuedPod) -> bool:
        """Return whether a binding in progress will cause an event that wakes the pod."""
        decide = self.queue.hints.decide
        return any(
            decide(entry, event, old, new).strategy is not Strategy.SKIP
            for pod in self.machine.cluster.assumed_pods()
            for event, old, new in ((ASSIGNED_POD_ADD, None, pod), (ASSIGNED_POD_DELETE, pod, None))
        )

    def _scheduler(self, name: str) -> Scheduler | None:
        """Return a scheduler that stops at the first feasible node, never preempts, and changes no state."""
        theirs = self.machine.schedulers.get(name)
        if theirs is None:
            return None
        known = self._schedulers.get(name)
        if known is not None and known[0] is theirs:
            return known[1]
        running = theirs.profile
        without = dict.fromkeys(("post_filter", "pre_score", "score"), ())
        profile = attrs.evolve(running.profile, plugins={**running.profile.plugins, **without})
        filtering = attrs.evolve(running, profile=profile, scores=())
        ours = Scheduler(filtering, self.machine.cluster, by_name, StartNode())
        self._schedulers[name] = (theirs, ours)
        return ours

    # -- reporting --------------------------------------------------------------------------------------------

    def _is_new(self, entry: QueuedPod) -> bool:
        sleep = (entry.uid, entry.attempts)
        if sleep in self._reported:
            return False
        self._reported.add(sleep)
        return True

    def _report(self, entry: QueuedPod, node: str) -> MissedWakeUp:
        first = self._popped.get(entry.uid, 0) + 1
        since = [event for event in self._events if event.number >= first]
        missing = len(since) < self._heard - first + 1 or len(since) > _EVENTS_SHOWN
        answers = self.queue.hints.answers
        heard = tuple(
            HintAnswers(e.when, e.event.label, _subject(e), tuple(answers(entry, e.event, e.old, e.new)))
            for e in since[-_EVENTS_SHOWN:]
        )
        return MissedWakeUp(
            entry.key,
            entry.uid,
            node,
            entry.timestamp,
            entry.attempts,
            tuple(sorted(entry.unschedulable_plugins | entry.pending_plugins)),
            heard,
            missing,
            next(filter(None, (self._gap(entry, event) for event in since)), ""),
            self.machine.config.version.name,
        )

    def _gap(self, entry: QueuedPod, event: _Event) -> str:
        machine = self.machine
        return gap_for(entry, event.event, event.old, event.new, machine.cluster, machine.handle.rules)


def _subject(event: _Event) -> str:
    subject = event.new if event.new is not None else event.old
    return f"{subject.kind}/{subject.key}" if isinstance(subject, Object) else ""
