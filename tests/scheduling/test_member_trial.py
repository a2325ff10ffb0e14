"""Tests of pods of a PodGroup on trial: what the trial assumes, and that the cluster is the same after it."""

from typing import Any

import attrs
import pytest

from kschedd.api.pods import Pod
from kschedd.framework.status import Code, Status, error
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.gangs.trial import MemberTrial
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.nominations.nominator import Nominator
from tests.scheduling.test_scheduler import attempt, machine, node, plugin, pod


def entry(of: Pod) -> QueuedPod:
    return QueuedPod(of, of.key, 0)


def running(name: str, cpu: str) -> Pod:
    return attrs.evolve(pod(name, cpu=cpu, priority=-5), node_name="a")


def on_a(made: SchedulingMachine) -> list[str]:
    table = made.cluster.table
    return sorted(each.name for each in table.pods[table.row_of["a"]])


def trial_in(made: SchedulingMachine, nominator: Nominator | None = None, counted: bool = False) -> MemberTrial:
    return MemberTrial(made, nominator or Nominator(), 0.0, counted)


def test_a_pod_that_fits_is_on_its_node_until_the_end_of_the_trial() -> None:
    made = machine(nodes=[node("a")])
    trial = trial_in(made)
    before = made.cluster.table.requested.copy()
    member = trial.place(entry(pod("p")), attempt(made, pod("p")))
    assert (member.node_name, member.failed, member.permit, member.preempts) == ("a", None, None, False)
    assert on_a(made) == ["p"]
    trial.undo()
    assert on_a(made) == []
    assert (made.cluster.table.requested == before).all()
    trial.again(member)
    assert on_a(made) == ["p"]
    trial.undo()
    assert on_a(made) == []


def test_a_pod_that_fits_nowhere_is_on_no_node_and_not_tried_again() -> None:
    made = machine(nodes=[node("a")])
    trial = trial_in(made)
    member = trial.place(entry(pod("p", cpu="9")), attempt(made, pod("p", cpu="9")))
    assert member.failed is not None
    assert (member.node_name, member.failed.reason, member.preempts) == ("", "Unschedulable", False)
    trial.again(member)
    assert on_a(made) == []


@pytest.mark.parametrize("terminating", ["", "2026-01-01T00:00:00Z"], ids=["all-run", "one-terminates-already"])
def test_a_pod_that_preempts_is_on_its_node_without_its_victims(terminating: str) -> None:
    made = machine(nodes=[node("a")])
    for victim in (running("v1", "4"), attrs.evolve(running("v2", "3"), deletion_timestamp=terminating)):
        made.cluster.put(victim)
    wanted = pod("p", cpu="8", priority=9)
    made.handle.current_pod = lambda key: wanted
    before = made.cluster.table.requested.copy()
    trial = trial_in(made)
    member = trial.place(entry(wanted), attempt(made, wanted))
    assert member.failed is not None
    assert (member.node_name, member.preempts) == ("a", True)
    assert on_a(made) == ["p"]
    trial.undo()
    assert on_a(made) == ["v1", "v2"]
    assert (made.cluster.table.requested == before).all()
    trial.again(member)
    assert on_a(made) == ["p"]
    trial.undo()
    assert on_a(made) == ["v1", "v2"]


@pytest.mark.parametrize("counted", [False, True])
def test_a_nomination_ends_with_the_trial_of_its_pod_and_is_there_again_after_it(counted: bool) -> None:
    made, nominator, wanted = machine(nodes=[node("a"), node("b")]), Nominator(), pod("p")
    nominator.add(wanted, "b")
    trial = trial_in(made, nominator, counted)
    trial.place(entry(wanted), attempt(made, wanted))
    assert nominator.node_of(wanted.uid) == ""
    trial.undo()
    assert nominator.node_of(wanted.uid) == "b"
    [nominated] = nominator.on_node("b")
    assert nominated.raw["spec"] == ({} if counted else wanted.raw["spec"]), "in no queue, only the name is known"


def test_a_pod_that_reserve_rejects_is_on_no_node() -> None:
    def reserve(state: Any, pod: Pod, node_name: str) -> Status:
        return error("no seat")

    made = machine(plugin("Seats", reserve=reserve, unreserve=lambda state, pod, node_name: None), nodes=[node("a")])
    member = trial_in(made).place(entry(pod("p")), attempt(made, pod("p")))
    assert member.failed is not None
    assert (member.node_name, member.failed.reason) == ("", "SchedulerError")
    assert "no seat" in member.failed.message
    assert on_a(made) == []


@pytest.mark.parametrize("counted", [False, True])
def test_permit_makes_no_pod_wait_and_is_not_called_where_the_group_is_counted(counted: bool) -> None:
    called: list[str] = []

    def permit(state: Any, pod: Pod, node_name: str) -> tuple[Status, float]:
        called.append(pod.name)
        return Status(Code.WAIT), 30.0

    made = machine(plugin("Waits", permit=permit), nodes=[node("a")])
    trial = trial_in(made, counted=counted)
    member = trial.place(entry(pod("p")), attempt(made, pod("p")))
    assert not made.waiting.pods
    assert called == ([] if counted else ["p"])
    assert (member.permit is None) == counted
    if member.permit is not None:
        reason = 'one or more plugins asked to wait and no plugin rejected pod "p"'
        assert member.permit == Status(Code.WAIT, (reason,))
    trial.undo()
    trial.again(member)
    assert not made.waiting.pods
    assert on_a(made) == ["p"]
