"""RecordedDriver: the scheduling driver, with a note of each call that it is given.

It decides nothing by itself: each method notes what it is called with and calls the driver's own. The notes are what a
replay calls again, in the same order. What a call returns is not noted, since it follows, but for the records of
attempts, which a replay is held against.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import attrs

from kschedd.api.pods import Pod
from kschedd.config.in_tree import IN_TREE
from kschedd.config.model import Config
from kschedd.extenders.calls import ExtenderCall
from kschedd.framework.status import Status
from kschedd.framework.writes import Plan
from kschedd.queue.entry import QueuedPod
from kschedd.queue.operations import Reconfigured
from kschedd.recording.configuration import text_of
from kschedd.recording.notes import DRIVER, NoteKind, line_of
from kschedd.recording.queue import RecordedConfiguration
from kschedd.recording.recorder import RunRecorder, enter, leave, stream
from kschedd.recording.values import pack
from kschedd.scheduling.binding_cycle import AssumedPod
from kschedd.scheduling.breakpoints import StopPoint
from kschedd.scheduling.config_changes import ConfigChange
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.filters import PluginBatch
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.outcome import Attempt, FitError, ScheduleResult
from kschedd.scheduling.pod_group_cycle import MemberDone
from kschedd.scheduling.run import AttemptRun
from kschedd.scheduling.stepper import Intervention
from kschedd.scheduling.work import Work
from kschedd.store.log import WatchEvent


class RecordedDriver(SchedulingDriver):
    """See the module."""

    def __init__(self, machine: SchedulingMachine, recorder: RunRecorder) -> None:
        self._recorder = recorder
        self._observed = 0
        self._began_s = 0.0
        self._undoable = 0  # changes of the configuration that were made before the recording
        super().__init__(machine)
        recorder.watch_handle(machine.handle)

    @classmethod
    def take_over(cls, driver: SchedulingDriver, recorder: RunRecorder) -> None:
        """The driver, which many hold, notes its calls from now on."""
        observed = driver.observed
        driver.__class__ = cls
        assert isinstance(driver, cls), "it is one now"
        driver._recorder, driver._began_s, driver._observed = recorder, 0.0, observed
        driver._undoable = len(driver.config_changes.made)

    def give_back(self) -> None:
        """It is a plain driver again."""
        observed, plain = self._observed, cast(SchedulingDriver, self)
        plain.__class__ = SchedulingDriver
        plain.observed = observed

    def _call(self, note: tuple[Any, ...], call: Callable[..., Any], *args: Any) -> Any:
        """Note this, and do it, unless it is a part of another call."""
        if stream() is not None:
            return call(*args)
        self._recorder.note(note)
        before = enter(DRIVER)
        try:
            return call(*args)
        finally:
            leave(before)

    # -- the cluster ------------------------------------------------------------------------------------------

    @property
    def observed(self) -> int:
        return self._observed

    @observed.setter
    def observed(self, version: int) -> None:
        if not self._observed and version:
            self._recorder.note((NoteKind.STARTED, version))
        self._observed = version

    def observe(self, events: Sequence[WatchEvent], now: float = 0.0) -> None:
        self._call((NoteKind.OBSERVE, now, events), super().observe, events, now)

    # -- attempts ---------------------------------------------------------------------------------------------

    def popped(self, entries: Sequence[QueuedPod]) -> None:
        self._call((NoteKind.POPPED, len(entries)), super().popped, entries)

    def nominated(self, pods: Sequence[Pod]) -> None:
        if pods:
            self._call((NoteKind.NOMINATED, len(pods)), super().nominated, pods)

    def next_popped(self, now: float = 0.0) -> QueuedPod | None:
        self._began_s = now
        return super().next_popped(now)

    def begin(self, entry: QueuedPod) -> Attempt | None:
        attempt: Attempt | None = self._call((NoteKind.BEGIN, self._began_s, entry.uid), super().begin, entry)
        return None if attempt is None else self._noted(attempt)

    def step_by_step(self, entry: QueuedPod) -> Attempt:
        self._recorder.note((NoteKind.STEPPED,))
        return super().step_by_step(entry)

    def group_cycle(
        self, entry: QueuedPod, clock: Callable[[], float], told: MemberDone = lambda entry, result: None
    ) -> Work[None]:
        self._recorder.note((NoteKind.GROUP_CYCLE, self._began_s, entry.uid))

        def noted_clock() -> float:
            now = clock()
            self._recorder.note((NoteKind.ANSWER, DRIVER, "", "clock", pack(now)))
            return now

        return self._noted(super().group_cycle(entry, noted_clock, told))

    def _noted(self, work: Work[Any]) -> Work[Any]:
        """The attempt, with a note of what it is sent, but for what lets it go on from where it was stopped."""
        answers: Any = None
        asked: Any = None
        while True:
            if not isinstance(asked, StopPoint):
                self._recorder.note((NoteKind.SEND, _from_outside(asked, answers)))
            before = enter(DRIVER)
            try:
                asked = work.send(answers)
            except StopIteration as end:
                return end.value
            finally:
                leave(before)
            answers = yield asked

    def begin_run(self, now: float) -> AttemptRun:
        return AttemptRun()  # each attempt is noted by itself

    def broken(self, entry: QueuedPod, fault: Exception) -> FitError:
        result = super().broken(entry, fault)
        if stream() is None:
            self._recorder.note((NoteKind.BROKEN, pack(result.status)))
        return result

    def complete_attempt(
        self, entry: QueuedPod, result: ScheduleResult | FitError, now: float, took_s: float = 0.0
    ) -> AssumedPod | FailedAttempt:
        outcome: AssumedPod | FailedAttempt = self._call(
            (NoteKind.COMPLETE, now, took_s), super().complete_attempt, entry, result, now, took_s
        )
        return outcome

    def completing(
        self, entry: QueuedPod, result: ScheduleResult | FitError, now: float, took_s: float = 0.0
    ) -> Work[AssumedPod | FailedAttempt]:
        work = super().completing(entry, result, now, took_s)
        answers: Any = None
        while True:
            before = enter(DRIVER)
            try:
                asked = work.send(answers)
            except StopIteration as end:
                self._recorder.note((NoteKind.COMPLETE, max(now, self.debugger.now_s), took_s))
                outcome: AssumedPod | FailedAttempt = end.value
                return outcome
            finally:
                leave(before)
            answers = yield asked

    def intervene(self, change: Intervention) -> None:
        assert self.stepper is not None, "an attempt is stopped"
        self._recorder.note((NoteKind.INTERVENED, self.stepper.points, *attrs.astuple(change)))
        super().intervene(change)

    def eviction_failed(self, pod: Pod) -> None:
        self._call((NoteKind.EVICTION_FAILED, pod.uid), super().eviction_failed, pod)

    # -- bindings ---------------------------------------------------------------------------------------------

    def plans_executed(self, plans: Iterable[tuple[str, Status | None]], now: float) -> None:
        for uid, failure in plans:
            self.plan_executed(uid, failure, now)

    def plan_executed(self, uid: str, failure: Status | None, now: float) -> None:
        packed = None if failure is None else pack(failure)
        self._call((NoteKind.PLAN_EXECUTED, uid, packed, now), super().plan_executed, uid, failure, now)

    def plugin_called(self, uid: str, answer: Plan | Status | None, now: float) -> None:
        packed = None if answer is None else pack(answer)
        self._call((NoteKind.PLUGIN_CALLED, uid, packed, now), super().plugin_called, uid, answer, now)

    def tick(self, now: float) -> None:
        self._call((NoteKind.TICK, now), super().tick, now)

    def resume_decided(self, now: float) -> None:
        self._call((NoteKind.RESUME_DECIDED, now), super().resume_decided, now)

    def resume_ready(self, now: float) -> None:
        self._call((NoteKind.RESUME_READY, now), super().resume_ready, now)

    def resume_stopped(self, now: float) -> None:
        self._call((NoteKind.RESUME_STOPPED, now), super().resume_stopped, now)

    def allow(self, uid: str, plugin: str) -> bool:
        allowed: bool = self._call((NoteKind.ALLOW, uid, plugin), super().allow, uid, plugin)
        return allowed

    def reject(self, uid: str, plugin: str, reason: str) -> bool:
        rejected: bool = self._call((NoteKind.REJECT, uid, plugin, reason), super().reject, uid, plugin, reason)
        return rejected

    # -- effects ----------------------------------------------------------------------------------------------

    def take_effects(self) -> Effects:
        effects = super().take_effects()
        self._recorder.note((NoteKind.TAKE, [line_of(record) for record in effects.records]))
        self._recorder.wake()
        return effects

    # -- the configuration --------------------------------------------------------------------------------------

    def queue_configuration(self) -> Reconfigured:
        return RecordedConfiguration.of(super().queue_configuration(), self._recorder)

    def reconfigure(self, config: Config) -> Config:
        if stream() is not None:
            return super().reconfigure(config)  # of a change
        before: Config = self._changed((NoteKind.RECONFIGURE, *self._written(config)), super().reconfigure, config)
        return before

    def change_config(self, config: Config, what: str, now: float) -> ConfigChange:
        note = NoteKind.CHANGE_CONFIG, *self._written(config), what, now
        change: ConfigChange = self._changed(note, super().change_config, config, what, now)
        return change

    def undo_config_change(self) -> ConfigChange:
        note: tuple[Any, ...] = (NoteKind.UNDO_CONFIG,)
        made = self.config_changes.made
        if made and len(made) <= self._undoable:
            self._undoable = len(made) - 1
            note = NoteKind.RECONFIGURE, *self._written(made[-1].before)
        change: ConfigChange = self._changed(note, super().undo_config_change)
        return change

    def _written(self, config: Config) -> tuple[str, int]:
        catalogue = IN_TREE | self.machine.registry.catalogue()
        return text_of(config, catalogue), config.unschedulable_flush_s

    def _changed(self, note: tuple[Any, ...], change: Callable[..., Any], *args: Any) -> Any:
        """Change the configuration, and note it when that has worked: after the plugins that were made for it."""
        before = enter(DRIVER)
        try:
            done = change(*args)
        except Exception:
            self._recorder.note((NoteKind.CONFIG_REFUSED,))
            raise
        finally:
            leave(before)
        self._recorder.note(note)
        return done


def _from_outside(asked: Any, answers: Any) -> bytes | None:
    """The answers of out-of-tree plugins and extenders; in-tree plugins are asked again by a replay."""
    outside = [isinstance(shard, PluginBatch | ExtenderCall) for shard in asked or ()]
    if not any(outside):
        return None
    return pack([answer if out else None for answer, out in zip(answers, outside, strict=True)])
