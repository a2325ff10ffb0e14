"""QueueActor: owns the scheduling queue. Hands out pods, takes them back, and moves those that an event may help.

Receives: `Report` from the scheduling actor (events it has taken in, pods that are done or come back, and whether it
wants pods), and `Question` over this actor.  Sends: `Popped`, one for each report that asked for it; it waits with
the answer until there is a pod to hand out.
Owns: the SchedulingQueue, and the record of its latest moves.  Ends: when its last sender closes.
Fails: a plugin's fault in PreEnqueue or in a hint is contained in the queue and logged.

It hears of an event only after the scheduling actor's caches have, so a pod it wakes is tried against them. Several
pods are handed out at once while many are active, for a hop costs more than a pop; but one by one as long as pods
are nominated to nodes, since an attempt must see the nominations that the one before it made.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import structlog
import trio

from kschedd.actors.clock import Clock
from kschedd.actors.mailbox import Doorbell, Question, batch_from
from kschedd.api.pods import Pod
from kschedd.framework.status import fault_text
from kschedd.queue.entry import SECOND, Move, Place, QueuedPod
from kschedd.queue.gating import PreEnqueue
from kschedd.queue.hints import Registrations
from kschedd.queue.scheduling_queue import (
    LEFTOVER_FLUSH,
    QueueSettings,
    SchedulingQueue,
)
from kschedd.queue.watching import Feed
from kschedd.store.log import DELETED, WatchEvent

log = structlog.get_logger("kschedd.queue")

MOST_POPPED = 32
MOVES_KEPT = 100_000
_MOST = 64  # messages in a batch


@attrs.frozen(eq=False)
class TookIn:
    """Events that the caches have seen, and what only their owner can say of the pods in them (by uid)."""

    events: Sequence[WatchEvent]
    assumed: frozenset[str]
    rejected: frozenset[str]  # waited in Permit, and were rejected because of the event


@attrs.frozen(eq=False)
class CameBack:
    """An attempt or a binding failed. `pod` is the pod as it is now."""

    entry: QueuedPod
    pod: Pod
    unschedulable_plugins: frozenset[str]
    pending_plugins: frozenset[str]
    nominated_node: str | None


@attrs.frozen(eq=False)
class GaveWay:
    """A pod that was to have a node will not; `for_itself` says whether that may help the pod itself."""

    pod: Pod
    for_itself: bool


@attrs.frozen(eq=False)
class NotNominated:
    """The pod got a node: its nomination is over."""

    pod: Pod


@attrs.frozen(eq=False)
class Activate:
    """A plugin wants these pods tried now."""

    pods: Sequence[Pod]


@attrs.frozen(eq=False)
class Reconfigured:
    """From now on the queue is run by this; `strangers`: with plugins from elsewhere, who might take their time."""

    strangers: bool
    scheduler_names: frozenset[str]
    settings: QueueSettings
    sort_key: Any
    pre_enqueue: PreEnqueue
    hints: Registrations


Item = TookIn | CameBack | GaveWay | NotNominated | Activate | Reconfigured


@attrs.frozen(eq=False)
class Report:
    """What happened, in order. `done`: uids no longer in flight, which goes first. `wants`: how many pods at most to
    hand out; 0 asks only for the nominations as they are now; None asks for nothing."""

    done: Sequence[str]
    items: Sequence[Item]
    wants: int | None


@attrs.frozen(eq=False)
class Popped:
    entries: Sequence[QueuedPod]
    nominated: Mapping[str, Sequence[Pod]]


@attrs.define(eq=False)
class QueueActor:
    """`queue` is made by whoever makes the scheduling machine, since that one knows the plugins."""

    queue: SchedulingQueue
    _inbox: "trio.MemoryReceiveChannel[Report | Question[QueueActor, Any]]"
    _popped: "trio.MemorySendChannel[Popped]"
    _bell: Doorbell  # the scheduling actor's
    _clock: Clock
    _scheduler_names: frozenset[str]
    _strangers: bool
    moves: deque[Move] = attrs.field(init=False)
    _feed: Feed = attrs.field(init=False)
    _assumed: frozenset[str] = attrs.field(default=frozenset(), init=False)
    _rejected: frozenset[str] = attrs.field(default=frozenset(), init=False)
    _wanted: int | None = attrs.field(default=None, init=False)
    _next_flush: float = attrs.field(init=False)
    _next_leftover: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.moves = deque(maxlen=MOVES_KEPT)
        self.queue.recorder = self.moves.append
        self.queue.on_fault = _log_fault
        self._feed = Feed(
            self.queue,
            lambda name: name in self._scheduler_names,
            lambda pod: pod.uid in self._assumed,
            lambda pod: pod.uid in self._rejected,
        )
        now = self._clock.now()
        self._next_flush = now // 1 + _FLUSH_S
        self._next_leftover = now + _LEFTOVER_S

    async def run(self) -> None:
        async with self._inbox, self._popped:
            try:
                while True:
                    messages: Sequence[Report | Question[QueueActor, Any]] = ()
                    with trio.move_on_at(self._clock.deadline(min(self._next_flush, self._next_leftover))):
                        messages = await batch_from(self._inbox, _MOST)
                    if self._strangers:
                        now = self._clock.now_ns()
                        await trio.to_thread.run_sync(self._take, messages, now)
                    else:
                        self._take(messages, self._clock.now_ns())
                    for message in messages:
                        if isinstance(message, Question):
                            message.reply.announce()
                    self._hand_out()
            except trio.EndOfChannel:
                self.queue.close()

    def _take(self, messages: "Sequence[Report | Question[QueueActor, Any]]", now: int) -> None:
        """Everything that has come, and what is due."""
        if now >= self._next_flush * SECOND:
            self._next_flush = float(now // SECOND + 1)
            self.queue.flush_backoff(now)
        if now >= self._next_leftover * SECOND:
            self._next_leftover += _LEFTOVER_S
            self.queue.flush_unschedulable_leftover(now)
        for message in messages:
            if isinstance(message, Question):
                message.work_out(self)
                continue
            for uid in message.done:
                self.queue.done(uid, now)
            for item in message.items:
                self._take_item(item, now)
            if message.wants is not None:
                assert self._wanted is None, "one request for pods at a time"
                self._wanted = message.wants

    def _take_item(self, item: Item, now: int) -> None:
        queue = self.queue
        match item:
            case TookIn(events, assumed, rejected):
                self._assumed, self._rejected = assumed, rejected
                changed = self._feed.changed
                for event in events:
                    if event.type == DELETED:
                        changed(event.new, None, now)
                    else:
                        changed(event.old, event.new, now)
            case CameBack(entry, pod, unschedulable, pending, nominated_node):
                entry.pod = pod
                entry.unschedulable_plugins = unschedulable
                entry.pending_plugins = pending
                queue.add_unschedulable_if_not_present(entry, now)
                queue.nominator.add(pod, nominated_node)
            case GaveWay(pod, for_itself):
                queue.assigned_pod_deleted(pod, now, None if for_itself else _all_but(pod.uid))
            case NotNominated(pod):
                queue.nominator.remove(pod)
            case Activate(pods):
                queue.activate(pods, now)
            case Reconfigured(strangers, names, settings, sort_key, pre_enqueue, hints):
                self._strangers, self._scheduler_names = strangers, names
                queue.reconfigure(settings, sort_key=sort_key, pre_enqueue=pre_enqueue, hints=hints)

    def _hand_out(self) -> None:
        wanted = self._wanted
        if wanted is None or (wanted > 0 and not self.queue.ready):
            return
        entries: list[QueuedPod] = []
        if wanted:
            now = self._clock.now_ns()
            # Pods in backoff are handed out one by one, as those are that wait beside nominated ones.
            active = 1 if self.queue.nominator else self.queue.counts()[Place.ACTIVE]
            while len(entries) < min(max(active, 1), wanted):
                entry = self.queue.pop(now)
                if entry is None:
                    break
                entries.append(entry)
            if not entries:
                return
        self._wanted = None
        nominated = self.queue.nominator.by_node()
        try:
            # There is room: one answer for each request, and one request at a time.
            self._popped.send_nowait(Popped(entries, nominated))
        except trio.BrokenResourceError:
            return  # the scheduling actor has ended
        self._bell.ring()


_FLUSH_S = 1.0
_LEFTOVER_S = LEFTOVER_FLUSH / SECOND


def _all_but(uid: str) -> Callable[[Pod], bool]:
    # Woken by what it leaves itself, the pod would come straight back.
    return lambda pod: pod.uid != uid


def _log_fault(plugin: str, pod: str, fault: Exception) -> None:
    log.warning("plugin_fault", plugin=plugin, pod=pod, fault=fault_text(fault))
