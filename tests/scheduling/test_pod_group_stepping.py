"""The cycle of a PodGroup under the debugger: it is one step, stopped before and after, never within."""

from typing import Any

import pytest

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.config.kube_versions import V1_36
from kschedd.config.load import default_config
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.breakpoints import BreakpointSpec
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.work import drive
from kschedd.store.log import ADDED, WatchEvent
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
    """Two gangs of two pods, which the queue has handed out: a and b, then c and d."""

    def __init__(self) -> None:
        machine = SchedulingMachine(default_config(version=V1_36, feature_gates=GATES), seed=1)
        self.driver = SchedulingDriver(machine)
        self.debugger = self.driver.debugger
        for raw in (
            node(cpu="8"),
            group("gang"),
            group("other"),
            *(member(name) for name in "ab"),
            *(member(name, "other") for name in "cd"),
        ):
            new = parse(raw)
            self.driver.observe((WatchEvent(ADDED, None, new, 1),))
            if isinstance(new, Pod):
                self.driver.popped([QueuedPod(new, new.key, len(self.driver.popped_entries), attempts=1)])

    def goes_on(self) -> str:
        """Run the cycle that is next; whose it was. "" if none may begin."""
        entry = self.driver.next_popped(NOW)
        if entry is None:
            return ""
        drive(self.driver.group_cycle(entry, lambda: NOW))
        return entry.pod.pod_group

    @property
    def stop(self) -> tuple[str, str]:
        """Why it is stopped, and the pod that is next."""
        stop, head = self.debugger.stop, self.driver.head
        return "" if stop is None else stop.why, "" if head is None else head.pod.name


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
    assert sorted(run.driver.binding_cycles) == ["uid-a", "uid-b", "uid-c", "uid-d"]


def test_a_breakpoint_stops_a_group_once() -> None:
    run = Popped()
    made = run.debugger.add(BreakpointSpec(pod="default/[ab]"))
    assert run.goes_on() == ""
    run.debugger.resume()
    assert [run.goes_on(), run.goes_on()] == ["default/gang", "default/other"]
    assert made.hits == 1


def test_next_stops_before_a_group_and_behind_it() -> None:
    run = Popped()
    run.debugger.pause(NOW)
    run.debugger.next()
    assert (run.goes_on(), run.stop) == ("", ("next", "a"))
    run.debugger.next()
    assert (run.goes_on(), run.stop) == ("default/gang", ("next", "c"))


def test_step_counts_the_cycle_of_a_group_as_one_attempt() -> None:
    run = Popped()
    run.debugger.pause(NOW)
    run.debugger.step(1)
    assert [run.goes_on(), run.goes_on()] == ["default/gang", ""]
    assert run.stop == ("step", "c")
