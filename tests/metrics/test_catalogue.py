"""Tests of /metrics against kube-scheduler's own list of metrics.

They compare names, types, labels, buckets and stability after a run that counts each metric.
"""

from itertools import accumulate, repeat
from operator import mul
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kschedd.metrics import catalogue
from kschedd.metrics.exposition import text_of
from kschedd.metrics.instruments import Metric, MetricFamily
from tests.apiserver.asking import PODS, asking, node, pod


def steps(start: float, factor: float, count: int) -> tuple[float, ...]:
    return tuple(accumulate(repeat(factor, count - 1), mul, initial=start))


SECONDS, SHORT, PLUGIN = steps(0.001, 2, 15), steps(0.0001, 2, 12), steps(0.00001, 1.5, 20)
OF_POD = "namespace pod node scheduler priority resource unit"
#: Kubernetes v1.34, scheduler/metrics/metrics.go, volumebinding/metrics/metrics.go, metrics/resources/resources.go,
#: component-base/metrics/prometheus/feature/metrics.go: name, type, labels, buckets, stability
KUBE_SCHEDULER = [
    ("scheduler_schedule_attempts_total", "counter", "result profile", (), "STABLE"),
    ("scheduler_event_handling_duration_seconds", "histogram", "event", SHORT, "ALPHA"),
    ("scheduler_scheduling_attempt_duration_seconds", "histogram", "result profile", SECONDS, "STABLE"),
    ("scheduler_scheduling_algorithm_duration_seconds", "histogram", "", SECONDS, "ALPHA"),
    ("scheduler_preemption_victims", "histogram", "", steps(1, 2, 7), "STABLE"),
    ("scheduler_preemption_attempts_total", "counter", "", (), "STABLE"),
    ("scheduler_pending_pods", "gauge", "queue", (), "STABLE"),
    ("scheduler_queued_entities", "gauge", "queue type", (), "ALPHA"),  # since 1.37
    ("scheduler_inflight_events", "gauge", "event", (), "ALPHA"),
    ("scheduler_goroutines", "gauge", "operation", (), "ALPHA"),
    ("scheduler_pod_scheduling_sli_duration_seconds", "histogram", "attempts", steps(0.01, 2, 20), "BETA"),
    ("scheduler_pod_scheduling_attempts", "histogram", "", steps(1, 2, 5), "STABLE"),
    ("scheduler_pod_scheduled_after_flush_total", "counter", "", (), "ALPHA"),  # since 1.36
    ("scheduler_batch_attempts_total", "counter", "profile result", (), "ALPHA"),  # since 1.35
    ("scheduler_batch_cache_flushed_total", "counter", "profile reason", (), "ALPHA"),  # since 1.35
    ("scheduler_batch_rescore_attempts_total", "counter", "profile", (), "ALPHA"),  # since 1.37
    ("scheduler_get_node_hint_duration_seconds", "histogram", "hinted profile", steps(0.00001, 2, 12), "ALPHA"),
    ("scheduler_store_schedule_results_duration_seconds", "histogram", "profile", steps(0.00001, 2, 12), "ALPHA"),
    ("scheduler_batch_rescore_duration_seconds", "histogram", "profile", steps(0.00001, 2, 12), "ALPHA"),
    (
        "scheduler_framework_extension_point_duration_seconds",
        "histogram",
        "extension_point status profile",
        SHORT,
        "STABLE",
    ),
    ("scheduler_plugin_execution_duration_seconds", "histogram", "plugin extension_point status", PLUGIN, "ALPHA"),
    ("scheduler_queueing_hint_execution_duration_seconds", "histogram", "plugin event hint", PLUGIN, "ALPHA"),
    ("scheduler_queue_incoming_pods_total", "counter", "queue event", (), "STABLE"),
    ("scheduler_queue_incoming_entities_total", "counter", "queue event type", (), "ALPHA"),  # since 1.37
    ("scheduler_permit_wait_duration_seconds", "histogram", "result", SECONDS, "ALPHA"),
    ("scheduler_cache_size", "gauge", "type", (), "ALPHA"),
    ("scheduler_unschedulable_pods", "gauge", "plugin profile", (), "ALPHA"),
    ("scheduler_plugin_evaluation_total", "counter", "plugin extension_point profile", (), "ALPHA"),
    ("scheduler_preemption_goroutines_duration_seconds", "histogram", "result", steps(0.01, 2, 20), "ALPHA"),
    ("scheduler_preemption_goroutines_execution_total", "counter", "result", (), "ALPHA"),
    ("scheduler_async_api_call_execution_total", "counter", "call_type result", (), "ALPHA"),
    ("scheduler_async_api_call_execution_duration_seconds", "histogram", "call_type result", SECONDS, "ALPHA"),
    ("scheduler_pending_async_api_calls", "gauge", "call_type", (), "ALPHA"),
    ("scheduler_volume_scheduling_stage_error_total", "counter", "operation", (), "ALPHA"),
    ("scheduler_preemption_evaluation_duration_seconds", "histogram", "preemptor result", steps(0.001, 2, 16), "ALPHA"),
    ("scheduler_preemption_execution_duration_seconds", "histogram", "preemptor result", steps(0.001, 2, 16), "ALPHA"),
    ("scheduler_preemption_pdb_violations_total", "counter", "preemptor", (), "ALPHA"),
    ("scheduler_podgroup_schedule_attempts_total", "counter", "result profile", (), "ALPHA"),
    ("scheduler_podgroup_scheduling_attempt_duration_seconds", "histogram", "result profile", SECONDS, "ALPHA"),
    ("scheduler_podgroup_scheduling_algorithm_duration_seconds", "histogram", "", SECONDS, "ALPHA"),
    ("scheduler_generated_placements_total", "counter", "profile", (), "ALPHA"),
    ("scheduler_placement_evaluations_total", "counter", "result profile", (), "ALPHA"),
    ("scheduler_placement_evaluation_duration_seconds", "histogram", "result profile", SECONDS, "ALPHA"),
    ("scheduler_workload_preemption_attempts_total", "counter", "result", (), "ALPHA"),
    ("scheduler_workload_preemption_victims", "histogram", "", steps(1, 2, 11), "ALPHA"),
    ("scheduler_preemption_workload_disruptions", "histogram", "preemptor", steps(1, 2, 11), "ALPHA"),
    ("kubernetes_feature_enabled", "gauge", "name stage", (), "BETA"),
    ("kube_pod_resource_request", "gauge", OF_POD, (), "STABLE"),
    ("kube_pod_resource_limit", "gauge", OF_POD, (), "STABLE"),
]
#: Only since 1.37, and counted for PodGroups and preemptions only.
GROUPS = {
    row[0] for row in KUBE_SCHEDULER if any(part in row[0] for part in ("podgroup", "workload", "_pdb_", "placement"))
}
#: metrics that the run below does not count
NOT_COUNTED = {
    "scheduler_batch_attempts_total",
    "scheduler_batch_cache_flushed_total",
    "scheduler_batch_rescore_attempts_total",
    "scheduler_get_node_hint_duration_seconds",
    "scheduler_store_schedule_results_duration_seconds",
    "scheduler_batch_rescore_duration_seconds",
    "scheduler_pod_scheduled_after_flush_total",
    "scheduler_permit_wait_duration_seconds",
    "scheduler_volume_scheduling_stage_error_total",
    "kschedd_plugin_score",
    "kube_pod_overhead_cpu_cores",
    "kube_pod_overhead_memory_bytes",
    *GROUPS,
}
#: the gate SchedulerAsyncAPICalls is off in 1.34
BY_GATE = {catalogue.API_CALLS, catalogue.API_CALL_DURATION, catalogue.PENDING_API_CALLS}
KNOWN = {metric.name: metric for metric in (*catalogue.UPSTREAM, *catalogue.OWN)}


