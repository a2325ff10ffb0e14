"""Tests that after any operations in any order each pod is in exactly one queue or in flight.

The model knows only which pods exist and which are in flight. A second queue uses the plain rule instead of the index;
both must have the same state.
"""

from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from kschedd.api.objects import with_fields
from kschedd.api.pods import Pod
from kschedd.framework.events import (
    QUEUE,
    QUEUE_SKIP,
    ActionType,
    ClusterEvent,
    EventResource,
    QueueingHint,
    hints_of,
    on,
)
from kschedd.framework.status import Status, unschedulable
from kschedd.queue.entry import SECOND, QueuedPod, SubQueue
from kschedd.queue.scheduling_queue import QueueSettings, SchedulingQueue

A, R = ActionType, EventResource
NAMES = [f"p{n}" for n in range(6)]
EVENTS = [
    ClusterEvent(R.NODE, A.ADD),
    ClusterEvent(R.NODE, A.UPDATE_NODE_LABEL),
    ClusterEvent(R.NODE, A.UPDATE_NODE_TAINT),
    ClusterEvent(R.PERSISTENT_VOLUME, A.ADD),
]


def gates(pod: Pod) -> Status | None:
    return unschedulable("gated") if pod.pod_spec.scheduling_gates else None


def red(pod: Pod, old: Any, new: Any) -> QueueingHint:
    return QUEUE if pod.labels.get("color") == "red" else QUEUE_SKIP


def is_own(pod: Pod, old: Any, new: Any) -> QueueingHint:
    return QUEUE if isinstance(new, Pod) and new.uid == pod.uid else QUEUE_SKIP


HINTS = {
    "default-scheduler": {
        "Gates": hints_of([on(R.POD, A.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, is_own)]),
        "Fit": hints_of(
            [on(R.NODE, A.ADD, red, by_signature=True), on(R.POD, A.UPDATE_POD_LABEL, is_own, by_signature=True)]
        ),
        "Taints": hints_of([on(R.NODE, A.ADD | A.UPDATE_NODE_TAINT), on(R.POD, A.UPDATE_POD_TOLERATION, is_own)]),
        "Permit": hints_of([on(R.NODE, A.UPDATE_NODE_LABEL, red)]),
    }
}


def make(name: str, uid: str, color: str, gated: bool, tolerations: int) -> Pod:
    spec: dict[str, Any] = {"priority": len(color), "containers": [], "tolerations": [{}] * tolerations}
    if gated:
        spec["schedulingGates"] = [{"name": "g"}]
    meta = {"name": name, "namespace": "d", "uid": uid, "labels": {"color": color}}
    return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": spec})


