"""QueueActor: owns the scheduling queue, pops pods, receives failed pods, and requeues pods on cluster events.

Receives: `QueueUpdate` from the scheduling actor (operations to apply, pods no longer in flight, and the number of pods
requested), and `OwnerQuery` over this actor. Sends: `Popped`, one for each request for pods, as soon as a pod is
active. Without a request, the actor also sends nominations, and pods that sort before popped pods. The moves of pods
are sent to the log before any answer is sent. Owns: the SchedulingQueue. Ends: when the channel's last sender closes.
Fails: a plugin's fault in PreEnqueue or in a queueing hint is handled and logged in the queue.

A thin shell: `kschedd.queue.operations` implements the operations; the scheduling driver chooses them. An event is
applied to the scheduler cache before the queue, so a pod that it requeues is attempted with the updated cache. While
many pods are active or back off, several are popped together, because a message costs more than a pop.
"""

import math
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import attrs
import structlog
import trio

from kschedd.actors.clock import Clock
from kschedd.actors.courtesy import Courtesy
from kschedd.actors.mailbox import Doorbell, OwnerQuery, batch_from
from kschedd.actors.threads import in_actor_thread
from kschedd.api.pods import Pod
from kschedd.framework.exclusion import SchedulerLock
from kschedd.framework.status import fault_text
from kschedd.log.log import Entry
from kschedd.metrics.instruments import MetricFamily
from kschedd.object_faults import FaultLedger
from kschedd.queue.entry import SECOND, Move, QueuedPod, SubQueue
from kschedd.queue.metrics import queue_metrics
from kschedd.queue.operations import (
    EventsObserved,
    FlushBackoff,
    FlushLeftover,
    PodDone,
    Pop,
    PopOthersOfGroup,
    QueueOperation,
    QueueOperations,
    Reconfigured,
    TakeNominated,
)
from kschedd.queue.scheduling_queue import LEFTOVER_FLUSH, SchedulingQueue
from kschedd.queue.times import QueueTimes

log = structlog.get_logger("kschedd.queue")

_MOST_EARLY = 32  # maximum number of pods popped together from the backoff queue
_FLUSHED = 500  # maximum number of pods with expired backoff moved together, in 1 to 2 ms
ANSWERS = 4  # capacity of the channel to the scheduling actor
_SLICE_S = 0.004
_EVENTS = 50  # number of events applied before other tasks run
_MOST = 64  # messages in a batch


@attrs.frozen(eq=False)
class QueueUpdate:
    """An update from the scheduling actor.

    `released` contains uids of pods that are no longer in flight; they are processed before the operations. `max_pods`
    is the maximum number of requested pods, or None.
    """

    released: Sequence[str]
    operations: Sequence[QueueOperation]
    max_pods: int | None


@attrs.frozen(eq=False)
class Popped:
    entries: Sequence[QueuedPod]
    nominated: Sequence[Pod]  # pods that became active with a nominatedNodeName since the last message
    requested: bool  # true if the message answers a request


