"""Tests of a PodGroup's cycle in the debugger: stops before, between the pods, and after, none within an attempt."""

from collections.abc import Iterator
from typing import Any

import pytest

from kschedd.answers import plain
from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.config.loading.load import default_config
from kschedd.config.versions.kube_versions import V1_36
from kschedd.queue.entry import QueuedPod
from kschedd.queue.snapshot import EntryCopies
from kschedd.scheduling.debug.breakpoints import BreakpointSpec, StopPoint
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.inputs import BeginGroupCycle, Observe, PodsPopped
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.snapshots.fork import DriverSnapshot
from kschedd.scheduling.stops.view import where
from kschedd.store.objects.log import ADDED, WatchEvent
from tests.scheduling.driven import NOW, node, pod

GATES = {"GenericWorkload": True, "GangScheduling": True}


def member(name: str, group: str = "gang") -> dict[str, Any]:
    raw = pod(name, labels={"app": name})
    raw["spec"]["schedulingGroup"] = {"podGroupName": group}
    return raw


def group(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }


class Popped:
    """Two PodGroups of two pods each, popped from the queue: a and b, then c and d."""

    def __init__(self, cpu: str = "8") -> None:
        machine = SchedulingMachine(default_config(version=V1_36, feature_gates=GATES), seed=1)
        self.driver = SchedulingDriver(machine)
        self.debugger = self.driver.debugger
        for raw in (
            node(cpu=cpu),
            group("gang"),
            group("other"),
            *(member(name) for name in "ab"),
            *(member(name, "other") for name in "cd"),
        ):
            new = parse(raw)
            self.driver.step(Observe((WatchEvent(ADDED, None, new, 1),)))
            if isinstance(new, Pod):
                self.driver.step(PodsPopped([QueuedPod(new, new.key, len(self.driver.popped.entries), attempts=1)]))

    def goes_on(self) -> str:
        """Run the next cycle to its end; return its group. "" if none may begin."""
        entry = self.driver.popped.take(NOW)
        if entry is None:
            return ""
        drive(self.driver.step(BeginGroupCycle(entry, lambda: NOW)))
        return entry.pod.pod_group

    def stops(self) -> Iterator[StopPoint]:
        """Run the next cycle and yield each stop."""
        entry = self.driver.popped.take(NOW)
        assert entry is not None
        for at in self.driver.step(BeginGroupCycle(entry, lambda: NOW)):
            assert isinstance(at, StopPoint)
            yield at

    @property
    def assumed(self) -> list[str]:
        return sorted(pod.name for pod in self.driver.machine.cluster.assumed_pods())

    @property
    def stop(self) -> tuple[str, str]:
        """Return the reason for the stop, and the next pod."""
        stop, head = self.debugger.stop, self.driver.popped.head
        return "" if stop is None else stop.why, "" if head is None else head.pod.name


def placed(run: Popped) -> dict[str, str]:
    return {pod.name: pod.node_name for pod in run.driver.machine.cluster.assumed_pods()}


@pytest.mark.parametrize(
    "spec",
    [BreakpointSpec(pod="default/b"), BreakpointSpec(selector="app=b"), BreakpointSpec(condition="attempt == 1")],
)
def test_a_breakpoint_that_matches_a_member_stops_before_the_cycle_of_its_group(spec: BreakpointSpec) -> None:
    run = Popped()
    made = run.debugger.add(spec)
    assert run.goes_on() == ""
    assert run.stop == ("breakpoint 1", "a")
    run.debugger.delete(made.number)
    run.debugger.resume()
    assert [run.goes_on(), run.goes_on()] == ["default/gang", "default/other"]
    assert sorted(run.driver.bindings.cycles) == ["uid-a", "uid-b", "uid-c", "uid-d"]


def test_a_breakpoint_stops_a_group_once() -> None:
    run = Popped()
    made = run.debugger.add(BreakpointSpec(pod="default/[ab]"))
    assert run.goes_on() == ""
    run.debugger.resume()
    assert [run.goes_on(), run.goes_on()] == ["default/gang", "default/other"]
    assert made.hits == 1


@pytest.mark.parametrize("stops", [0, 1])
def test_pods_on_trial_activate_no_pods_before_or_after_a_stop(stops: int) -> None:
    run = Popped()
    activated: list[list[str]] = []
    run.driver.machine.handle.activate = lambda pods: activated.append([pod.name for pod in pods])
    if stops:
        run.debugger.next()
        assert run.goes_on() == ""
        run.debugger.next()
        for at in run.stops():
            assert (at.pod.name, activated) == ("b", [])
            run.debugger.resume()
    else:
        run.goes_on()
    assert activated == [["b"]], "when the first pod is placed for good"


