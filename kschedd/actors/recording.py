"""RunRecording: the recording of a run; it begins with the run, or later on a running daemon.

A later recording must begin when no pod is being scheduled or bound. The queue therefore pops no pods until then. The
wait takes as long as the bindings in progress; the caller may limit its duration. The driver is then copied, and all
its later calls are recorded. The queue is copied after it has applied the driver's operations up to that point.
Finally, the copies are written, and pods are popped again.

Owns: the recorder, if any. Ends: with `end`, or with the run (`close`). Fails: RecordingError. After any
failure the run continues without a recording.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import trio

from kschedd.actors.mailbox import ActorRef
from kschedd.actors.queue import QueueActor
from kschedd.actors.threads import in_actor_thread
from kschedd.queue.operations import AtThisPoint, QueueOperations
from kschedd.recording.format import RecordingError
from kschedd.recording.inputs import DriverNotes, QueueNotes
from kschedd.recording.notes import Note
from kschedd.recording.plugins import PluginNotes, RecordedRegistry, out_of_tree
from kschedd.recording.recorder import RecordingState, RunRecorder
from kschedd.recording.state import DriverPart, QueuePart, objects_at
from kschedd.recording.wiring import RecordOptions, header_of
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.store.cluster_api import ClusterApi
from kschedd.store.errors import Gone

_LOOK_S: Final = 0.01  # interval in seconds of the checks whether pods are in flight
_NAMED: Final = 5  # pods listed in an error


@attrs.frozen(eq=False)
class RecordedActors:
    """The actors, with the other objects that a recording needs. `now` returns the cluster's time."""

    scheduler: ActorRef[SchedulingDriver]
    queue: ActorRef[QueueActor]
    store: ClusterApi
    registry: RecordedRegistry
    seed: int
    now: Callable[[], float]


class RunRecording:
    """The recording of a run.

    `options` are for a recording that begins with the run; otherwise their file is not used.
    `actors` is set after the actors are created.
    """

    actors: RecordedActors

    def __init__(self, options: RecordOptions, recorder: RunRecorder | None) -> None:
        self._options = options
        self._recorder = recorder
        self._turn = trio.Lock()

    def state(self) -> RecordingState | None:
        return None if self._recorder is None else self._recorder.state()

    @property
    def behind(self) -> bool:
        """True if the disk is too slow, so that the recorded actors should wait."""
        return self._recorder is not None and self._recorder.behind

    def own(self, first: int, last: int) -> None:
        """Record that the cluster's controllers or scheduler made these writes."""
        if self._recorder is not None:
            self._recorder.own(first, last)

    def close(self) -> None:
        """Close the recording at the end of the run."""
        if self._recorder is not None:
            self._recorder.close()

    # -- on a running daemon ------------------------------------------------------------------------------------------

    async def start(self, file: Path, wait_s: float) -> RecordingState:
        """Begin to record into this new file. Raises RecordingError."""
        async with self._turn:
            if self._recorder is not None:
                if not self._recorder.failure:
                    raise RecordingError(str(file), f"the run is already being recorded to {self._recorder.path}")
                await self._give_back()
            try:
                is_there = await trio.Path(file).exists()
            except OSError as fault:  # for example because the file name is too long
                raise RecordingError(str(file), f"cannot be written: {fault.strerror}") from fault
            if is_there:
                raise RecordingError(str(file), "already exists; a recording requires a new file")
            go_on = await self.actors.queue.query(_hold)
            recorder = RunRecorder(file)
            try:
                found: list[QueuePart] = []
                driver = await self._taken_over(recorder, found, wait_s)
                with trio.CancelScope(shield=True):
                    await self._begin(recorder, driver, found)
            finally:
                with trio.CancelScope(shield=True):
                    await self.actors.queue.query(lambda _: go_on())
            return recorder.state()

    async def end(self) -> RecordingState:
        """End the recording and write the pending records. Raises RecordingError."""
        async with self._turn:
            recorder = self._recorder
            if recorder is None:
                raise RecordingError("record stop", "the run is not being recorded")
            with trio.CancelScope(shield=True):
                await self._give_back()
            return recorder.state()

    async def _taken_over(self, recorder: RunRecorder, found: list[QueuePart], wait_s: float) -> DriverPart:
        """Return the driver's state at the beginning of the recording, and append the queue's state to `found`.

        Raises RecordingError if pods are still in flight at the end of the wait.
        """
        actors = self.actors

        def queue_too(operations: QueueOperations) -> None:
            found.append(QueuePart.of(operations))
            operations.listener = QueueNotes(recorder)

        with trio.move_on_after(wait_s):
            while True:
                if not await actors.queue.query(_in_flight):
                    with trio.CancelScope(shield=True):
                        part = await actors.scheduler.query(partial(_take_over, recorder, queue_too))
                    if part is not None:
                        return part
                await trio.sleep(_LOOK_S)
        keys = await actors.queue.query(_in_flight)
        more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
        what = ", ".join(keys[:_NAMED]) + more if keys else "the last ones that were bound"
        why = f"no recording can begin while pods are being scheduled, wait at Permit or are being bound ({what})"
        raise RecordingError(str(recorder.path), f"{why}; waited {wait_s:g} s for them")

    async def _begin(self, recorder: RunRecorder, driver: DriverPart, found: Sequence[QueuePart]) -> None:
        """Write the initial state."""
        actors = self.actors
        self._recorder = actors.registry.recorder = recorder
        try:
            while not found:
                await actors.queue.query(_in_flight)
                await trio.sleep(_LOOK_S)
            twin = await actors.store.do_in_steps(lambda store: store.forking(driver.version))
            options = attrs.evolve(self._options, file=recorder.path)
            header = header_of(options, driver.config, actors.registry, actors.seed, actors.now())

            def notes() -> Iterator[Note]:
                yield from driver.notes(objects_at(twin, driver.version), header.start_s)
                yield found[0].note(driver.pending.pods)

            await in_actor_thread(lambda: recorder.begin(header, notes()))
        except RecordingError:
            await self._give_back()
            raise
        except Gone as fault:
            await self._give_back()
            raise RecordingError(str(recorder.path), "the cluster changes too fast to be copied") from fault

    async def _give_back(self) -> None:
        recorder, actors = self._recorder, self.actors
        assert recorder is not None, "the run is being recorded"
        recorder.end()
        actors.registry.recorder = None
        await actors.scheduler.query(_give_back)
        await actors.queue.query(_queue_given_back)
        await in_actor_thread(recorder.close)
        self._recorder = None


def _hold(owner: QueueActor) -> Callable[[], None]:
    """Stop popping pods; return a function that resumes popping."""
    owner.held = True

    def go_on() -> None:
        owner.held = False

    return go_on


def _in_flight(owner: QueueActor) -> list[str]:
    return [entry.key for entry in owner.queue.in_flight_pods()]


def _take_over(
    recorder: RunRecorder, queue_too: Callable[[QueueOperations], None], driver: SchedulingDriver
) -> DriverPart | None:
    part = DriverPart.of(driver)
    if part is not None:
        driver.listener = DriverNotes(driver, recorder)
        for plugin in out_of_tree(driver.machine):
            plugin.listener = PluginNotes(recorder)
        driver.tell_queue(AtThisPoint(queue_too))
    return part


def _give_back(driver: SchedulingDriver) -> None:
    if isinstance(driver.listener, DriverNotes):
        driver.listener.end()
    for plugin in out_of_tree(driver.machine):
        plugin.listener = None


def _queue_given_back(owner: QueueActor) -> None:
    owner.operations.listener = None
