"""How far every pod is that the scheduling actor has in hand, and what is to be told to others about it.

The plain part of the scheduling actor: it drives the scheduling machine and collects, in order, what the queue
actor, the binding actor and the records are to hear. It never waits and knows no channel but those it makes for
plans that have to settle. Times come in as seconds since the epoch.

Source: Kubernetes v1.34, scheduler/schedule_one.go (ScheduleOne, handleBindingCycleError, handleSchedulingFailure).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import trio

from kschedd.actors.binding import Carry, Eviction, Written
from kschedd.actors.decisions import Decision
from kschedd.actors.events import NORMAL, WARNING, Happening
from kschedd.actors.queue import Activate, CameBack, GaveWay, Item, NotNominated, Reconfigured, TookIn
from kschedd.actors.strangers import PluginHangs, blamed
from kschedd.api.pods import Pod
from kschedd.config.model import Config
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Status, error, fault_text
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.machine import (
    AwaitPermit,
    Binding,
    Rejected,
    Reserved,
    SchedulingMachine,
    Unqueue,
    failure_status,
)
from kschedd.scheduling.scheduler import Attempt, Failed, Placed
from kschedd.scheduling.verdicts import Diagnosis
from kschedd.simulate.attempts import queue_settings
from kschedd.store.log import DELETED, WatchEvent
from kschedd.store.times import stamp
from kschedd.store.writes import Write
from kschedd.values import value


@value(eq=False)
class Underway:
    """A pod that has its node and is on its way to be bound."""

    reserved: Reserved
    binding: Binding

    @property
    def uid(self) -> str:
        return self.reserved.pod.uid


@attrs.define(eq=False)
class Settling:
    """A binding whose plan waits for others to do their part."""

    carry: Carry
    word: "trio.MemorySendChannel[Status]"
    written: bool = False  # whether they know of it


@attrs.frozen(eq=False)
class Evicting:
    """A pod for which victims are being evicted."""

    pod: Pod


@attrs.define(eq=False)
class Outbox:
    """What others are to be told, in order."""

    done: list[str] = attrs.field(factory=list)  # uids no longer in flight
    items: list[Item] = attrs.field(factory=list)  # for the queue
    writes: list[Write] = attrs.field(factory=list)  # for the API server, unanswered
    evictions: list[Eviction] = attrs.field(factory=list)  # for the API server, answered if they fail
    carries: list[Carry] = attrs.field(factory=list)  # for the API server, to be answered
    happenings: list[Happening] = attrs.field(factory=list)
    decisions: list[Decision] = attrs.field(factory=list)
    settled: list[tuple[Settling, Status]] = attrs.field(factory=list)  # for those that wait


class Progress:
    """See the module. Owned by the scheduling actor; questions to that actor are questions to this."""

    def __init__(self, machine: SchedulingMachine) -> None:
        self.machine = machine
        self.nominated: Mapping[str, Sequence[Pod]] = {}  # as the queue said last
        self.pending: dict[str, Pod] = {}  # every pod without a node, by key, as the watch said last
        self.permits: dict[str, Underway] = {}  # by uid: waits in Permit
        self.arrived: list[Underway] = []  # those of them that nobody watches over yet
        self.settling: dict[str, Settling] = {}  # by uid
        self.under_way = 0  # pods between their decision and the end of their binding
        self.renominated = False  # whether nominations changed since the queue said them
        self.out = Outbox()
        machine.handle.nominated_pods = lambda node_name: self.nominated.get(node_name, ())
        machine.handle.current_pod = self.pending.get
        machine.handle.activate = lambda pods: self.out.items.append(Activate(tuple(pods)))

    # -- the cluster ------------------------------------------------------------------------------------------

    def take_in(self, events: Sequence[WatchEvent]) -> None:
        """Bring the caches up to date, and have the queue told."""
        machine, pending = self.machine, self.pending
        is_assumed = machine.cluster.is_assumed
        assumed: set[str] = set()
        rejected: set[str] = set()
        for event in events:
            machine.observe((event,))
            pod = event.new
            if not isinstance(pod, Pod):
                continue
            if event.type == DELETED or pod.node_name or pod.finished:
                pending.pop(pod.key, None)
                if pod.uid in self.permits and machine.waiting.reject(pod.uid, "", "removed"):
                    rejected.add(pod.uid)
            else:
                pending[pod.key] = pod
                if event.old is not None and is_assumed(pod):
                    assumed.add(pod.uid)
        self.out.items.append(TookIn(events, frozenset(assumed), frozenset(rejected)))
        for uid in list(self.settling):
            self._look_at(uid)

    def _look_at(self, uid: str) -> None:
        """See whether a plan has settled."""
        settling = self.settling.get(uid)
        if settling is None or not settling.written:
            return
        settled = settling.carry.plan.settled
        assert settled is not None
        try:
            status = settled(self.machine.cluster)
        except Exception as fault:  # a plugin's fault ends here: the binding fails
            status = error(fault_text(fault))
        if status is not None:
            del self.settling[uid]
            self.out.settled.append((settling, status))

    # -- attempts ---------------------------------------------------------------------------------------------

    def begin(self, entry: QueuedPod) -> Attempt | None:
        """An attempt for a popped pod, as it is now; None if it is not to be scheduled."""
        pod = self.pending.get(entry.key)
        if pod is None or pod.uid != entry.pod.uid or self.machine.skips(pod):
            self.out.done.append(entry.pod.uid)
            return None
        if not self.machine.responsible(pod.scheduler_name):
            self.out.done.append(entry.pod.uid)  # its profile was taken away meanwhile
            return None
        entry.pod = pod
        return self.machine.begin(pod, self.nominated)

    def settle(self, entry: QueuedPod, result: Placed | Failed, now_s: float, took_s: float) -> None:
        """What an attempt comes to: the pod goes on to its node, or back to the queue."""
        outcome = self.machine.settle(entry, result, now_s)
        pod = entry.pod
        if isinstance(outcome, Rejected):
            self._decided(entry, result, now_s, took_s, outcome)
            self._fail(outcome, now_s)
            return
        self._decided(entry, result, now_s, took_s, None)
        if self.nominated or pod.nominated_node_name:
            self.out.items.append(NotNominated(pod))
            self.renominated = True
        self.under_way += 1
        self.advance(Underway(outcome, self.machine.binding(outcome)), None, now_s)

    def broken(self, entry: QueuedPod, fault: Exception) -> Failed:
        """The attempt's result where a plugin from elsewhere broke it off; any other exception is raised again."""
        whom = blamed(fault)
        if not whom:
            raise fault
        plugin, _, method = whom.partition(".")
        why = str(fault) if isinstance(fault, PluginHangs) else fault_text(fault)
        status = error(f'running plugin "{plugin}", {method}: {why}').by(plugin)
        return Failed(entry.pod, status, Diagnosis(self.machine.cluster.table.node_count), CycleState())

    def _decided(
        self, entry: QueuedPod, result: Placed | Failed, now_s: float, took_s: float, rejected: Rejected | None
    ) -> None:
        node, feasible, visited, ties, score = "", 0, 0, 0, None
        if isinstance(result, Placed):
            feasible, visited, ties, score = len(result.feasible), result.visited, result.ties, result.score
            node = "" if rejected is not None else result.node_name
        self.out.decisions.append(
            Decision(
                now_s,
                entry.key,
                entry.pod.uid,
                entry.attempts,
                node,
                feasible,
                visited,
                ties,
                score,
                took_s,
                "" if rejected is None else rejected.message,
                "" if rejected is None else rejected.nominated_node or "",
            )
        )

    def _fail(self, rejected: Rejected, now_s: float) -> None:
        """Hand the pod back to the queue and tell the API server why."""
        entry, out = rejected.entry, self.out
        pod = self.pending.get(entry.key)
        if pod is None or pod.uid != entry.pod.uid:
            out.done.append(entry.pod.uid)
        else:
            out.items.append(
                CameBack(entry, pod, rejected.unschedulable_plugins, rejected.pending_plugins, rejected.nominated_node)
            )
            if self.nominated or rejected.nominated_node or pod.nominated_node_name:
                self.renominated = True
            patch = failure_status(pod, rejected, stamp(now_s))
            if patch is not None:
                out.writes.append(patch)
        pod = entry.pod
        if rejected.evicts:
            # The queue hears of what we write now only after this pod is back, so nothing can wake it too early.
            self.machine.evicted(rejected)
            out.evictions.append(Eviction(Evicting(pod), rejected.writes))
        else:
            out.writes.extend(rejected.writes)
        out.happenings.append(Happening(now_s, WARNING, "FailedScheduling", pod.namespace, pod.name, rejected.message))
        for victim in rejected.victims:
            text = f"Preempted by pod {pod.uid} on node {victim.node_name}"
            out.happenings.append(Happening(now_s, NORMAL, "Preempted", victim.namespace, victim.name, text))

    # -- bindings ---------------------------------------------------------------------------------------------

    def answered(self, ticket: Underway | Evicting | Written, answer: Status | None, now_s: float) -> None:
        """The API server has done, or refused, what a binding or an eviction wanted."""
        if isinstance(ticket, Underway):
            self.advance(ticket, answer, now_s)
        elif isinstance(ticket, Written):
            uid = ticket.ticket.uid
            if uid in self.settling:
                self.settling[uid].written = True
                self._look_at(uid)
        else:
            self.out.items.append(Activate((ticket.pod,)))  # its preemption went wrong: tried again at once

    def advance(self, underway: Underway, answer: Status | None, now_s: float) -> None:
        """Go on with a binding until it has to wait, or ends."""
        binding = underway.binding
        self.settling.pop(underway.uid, None)
        try:
            while True:
                need = binding.send(answer)
                answer = None
                if isinstance(need, Unqueue):
                    self.out.done.append(underway.uid)
                elif isinstance(need, AwaitPermit):
                    if not need.waiting.decided:
                        self.permits[underway.uid] = underway
                        self.arrived.append(underway)
                        return
                elif need.plan.settled is not None:
                    # One word, and it may come before anybody waits for it.
                    send, receive = trio.open_memory_channel[Status](1)
                    carry = Carry(underway, need.plan, receive)
                    self.settling[underway.uid] = Settling(carry, send)
                    self.out.carries.append(carry)
                    return
                elif need.plan.writes:
                    self.out.carries.append(Carry(underway, need.plan))
                    return
        except StopIteration as end:
            self._ended(underway.reserved, end.value, now_s)

    def _ended(self, reserved: Reserved, failure: Status | None, now_s: float) -> None:
        self.under_way -= 1
        pod = reserved.pod
        if failure is None:
            self.out.happenings.append(Happening(now_s, NORMAL, "Scheduled", pod.namespace, pod.name, pod.node_name))
            return
        rejected = self.machine.undo(reserved, failure)
        self._decided(reserved.entry, reserved.placed, now_s, 0.0, rejected)
        if failure.rejected:
            # Woken by what it leaves itself, the pod would come straight back.
            self._fail(rejected, now_s)
            self.out.items.append(GaveWay(pod, for_itself=False))
        else:
            self.out.items.append(GaveWay(pod, for_itself=True))
            self._fail(rejected, now_s)

    def decided_permits(self) -> list[Underway]:
        """The waiting pods that have been allowed, rejected or given up, taken off the list."""
        waiting = self.machine.waiting.pods
        found = [u for uid, u in self.permits.items() if uid not in waiting or waiting[uid].decided]
        for underway in found:
            del self.permits[underway.uid]
        return found

    # -- the configuration --------------------------------------------------------------------------------------

    @property
    def strangers(self) -> bool:
        """Whether any profile has plugins from elsewhere."""
        added = self.machine.registry.added
        return any(name in added for profile in self.machine.config.profiles for name in profile.names())

    def reconfigure(self, config: Config) -> Config:
        """Run by this configuration from the next attempt on; returns the one before. Raises PluginLoadError."""
        before = self.machine.config
        schedulers = self.machine.schedulers
        try:
            self.machine.reconfigure(config)
        except Exception:
            self.machine.config, self.machine.schedulers = before, schedulers
            raise
        self.out.items.append(self.queue_configuration())
        return before

    def queue_configuration(self) -> Reconfigured:
        machine = self.machine
        return Reconfigured(
            self.strangers,
            frozenset(machine.schedulers),
            queue_settings(machine.config),
            machine.sort_key(),
            machine.pre_enqueue(),
            machine.registrations(),
        )


def send_on(attempt: Attempt, answers: list[Any] | None) -> tuple[Any, Placed | Failed | None]:
    """Take an attempt on to where it wants shards worked on (these, None), or to its end (None, its result)."""
    try:
        return attempt.send(answers), None  # type: ignore[arg-type]
    except StopIteration as end:
        return None, end.value
