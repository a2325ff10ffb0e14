"""Timeline of a run: queue, attempts, bindings, the pods of each node, and the events that woke pods.

Attempts are shown by extension point and plugin. An arrow points from each event to the attempt of the pod that the
event woke.

The timeline observes an engine (`simulation.observing`). The timeline is written continuously; only open slices are in
memory. Virtual time does not advance during an attempt, so attempts at one point in time are drawn one after the other.
Each plugin is drawn as a microsecond, and each node that it evaluated as a nanosecond. The length of a slice shows the
amount of work and not its duration.

Units: integer nanoseconds since the start of the run.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from kschedd.framework.events import ClusterEvent
from kschedd.framework.interface import PERMIT, POST_FILTER, PRE_FILTER, PRE_SCORE, RESERVE
from kschedd.queue.entry import SECOND, Move, QueuedPod, SubQueue
from kschedd.report.decisions import funnel_of
from kschedd.report.timeline_files import TimelineFile
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.records import AttemptRecord, Happened, PodBound
from kschedd.simulation.engine import Engine

_PLUGIN_NS: Final = 1_000
_WOKEN_FROM: Final = (SubQueue.UNSCHEDULABLE, SubQueue.GATED, SubQueue.IN_FLIGHT)
_WOKEN_TO: Final = (SubQueue.ACTIVE, SubQueue.BACKOFF)
_BY_TIME: Final = ("BackoffComplete", "ScheduleAttemptFailure", "UnschedulableTimeout", "PopFromBackoffQ")

_Part = tuple[str, int]  # name of a plugin, and number of nodes that the plugin evaluated


class Timeline:
    """A timeline of a run; the caller closes `file`."""

    def __init__(self, engine: Engine, file: TimelineFile) -> None:
        self._engine = engine
        self._file = file
        self._start_s = engine.now
        queue, scheduler = file.group("queue"), file.group("scheduler")
        self._places: dict[SubQueue, int] = {
            place: file.counter(queue, f"{place.value} pods") for place in SubQueue if place is not SubQueue.OUTSIDE
        }
        self._counts: dict[SubQueue, int] = {}
        self._events = file.track(scheduler, "events that woke pods")
        self._attempts = file.track(scheduler, "attempts")
        self._bindings = file.group("bindings")
        self._lanes: list[tuple[int, int]] = []  # (track, free from)
        self._nodes = file.group("nodes, percent requested")
        self._use: dict[tuple[str, str], tuple[int, float]] = {}  # track and last value for each node and resource
        self._named: dict[int, str] = {}
        self._stamp = -1
        self._free = self._events_free = 0  # time until which the tracks of attempts and of events are occupied
        self._begun: dict[str, tuple[int, str]] = {}  # start time and node of each pod's binding, by the UID of the pod
        self._woken: dict[str, int] = {}  # uid -> arrow
        self._arrows = 0
        self._last_event = ""

    @classmethod
    def observing(cls, engine: Engine, file: TimelineFile) -> "Timeline":
        """Return a timeline that observes this engine from now on."""
        made = cls(engine, file)
        made.idle()
        engine.observe(made)
        before = engine.queue.event_listener

        def heard(event: ClusterEvent, old: object, new: object, now: int) -> None:
            if before is not None:
                before(event, old, new, now)
            about = new if new is not None else old
            made._last_event = f"{event.label} {getattr(about, 'key', '')}".strip()

        engine.queue.event_listener = heard
        return made

    @property
    def _now(self) -> int:
        return round((self._engine.now - self._start_s) * SECOND)

    # -- attempts -----------------------------------------------------------------------------------------------

    def attempted(self, entry: QueuedPod, result: ScheduleResult | FitError) -> None:
        at = begin = max(self._now, self._free)
        points = [(point, parts) for point, parts in self._points(entry, result) if parts]
        whole = max(sum(_length(duration) for _, parts in points for _, duration in parts), _PLUGIN_NS)
        facts: dict[str, str | int] = {
            "attempt": entry.attempts,
            "nodes": self._engine.machine.cluster.table.node_count,
        }
        if isinstance(result, FitError):
            facts["message"] = result.message
        else:
            facts |= {"node": result.node_name, "looked at": result.visited, "fit": len(result.feasible)}
            self._begun[entry.uid] = begin + whole, result.node_name
        arrow = self._woken.pop(entry.uid, 0)
        outcome = "no node" if isinstance(result, FitError) else result.node_name
        self._file.begin(self._attempts, begin, f"{entry.key} → {outcome}", facts, ends=arrow)
        for point, parts in points:
            self._file.begin(self._attempts, at, point)
            for plugin, duration in parts:
                self._file.begin(self._attempts, at, plugin, {"nodes": duration} if duration else {})
                at += _length(duration)
                self._file.end(self._attempts, at)
            self._file.end(self._attempts, at)
        self._free = begin + whole
        self._file.end(self._attempts, self._free)

    def _points(self, entry: QueuedPod, result: ScheduleResult | FitError) -> Iterator[tuple[str, list[_Part]]]:
        """Return the extension points with the plugins that were called there, in order."""
        scheduler = self._engine.machine.schedulers.get(entry.pod.scheduler_name)
        if scheduler is None:
            return
        profile, state = scheduler.profile, result.state
        yield "PreFilter", [(each.name, 0) for each in profile.at(PRE_FILTER) if each.name not in state.skip_filter]
        table = self._engine.machine.cluster.table
        funnel = funnel_of(result, table)
        lost = {step.what: step.lost for step in funnel.steps}
        left = funnel.nodes - lost.get("not looked at", 0)
        filters: list[_Part] = []
        filtered = isinstance(result, ScheduleResult) or result.diagnosis.verdicts is not None
        for each in profile.filters if filtered else ():
            if each.name not in state.skip_filter and left > 0:
                filters.append((each.name, left))
                left -= lost.get(each.name, 0)
        yield "Filter", filters
        if isinstance(result, FitError):
            if result.post_filter is not None:
                yield "PostFilter", [(each.name, 0) for each in profile.at(POST_FILTER)]
            return
        if result.totals is not None:
            fit = len(result.feasible)
            yield "PreScore", [(each.name, 0) for each in profile.at(PRE_SCORE) if each.name not in state.skip_score]
            yield "Score", [(each.name, fit) for each in profile.scores if each.name not in state.skip_score]
        yield "Reserve", [(each.name, 0) for each in profile.at(RESERVE)]
        yield "Permit", [(each.name, 0) for each in profile.at(PERMIT)]

    # -- what follows -------------------------------------------------------------------------------------------

    def happened(self, entries: Sequence[Happened]) -> None:
        for entry in entries:
            if isinstance(entry, PodBound):
                self._bound(entry.uid, entry.pod, "")
            elif isinstance(entry, AttemptRecord) and not entry.node:
                self._bound(entry.uid, entry.pod, entry.message)

    def _bound(self, uid: str, key: str, failure: str) -> None:
        begun = self._begun.pop(uid, None)
        if begun is None:
            return
        at, node = begun
        end = max(self._now, at + _PLUGIN_NS)
        lane = next((n for n, (_, free) in enumerate(self._lanes) if free <= at), len(self._lanes))
        if lane == len(self._lanes):
            self._lanes.append((self._file.track(self._bindings, f"binding {lane + 1}"), 0))
        track = self._lanes[lane][0]
        self._lanes[lane] = track, end
        facts: dict[str, str | int] = {"node": node, **({"failed": failure} if failure else {})}
        self._file.begin(track, at, key, facts)
        self._file.end(track, end)

    def moved(self, move: Move) -> None:
        woken = move.source in _WOKEN_FROM and move.target in _WOKEN_TO
        if not woken or (move.event in _BY_TIME and not move.seen):
            return
        label = move.seen or move.event
        cause = self._last_event if self._last_event.partition(" ")[0] == label else label
        self._arrows += 1
        self._woken[move.uid] = self._arrows
        at = max(self._now, self._events_free)
        self._events_free = at + _PLUGIN_NS
        self._file.begin(self._events, at, cause, {"wakes": move.pod, "plugin": move.plugin}, starts=self._arrows)
        self._file.end(self._events, self._events_free)

    def idle(self) -> None:
        now = self._now
        for place, count in self._engine.queue.counts().items():
            if self._counts.get(place) != count:
                self._counts[place] = count
                self._file.count(self._places[place], now, count)
        table = self._engine.machine.cluster.table
        if not table.versions.rows_changed(self._stamp):
            return
        rows = self._changed_rows()
        self._stamp = table.versions.now
        for row in rows:
            name = table.names[row]
            before = self._named.get(row, "")
            if before and before != name:
                for node, resource in [key for key in self._use if key[0] == before]:
                    self._note(node, resource, 0.0, now)
            self._named[row] = name
            if name:
                for resource, number in table.resources.items():
                    there = int(table.allocatable[number, row])
                    share = 100 * int(table.requested[number, row]) / there if there > 0 else 0.0
                    self._note(name, resource, round(share, 2), now)

    def _changed_rows(self) -> list[int]:
        table = self._engine.machine.cluster.table
        nodes, pods = table.versions.nodes.since(self._stamp), table.versions.pods.since(self._stamp)
        if self._stamp < 0 or nodes is None or pods is None:
            return sorted({*table, *self._named})
        return sorted({*nodes, *pods})

    def _note(self, node: str, resource: str, value: float, now: int) -> None:
        track, last = self._use.get((node, resource), (0, 0.0))
        if value != last:
            track = track or self._file.counter(self._nodes, f"{node} {resource}")
            self._use[node, resource] = track, value
            self._file.count(track, now, value)


def _length(duration: int) -> int:
    return _PLUGIN_NS + duration