@pytest.mark.parametrize(("name", "kind", "labels", "bounds", "stability"), KUBE_SCHEDULER, ids=lambda value: "")
def test_a_metric_is_kube_schedulers(
    name: str, kind: str, labels: str, bounds: tuple[float, ...], stability: str
) -> None:
    metric = KNOWN[name]
    assert (metric.kind, metric.labels, metric.stability) == (kind, tuple(labels.split()), stability)
    assert metric.bounds == pytest.approx(bounds)


def test_the_catalogue_claims_no_other_as_kube_schedulers() -> None:
    assert {metric.name for metric in catalogue.UPSTREAM} == {row[0] for row in KUBE_SCHEDULER}
    assert all(not metric.stability for metric in catalogue.OWN)


def test_the_stability_is_said_with_the_help() -> None:
    metric = Metric("a_size", "gauge", "Sizes.", stability="ALPHA")
    assert text_of([MetricFamily(metric, {(): 1})]).splitlines()[0] == "# HELP a_size [ALPHA] Sizes."


def test_the_page_about_running_it_has_the_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "OPERATING.md"
    assert catalogue.table() in page.read_text(encoding="utf-8"), "run `python -m kschedd.metrics.catalogue`"


def sized(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    made = pod(name)
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}
    made["spec"].update(spec)
    return made


async def test_what_is_scraped_after_a_busy_run() -> None:
    async with asking(scheduler=True) as api:
        await api.create("/api/v1/nodes", node("n1"))
        await api.create("/api/v1/nodes", node("n2"))
        urgent = {"kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000}
        await api.create("/apis/scheduling.k8s.io/v1/priorityclasses", urgent)
        watch = await api.watch(f"{PODS}?watch=true")
        for number in range(60):
            await api.create(PODS, sized(f"p{number}", "200m"))
        await api.create(PODS, sized("nowhere", "1", nodeSelector={"no": "node"}))
        while not (await watch.event())["object"]["status"].get("conditions", [{}])[0].get("message"):
            pass
        await api.create(PODS, sized("preempts", "5", priorityClassName="urgent"))
        # The victims keep terminating, since no kubelet runs; another node is needed.
        while not (await watch.event())["object"]["status"].get("nominatedNodeName"):
            pass
        await api.create("/api/v1/nodes", node("n3"))
        bound = ""
        while not bound:
            event = (await watch.event())["object"]
            bound = event["spec"].get("nodeName", "") if event["metadata"]["name"] == "preempts" else ""
        assert bound == "n3"
        text = (await api.ask("GET", "/metrics")).body.decode()
        resources = (await api.ask("GET", "/metrics/resources")).body.decode()
    scraped = {family.name: family for family in text_string_to_metric_families(text + resources)}
    for metric in set(KNOWN.values()) - BY_GATE:
        family = scraped.pop(metric.name.removesuffix("_total"))
        assert family.type == metric.kind, metric.name
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(metric.labels), metric.name
            if sample.name.endswith("_bucket"):
                bound = float(sample.labels["le"])
                assert bound == float("inf") or bound in metric.bounds, metric.name
        counted = any(sample.value or metric.kind == "gauge" for sample in family.samples)
        assert counted or metric.name in NOT_COUNTED, metric.name
    assert all(name.startswith("process_") for name in scraped)
