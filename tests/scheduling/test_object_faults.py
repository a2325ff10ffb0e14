"""Tests that an object which the scheduler's cache or queue cannot process is left out, and all others are kept."""

from typing import Any

import pytest

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.cache.counts import PodCounts
from kschedd.cache.table import NodeTable
from kschedd.config.loading.load import default_config
from kschedd.queue.event_handlers import EventHandlers
from kschedd.queue.scheduling_queue import SchedulingQueue
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.inputs import Observe
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.nominations.pending import PendingPods
from kschedd.store.objects.log import ADDED, DELETED, EventType, WatchEvent
from tests.actors.clusters import node, pod
from tests.scheduling import driven


def event(type_: EventType, old: Object | None, new: Object) -> WatchEvent:
    return WatchEvent(type_, old, new, new.resource_version)


def on_node(name: str) -> Pod:
    found = parse({**pod(name, nodeName="good"), "metadata": {"name": name, "namespace": "default", "uid": name}})
    assert isinstance(found, Pod)
    return found


@pytest.fixture
def tripping(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Make functions of the cache fail for these names of nodes and pods."""
    names = {"bad"}
    set_images, add = NodeTable._set_images, PodCounts.add

    def odd_images(self: NodeTable, row: int, old: Node | None, new: Node) -> None:
        if new.name in names:
            raise OverflowError("too many images")
        set_images(self, row, old, new)

    def odd_pod(self: PodCounts, row: int, pod: Pod, sign: int) -> None:
        if pod.name in names and sign > 0:
            raise ValueError("not to be counted")
        add(self, row, pod, sign)

    monkeypatch.setattr(NodeTable, "_set_images", odd_images)
    monkeypatch.setattr(PodCounts, "add", odd_pod)
    return names


def test_a_node_that_cannot_be_taken_in_is_not_there_and_comes_later(tripping: set[str]) -> None:
    machine = SchedulingMachine(default_config())
    nodes = [parse(node(name)) for name in ("good", "bad", "better")]
    machine.observe([event(ADDED, None, each) for each in nodes], 10.0)
    assert set(machine.cluster.table.row_of) == {"good", "better"}
    (fault,) = machine.faults.faults()
    assert (str(fault.ref), fault.component, fault.first_s) == ("Node/bad", "scheduler cache", 10.0)
    assert fault.why.startswith("OverflowError: too many images")

    tripping.clear()
    machine.observe([], 11.0)
    assert set(machine.cluster.table.row_of) == {"good", "bad", "better"}
    assert not machine.faults


def test_the_driver_takes_it_in_with_a_later_observation(tripping: set[str]) -> None:
    cluster = driven.Driven()
    cluster.see(driven.node("good"), driven.node("bad"))
    tripping.clear()
    cluster.driver.step(Observe(()), 2.0)
    assert set(cluster.machine.cluster.table.row_of) == {"good", "bad"}
    assert not cluster.machine.faults


def test_a_pending_pod_that_is_deleted_is_no_fault() -> None:
    cluster = driven.Driven()
    cluster.see(driven.pod("p"))
    cluster.goes("p")
    assert not cluster.machine.faults


def test_the_fault_of_a_pending_pod_ends_with_its_next_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def trip(self: PendingPods, pod: Pod) -> None:
        raise TypeError("cannot be kept")

    cluster = driven.Driven()
    with monkeypatch.context() as patched:
        patched.setattr(PendingPods, "put", trip)
        cluster.see(driven.pod("p"))
    assert [str(fault.ref) for fault in cluster.machine.faults.faults()] == ["Pod/default/p"]
    cluster.see(driven.pod("p", resourceVersion="2"))
    assert not cluster.machine.faults


def test_a_pod_that_cannot_be_counted_takes_nothing_of_its_node(tripping: set[str]) -> None:
    machine = SchedulingMachine(default_config())
    machine.observe([event(ADDED, None, parse(node("good")))])
    row = machine.cluster.table.row_of["good"]
    pods = {name: on_node(name) for name in ("a", "bad", "c")}
    machine.observe([event(ADDED, None, each) for each in pods.values()], 10.0)
    assert [fault.ref.name for fault in machine.faults.faults()] == ["bad"]
    assert {each.name for each in machine.cluster.table.pods[row]} >= {"a", "c"}

    machine.observe([event(DELETED, pods["bad"], pods["bad"]), event(DELETED, pods["a"], pods["a"])], 10.5)
    assert [each.name for each in machine.cluster.table.pods[row]] == ["c"]
    assert not machine.faults


def test_a_change_that_the_queue_trips_over_keeps_no_other_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = SchedulingMachine(default_config())
    queue = SchedulingQueue(sort_key=machine.sort_key())
    handlers = EventHandlers(queue, {"default-scheduler"})
    add = SchedulingQueue.add
    trips = {"bad"}

    def odd(self: SchedulingQueue, pod: Pod, now: int) -> Any:
        if pod.name in trips:
            raise TypeError("cannot be compared")
        return add(self, pod, now)

    monkeypatch.setattr(SchedulingQueue, "add", odd)
    for name in ("a", "bad", "c"):
        handlers.changed(None, parse({**pod(name), "metadata": {"name": name, "uid": name}}), 10**9)
    assert [str(fault.ref) for fault in handlers.faults.faults()] == ["Pod/bad"]
    trips.clear()
    handlers.changed(None, parse(node("n")), 3 * 10**9)
    popped = [queue.pop(3 * 10**9) for _ in range(3)]
    assert [entry.pod.name for entry in popped if entry is not None] == ["a", "c", "bad"]
    assert not handlers.faults


def test_a_kind_that_changes_between_two_versions_does_not_end_anything() -> None:
    queue = SchedulingQueue(sort_key=SchedulingMachine(default_config()).sort_key())
    handlers = EventHandlers(queue, {"default-scheduler"})
    handlers.changed(parse(node("web")), on_node("web"), 10**9)
    assert [fault.ref.name for fault in handlers.faults.faults()] == ["web"]


def test_a_pod_that_cannot_be_assumed_has_failed_and_the_next_one_goes_on(tripping: set[str]) -> None:
    cluster = driven.Driven()
    cluster.see(driven.node(cpu="1"), driven.pod("bad"), driven.pod("good"))
    failed = cluster.attempt("bad")
    assert isinstance(failed, FailedAttempt)
    assert (failed.reason, failed.message.split(" (")[0]) == ("SchedulerError", "ValueError: not to be counted")
    assert cluster.machine.cluster.pod("uid-bad") is None
    (waits,) = cluster.driver.take_effects().failures
    assert waits is failed
    assert isinstance(cluster.attempt("good"), AssumedPod)


def test_a_binding_that_trips_gives_its_node_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def trip(self: PendingPods, uid: str) -> None:
        raise KeyError(uid)

    cluster = driven.Driven()
    cluster.see(driven.node(cpu="1"), driven.pod("bad"), driven.pod("good"))
    with monkeypatch.context() as patched:
        patched.setattr(PendingPods, "release", trip)
        cluster.attempt("bad")
    effects = cluster.driver.take_effects()
    assert [failed.message.split(" (")[0] for failed in effects.failures] == ["KeyError: 'uid-bad'"]
    assert not cluster.driver.bindings.cycles
    assert isinstance(cluster.attempt("good"), AssumedPod)


def test_a_pending_pod_that_cannot_be_followed_keeps_no_other_from_being_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    put = PendingPods.put

    def trip(self: PendingPods, pod: Pod) -> None:
        if pod.name == "bad":
            raise ValueError("not to be followed")
        put(self, pod)

    cluster = driven.Driven()
    with monkeypatch.context() as patched:
        patched.setattr(PendingPods, "put", trip)
        cluster.see(driven.node(), driven.pod("bad"), driven.pod("good"))
    assert set(cluster.driver.pending.pods) == {"default/good"}
    (fault,) = cluster.machine.faults.faults()
    assert (str(fault.ref), fault.why.split(" (")[0]) == ("Pod/default/bad", "ValueError: not to be followed")

    cluster.machine.observe((), 2.0)
    assert set(cluster.driver.pending.pods) == {"default/good", "default/bad"}
    assert not cluster.machine.faults
