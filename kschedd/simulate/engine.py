"""A whole cluster in virtual time: store, controllers, queue and scheduler driven by one loop, without waiting for anything.

Time stands still while there is something to do and then jumps to the next moment at which something happens: a backoff that
ends, a pod that finishes, a Permit timeout, a claim that is provisioned. With one seed, two runs make the same decisions in the
same order, whatever PYTHONHASHSEED is.

It drives the very machines that the daemon's actors drive. Owns all of them. Ends when its owner stops calling it.
Units: `now` is seconds since the epoch of the simulated cluster; the queue counts integer nanoseconds of the same clock.
"""

from collections.abc import Callable, Sequence

import attrs

from kschedd.api.pods import Pod
from kschedd.config.load import default_config
from kschedd.config.model import Config
from kschedd.controllers.controller import Controller
from kschedd.controllers.settle import Settling
from kschedd.framework.registry import Registry
from kschedd.framework.status import Code, Status, error
from kschedd.framework.writes import Plan, Write
from kschedd.queue.entry import SECOND, QueuedPod
from kschedd.queue.nominator import Nominator
from kschedd.queue.scheduling_queue import LEFTOVER_FLUSH, QueueSettings, SchedulingQueue
from kschedd.queue.watching import Feed
from kschedd.scheduling.feasible import drive
from kschedd.scheduling.machine import (
    AwaitPermit,
    Binding,
    Carry,
    Rejected,
    Reserved,
    SchedulingMachine,
    Unqueue,
    failure_status,
)
from kschedd.scheduling.scheduler import Choose
from kschedd.store.errors import ApiError
from kschedd.store.log import WatchEvent
from kschedd.store.store import Store
from kschedd.store.times import stamp
from kschedd.store.writes import perform

EPOCH = 1_735_689_600.0  # 2025-01-01T00:00:00Z: simulated clusters begin then


@attrs.frozen(eq=False)
class Decision:
    """One attempt, for the decision log."""

    time_s: float  # since the start of the run
    pod: str
    attempt: int
    node: str  # "" if it got none
    feasible: int
    visited: int
    ties: int
    score: int | None
    message: str
    nominated: str = ""

    def line(self) -> dict[str, object]:
        return attrs.asdict(self)


@attrs.define(eq=False)
class _Underway:
    """A binding that waits: for Permit, or for a plan to settle."""

    reserved: Reserved
    binding: Binding
    permit: AwaitPermit | None = None
    plan: Plan | None = None
    deadline: float = 0.0


def queue_settings(config: Config) -> QueueSettings:
    return QueueSettings(
        config.pod_initial_backoff_s * SECOND,
        config.pod_max_backoff_s * SECOND,
        config.feature_gates.get("SchedulerPopFromBackoffQ", True),
    )


