"""Tests of the metrics of the scheduler's writes."""

from kschedd.actors.scheduler.api_call_metrics import ApiCallMetrics, Outcomes
from kschedd.metrics.instruments import Distribution


def test_writes_are_pending_and_then_counted_by_what_came_of_them() -> None:
    metrics = ApiCallMetrics()
    metrics.began(bindings=3, patches=2)
    pending = {family.metric.name: family.samples for family in metrics.families({})}
    assert pending["scheduler_pending_async_api_calls"] == {("pod_binding",): 3, ("pod_status_patch",): 2}
    metrics.ended(0.5, Outcomes(2, 1), Outcomes(2, 0), {"pod": Outcomes(1, 0), "podgroup": Outcomes(0, 2)})
    found = {family.metric.name: family.samples for family in metrics.families({})}
    assert found["scheduler_pending_async_api_calls"] == {("pod_binding",): 0, ("pod_status_patch",): 0}
    assert found["scheduler_async_api_call_execution_total"] == {
        ("pod_binding", "success"): 2,
        ("pod_binding", "error"): 1,
        ("pod_status_patch", "success"): 2,
    }
    took = found["scheduler_async_api_call_execution_duration_seconds"]["pod_binding", "success"]
    assert isinstance(took, Distribution)
    assert (took.count, took.sum) == (2, 1.0)
    assert found["scheduler_preemption_goroutines_execution_total"] == {("success",): 1, ("error",): 2}
    executions = found["scheduler_preemption_execution_duration_seconds"]
    assert {labels: getattr(one, "count", 0) for labels, one in executions.items()} == {
        ("pod", "success"): 1,
        ("podgroup", "error"): 2,
    }


def test_they_are_shown_with_their_feature_gates() -> None:
    gates = {"SchedulerAsyncAPICalls": False, "SchedulerAsyncPreemption": False}
    shown = [family.metric.name for family in ApiCallMetrics().families(gates)]
    assert shown == ["scheduler_preemption_execution_duration_seconds"]
