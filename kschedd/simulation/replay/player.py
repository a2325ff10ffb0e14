"""Player: repeats the recorded calls of a scheduling driver and a queue, note by note.

The player contains a driver and a queue of the usual classes, the data in transit between them, and the objects as the
scheduler had observed them. The replay ends with the recording, or where it diverges from the recording.

If a recorded call used a plugin or an extender, a later note contains the answer. The notes before this answer are
processed first, because they were recorded while the scheduler waited.

Raises: ReplayDiverged if a call in the replay differs from the recorded call.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.config.in_tree import IN_TREE
from kschedd.config.model import Config
from kschedd.config.versions.kube_versions import KubernetesVersion, kube_version
from kschedd.errors import KscheddError
from kschedd.extenders.calls import ExtenderCall
from kschedd.framework.faults import PluginError, PluginTimeout
from kschedd.framework.status import fault_text
from kschedd.framework.writes import Plan
from kschedd.queue.entry import SECOND, QueuedPod, SubQueue
from kschedd.queue.operations import (
    EventsObserved,
    FlushBackoff,
    FlushLeftover,
    Force,
    MoveToActive,
    PodDone,
    Pop,
    PopOthersOfGroup,
    QueueOperation,
    TakeNominated,
)
from kschedd.queue.scheduling_queue import Recorder as MoveRecorder
from kschedd.recording.configuration import config_of
from kschedd.recording.format import LATEST_S
from kschedd.recording.notes import DRIVER, MESSAGE_AT, QUEUE, Note, NoteKind, line_of, time_of
from kschedd.recording.reading import RecordingFile, distrusting
from kschedd.recording.recorder import EVENT_TYPES
from kschedd.recording.state import restore_driver, restore_queue
from kschedd.recording.values import PodRef, unpack
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.debug.breakpoints import StopPoint
from kschedd.scheduling.debug.debugger import Debugger, Intervention
from kschedd.scheduling.debug.work import Work
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.filtering.filters import PluginBatch
from kschedd.scheduling.inputs import (
    Allow,
    BeginAttempt,
    BeginGroupCycle,
    BreakOff,
    ChangeConfig,
    CompleteAttempt,
    EvictionFailed,
    Observe,
    PlansExecuted,
    PluginCalled,
    PodsNominated,
    PodsPopped,
    Reconfigure,
    Reject,
    ResumeDecided,
    ResumeReady,
    ResumeStopped,
    Tick,
    UndoConfigChange,
)
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.records import OUTCOME, AttemptRecord, Happened
from kschedd.simulation.replay.plugins import ReplayedPlugin, ReplayedRegistry
from kschedd.store.journal.reading import read_object
from kschedd.store.objects.log import ADDED, DELETED, WatchEvent

_RECORD: Final = ("time", *OUTCOME)
_BEGINNINGS: Final = (NoteKind.BEGIN, NoteKind.GROUP_CYCLE)
_ANSWERS: Final = (NoteKind.ANSWER, NoteKind.FAULT)


@attrs.define(eq=False)
class ReplayDiverged(KscheddError):
    """The replay differs from the recorded run. `note` is the number of the differing note."""

    note: int
    why: str

    def __str__(self) -> str:
        return f"the replay diverges from the recording at note {self.note}: {self.why}"


class _Unwound(BaseException):
    """An exception that ends the replay inside nested calls. If `why` is None, the end of the recording was reached."""

    def __init__(self, why: ReplayDiverged | None) -> None:
        self.why = why


@attrs.define(eq=False)
class _Attempt:
    entry: QueuedPod
    work: Work[Any] | None
    yielded: Any = None  # what it has yielded
    result: ScheduleResult | FitError | None = None

    def ended(self, result: ScheduleResult | FitError) -> None:
        self.result = result


class Player:
    """Repeats the recorded calls of a scheduling driver and a queue."""

    def __init__(
        self,
        recording: RecordingFile,
        *,
        move_recorder: MoveRecorder | None = None,
    ) -> None:
        header = recording.header
        self.recording = recording
        self.now_s = header.start_s
        self.at = 0  # notes done
        self.attempts = 0  # begun
        self.version = 0  # the store version that the scheduler has observed
        self.started: int | None = None  # the store version at the start of the recording
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.pods: dict[str, Pod] = {}  # by uid
        self.ended = False
        self._listeners: list[Callable[[Happened], None]] = []
        self._noted = 0  # number of the driver's log entries already sent to listeners
        self._event_listeners: list[Callable[[Sequence[WatchEvent]], object]] = []
        self._notes: Iterator[Note] = recording.notes()
        self._ahead: deque[Note] = deque()
        self._answers: tuple[deque[Note], deque[Note]] = (deque(), deque())
        self._machine = DRIVER  # state machine whose call is being replayed
        self._made: list[tuple[str, dict[str, Any]]] = []
        self._attempt: _Attempt | None = None
        self._stopped: tuple[Work[Any], Callable[[Any], None]] | None = (
            None  # attempt at which the debugger has stopped
        )
        self._held = -1  # note before which the debugger last stopped
        self._released: deque[str] = deque()
        self._operations: deque[QueueOperation] = deque()
        self._taken = 0  # number of processed events of the first operation
        self._popped: deque[QueuedPod] = deque()
        self._nominated: deque[Pod] = deque()
        self._version = kube_version(header.kube_version)
        with distrusting(recording.path):
            self.registry = ReplayedRegistry(header.plugins, self._next_made)
            self._take_made()
            config = self._config(header.config, header.unschedulable_flush_s)
            self.driver = SchedulingDriver(SchedulingMachine(config, registry=self.registry, seed=header.seed))
            self.driver.groups.stops_within = False
            self.driver.machine.holds_preemptors = header.holds_preemptors
        queue_config = self.driver.config_changes.for_queue()
        self.queue = queue_config.new_queue()
        self.queue.recorder = move_recorder
        self.operations = queue_config.new_operations(self.queue)
        handle = self.driver.machine.handle
        handle.evicting, handle.leaving = self.operations.evicting, self.operations.leaving
        self._do_by_kind = self._calls_by_kind()

    def _calls_by_kind(self) -> dict[int, Callable[..., object]]:
        """Return the function for each kind of note; its arguments are the fields of the note."""
        return {
            NoteKind.OBSERVE: self._observe,
            NoteKind.STARTED: self._started,
            NoteKind.POPPED: self._take_popped,
            NoteKind.NOMINATED: self._take_nominated,
            NoteKind.BEGIN: self._begin,
            NoteKind.GROUP_CYCLE: self._group_cycle,
            NoteKind.STEPPED: self._step_by_step,
            NoteKind.INTERVENED: lambda *change: None,  # changes by the user at the attempt's stop points (`_planned`)
            NoteKind.SEND: self._send,
            NoteKind.BROKEN: self._broken,
            NoteKind.COMPLETE: self._complete,
            NoteKind.PLAN_EXECUTED: self._plan_executed,
            NoteKind.PLUGIN_CALLED: self._plugin_called,
            NoteKind.TICK: lambda now: self.driver.step(Tick(), self._moved(now)),
            NoteKind.RESUME_DECIDED: lambda now: self.driver.step(ResumeDecided(), self._moved(now)),
            NoteKind.RESUME_READY: lambda now: self.driver.step(ResumeReady(), self._moved(now)),
            NoteKind.RESUME_STOPPED: lambda now: self.driver.step(ResumeStopped(), self._moved(now)),
            NoteKind.EVICTION_FAILED: lambda uid: self.driver.step(EvictionFailed(self._pod(uid))),
            NoteKind.TAKE: self._take_effects,
            NoteKind.CHANGE_CONFIG: self._change_config,
            NoteKind.UNDO_CONFIG: self._undo_config,
            NoteKind.RECONFIGURE: self._reconfigure,
            NoteKind.CONFIG_REFUSED: self._made.clear,
            NoteKind.ALLOW: lambda uid, plugin: self.driver.step(Allow(uid, plugin)),
            NoteKind.REJECT: lambda uid, plugin, reason: self.driver.step(Reject(uid, plugin, reason)),
            NoteKind.ACTIVATE: lambda uids: self.driver.machine.handle.activate([self._pod(uid) for uid in uids]),
            NoteKind.MADE: lambda name, packed: self._made.append((name, unpack(packed))),
            NoteKind.DONE: self._done,
            NoteKind.APPLY: self._apply,
            NoteKind.POP: self._pop,
            NoteKind.POP_GROUP: self._pop_group,
            NoteKind.FLUSH_BACKOFF: lambda now, most: self.operations.step(FlushBackoff(most), now),
            NoteKind.FLUSH_LEFTOVER: lambda now: self.operations.step(FlushLeftover(), now),
            NoteKind.TAKE_NOMINATED: lambda: self._nominated.extend(self.operations.step(TakeNominated(), 0)),
            NoteKind.MOVE_ACTIVE: self._move_active,
            NoteKind.FORCE: lambda key, place, now: self.operations.step(Force(key, SubQueue(place)), now),
            NoteKind.LAYOUT: self.driver.machine.cluster.table.lay_out,
            NoteKind.DRIVER_STATE: lambda packed: restore_driver(self.driver, packed, self.version),
            NoteKind.QUEUE_STATE: lambda packed: restore_queue(self.operations, packed, self.driver.pending.pods),
            NoteKind.OWN: lambda first, last: None,
        }

    # -- going on -------------------------------------------------------------------------------------------------

    def on_happened(self, listener: Callable[[Happened], None]) -> None:
        """Call the observer with each later attempt, binding and preemption."""
        self._listeners.append(listener)

    def on_events(self, listener: Callable[[Sequence[WatchEvent]], object]) -> None:
        """Call the observer with all later events that the scheduler receives."""
        self._event_listeners.append(listener)

    def peek(self) -> Note | None:
        """Return the next note of the recording without consuming it, or None at the end of the recording."""
        if not self._ahead:
            note = next(self._notes, None)
            if note is None:
                return None
            self._ahead.append(note)
        return self._ahead[0]

    def next_s(self) -> float | None:
        """Return the time of the next note, or None."""
        note = self.peek()
        return None if note is None else time_of(note)

    def step(self) -> bool:
        """Process the next note.

        Replay the next note; return False at the end of the recording, or if the debugger stopped the replay. Raises
        ReplayDiverged.
        """
        debugger = self.driver.debugger
        if debugger.stop is not None:
            return False
        try:
            if self._stopped is not None:
                self._go_on()
                return True
            if self.driver.any_to_resume:
                self.driver.step(ResumeStopped(), self.now_s)
                return True
            note = self.peek()
            if note is None:
                self.ended = True
                return False
            if debugger.engaged and not self._lets(note):
                return False
            self._ahead.popleft()
            self._do(note)
            self._notify()
        except _Unwound as end:
            if end.why is not None:
                raise end.why from None
            self.ended = True
            return False
        return True

    def _lets(self, note: Note) -> bool:
        """Return whether the debugger allows the replay of this note; it may stop before an attempt or at a time."""
        debugger = self.driver.debugger
        head = self.driver.popped.head
        if note[0] not in _BEGINNINGS or head is None:
            at = time_of(note)
            if at is not None and debugger.until is not None:
                debugger.tick(at)
            return debugger.stop is None
        if not self.driver.popped.lets_begin(note[1]):
            return False
        if note[0] == NoteKind.GROUP_CYCLE:
            return True  # the debugger never stops within the cycle of a PodGroup
        if self.within or self._held == self.at or not debugger.may_stop_within(head.pod):
            return True
        self._held = self.at
        debugger.pause(note[1])
        return False

    @property
    def within(self) -> bool:
        """Return whether the debugger may stop inside attempts.

        A stop inside an attempt calls plugins that were not called in the recorded run. The debugger therefore stops
        only before attempts if answers of out-of-tree plugins or extenders were recorded.
        """
        return not self.registry.added and not self.driver.machine.extenders

    def _go_on(self) -> None:
        """Continue the stopped attempt up to its next stop or its end."""
        assert self._stopped is not None, "an attempt is stopped"
        self.driver.debugger.now_s = self.now_s
        work, done = self._stopped
        try:
            yielded = work.send([])
            while not isinstance(yielded, StopPoint):
                yielded = work.send(_answers(yielded, None))
        except StopIteration as end:
            self._stopped = None
            done(end.value)
        except Exception:  # an error of the attempt; a later note contains its result
            self._stopped = None

    @property
    def next_pods(self) -> Sequence[QueuedPod]:
        """Return the pods whose attempt or PodGroup cycle begins with the next note; empty for other notes."""
        note, head = self.peek(), self.driver.popped.head
        if note is None or note[0] not in _BEGINNINGS or head is None:
            return ()
        if note[0] == NoteKind.BEGIN:
            return (head,)
        return [entry for entry in self.driver.popped.entries if entry.pod.pod_group == head.pod.pod_group]

    def _do(self, note: Note) -> None:
        kind = note[0]
        self.at += 1
        if kind in _ANSWERS:
            self._answers[_machine_of(note)].append(note)
            return
        do = self._do_by_kind.get(kind)
        if do is None:
            raise self._diverged(f"it has a note of kind {kind}, which this kschedd does not know")
        before, self._machine = self._machine, _machine_of(note)
        try:
            do(*note[1:])
        except Exception as fault:  # The file may have been altered, so its content is not trusted.
            raise self._diverged(f"a note of kind {kind} cannot be done: {fault_text(fault)}") from fault
        finally:
            self._machine = before

    def _diverged(self, why: str) -> _Unwound:
        return _Unwound(ReplayDiverged(self.at, why))

    def _moved(self, now: float) -> float:
        if not 0 <= now <= LATEST_S:
            raise self._diverged(f"{now} is no time of a cluster")
        self.now_s = max(self.now_s, now)
        return now

    # -- plugins ----------------------------------------------------------------------------------------------

    def _take_made(self) -> None:
        """Read the notes about plugins that were created for a new configuration."""
        while (note := self.peek()) is not None and note[0] == NoteKind.MADE:
            self._ahead.popleft()
            self.at += 1
            self._made.append((note[1], unpack(note[2])))
        self._renew()

    def _renew(self) -> None:
        for name, described in self._made:
            more = ["sort_key"] if described["sorts"] else []
            self.registry.renew(name, [*described["methods"], *more])

    def _next_made(self, name: str) -> ReplayedPlugin | None:
        for place, (made, described) in enumerate(self._made):
            if made == name:
                del self._made[place]
                return ReplayedPlugin(name, described, self._answer)
        return None

    def _answer(self, plugin: str, method: str) -> Any:
        note = self._next_answer()
        if note[0] == NoteKind.FAULT:
            _, _, name, blamed, in_method, why, late = note
            if name != plugin:
                raise self._diverged(f"{plugin} is called ({method}), but {name} had failed")
            raise (PluginTimeout if late else PluginError)(blamed, in_method, why)
        _, _, name, answer, packed = note
        if (name, answer) != (plugin, method):
            raise self._diverged(f"{plugin} is called ({method}), but {name} had answered {answer}")
        return unpack(packed, lambda ref: self._named(ref))

    def _next_answer(self) -> Note:
        """Return the next recorded answer for the state machine whose call is being replayed.

        Earlier notes of this state machine are replayed first. Notes of the other state machine remain, because its
        calls may overlap with this call in any order.
        """
        machine = self._machine
        known = self._answers[machine]
        if known:
            return known.popleft()
        place = 0
        while True:
            if place == len(self._ahead):
                note = next(self._notes, None)
                if note is None:
                    raise _Unwound(None)
                self._ahead.append(note)
            note = self._ahead[place]
            if _machine_of(note) != machine:
                place += 1
                continue
            del self._ahead[place]
            if note[0] in _ANSWERS:
                self.at += 1
                return note
            self._do(note)
            if known:
                return known.popleft()

    def _named(self, ref: PodRef) -> Pod:
        return self.driver.machine.cluster.pod(ref.uid) or self._pod(ref.uid)

    def _pod(self, uid: str) -> Pod:
        pod = self.pods.get(uid)
        if pod is None:
            raise self._diverged(f"no pod has the uid {uid}")
        return pod

    # -- the driver -------------------------------------------------------------------------------------------

    def _observe(self, now: float, events: Sequence[Any]) -> None:
        seen = [self._event(*event) for event in events]
        self.driver.step(Observe(seen), self._moved(now))
        if self.started is not None:
            self.driver.observed = self.version
        for listener in self._event_listeners:
            listener(seen)

    def _event(self, code: int, kind: str, packed: bytes, version: int) -> WatchEvent:
        new = read_object(kind, packed)
        event_type = EVENT_TYPES[code]
        key = kind, new.namespace, new.name
        old = None if event_type == ADDED else self.objects.get(key)
        if event_type == DELETED:
            self.objects.pop(key, None)
        else:
            self.objects[key] = new
        if isinstance(new, Pod):
            self.pods[new.uid] = new
        self.version = max(self.version, version)
        return WatchEvent(event_type, old, new, version)

    def _started(self, version: int) -> None:
        self.started = self.version = version
        self.driver.observed = version

    def _take_popped(self, count: int) -> None:
        if len(self._popped) < count:
            raise self._diverged(f"{count} pods were popped, but the queue returned {len(self._popped)}")
        self.driver.step(PodsPopped([self._popped.popleft() for _ in range(count)]))

    def _take_nominated(self, count: int) -> None:
        if len(self._nominated) < count:
            raise self._diverged(f"{count} pods were nominated, but the queue reported {len(self._nominated)}")
        self.driver.step(PodsNominated([self._nominated.popleft() for _ in range(count)]))

    def _begin(self, now: float, uid: str) -> None:
        entry = self._next_popped(now, uid)
        self._attempt = _Attempt(entry, None)
        debugger = self.driver.debugger
        engaged = debugger.engaged
        if engaged and not self.within:
            debugger.began(entry.pod)
            debugger.engaged = False
        try:
            self._attempt.work = self.driver.step(BeginAttempt(entry), now)
        except Exception:  # an error of the attempt; a later note contains its result
            return
        finally:
            debugger.engaged = engaged

    def _step_by_step(self) -> None:
        attempt = self._attempt
        if attempt is None or attempt.work is None:
            raise self._diverged("the recording steps through an attempt, but no attempt is running")
        attempt.work = self.driver.attempts.step_by_step(attempt.entry)
        stepper = self.driver.attempts.stepper
        assert stepper is not None, "it has one now"
        stepper.planned = self._planned()
        if not self.within:
            stepper.debugger = Debugger(dict)  # which stops nowhere

    def _planned(self) -> dict[int, list[Intervention]]:
        """Return the user's changes during the next attempt, by number of the stop point.

        No other events affected the attempt, because the scheduler processes no events while it is stopped. The replay
        therefore reads the user's changes in advance and does not stop for them.
        """
        found: dict[int, list[Intervention]] = {}
        for note in self._notes_ahead():
            if note[0] == NoteKind.COMPLETE:
                break
            if note[0] == NoteKind.INTERVENED:
                _, point, *change = note
                found.setdefault(point, []).append(Intervention(*change))
        return found

    def _notes_ahead(self) -> Iterator[Note]:
        place = 0
        while True:
            if place == len(self._ahead):
                note = next(self._notes, None)
                if note is None:
                    return
                self._ahead.append(note)
            yield self._ahead[place]
            place += 1

    def _next_popped(self, now: float, uid: str) -> QueuedPod:
        entry = self.driver.popped.take(self._moved(now))
        if entry is None or entry.uid != uid:
            pod = self.pods.get(uid)
            there = "no pod" if entry is None else entry.key
            name = uid if pod is None else pod.key
            raise self._diverged(f"the next recorded attempt is of {name}, but the replayed attempt is of {there}")
        self.attempts += 1
        return entry

    def _group_cycle(self, now: float, uid: str) -> None:
        entry = self._next_popped(now, uid)
        self._attempt = _Attempt(entry, self.driver.step(BeginGroupCycle(entry, self._clock), now))

    def _clock(self) -> float:
        return self._moved(self._answer("", "clock"))

    def _send(self, packed: bytes | None) -> None:
        attempt = self._attempt
        if attempt is None or attempt.work is None:
            raise self._diverged("an attempt continued, but none is running")
        if attempt.result is not None:
            return  # return if the user let the stopped attempt continue to its end
        answer = None if packed is None else unpack(packed, self._named)
        try:
            attempt.yielded = attempt.work.send(_answers(attempt.yielded, answer))
            if isinstance(attempt.yielded, StopPoint):
                self._stopped = attempt.work, attempt.ended
        except StopIteration as end:
            attempt.result = end.value
        except Exception:  # an error of the attempt; a later note contains its result
            return

    def _broken(self, packed: bytes) -> None:
        attempt = self._attempt
        if attempt is None:
            raise self._diverged("an attempt was aborted, but none is running")
        if attempt.work is not None:
            attempt.work.close()
        result = self.driver.step(BreakOff(attempt.entry, PluginError("", "", "")), self.now_s)
        attempt.result = attrs.evolve(result, status=unpack(packed))

    def _complete(self, now: float, took_s: float) -> None:
        attempt, self._attempt = self._attempt, None
        if attempt is None or attempt.result is None:
            raise self._diverged("the recorded attempt was complete, but the replayed attempt is not")
        entry, result = attempt.entry, attempt.result
        if self.driver.attempts.stepper is None:
            self.driver.step(CompleteAttempt(entry, result, took_s), self._moved(now))
            return
        self._stopped = self.driver.completing(entry, result, self._moved(now), took_s), lambda outcome: None
        self.driver.debugger.now_s = now  # start of the waiting time at Permit
        self._begin_stopped()

    def _begin_stopped(self) -> None:
        assert self._stopped is not None, "an attempt or cycle begins"
        try:
            next(self._stopped[0])
        except StopIteration:
            self._stopped = None

    def _plan_executed(self, uid: str, packed: bytes | None, now: float) -> None:
        cycle = self.driver.bindings.cycles.get(uid)
        if cycle is None or cycle.plan is None:
            raise self._diverged(f"a plan of the binding of {uid} was executed, but none is in progress")
        failure = None if packed is None else unpack(packed)
        self.driver.step(PlansExecuted(((uid, failure),)), self._moved(now))

    def _plugin_called(self, uid: str, packed: bytes | None, now: float) -> None:
        cycle = self.driver.bindings.cycles.get(uid)
        if cycle is None or cycle.call is None:
            raise self._diverged(f"the recording calls a plugin for the binding of {uid}, but the replay calls none")
        answer = None if packed is None else unpack(packed, self._named)
        if isinstance(answer, Plan) and answer.ready is not None:
            plugin = getattr(cycle.call, "plugin", "")
            answer = attrs.evolve(answer, ready=lambda cluster: self._answer(plugin, "ready"))
        self.driver.step(PluginCalled(uid, answer), self._moved(now))

    def _take_effects(self, recorded: Sequence[Sequence[Any]]) -> None:
        self._notify()
        self._noted = 0
        effects = self.driver.take_effects()
        self._released.extend(effects.released)
        self._operations.extend(effects.queue)
        self._compare([entry for entry in effects.happened if isinstance(entry, AttemptRecord)], recorded)

    def _notify(self) -> None:
        happened = self.driver.happened
        while self._noted < len(happened):
            for listener in self._listeners:
                listener(happened[self._noted])
            self._noted += 1

    def _compare(self, records: Sequence[AttemptRecord], recorded: Sequence[Sequence[Any]]) -> None:
        for record, expected in zip(records, recorded, strict=False):
            found = list(line_of(record))
            if self.recording.header.redacted:
                found[MESSAGE_AT] = ""
            if found != expected:
                what = [
                    f"{name} was {was!r} and is {now!r}"
                    for name, was, now in zip(_RECORD, expected, found, strict=False)
                    if was != now
                ]
                raise self._diverged(f"attempt {expected[2]} of {expected[1]}: {'; '.join(what)}")
        if len(records) != len(recorded):
            raise self._diverged(
                f"{len(recorded)} attempts had ended in the recording, but {len(records)} in the replay"
            )

    def _config(self, text: str, flush_s: int) -> Config:
        catalogue = IN_TREE | self.registry.catalogue()
        return config_of(text, catalogue, self.kube_version, self.recording.header.feature_gates, flush_s)

    @property
    def kube_version(self) -> KubernetesVersion:
        return self._version

    def _change_config(self, text: str, flush_s: int, what: str, now: float) -> None:
        self._renew()
        self.driver.step(ChangeConfig(self._config(text, flush_s), what), self._moved(now))
        self._made.clear()

    def _undo_config(self) -> None:
        self._renew()
        self.driver.step(UndoConfigChange())
        self._made.clear()

    def _reconfigure(self, text: str, flush_s: int) -> None:
        self._renew()
        self.driver.step(Reconfigure(self._config(text, flush_s)))
        self._made.clear()

    # -- the queue --------------------------------------------------------------------------------------------

    def _done(self, now: int) -> None:
        if not self._released:
            raise self._diverged("the recording removes a pod that was in flight, but the replay removes none")
        self.operations.step(PodDone(self._released.popleft()), now)

    def _apply(self, now: int, size: int) -> None:
        if not self._operations:
            raise self._diverged("an operation was applied to the queue, but the driver has sent none")
        operation = self._operations[0]
        if not isinstance(operation, EventsObserved):
            if size >= 0:
                raise self._diverged(f"events were sent to the queue, but the driver sent {type(operation).__name__}")
            self._operations.popleft()
            self.operations.step(operation, now)
            return
        first, self._taken = self._taken, self._taken + size
        if self._taken >= len(operation.events):
            self._operations.popleft()
            self._taken = 0
        if size != len(operation.events):
            operation = attrs.evolve(operation, events=operation.events[first : first + size])
        self.operations.step(operation, now)

    def _pop(self, now: int) -> None:
        self._moved(now / SECOND)
        entry = self.operations.step(Pop(), now)
        if entry is not None:
            self._popped.append(entry)

    def _pop_group(self, now: int) -> None:
        if not self._popped:
            raise self._diverged("the recording pops the other pods of a group, but the replay has popped no pod")
        self._popped.extend(self.operations.step(PopOthersOfGroup(self._popped[-1]), now))

    def _move_active(self, now: int, keys: Sequence[str]) -> None:
        entries = [self.queue.entry(key) for key in keys]
        self.operations.step(MoveToActive([entry.pod for entry in entries if entry is not None]), now)


def _machine_of(note: Note) -> int:
    """Return the state machine to which the note belongs."""
    kind = note[0]
    if kind in _ANSWERS:
        return QUEUE if note[1:2] == (QUEUE,) else DRIVER
    return QUEUE if NoteKind.DONE <= kind < NoteKind.ANSWER else DRIVER


def _answers(yielded: Any, recorded: Sequence[Any] | None) -> Any:
    """Return the recorded answers for an attempt; in-tree plugins are called again."""
    if yielded is None:
        return None
    if recorded is None:
        return [shard() for shard in yielded]
    return [
        answer if isinstance(shard, PluginBatch | ExtenderCall) else shard()
        for shard, answer in zip(yielded, recorded, strict=True)
    ]
