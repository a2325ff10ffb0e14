"""Attempts from pop to outcome, where one loop runs everything: queue and scheduling machine wired together, and the
order in which they hear of things.

Whoever keeps time and writes objects (a simulation, a replay of recorded traces) calls, in its own order,

    observe(event)      the watch told of a change: caches first, then the queue
    pop()               the next pod, in flight from now on; None if there is nothing to do
    decide(entry)       filters, scores, PostFilter; None if the pod is not to be considered
    carry(...)          what the attempt comes to: requeued and told why, or assumed and on its way to be bound
    go_on()             bindings that wait look again

Writes go out through the surroundings at once; what they cause comes back only through `observe`.
Owns the queue, the scheduling machine and the bindings under way. The daemon's actors do the same with channels in
between.

Source: Kubernetes v1.34, scheduler/schedule_one.go (ScheduleOne, handleBindingCycleError, handleSchedulingFailure).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import attrs

from kschedd.api.pods import Pod
from kschedd.config.model import Config
from kschedd.framework.registry import Registry
from kschedd.framework.status import Code, Status, error
from kschedd.framework.writes import Plan, Write
from kschedd.queue.entry import SECOND, QueuedPod
from kschedd.queue.scheduling_queue import QueueSettings, Recorder, SchedulingQueue
from kschedd.queue.watching import Feed
from kschedd.scheduling.eviction import evict
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
from kschedd.scheduling.scheduler import Choose, Failed, Placed
from kschedd.store.log import DELETED, WatchEvent
from kschedd.store.times import stamp


class Surroundings(Protocol):
    """Time and objects, as whoever runs the loop has them."""

    @property
    def now_s(self) -> float:
        """Seconds since the epoch."""

    @property
    def now_ns(self) -> int:
        """The queue's clock."""

    def current_pod(self, key: str) -> Pod | None:
        """The stored pod of that key."""

    def write(self, write: Write) -> Status | None:
        """Carry out one write; the Status of its refusal if it is refused."""


@attrs.define(eq=False)
class Underway:
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