def test_next_stops_before_a_group_before_each_pod_of_it_and_behind_it() -> None:
    run = Popped()
    run.debugger.pause(NOW)
    run.debugger.next()
    assert (run.goes_on(), run.stop) == ("", ("next", "a"))
    run.debugger.next()
    for at in run.stops():
        assert at.pod.name == "b", "before the first it was stopped already"
        shown = plain(where(run.driver, 10))
        assert shown["stopped"]["pod"] == "default/b"
        assert shown["group"] == [{"pod": "default/a", "node": "n", "why": None}]
        assert run.assumed == [], "nobody sees a pod on a node on trial"
        run.debugger.next()
    assert run.stop == ("next", "c")
    assert run.assumed == ["a", "b"]
    assert plain(where(run.driver, 10))["group"] is None


def test_stopped_within_it_a_group_is_placed_as_it_would_be() -> None:
    run, stepped = Popped(), Popped()
    run.goes_on()
    stepped.debugger.pause(NOW)
    stepped.debugger.next()
    stepped.goes_on()
    stepped.debugger.next()
    for _ in stepped.stops():
        stepped.debugger.next()
    assert placed(run) == placed(stepped) == {"a": "n", "b": "n"}


def _operations(run: Popped) -> list[str]:
    return [type(one).__name__ for one in run.driver.take_effects().queue]


def test_permit_activates_pods_outside_the_trial_only() -> None:
    run, stepped = Popped(), Popped()
    activate = stepped.driver.machine.handle.activate
    for each in (run, stepped):
        each.driver.take_effects()
    run.goes_on()
    stepped.debugger.pause(NOW)
    stepped.debugger.next()
    stepped.goes_on()
    stepped.debugger.next()
    for _ in stepped.stops():
        assert stepped.driver.machine.handle.activate is activate
        stepped.debugger.next()
    assert stepped.driver.machine.handle.activate is activate
    assert _operations(stepped) == _operations(run)


def test_a_group_of_which_not_all_fit_comes_to_nothing_after_stops_as_well() -> None:
    run = Popped(cpu="1")
    run.debugger.pause(NOW)
    run.debugger.next()
    run.goes_on()
    run.debugger.next()
    for at in run.stops():
        assert at.pod.name == "b"
        run.debugger.step(1)
    assert run.assumed == []
    assert run.goes_on() == "", "the step has ended with the group"
    assert run.stop == ("step", "c")


def test_the_pods_of_a_group_are_tried_in_order_of_time_however_often_they_were_tried() -> None:
    run = Popped()
    for entry in run.driver.popped.entries:
        entry.attempts = 9 if entry.pod.name == "b" else 1
    run.debugger.pause(NOW)
    run.debugger.next()
    assert (run.goes_on(), run.stop) == ("", ("next", "a"))
    run.debugger.next()
    after_the_first = []
    for at in run.stops():
        after_the_first.append(at.pod.name)
        run.debugger.next()
    assert after_the_first == ["b"]


def test_a_fork_of_a_group_that_is_stopped_within_begins_it_again() -> None:
    run = Popped()
    run.debugger.pause(NOW)
    run.debugger.next()
    run.goes_on()
    run.debugger.next()
    for _ in run.stops():
        taken = DriverSnapshot.of(run.driver)
        assert not taken.cluster.assumed_pods()
        assert [entry.pod.name for entry in taken.popped] == ["a", "b", "c", "d"]
        run.debugger.resume()
    assert run.assumed == ["a", "b"]


def test_a_fork_of_a_group_stopped_within_stops_before_the_same_pod() -> None:
    run = Popped()
    run.debugger.pause(NOW)
    run.debugger.next()
    run.goes_on()
    run.debugger.next()
    stops = run.stops()
    assert next(stops).pod.name == "b"
    taken = DriverSnapshot.of(run.driver)
    fork = taken.restored(EntryCopies(taken.states), None, lambda pod: False, NOW, stopped=True)
    entry = fork.popped.take(NOW)
    assert entry is not None
    cycle = fork.step(BeginGroupCycle(entry, lambda: NOW))
    assert next(cycle).pod.name == "b"
    assert fork.debugger.stop is not None
    assert [each.entry.pod.name for each in fork.attempts.group_tried] == ["a"]
    fork.debugger.resume()
    assert list(cycle) == []
    assert sorted(pod.name for pod in fork.machine.cluster.assumed_pods()) == ["a", "b"]
    stops.close()


def test_a_cycle_that_is_given_up_where_it_is_stopped_leaves_nothing() -> None:
    run = Popped()
    run.debugger.pause(NOW)
    run.debugger.next()
    run.goes_on()
    run.debugger.next()
    stops = run.stops()
    next(stops)
    stops.close()
    assert run.assumed == []


def test_step_counts_the_cycle_of_a_group_as_one_attempt() -> None:
    run = Popped()
    run.debugger.pause(NOW)
    run.debugger.step(1)
    assert [run.goes_on(), run.goes_on()] == ["default/gang", ""]
    assert run.stop == ("step", "c")
