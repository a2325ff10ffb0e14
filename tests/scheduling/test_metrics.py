"""Metrics of attempts and bindings: what the driver counts, told by hand what happens."""

from typing import Any

from kschedd.framework.status import Code, Status
from kschedd.metrics.instruments import Distribution
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.work import drive
from tests.scheduling.driven import NOW, Driven, node, pod


def shown(driver: SchedulingDriver) -> dict[str, Any]:
    """The samples of each family; of distributions how many were observed, and their sum."""
    return {
        family.metric.name: {
            labels: (each.count, round(each.sum, 6)) if isinstance(each, Distribution) else each
            for labels, each in family.samples.items()
        }
        for family in driver.metrics()
    }


def test_a_pod_that_is_bound() -> None:
    run = Driven()
    run.see(node(), pod("p"))
    entry = run.entry("p")
    entry.initial_attempt = int((NOW - 5) * 1e9)
    attempt = run.driver.begin(entry)
    assert attempt is not None
    run.driver.complete_attempt(entry, drive(attempt), NOW, 0.25)
    assert shown(run.driver)["scheduler_goroutines"] == {("binding",): 1}
    run.driver.plan_executed("uid-p", None, NOW + 1)
    found = shown(run.driver)
    assert found["scheduler_schedule_attempts_total"] == {("scheduled", "default-scheduler"): 1}
    assert found["scheduler_scheduling_attempt_duration_seconds"] == {("scheduled", "default-scheduler"): (1, 1.25)}
    assert found["scheduler_scheduling_algorithm_duration_seconds"] == {(): (1, 0.25)}
    assert found["scheduler_pod_scheduling_sli_duration_seconds"] == {("1",): (1, 6.0)}
    assert found["scheduler_pod_scheduling_attempts"] == {(): (1, 1)}
    assert found["scheduler_cache_size"] == {("nodes",): 1, ("pods",): 1, ("assumed_pods",): 1}
    points = {labels[:2] for labels in found["scheduler_framework_extension_point_duration_seconds"]}
    assert points == {
        (point, "Success") for point in ("PreFilter", "Filter", "Reserve", "Permit", "PreBind", "Bind", "PostBind")
    }


def test_a_pod_that_finds_no_node() -> None:
    run = Driven()
    run.see(node("a"), node("b"), pod("p", cpu="2"))
    run.attempt("p")
    found = shown(run.driver)
    assert found["scheduler_schedule_attempts_total"] == {("unschedulable", "default-scheduler"): 1}
    assert found["scheduler_preemption_attempts_total"] == {(): 1}
    assert found["scheduler_preemption_victims"] == {(): (0, 0)}
    assert found["kschedd_filter_rejections_total"] == {("NodeResourcesFit", "Insufficient cpu"): 2}
    assert ("PostFilter", "Unschedulable", "default-scheduler") in found[
        "scheduler_framework_extension_point_duration_seconds"
    ]


def test_a_preemption_counts_its_victims() -> None:
    run = Driven()
    run.see(node(), pod("low", on="n"), pod("high", priority=10))
    run.attempt("high")
    assert shown(run.driver)["scheduler_preemption_victims"] == {(): (1, 1)}


class _Fails:
    name = "Fails"

    def reserve(self, state: object, pod: object, node_name: str) -> Status:
        return Status(Code.ERROR, ("no",))

    def unreserve(self, state: object, pod: object, node_name: str) -> None: ...


def test_an_attempt_that_ends_in_an_error() -> None:
    run = Driven(_Fails)
    run.see(node(), pod("p"))
    run.attempt("p")
    found = shown(run.driver)
    assert found["scheduler_schedule_attempts_total"] == {("error", "default-scheduler"): 1}
    times = found["scheduler_framework_extension_point_duration_seconds"]
    assert times["Reserve", "Error", "default-scheduler"] == (1, 0.001)
