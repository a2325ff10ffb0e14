"""Tests of HorizontalPodAutoscalers: metrics, limits, conditions and Events."""

from typing import Any

import pytest

from kschedd.api.conditions import condition
from kschedd.api.simulation.usage import pod_usage
from kschedd.controllers.autoscaling.autoscalers import Autoscalers
from kschedd.controllers.autoscaling.limits import History
from kschedd.controllers.workloads.replicasets import ReplicaSets
from kschedd.service.operations.versions import converted
from tests.controllers.workloads.clusters import WorkloadCluster

USAGE = "kschedd.io/cpu-usage"


def replica_set(replicas: int, usage: str | None, **requests: str) -> dict[str, Any]:
    labels = {"app": "web"}
    annotations = {} if usage is None else {USAGE: usage}
    container = {"name": "c", "image": "i", "resources": {"requests": requests or {"cpu": "100m"}}}
    template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"}, "spec": spec}


def autoscaler(**spec: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}
    resource = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    whole = {
        "scaleTargetRef": target,
        "maxReplicas": 10,
        "metrics": [{"type": "Resource", "resource": resource}],
        **spec,
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": whole,
    }


class Cluster(WorkloadCluster):
    def __init__(self) -> None:
        super().__init__([ReplicaSets(), Autoscalers()])

    def advance(self, seconds: float) -> None:
        end = self.clock.now + seconds
        for _ in range(500):
            while self.step():
                pass
            wake = self.runner.next_deadline
            if wake is None or wake > end:
                break
            self.clock.now = wake
        self.clock.now = end

    @property
    def replicas(self) -> int:
        return int(self.get("ReplicaSet", "web").spec["replicas"])

    def use(self, usage: str) -> None:
        for pod in self.pods():
            self.patch("Pod", pod.name, {"metadata": {"annotations": {USAGE: usage}}})

    def shown(self, type_: str) -> tuple[str, str, str]:
        found = condition(self.get("HorizontalPodAutoscaler", "web").status, type_) or {}
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    def told(self) -> set[tuple[str, str]]:
        listed = (event.raw for event in self.store.list("Event"))
        return {(raw["reason"], raw["message"]) for raw in listed if raw["involvedObject"]["kind"] != "ReplicaSet"}


def test_pods_above_the_target_are_multiplied_and_below_it_reduced_after_five_minutes() -> None:
    cluster = Cluster()
    cluster.store.create(replica_set(2, "75m"))
    cluster.advance(60)
    cluster.store.create(autoscaler())
    cluster.advance(1)
    assert cluster.replicas == 3
    name = "cpu resource utilization (percentage of request)"
    assert ("SuccessfulRescale", f"New size: 3; reason: {name} above target") in cluster.told()
    assert cluster.shown("AbleToScale")[:2] == ("True", "SucceededRescale")
    assert cluster.shown("ScalingActive") == (
        "True",
        "ValidMetricFound",
        f"the HPA was able to successfully calculate a replica count from {name}",
    )
    status = cluster.get("HorizontalPodAutoscaler", "web").status
    assert (status["currentReplicas"], status["desiredReplicas"]) == (2, 3)
    assert status["currentMetrics"][0]["resource"]["current"] == {"averageUtilization": 75, "averageValue": "75m"}
    cluster.use("10m")
    cluster.advance(120)
    assert cluster.replicas == 3
    assert cluster.shown("AbleToScale")[:2] == ("True", "ScaleDownStabilized")
    cluster.advance(300)
    assert cluster.replicas == 1
    assert ("SuccessfulRescale", "New size: 1; reason: All metrics below target") in cluster.told()


def test_small_differences_change_nothing() -> None:
    cluster = Cluster()
    cluster.store.create(replica_set(2, "54m"))
    cluster.advance(60)
    cluster.store.create(autoscaler())
    cluster.advance(600)
    assert cluster.replicas == 2


def test_the_range_and_the_rate_limit_the_replicas() -> None:
    cluster = Cluster()
    cluster.store.create(replica_set(2, "900m"))
    cluster.advance(60)
    cluster.store.create(autoscaler(maxReplicas=9))
    cluster.advance(1)
    assert cluster.replicas == 4
    assert cluster.shown("ScalingLimited")[:2] == ("True", "ScaleUpLimit")
    cluster.advance(200)
    assert cluster.replicas == 9
    assert cluster.shown("ScalingLimited")[:2] == ("True", "TooManyReplicas")
    cluster.patch("HorizontalPodAutoscaler", "web", {"spec": {"maxReplicas": 5}})
    cluster.advance(1)
    assert cluster.replicas == 5
    assert (
        "SuccessfulRescale",
        "New size: 5; reason: Current number of replicas above Spec.MaxReplicas",
    ) in cluster.told()


def test_pods_without_annotations_are_idle() -> None:
    cluster = Cluster()
    cluster.store.create(replica_set(3, None, cpu="200m", memory="1Gi"))
    cluster.advance(60)
    memory = {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 80}}
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    cluster.store.create(autoscaler(metrics=[{"type": "Resource", "resource": each} for each in (cpu, memory)]))
    cluster.advance(1)
    shown = cluster.get("HorizontalPodAutoscaler", "web").status["currentMetrics"]
    assert [metric["resource"]["current"]["averageUtilization"] for metric in shown] == [1, 50]
    assert {pod_usage(pod) for pod in cluster.pods()} == {(2, 1 << 29)}, "as metrics.k8s.io shows them"
    cluster.advance(360)
    assert cluster.replicas == 2


