"""Tests of completed attempts: preemption that begins, resizes, and what a rejection after Reserve takes back."""

from typing import Any

import pytest

from kschedd.api.pods import Pod
from kschedd.framework.interface import PostFilterResult
from kschedd.framework.status import Code, Status, error, unschedulable
from kschedd.framework.writes import Delete, Plan
from kschedd.queue.entry import NO_PLUGINS, QueuedPod
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.machine import SchedulingMachine
from tests.scheduling.test_scheduler import attempt, machine, node, plugin, pod

GONE, VICTIM = Delete("Pod", "default", "v", "uid-v"), pod("v")
REJECTED = FailedAttempt(QueuedPod(pod(), "default/p", 0), "Unschedulable", "no cpu", NO_PLUGINS, NO_PLUGINS, "a")


def complete(made: SchedulingMachine, of: Pod) -> AssumedPod | FailedAttempt:
    return made.completion.complete(QueuedPod(of, of.key, 0), attempt(made, of), 0.0)


@pytest.mark.parametrize(
    ("fields", "evicts", "deleted"),
    [
        pytest.param({"victims": (VICTIM,), "writes": (GONE,)}, True, ["v"], id="deleted"),
        pytest.param({"victims": (VICTIM,), "rejected": (VICTIM,)}, True, ["v"], id="rejected-at-permit"),
        pytest.param({"victims": (VICTIM,), "cancelled": (VICTIM,)}, True, ["v"], id="cancelled"),
        pytest.param({"victims": (VICTIM,)}, False, ["v"], id="nothing-to-do"),
        pytest.param({"writes": (GONE,)}, False, [], id="no-victims"),
    ],
)
def test_a_preemptor_is_woken_by_the_end_of_victims_that_it_evicts(
    fields: dict[str, Any], evicts: bool, deleted: list[str]
) -> None:
    post = PostFilterResult(Status(Code.SUCCESS), "a", **fields)
    begun = machine().completion.evict(REJECTED, post, 0.0)
    assert (begun.evicts, [one.name for one in begun.victims]) == (evicts, deleted)
    assert begun.writes == fields.get("writes", ())
    assert begun.in_memory == frozenset()


def test_a_pod_whose_resize_fits_is_not_assumed_again() -> None:
    made, wanted = machine(), pod("p")
    result = attempt(made, wanted)
    result.state.resizes = True
    failed = made.completion.complete(QueuedPod(wanted, wanted.key, 0), result, 0.0)
    assert isinstance(failed, FailedAttempt)
    assert (failed.reason, failed.message) == (
        "SchedulerError",
        "pod uid-p(default/p) is in the cache, so can't be assumed",
    )
    assert not made.cluster.is_assumed(wanted)


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [
        (unschedulable("no seat"), "Unschedulable", "0/1 nodes are available: 1 no seat."),
        (error("broken"), "SchedulerError", 'running {} plugin "Last": broken'),
    ],
)
@pytest.mark.parametrize("point", ["reserve", "permit"])
def test_a_rejection_unreserves_in_reverse_order_and_returns_the_writes(
    point: str, status: Status, reason: str, message: str
) -> None:
    called: list[str] = []

    def unreserving(name: str) -> Any:
        def unreserve(state: Any, pod: Pod, node_name: str) -> Plan:
            called.append(name)
            return Plan((Delete("ConfigMap", "default", name, ""),))

        return unreserve

    def accepts(state: Any, pod: Pod, node_name: str) -> None:
        return None

    def rejects(state: Any, pod: Pod, node_name: str) -> Status:
        return status

    made = machine(
        plugin("First", reserve=accepts, unreserve=unreserving("First")),
        plugin("Last", **{"reserve": accepts, point: rejects}, unreserve=unreserving("Last")),
        nodes=[node("a")],
    )
    failed = complete(made, pod("p"))
    assert isinstance(failed, FailedAttempt)
    assert (failed.reason, failed.message) == (reason, message.format(point.capitalize()))
    assert called == ["Last", "First"]
    assert [write.name for write in failed.writes if isinstance(write, Delete)] == ["Last", "First"]
    assert failed.unschedulable_plugins == ({"Last"} if status.rejected else set())
    assert not made.cluster.is_assumed(pod("p"))
    assert made.cluster.pod_count == 0