@attrs.define(eq=False)
class QueueActor:
    """The actor of the scheduling queue.

    `queue_config` is the queue's configuration. The scheduling driver creates this configuration, because the
    driver contains the plugins.
    """

    queue_config: Reconfigured
    _inbox: "trio.MemoryReceiveChannel[QueueUpdate | OwnerQuery[QueueActor, Any]]"
    _popped: "trio.MemorySendChannel[Popped]"
    _to_log: "trio.MemorySendChannel[Sequence[Entry]]"
    _bell: Doorbell  # the scheduling actor's
    _clock: Clock
    _lock: SchedulerLock = attrs.field(factory=SchedulerLock)
    _log_moves: bool = False
    courtesy: Courtesy = attrs.field(factory=Courtesy)
    held: bool = False  # true while no pod may be popped
    idle: bool = False  # true if no pod will be popped, because another scheduler schedules the pods
    queue: SchedulingQueue = attrs.field(init=False)
    operations: QueueOperations = attrs.field(init=False)
    _moves: list[Move] = attrs.field(factory=list, init=False)  # moves in this turn
    _times: QueueTimes = attrs.field(factory=lambda: QueueTimes(time.perf_counter), init=False)
    _out_of_tree: bool = attrs.field(init=False)
    _wanted: int | None = attrs.field(default=None, init=False)
    _last_order: tuple[int, Any] | None = attrs.field(default=None, init=False)  # of the last popped pod
    _next_flush: float = attrs.field(init=False)
    _next_leftover: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._out_of_tree = self.queue_config.out_of_tree
        self.queue = self.queue_config.new_queue()
        self.operations = self.queue_config.new_operations(self.queue)
        self.queue.recorder = self._moves.append
        self.operations.handlers.times = self._times
        self.queue.time(self._times)
        self.queue.on_fault = _log_fault
        now = self._clock.now()
        self._next_flush = now // 1 + _FLUSH_S
        self._next_leftover = now + _LEFTOVER_S

    def metrics(self) -> list[MetricFamily]:
        """Return the metrics of the queue's content and of its work."""
        return [*queue_metrics(self.queue), *self._times.families()]

    @property
    def faults(self) -> FaultLedger[None]:
        """The objects whose events could not be processed."""
        return self.operations.handlers.faults

    @property
    def next_leftover_s(self) -> float:
        """The time of the next flush of unschedulable pods."""
        return self._next_leftover

    async def run(self) -> None:
        with self._inbox, self._popped, self._to_log:
            try:
                while True:
                    messages = await self._messages()
                    room = ANSWERS - self._popped.statistics().current_buffer_used
                    now = self._clock.now_ns()
                    if self._out_of_tree:
                        answers = await in_actor_thread(partial(self._beside_scheduler, messages, room, now))
                    else:
                        await self._take_in_slices(messages, now)
                        answers = list(self._hand_out(room, now))
                    await self._send_moves()
                    for message in messages:
                        if isinstance(message, OwnerQuery):
                            message.reply.publish()
                    self._send(answers)
            except trio.EndOfChannel:
                self.queue.close()

    async def _send_moves(self) -> None:
        moves = self._moves.copy()
        if not moves:
            return
        self._moves.clear()
        if self._log_moves:
            for move in moves:
                _log_move(move)
        try:
            self._to_log.send_nowait(moves)
        except trio.WouldBlock:
            await self._to_log.send(moves)

    async def _messages(self) -> "Sequence[QueueUpdate | OwnerQuery[QueueActor, Any]]":
        """Return the waiting messages. Return none if a flush is due."""
        deadline = self._next_deadline()
        if deadline is None:  # the most frequent case; a cancel scope would cost as much as about ten pods
            return await batch_from(self._inbox, _MOST)
        messages: Sequence[QueueUpdate | OwnerQuery[QueueActor, Any]] = ()
        with self._clock.move_on_at(deadline):
            messages = await batch_from(self._inbox, _MOST)
        return messages

    def _next_deadline(self) -> float | None:
        """Return the next time at which a flush moves a pod, or None."""
        moments = []
        flush, leftover = self.queue.next_flush(), self.queue.next_leftover()
        if flush is not None:
            moments.append(max(flush / SECOND, self._next_flush))
        if leftover is not None:
            periods = math.ceil(max(leftover / SECOND - self._next_leftover, 0.0) / _LEFTOVER_S)
            moments.append(self._next_leftover + periods * _LEFTOVER_S)
        return min(moments, default=None)

    def _beside_scheduler(
        self, messages: "Sequence[QueueUpdate | OwnerQuery[QueueActor, Any]]", room: int, now: int
    ) -> list[Popped]:
        with self._lock.known():
            return self._turn(messages, room, now)

    def _turn(
        self, messages: "Sequence[QueueUpdate | OwnerQuery[QueueActor, Any]]", room: int, now: int
    ) -> list[Popped]:
        """Run all steps that may call plugins, including comparisons of sort keys.

        `room` is the number of free slots for Popped messages.
        """
        for _ in self._take(messages, now):
            pass
        return list(self._hand_out(room, now))

    async def _take_in_slices(self, messages: "Sequence[QueueUpdate | OwnerQuery[QueueActor, Any]]", now: int) -> None:
        pause = time.perf_counter() + _SLICE_S
        for _ in self._take(messages, now):
            if time.perf_counter() > pause:
                await self.courtesy.pause()
                pause = time.perf_counter() + _SLICE_S

    def _take(self, messages: "Sequence[QueueUpdate | OwnerQuery[QueueActor, Any]]", now: int) -> Iterator[None]:
        """Process due flushes and all messages. Yield at points where other tasks may run."""
        if now >= self._next_flush * SECOND:
            self._next_flush = float(now // SECOND + 1)
            while self.queue.backoff_expired(now // SECOND * SECOND):
                self.operations.step(FlushBackoff(_FLUSHED), now)
                yield
        if now >= self._next_leftover * SECOND:
            latest = self._next_leftover + (now / SECOND - self._next_leftover) // _LEFTOVER_S * _LEFTOVER_S
            self._next_leftover = latest + _LEFTOVER_S
            leftover = self.queue.next_leftover()
            # pods that become due after the latest flush wait for the next flush
            if leftover is not None and leftover <= latest * SECOND:
                self.operations.step(FlushLeftover(), now)
        for message in messages:
            if isinstance(message, OwnerQuery):
                message.evaluate(self)
                continue
            yield
            for uid in message.released:
                self.operations.step(PodDone(uid), now)
            for operation in message.operations:
                if isinstance(operation, Reconfigured):
                    self._out_of_tree = operation.out_of_tree
                for part in _parts(operation):
                    self.operations.step(part, now)
                    yield
            if message.max_pods is not None:
                assert self._wanted is None, "one request for pods at a time"
                self._wanted = message.max_pods

    def _hand_out(self, room: int, now: int) -> Iterator[Popped]:
        """Yield popped pods and new nominations.

        Nominations apply immediately, also to attempts of pods that were popped earlier.
        """
        if self.held or self.idle:
            return
        for popped in self._pops(room, now):
            room -= 1
            yield popped
        if room and self.operations.nominated:
            yield Popped((), self._nominated(now), requested=False)

    def _pops(self, room: int, now: int) -> Iterator[Popped]:
        """Yield the requested pods, or pods that sort before earlier popped pods.

        If the channel is full, pods stay in the queue until the next turn.
        """
        if self._wanted is not None:
            if self.queue.ready and room:
                # Pods in backoff are not popped together with active pods, because pods that become active meanwhile
                # must be first.
                most = min(self.queue.counts()[SubQueue.ACTIVE] or _MOST_EARLY, self._wanted)
                popped = self._pop(most, now, requested=True)
                if popped is not None:
                    self._wanted = None
                    self._last_order = self.queue.order_of(popped.entries[-1]) if most > 1 else None
                    yield popped
            return
        while room and self._last_order is not None and self.queue.next_comes_before(self._last_order, now):
            popped = self._pop(1, now, requested=False)
            if popped is None:
                return  # a duplicate of a pod in flight
            yield popped
            room -= 1

    def _pop(self, most: int, now: int, *, requested: bool) -> Popped | None:
        entries: list[QueuedPod] = []
        while len(entries) < most:
            entry = self.operations.step(_POP, now)
            if entry is None:
                break
            entries.append(entry)
            if entry.pod.pod_group:
                entries += self.operations.step(PopOthersOfGroup(entry), now)
        return Popped(entries, self._nominated(now), requested) if entries else None

    def _nominated(self, now: int) -> Sequence[Pod]:
        nominated: Sequence[Pod] = self.operations.step(TakeNominated(), now) if self.operations.nominated else ()
        return nominated

    def _send(self, answers: Sequence[Popped]) -> None:
        for popped in answers:
            try:
                self._popped.send_nowait(popped)  # never full, because this actor is the only sender
            except trio.BrokenResourceError:
                return  # the scheduling actor has ended
            self._bell.ring()


_FLUSH_S = 1.0
_POP: Final = Pop()
_LEFTOVER_S = LEFTOVER_FLUSH / SECOND


def _parts(operation: QueueOperation) -> Iterator[QueueOperation]:
    """Yield parts of the operation, each of which takes a few milliseconds."""
    if not isinstance(operation, EventsObserved) or len(operation.events) <= _EVENTS:
        yield operation
        return
    for start in range(0, len(operation.events), _EVENTS):
        yield attrs.evolve(operation, events=operation.events[start : start + _EVENTS])


def _log_move(move: Move) -> None:
    log.debug("pod_moved", pod=move.pod, source=move.source, target=move.target, cause=move.event, plugin=move.plugin)


def _log_fault(plugin: str, pod: str, fault: Exception) -> None:
    log.warning("plugin_fault", plugin=plugin, pod=pod, fault=fault_text(fault))