def test_pods_of_a_dump_without_annotations_have_no_metrics() -> None:
    cluster = Cluster()
    cluster.store.create(replica_set(2, None))
    cluster.advance(60)
    for pod in cluster.pods():
        statuses = [{**entry, "imageID": "registry.example/c@sha256:1"} for entry in pod.status["containerStatuses"]]
        patch = {"status": {"containerStatuses": statuses}}
        cluster.store.merge_patch("Pod", "default", pod.name, patch, subresource="status")
    cluster.store.create(autoscaler())
    cluster.advance(60)
    assert cluster.replicas == 2
    none = "unable to get metrics for resource cpu: no metrics returned from resource metrics API"
    why = f"failed to get cpu utilization: {none}"
    assert cluster.shown("ScalingActive") == (
        "False",
        "FailedGetResourceMetric",
        f"the HPA was unable to compute the replica count: failed to get cpu resource metric value: {why}",
    )
    assert {reason for reason, _ in cluster.told()} == {"FailedGetResourceMetric", "FailedComputeMetricsReplicas"}


def test_a_pod_without_a_request_has_no_utilization_but_a_value() -> None:
    cluster = Cluster()
    cluster.store.create(replica_set(2, "300m", memory="1Gi"))
    cluster.advance(60)
    cluster.store.create(autoscaler())
    cluster.advance(1)
    assert "missing request for cpu in container c of Pod" in cluster.shown("ScalingActive")[2]
    target = {"type": "AverageValue", "averageValue": "200m"}
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    cluster.patch("HorizontalPodAutoscaler", "web", {"spec": {"metrics": metrics}})
    cluster.advance(1)
    assert cluster.replicas == 3


def test_a_missing_workload_and_other_metrics_are_reported() -> None:
    cluster = Cluster()
    metric = {
        "type": "Pods",
        "pods": {"metric": {"name": "qps"}, "target": {"type": "AverageValue", "averageValue": "1"}},
    }
    cluster.store.create(autoscaler(metrics=[metric]))
    cluster.advance(1)
    assert cluster.shown("AbleToScale")[:2] == ("False", "FailedGetScale")
    cluster.store.create(replica_set(1, "10m"))
    cluster.advance(60)
    assert cluster.shown("ScalingActive")[:2] == ("False", "FailedGetPodsMetric")
    assert cluster.replicas == 1


def test_an_autoscaler_of_version_1_scales_by_cpu() -> None:
    cluster = Cluster()
    cluster.store.create(replica_set(2, "75m"))
    cluster.advance(60)
    target = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}
    spec = {"scaleTargetRef": target, "maxReplicas": 10, "targetCPUUtilizationPercentage": 50}
    raw = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}, "spec": spec}
    cluster.store.create(raw)
    cluster.advance(1)
    assert cluster.replicas == 3
    found = cluster.get("HorizontalPodAutoscaler", "web")
    assert found.raw["apiVersion"] == "autoscaling/v2"
    assert cluster.shown("ScalingActive")[:2] == ("True", "ValidMetricFound")
    assert converted(found.raw, "autoscaling/v1")["status"]["currentCPUUtilizationPercentage"] == 75


UP = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max"}
DOWN = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max"}


@pytest.mark.parametrize(
    ("current", "desired", "behavior", "expected"),
    [
        pytest.param(4, 10, {"scaleUp": {**UP, "policies": [("Pods", 2)]}}, 6, id="pods-up"),
        pytest.param(4, 10, {"scaleUp": {**UP, "policies": [("Percent", 50), ("Pods", 1)]}}, 6, id="largest-change"),
        pytest.param(
            4,
            10,
            {"scaleUp": {**UP, "selectPolicy": "Min", "policies": [("Percent", 50), ("Pods", 1)]}},
            5,
            id="smallest",
        ),
        pytest.param(
            4, 10, {"scaleUp": {**UP, "selectPolicy": "Disabled", "policies": [("Pods", 9)]}}, 4, id="disabled"
        ),
        pytest.param(10, 1, {"scaleDown": {**DOWN, "policies": [("Percent", 10)]}}, 9, id="percent-down"),
        pytest.param(10, 1, {"scaleDown": {**DOWN, "policies": [("Pods", 4), ("Percent", 10)]}}, 6, id="pods-down"),
    ],
)
def test_policies_limit_the_rate(current: int, desired: int, behavior: dict[str, Any], expected: int) -> None:
    whole = {
        direction: {
            **rules,
            "policies": [{"type": kind, "value": value, "periodSeconds": 60} for kind, value in rules["policies"]],
        }
        for direction, rules in {"scaleDown": {**DOWN, "policies": []}, **behavior}.items()
    }
    history = History()
    assert history.limit(current, desired, 1, 100, whole, 1000.0).replicas == expected
    history.note_change(current, expected, whole, 1000.0)
    again = history.limit(expected, desired, 1, 100, whole, 1030.0).replicas
    assert again == expected  # within the same period


def test_a_stabilization_window_delays_scaling_up() -> None:
    policies = [{"type": "Pods", "value": 100, "periodSeconds": 15}]
    behavior = {"scaleUp": {"stabilizationWindowSeconds": 60, "policies": policies}, "scaleDown": {}}
    history = History()
    found = [history.limit(2, 8, 1, 100, behavior, 1000.0 + at) for at in (0, 30, 61)]
    assert [each.replicas for each in found] == [2, 2, 8]
    assert found[0].able[0] == "ScaleUpStabilized"
