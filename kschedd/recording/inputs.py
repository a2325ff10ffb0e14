"""Notes that listeners record: the inputs of a driver and a queue, and the resulting attempts.

`DriverNotes` and `QueueNotes` make no decisions: they record the input and then run the step. The result of a step is
not recorded, because it follows from the inputs. Attempts are an exception: their records are compared with those of a
replay.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import attrs

from kschedd.config.in_tree import IN_TREE
from kschedd.config.model import Config
from kschedd.extenders.calls import ExtenderCall
from kschedd.queue.operations import (
    AtThisPoint,
    EventsObserved,
    FlushBackoff,
    FlushLeftover,
    Force,
    MoveToActive,
    PodDone,
    Pop,
    PopOthersOfGroup,
    QueueInput,
    TakeNominated,
)
from kschedd.recording.configuration import text_of
from kschedd.recording.notes import DRIVER, QUEUE, Note, NoteKind, line_of
from kschedd.recording.recorder import RunRecorder, enter, leave
from kschedd.recording.values import pack
from kschedd.scheduling.debug.breakpoints import StopPoint
from kschedd.scheduling.debug.work import Work
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.filtering.filters import PluginBatch
from kschedd.scheduling.inputs import (
    Allow,
    BeginAttempt,
    BeginGroupCycle,
    BreakOff,
    ChangeConfig,
    CompleteAttempt,
    CompleteRun,
    EvictionFailed,
    Input,
    Intervene,
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
from kschedd.scheduling.records import AttemptRecord

T = TypeVar("T")
Step = Callable[[Any, float], Any]

_PLAIN: Final[dict[type[Any], Callable[[Any, float], Note]]] = {
    Observe: lambda given, now: (NoteKind.OBSERVE, now, given.events),
    PodsPopped: lambda given, now: (NoteKind.POPPED, len(given.entries)),
    PodsNominated: lambda given, now: (NoteKind.NOMINATED, len(given.pods)),
    CompleteAttempt: lambda given, now: (NoteKind.COMPLETE, now, given.took_s),
    PluginCalled: lambda given, now: (NoteKind.PLUGIN_CALLED, given.uid, _packed(given.answer), now),
    EvictionFailed: lambda given, now: (NoteKind.EVICTION_FAILED, given.pod.uid),
    Tick: lambda given, now: (NoteKind.TICK, now),
    ResumeDecided: lambda given, now: (NoteKind.RESUME_DECIDED, now),
    ResumeReady: lambda given, now: (NoteKind.RESUME_READY, now),
    ResumeStopped: lambda given, now: (NoteKind.RESUME_STOPPED, now),
    Allow: lambda given, now: (NoteKind.ALLOW, given.uid, given.plugin),
    Reject: lambda given, now: (NoteKind.REJECT, given.uid, given.plugin, given.reason),
}
"""The inputs that are recorded as one note each, before the step."""


class DriverNotes:
    """A listener that records the inputs of a driver (`InputListener`)."""

    def __init__(self, driver: SchedulingDriver, recorder: RunRecorder) -> None:
        self._driver = driver
        self._recorder = recorder
        self._started = bool(driver.observed)
        self._end = recorder.watch_handle(driver.machine.handle)
        # number of configuration changes before the start of the recording
        self._undoable = len(driver.config_changes.made)
        self._steps: dict[type[Any], Callable[[Any, float, Step], Any]] = {
            BeginAttempt: self._begin,
            BeginGroupCycle: self._begin_group_cycle,
            BreakOff: self._break_off,
            CompleteRun: self._complete_run,
            Intervene: self._intervene,
            PlansExecuted: self._plans_executed,
            Reconfigure: self._reconfigure,
            ChangeConfig: self._change_config,
            UndoConfigChange: self._undo_config_change,
        }

    def end(self) -> None:
        """Stop listening."""
        self._driver.listener = None
        self._end()

    def given(self, given: Input, now: float, step: Callable[[Any, float], T]) -> T:
        driver = self._driver
        if not self._started and driver.observed:
            self._started = True
            self._recorder.note((NoteKind.STARTED, driver.observed))
        note = _PLAIN.get(type(given))
        if note is None:
            done: T = self._steps[type(given)](given, now, step)
            return done
        return self._noted(note(given, now), given, now, step)

    def completing(self, work: Work[T], now: float, took_s: float) -> Work[T]:
        outcome = yield from self._run(work, lambda yielded, answers: None)
        self._recorder.note((NoteKind.COMPLETE, max(now, self._driver.debugger.now_s), took_s))
        return outcome

    def taken(self, effects: Effects) -> None:
        attempts = [line_of(entry) for entry in effects.happened if isinstance(entry, AttemptRecord)]
        self._recorder.note((NoteKind.TAKE, attempts))
        self._recorder.wake()

    def _noted(self, note: Note, given: Any, now: float, step: Callable[[Any, float], T]) -> T:
        self._recorder.note(note)
        before = enter(DRIVER)
        try:
            return step(given, now)
        finally:
            leave(before)

    # -- attempts ---------------------------------------------------------------------------------------------

    @property
    def _began_s(self) -> float:
        """The start time of the attempt that begins now."""
        return self._driver.machine.handle.now_s

    def _begin(self, given: BeginAttempt, now: float, step: Step) -> Any:
        attempt = self._noted((NoteKind.BEGIN, self._began_s, given.entry.uid), given, now, step)
        if attempt is None:
            return None
        if self._driver.attempts.stepper is not None:
            self._recorder.note((NoteKind.STEPPED,))
        return self._run(attempt, self._sent)

    def _begin_group_cycle(self, given: BeginGroupCycle, now: float, step: Step) -> Any:
        self._recorder.note((NoteKind.GROUP_CYCLE, self._began_s, given.entry.uid))

        def noted_clock() -> float:
            read = given.clock()
            self._recorder.note((NoteKind.ANSWER, DRIVER, "", "clock", pack(read)))
            return read

        return self._run(step(attrs.evolve(given, clock=noted_clock), now), self._sent)

    def _sent(self, yielded: Any, answers: Any) -> None:
        """Record the results that are sent to an attempt, except when the attempt only resumes after a stop."""
        if not isinstance(yielded, StopPoint):
            self._recorder.note((NoteKind.SEND, _from_outside(yielded, answers)))

    def _run(self, work: Work[T], sent: Callable[[Any, Any], None]) -> Work[T]:
        """Run the work.

        Before each continuation, call `sent` with the request of the work and the results of the request.
        """
        answers: Any = None
        yielded: Any = None
        while True:
            sent(yielded, answers)
            before = enter(DRIVER)
            try:
                yielded = work.send(answers)
            except StopIteration as end:
                ended: T = end.value
                return ended
            finally:
                leave(before)
            answers = yield yielded

    def _break_off(self, given: BreakOff, now: float, step: Step) -> Any:
        result = step(given, now)
        self._recorder.note((NoteKind.BROKEN, pack(result.status)))
        return result

    def _complete_run(self, given: CompleteRun, now: float, step: Step) -> Any:
        """Record each attempt separately: a replay runs the attempts one after the other, with the same results."""
        for result in given.run.results:
            self._recorder.note((NoteKind.BEGIN, self._began_s, result.pod.uid))
            self._recorder.note((NoteKind.SEND, None))
            self._recorder.note((NoteKind.COMPLETE, now, given.took_s))
        return step(given, now)

    def _intervene(self, given: Intervene, now: float, step: Step) -> Any:
        stepper = self._driver.attempts.stepper
        assert stepper is not None, "an attempt is stopped"
        self._recorder.note((NoteKind.INTERVENED, stepper.points, *attrs.astuple(given.change)))
        return step(given, now)

    def _plans_executed(self, given: PlansExecuted, now: float, step: Step) -> None:
        for uid, failure in given.plans:
            note = NoteKind.PLAN_EXECUTED, uid, _packed(failure), now
            self._noted(note, PlansExecuted(((uid, failure),)), now, step)

    # -- the configuration --------------------------------------------------------------------------------------

    def _reconfigure(self, given: Reconfigure, now: float, step: Step) -> Any:
        return self._changed((NoteKind.RECONFIGURE, *self._written(given.config)), given, now, step)

    def _change_config(self, given: ChangeConfig, now: float, step: Step) -> Any:
        return self._changed((NoteKind.CHANGE_CONFIG, *self._written(given.config), given.what, now), given, now, step)

    def _undo_config_change(self, given: UndoConfigChange, now: float, step: Step) -> Any:
        note: Note = (NoteKind.UNDO_CONFIG,)
        made = self._driver.config_changes.made
        if made and len(made) <= self._undoable:
            self._undoable = len(made) - 1
            note = NoteKind.RECONFIGURE, *self._written(made[-1].before)
        return self._changed(note, given, now, step)

    def _written(self, config: Config) -> tuple[str, int]:
        catalogue = IN_TREE | self._driver.machine.registry.catalogue()
        return text_of(config, catalogue), config.unschedulable_flush_s

    def _changed(self, note: Note, given: Any, now: float, step: Step) -> Any:
        """Change the configuration; if this succeeds, record it after the notes about plugins created for it."""
        before = enter(DRIVER)
        try:
            done = step(given, now)
        except Exception:
            self._recorder.note((NoteKind.CONFIG_REFUSED,))
            raise
        finally:
            leave(before)
        self._recorder.note(note)
        return done


_QUEUE: Final[dict[type[Any], Callable[[Any, int], Note]]] = {
    PodDone: lambda given, now: (NoteKind.DONE, now),
    Pop: lambda given, now: (NoteKind.POP, now),
    PopOthersOfGroup: lambda given, now: (NoteKind.POP_GROUP, now),
    FlushBackoff: lambda given, now: (NoteKind.FLUSH_BACKOFF, now, given.most),
    FlushLeftover: lambda given, now: (NoteKind.FLUSH_LEFTOVER, now),
    MoveToActive: lambda given, now: (NoteKind.MOVE_ACTIVE, now, [pod.key for pod in given.pods]),
    Force: lambda given, now: (NoteKind.FORCE, given.key, given.place.value, now),
    TakeNominated: lambda given, now: (NoteKind.TAKE_NOMINATED,),
    EventsObserved: lambda given, now: (NoteKind.APPLY, now, len(given.events)),
}


@attrs.define(eq=False)
class QueueNotes:
    """A listener that records the inputs of a queue (`QueueListener`).

    Operations that the driver requests are not recorded: a replayed driver requests them itself, in the same order.
    """

    _recorder: RunRecorder

    def given(self, given: QueueInput, now: int, step: Callable[[Any, int], T]) -> T:
        if isinstance(given, AtThisPoint):
            return step(given, now)
        note = _QUEUE.get(type(given))
        self._recorder.note((NoteKind.APPLY, now, -1) if note is None else note(given, now))
        before = enter(QUEUE)
        try:
            return step(given, now)
        finally:
            leave(before)


def _packed(value: Any) -> bytes | None:
    return None if value is None else pack(value)


def _from_outside(yielded: Any, answers: Any) -> bytes | None:
    """Return the results of out-of-tree plugins and extenders; a replay calls the in-tree plugins itself."""
    outside = [isinstance(shard, PluginBatch | ExtenderCall) for shard in yielded or ()]
    if not any(outside):
        return None
    return pack([answer if out else None for answer, out in zip(answers, outside, strict=True)])