class QueueMachine(RuleBasedStateMachine):
    pods = Bundle("pods")  # pods in flight, as names and uids
    aligned = True

    def __init__(self) -> None:
        super().__init__()
        options: Any = dict(hints=HINTS, pre_enqueue={"default-scheduler": {"Gates": gates}})
        self.queue = SchedulingQueue(QueueSettings(pop_from_backoff_q=self.aligned), **options)
        self.plain = SchedulingQueue(QueueSettings(pop_from_backoff_q=self.aligned), one_by_one=True, **options)
        self.now = 0
        self.made = 0
        self.exists: dict[str, Pod] = {}
        self.flying: dict[str, tuple[QueuedPod, QueuedPod]] = {}  # by uid

    def both(self, act: Any) -> None:
        self.now += 1
        act(self.queue)
        act(self.plain)

    @rule(name=st.sampled_from(NAMES), color=st.sampled_from(["red", "blue"]), gated=st.booleans())
    def create(self, name: str, color: str, gated: bool) -> None:
        if name not in self.exists:
            self.made += 1
            pod = self.exists[name] = make(name, f"uid-{self.made}", color, gated, 0)
            self.both(lambda queue: queue.add(pod, self.now))

    @rule(name=st.sampled_from(NAMES), change=st.sampled_from(["color", "tolerate", "ungate", "status", "nominate"]))
    def update(self, name: str, change: str) -> None:
        old = self.exists.get(name)
        if old is None:
            return
        raw = old.raw
        if change == "color":
            raw = with_fields(raw, "metadata", labels={"color": "red"})
        elif change == "tolerate":
            raw = with_fields(raw, "spec", tolerations=[*raw["spec"]["tolerations"], {}])
        elif change == "ungate":
            raw = with_fields(raw, "spec", schedulingGates=None)
        elif change == "nominate":
            raw = with_fields(raw, "status", nominatedNodeName="n")
        else:
            raw = with_fields(raw, "status", reason=f"at {self.now}")
        new = self.exists[name] = Pod.from_raw(raw)
        self.both(lambda queue: queue.update(old, new, self.now))

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        pod = self.exists.pop(name, None)
        if pod is not None:
            self.both(lambda queue: queue.delete(pod, self.now))

    @rule(names=st.sets(st.sampled_from(NAMES), max_size=3))
    def activate(self, names: set[str]) -> None:
        pods = [self.exists[name] for name in sorted(names) if name in self.exists]
        self.both(lambda queue: queue.activate(pods, self.now))

    @rule(target=pods)
    def pop(self) -> Any:
        self.now += 1
        ready = self.queue.ready
        entry, same = self.queue.pop(self.now), self.plain.pop(self.now)
        assert (entry is None) == (same is None) == (not ready)
        if entry is None or same is None:
            return multiple()
        assert entry.key == same.key
        assert self.exists[entry.pod.name].uid == entry.uid
        self.flying[entry.uid] = (entry, same)
        return entry.uid

    @rule(
        uid=consumes(pods),
        unschedulable_plugins=st.frozensets(st.sampled_from(["Fit", "Taints"])),
        pending=st.frozensets(st.just("Permit")),
    )
    def fail(self, uid: str, unschedulable_plugins: frozenset[str], pending: frozenset[str]) -> None:
        entries = self.flying.pop(uid)
        current = self.exists.get(entries[0].pod.name)
        if current is None or current.uid != uid:
            self.both(lambda queue: queue.done(uid, self.now))
            return
        self.now += 1
        for queue, entry in zip((self.queue, self.plain), entries, strict=True):
            entry.pod = current
            entry.unschedulable_plugins, entry.pending_plugins = unschedulable_plugins, pending
            assert queue.add_unschedulable_if_not_present(entry, self.now) is entry.place

    @rule(uid=consumes(pods))
    def bind(self, uid: str) -> None:
        entry, _ = self.flying.pop(uid)
        current = self.exists.get(entry.pod.name)
        if current is not None and current.uid == uid:
            del self.exists[entry.pod.name]
            self.both(lambda queue: queue.delete(current, self.now))
        self.both(lambda queue: queue.done(uid, self.now))

    @rule(event=st.sampled_from(EVENTS))
    def happen(self, event: ClusterEvent) -> None:
        self.both(lambda queue: queue.move_all_to_active_or_backoff(event, None, None, self.now))

    @rule(seconds=st.sampled_from([1, 1, 1, 2, 11, 300]))
    def time_passes(self, seconds: int) -> None:
        for _ in range(min(seconds, 12)):
            due = self.queue.next_flush()
            self.now = (self.now // SECOND + 1) * SECOND
            moved = self.queue.flush_backoff(self.now)
            assert bool(moved) <= (due is not None and due <= self.now)
            self.plain.flush_backoff(self.now)
            assert self.queue.next_flush() is None or self.queue.next_flush() > self.now
        self.now += max(0, seconds - 12) * SECOND
        due = self.queue.next_leftover()
        moved = self.queue.flush_unschedulable_leftover(self.now)
        assert bool(moved) <= (due is not None and due < self.now)
        self.plain.flush_unschedulable_leftover(self.now)

    @invariant()
    def every_pod_is_in_one_place(self) -> None:
        queue = self.queue
        found: dict[str, SubQueue] = {}
        for place in SubQueue:
            for entry in queue.entries(place) if place is not SubQueue.OUTSIDE else []:
                assert entry.place is place
                assert entry.uid not in found, f"{entry.key} is in {place} and in {found[entry.uid]}"
                found[entry.uid] = place
        wanted = {pod.uid for pod in self.exists.values()} | set(self.flying)
        assert found.keys() == wanted
        assert sum(queue.counts().values()) == len(found)
        assert {entry.uid for entry in queue.entries()} == wanted - set(self.flying)

    @invariant()
    def the_index_changes_nothing(self) -> None:
        assert self.queue.counts() == self.plain.counts()
        for place in SubQueue:
            if place is not SubQueue.OUTSIDE:
                ours = {entry.key: queue_facts(entry) for entry in self.queue.entries(place)}
                assert ours == {entry.key: queue_facts(entry) for entry in self.plain.entries(place)}

    @invariant()
    def gated_pods_are_those_whose_gates_are_shut(self) -> None:
        for entry in self.queue.entries():
            assert entry.gated == (entry.place is SubQueue.GATED)
            if entry.gated:
                assert entry.gating_plugin == "Gates"

    @invariant()
    def events_are_kept_only_while_pods_fly(self) -> None:
        assert self.flying or self.queue.events_kept == 0


def queue_facts(entry: QueuedPod) -> Any:
    return (
        entry.timestamp,
        entry.attempts,
        entry.unschedulable_count,
        entry.consecutive_errors,
        entry.unschedulable_plugins,
        entry.pending_plugins,
        entry.gating_plugin,
    )


class UnalignedQueueMachine(QueueMachine):
    aligned = False


QueueMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
UnalignedQueueMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=60, deadline=None)
TestQueue = QueueMachine.TestCase
TestQueueWithoutEarlyPops = UnalignedQueueMachine.TestCase
