"""RecordedQueue: the scheduling queue, and what applies operations to it, with a note of each call.

Which operations are applied is not noted: they are the driver's, in its order. `RecordedConfiguration` is how the
queue's owner comes to have it: the driver tells by which configuration the queue is made.
"""

from collections.abc import Iterable
from typing import Any, Self

import attrs

from kschedd.api.pods import Pod
from kschedd.queue.entry import QueuedPod, SubQueue
from kschedd.queue.event_handlers import EventHandlers
from kschedd.queue.operations import EventsObserved, QueueOperation, QueueOperations, Reconfigured
from kschedd.queue.scheduling_queue import SchedulingQueue
from kschedd.recording.notes import QUEUE, NoteKind
from kschedd.recording.recorder import RunRecorder, enter, leave, stream


class RecordedQueue(SchedulingQueue):
    """See the module."""

    noted_by: RunRecorder

    def done(self, uid: str, now: int) -> None:
        if stream() is None:
            self.noted_by.note((NoteKind.DONE, now))
        super().done(uid, now)

    def pop(self, now: int) -> QueuedPod | None:
        popped: QueuedPod | None = self._call((NoteKind.POP, now), super().pop, now)
        return popped

    def pop_others_of_group(self, popped: QueuedPod, now: int) -> list[QueuedPod]:
        if not popped.pod.pod_group:
            return []
        others: list[QueuedPod] = self._call((NoteKind.POP_GROUP, now), super().pop_others_of_group, popped, now)
        return others

    def flush_backoff(self, now: int, most: int | None = None) -> list[QueuedPod]:
        moved: list[QueuedPod] = self._call((NoteKind.FLUSH_BACKOFF, now, most), super().flush_backoff, now, most)
        return moved

    def flush_unschedulable_leftover(self, now: int) -> list[QueuedPod]:
        moved: list[QueuedPod] = self._call((NoteKind.FLUSH_LEFTOVER, now), super().flush_unschedulable_leftover, now)
        return moved

    def activate(self, pods: Iterable[Pod], now: int) -> list[QueuedPod]:
        given = list(pods)
        note = NoteKind.MOVE_ACTIVE, now, [pod.key for pod in given]
        moved: list[QueuedPod] = self._call(note, super().activate, given, now)
        return moved

    def force(self, key: str, place: SubQueue, now: int) -> bool:
        forced: bool = self._call((NoteKind.FORCE, key, place.value, now), super().force, key, place, now)
        return forced

    def _call(self, note: tuple[Any, ...], call: Any, *args: Any) -> Any:
        if stream() is not None:
            return call(*args)
        self.noted_by.note(note)
        before = enter(QUEUE)
        try:
            return call(*args)
        finally:
            leave(before)


class RecordedOperations(QueueOperations):
    noted_by: RunRecorder

    def take_nominated(self) -> tuple[Pod, ...]:
        if self.nominated:
            self.noted_by.note((NoteKind.TAKE_NOMINATED,))
        return super().take_nominated()

    def apply(self, operation: QueueOperation, now: int) -> None:
        size = len(operation.events) if isinstance(operation, EventsObserved) else -1
        self.noted_by.note((NoteKind.APPLY, now, size))
        before = enter(QUEUE)
        try:
            super().apply(operation, now)
        finally:
            leave(before)


def take_over(operations: QueueOperations, recorder: RunRecorder) -> None:
    """The queue and what applies operations to it, which many hold, note their calls from now on."""
    queue = operations.queue
    queue.__class__, operations.__class__ = RecordedQueue, RecordedOperations
    for one in (queue, operations):
        assert isinstance(one, RecordedQueue | RecordedOperations), "it is one now"
        one.noted_by = recorder


def give_back(operations: QueueOperations) -> None:
    """They are plain ones again."""
    operations.queue.__class__, operations.__class__ = SchedulingQueue, QueueOperations


@attrs.frozen(eq=False)
class RecordedConfiguration(Reconfigured):
    recorder: RunRecorder

    @classmethod
    def of(cls, plain: Reconfigured, recorder: RunRecorder) -> Self:
        fields = {field.name: getattr(plain, field.name) for field in attrs.fields(Reconfigured)}
        return cls(**fields, recorder=recorder)

    def new_queue(self) -> SchedulingQueue:
        queue = RecordedQueue(self.settings, sort_key=self.sort_key, pre_enqueue=self.pre_enqueue, hints=self.hints)
        queue.noted_by = self.recorder
        return queue

    def new_operations(self, queue: SchedulingQueue) -> QueueOperations:
        operations = RecordedOperations(queue, EventHandlers(queue, self.scheduler_names))
        operations.noted_by = self.recorder
        return operations