class Attempts:
    """See the module. `on_rejected` and `on_bound` hear of every end of an attempt or binding."""

    def __init__(
        self,
        config: Config,
        surroundings: Surroundings,
        *,
        registry: Registry | None = None,
        seed: int = 0,
        choose: Choose | None = None,
        remember: bool = True,
        recorder: Recorder | None = None,
        on_rejected: Callable[[Rejected], None] = lambda rejected: None,
        on_bound: Callable[[Pod], None] = lambda pod: None,
    ) -> None:
        self.surroundings = surroundings
        self.machine = SchedulingMachine(config, registry=registry, seed=seed, choose=choose, remember=remember)
        self.queue = SchedulingQueue(
            queue_settings(config),
            sort_key=self.machine.sort_key(),
            pre_enqueue=self.machine.pre_enqueue(),
            hints=self.machine.registrations(),
            current_pod=surroundings.current_pod,
            recorder=recorder,
        )
        self.feed = Feed(self.queue, self.machine.responsible, self.machine.cluster.is_assumed, self._reject_waiting)
        self.machine.handle.nominated_pods = self.queue.nominator.on_node
        self.machine.handle.activate = self._activate
        self.machine.handle.current_pod = surroundings.current_pod
        self.underway: dict[str, Underway] = {}
        self._to_activate: list[Pod] = []
        self._on_rejected = on_rejected
        self._on_bound = on_bound

    def observe(self, event: WatchEvent) -> None:
        """Tell the caches, then the queue, of one write."""
        self.machine.observe((event,))
        deleted = event.type == DELETED
        self.feed.changed(event.new if deleted else event.old, None if deleted else event.new, self._now_ns)

    # -- attempts ---------------------------------------------------------------------------------------------

    def activate(self) -> bool:
        """Move the pods to the active queue that plugins asked for since the last time; whether there were any."""
        if not self._to_activate:
            return False
        pods, self._to_activate = self._to_activate, []
        self.queue.activate(pods, self._now_ns)
        return True

    def pop(self) -> QueuedPod | None:
        self.activate()
        return self.queue.pop(self._now_ns)

    def decide(self, entry: QueuedPod) -> Placed | Failed | None:
        """Run the attempt for a popped pod; None if it is not to be considered, and then no longer in flight."""
        pod = entry.pod
        if self.machine.skips(pod) or not self.machine.responsible(pod.scheduler_name):
            self.queue.done(pod.uid, self._now_ns)
            return None
        result: Placed | Failed = drive(self.machine.begin(pod, self.queue.nominator.by_node()))
        return result

    def carry(self, entry: QueuedPod, result: Placed | Failed) -> Reserved | Rejected:
        """What follows from the attempt."""
        outcome = self.machine.settle(entry, result, self.surroundings.now_s)
        if isinstance(outcome, Rejected):
            self._fail(outcome)
        else:
            self.queue.nominator.remove(entry.pod)
            self.underway[entry.pod.uid] = underway = Underway(outcome, self.machine.binding(outcome))
            self._bind(underway, None)
        return outcome

    def _fail(self, rejected: Rejected) -> None:
        """Hand the pod back to the queue and tell the API server why."""
        entry = rejected.entry
        stored = self.surroundings.current_pod(entry.key)
        if stored is None or stored.uid != entry.pod.uid or stored.node_name:
            self.queue.done(entry.pod.uid, self._now_ns)
        else:
            entry.pod = stored
            entry.unschedulable_plugins = rejected.unschedulable_plugins
            entry.pending_plugins = rejected.pending_plugins
            self.queue.add_unschedulable_if_not_present(entry, self._now_ns)
            self.queue.nominator.add(stored, rejected.nominated_node)
            patch = failure_status(stored, rejected, stamp(self.surroundings.now_s))
            if patch is not None:
                self.surroundings.write(patch)
        self._evict(rejected)
        self._on_rejected(rejected)

    def _evict(self, rejected: Rejected) -> None:
        """Write what PostFilter wants; a pod that nothing of it would wake is tried again at once."""
        failure = evict(rejected.writes, self.surroundings.write, self._uid_of)
        if rejected.evicts:
            self.machine.evicted(rejected)
            if failure is not None:
                self._activate((rejected.entry.pod,))

    def _uid_of(self, namespace: str, name: str) -> str | None:
        pod = self.surroundings.current_pod(f"{namespace}/{name}")
        return None if pod is None else pod.uid

    # -- bindings ---------------------------------------------------------------------------------------------

    def _bind(self, underway: Underway, answer: Status | None) -> None:
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
                        underway.deadline = self.surroundings.now_s + need.plan.timeout_s
                        return
        except StopIteration as end:
            del self.underway[underway.reserved.pod.uid]
            self._bound(underway.reserved, end.value)

    def _carry_out(self, need: Carry) -> Status | None:
        for write in need.plan.writes:
            failure = self.surroundings.write(write)
            if failure is not None:
                return failure
        return None

    def go_on(self) -> bool:
        """Look again at the bindings that wait; whether one of them went on."""
        moved = False
        for underway in list(self.underway.values()):
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
                if status is None and underway.deadline <= self.surroundings.now_s:
                    status = plan.timed_out or error("timed out")
                if status is not None:
                    self._bind(underway, None if status.code == Code.SUCCESS else status)
                    moved = True
        return moved

    def deadlines(self) -> Iterator[float]:
        """When the patience with each binding under way ends, in seconds since the epoch."""
        return (underway.deadline for underway in self.underway.values() if underway.deadline)

    def _bound(self, reserved: Reserved, status: Status | None) -> None:
        pod = reserved.pod
        if status is None:
            self._on_bound(pod)
            return
        rejected = self.machine.undo(reserved, status)
        if status.rejected:
            # Woken by what it leaves itself, the pod would come straight back.
            self._fail(rejected)
            self.queue.assigned_pod_deleted(pod, self._now_ns, lambda other: other.uid != pod.uid)
        else:
            self.queue.assigned_pod_deleted(pod, self._now_ns)
            self._fail(rejected)

    # -- what the machines ask --------------------------------------------------------------------------------

    @property
    def _now_ns(self) -> int:
        return self.surroundings.now_ns

    def _reject_waiting(self, pod: Pod) -> bool:
        return self.machine.waiting.reject(pod.uid, "", "removed")

    def _activate(self, pods: Sequence[Pod]) -> None:
        self._to_activate.extend(pods)