class Engine:
    """See the module. `on_decision` hears of every attempt, `on_event` of what a user would see as an Event."""

    def __init__(
        self,
        config: Config | None = None,
        *,
        seed: int = 0,
        choose: Choose | None = None,
        registry: Registry | None = None,
        store: Store | None = None,
        controllers: Sequence[Controller] = (),
        on_decision: Callable[[Decision], None] | None = None,
        on_event: Callable[[str, str, str, str], None] | None = None,
        start_s: float = EPOCH,
    ) -> None:
        self.config = config or default_config()
        self.start_s = start_s
        self._now_s = start_s
        self.store = store or Store(now=lambda: self._now_s, seed=seed)
        self.machine = SchedulingMachine(self.config, registry=registry, seed=seed, choose=choose)
        self.queue = SchedulingQueue(
            queue_settings(self.config),
            sort_key=self.machine.sort_key(),
            pre_enqueue=self.machine.pre_enqueue(),
            hints=self.machine.registrations(),
            current_pod=self._current_pod,
        )
        self.feed = Feed(self.queue, self.machine.responsible, self.machine.cluster.is_assumed, self._reject_waiting)
        self.machine.handle.nominated_pods = self.queue.nominator.on_node
        self.machine.handle.activate = self._activate
        self._settling = Settling(self.store, controllers) if controllers else None
        self._cursor = self.store.watch(None, 0)
        self._underway: dict[str, _Underway] = {}
        self._to_activate: list[Pod] = []
        self._next_leftover = start_s + LEFTOVER_FLUSH / SECOND
        self._on_decision = on_decision
        self._on_event = on_event
        self.decisions = 0

    # -- time -------------------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return self._now_s

    @property
    def elapsed(self) -> float:
        """Seconds since the start of the run."""
        return self._now_s - self.start_s

    @property
    def _now_ns(self) -> int:
        return round(self._now_s * SECOND)

    def next_moment(self) -> float | None:
        """When something happens of itself next; None if never."""
        moments = [underway.deadline for underway in self._underway.values() if underway.deadline]
        flush = self.queue.next_flush()
        if flush is not None:
            moments.append(flush / SECOND)
        if self.queue.next_leftover() is not None:
            due = self.queue.next_leftover()
            assert due is not None
            # Leftovers are looked at every 30 s only.
            steps = max(0, -(-(due / SECOND - self._next_leftover) // (LEFTOVER_FLUSH / SECOND)))
            moments.append(self._next_leftover + steps * (LEFTOVER_FLUSH / SECOND))
        if self._settling is not None and self._settling.wake_at is not None:
            moments.append(self._settling.wake_at)
        return min(moments, default=None)

    def advance(self, until_s: float) -> None:
        """Let time pass until then (seconds since the epoch), with all that happens on the way."""
        self.settle()
        while True:
            moment = self.next_moment()
            if moment is None or moment > until_s:
                break
            self._now_s = max(self._now_s, moment)
            self._ring()
            self.settle()
        self._now_s = max(self._now_s, until_s)

    def run_to_rest(self, limit_s: float = 3600.0) -> None:
        """Go on until nothing happens any more of itself, or only pods' retries every few minutes are left."""
        end = self._now_s + limit_s
        self.settle()
        while True:
            moment = self.next_moment()
            if moment is None or moment > end:
                return
            self._now_s = max(self._now_s, moment)
            self._ring()
            self.settle()

    def _ring(self) -> None:
        """What is due at this moment."""
        now = self._now_ns
        self.queue.flush_backoff(now)
        while self._next_leftover <= self._now_s:
            self._next_leftover += LEFTOVER_FLUSH / SECOND
            self.queue.flush_unschedulable_leftover(now)
        for waiting in list(self.machine.waiting.pods.values()):
            waiting.expire(self._now_s)

    # -- the loop ---------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Do all that can be done at this moment."""
        while True:
            busy = self._deliver()
            if self._settling is not None and self._settling.settle():
                continue
            if self._go_on_with_bindings():
                continue
            if self._to_activate:
                self.queue.activate(self._to_activate, self._now_ns)
                self._to_activate = []
            entry = self.queue.pop(self._now_ns)
            if entry is not None:
                self.cycle(entry)
            elif not busy:
                return

    def _deliver(self) -> bool:
        """Tell cluster and queue of every write since the last time."""
        events: Sequence[WatchEvent] = self._cursor.take()
        now = self._now_ns
        for event in events:
            self.machine.observe((event,))
            deleted = event.type == "DELETED"
            self.feed.changed(event.new if deleted else event.old, None if deleted else event.new, now)
        return bool(events)

    def cycle(self, entry: QueuedPod) -> None:
        """One attempt for a popped pod, and what follows from it."""
        pod = entry.pod
        if self.machine.skips(pod) or not self.machine.responsible(pod.scheduler_name):
            self.queue.done(pod.uid, self._now_ns)
            return
        result = drive(self.machine.begin(pod, nominated_pods(self.queue.nominator)))
        outcome = self.machine.settle(entry, result, self._now_s)
        self.decisions += 1
        if isinstance(outcome, Rejected):
            self._decide(entry, outcome, result)
            self._fail(outcome)
        else:
            self._decide(entry, outcome, result)
            self.queue.nominator.remove(pod)
            self._underway[pod.uid] = underway = _Underway(outcome, self.machine.binding(outcome))
            self._bind(underway, None)

    def _decide(self, entry: QueuedPod, outcome: Reserved | Rejected, result: object) -> None:
        if self._on_decision is None:
            return
        if isinstance(outcome, Rejected):
            nominated = outcome.nominated_node or ""
            decision = Decision(self.elapsed, entry.key, entry.attempts, "", 0, 0, 0, None, outcome.message, nominated)
        else:
            placed = outcome.placed
            score = None if placed.totals is None else int(placed.totals.max())
            decision = Decision(
                self.elapsed,
                entry.key,
                entry.attempts,
                placed.node_name,
                len(placed.feasible),
                placed.visited,
                placed.ties,
                score,
                "",
            )
        self._on_decision(decision)

    def _fail(self, rejected: Rejected) -> None:
        """Hand the pod back to the queue and tell the API server why."""
        entry = rejected.entry
        stored = self._current_pod(entry.key)
        if stored is None or stored.uid != entry.pod.uid or stored.node_name:
            self.queue.done(entry.pod.uid, self._now_ns)
        else:
            entry.pod = stored
            entry.unschedulable_plugins = rejected.unschedulable_plugins
            entry.pending_plugins = rejected.pending_plugins
            self.queue.add_unschedulable_if_not_present(entry, self._now_ns)
            if rejected.nominated_node is not None:
                self.queue.nominator.add(stored, rejected.nominated_node)
            patch = failure_status(stored, rejected, stamp(self._now_s))
            if patch is not None:
                self._write(patch)
        for write in rejected.writes:
            self._write(write)
        self._tell(entry.key, "Warning", "FailedScheduling", rejected.message)
        for victim in rejected.victims:
            text = f"Preempted by pod {entry.pod.uid} on node {victim.node_name}"
            self._tell(victim.key, "Normal", "Preempted", text)

    def _write(self, write: Write) -> Status | None:
        try:
            perform(self.store, write)
        except ApiError as refusal:
            return error(str(refusal))
        return None

    # -- bindings ---------------------------------------------------------------------------------------------

    def _bind(self, underway: _Underway, answer: Status | None) -> None:
        """Go on with a binding until it has to wait, or ends."""
        underway.permit = underway.plan = None
        underway.deadline = 0.0
        try:
            while True:
                need = underway.binding.send(answer)
                answer = None
                if isinstance(need, AwaitPermit):
                    if not need.waiting.decided:
                        underway.permit = need
                        underway.deadline = need.waiting.deadline
                        return
                elif isinstance(need, Unqueue):
                    self.queue.done(underway.reserved.pod.uid, self._now_ns)
                else:
                    answer = self._carry_out(need)
                    if answer is None and need.plan.settled is not None:
                        underway.plan = need.plan
                        underway.deadline = self._now_s + need.plan.timeout_s
                        return
        except StopIteration as end:
            del self._underway[underway.reserved.pod.uid]
            self._bound(underway.reserved, end.value)

    def _carry_out(self, need: Carry) -> Status | None:
        for write in need.plan.writes:
            failure = self._write(write)
            if failure is not None:
                return failure
        return None

    def _go_on_with_bindings(self) -> bool:
        """Look again at the bindings that wait; whether one of them went on."""
        moved = False
        for underway in list(self._underway.values()):
            if underway.permit is not None:
                if underway.permit.waiting.decided:
                    self._bind(underway, None)
                    moved = True
                else:
                    underway.deadline = underway.permit.waiting.deadline
            elif underway.plan is not None:
                plan = underway.plan
                assert plan.settled is not None
                status = plan.settled(self.machine.cluster)
                if status is None and underway.deadline <= self._now_s:
                    status = plan.timed_out or error("timed out")
                if status is not None:
                    self._bind(underway, None if status.code == Code.SUCCESS else status)
                    moved = True
        return moved

    def _bound(self, reserved: Reserved, status: Status | None) -> None:
        pod = reserved.pod
        if status is None:
            text = f"Successfully assigned {pod.key} to {pod.node_name}"
            self._tell(pod.key, "Normal", "Scheduled", text)
            return
        rejected = self.machine.undo(reserved, status)
        gone_for = None
        if status.rejected:
            gone_for = _all_but(pod.uid)
        if gone_for is None:
            self.queue.assigned_pod_deleted(pod, self._now_ns)
            self._fail(rejected)
        else:
            self._fail(rejected)
            self.queue.assigned_pod_deleted(pod, self._now_ns, gone_for)

    # -- what the machines ask --------------------------------------------------------------------------------

    def _current_pod(self, key: str) -> Pod | None:
        namespace, _, name = key.partition("/")
        found = self.store.find("Pod", namespace, name)
        return found if isinstance(found, Pod) else None

    def _reject_waiting(self, pod: Pod) -> bool:
        return self.machine.waiting.reject(pod.uid, "", "removed")

    def _activate(self, pods: Sequence[Pod]) -> None:
        self._to_activate.extend(pods)

    def _tell(self, key: str, kind: str, reason: str, text: str) -> None:
        if self._on_event is not None:
            self._on_event(key, kind, reason, text)


def _all_but(uid: str) -> Callable[[Pod], bool]:
    return lambda pod: pod.uid != uid


def nominated_pods(nominator: Nominator) -> dict[str, Sequence[Pod]]:
    """Nominated pods by node, as the cycle takes them."""
    if not nominator:
        return {}
    return {node: tuple(pods.values()) for node, pods in nominator.nodes.items()}
