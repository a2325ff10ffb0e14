"""Tests of nodes under pressure: rejected pods, evicted pods, and the end of the pressure."""

import pytest

from kschedd.api.conditions import condition
from tests.controllers.kubelets.cluster import KubeletCluster

CRITICAL = {"namespace": "kube-system", "priorityClassName": "system-node-critical"}


def _requesting(memory: str) -> list[dict[str, object]]:
    return [{"name": "app", "image": "a:1", "resources": {"requests": {"memory": memory}}}]


@pytest.fixture
def cluster() -> KubeletCluster:
    cluster = KubeletCluster(memory="1Gi", ephemeral_storage="10Gi")
    return cluster


def test_a_node_under_pressure_says_so_and_goes_on_saying_it_for_five_minutes(cluster: KubeletCluster) -> None:
    cluster.annotate_node(pressure="memory")
    found = condition(cluster.node().status, "MemoryPressure") or {}
    assert (found["status"], found["reason"]) == ("True", "KubeletHasInsufficientMemory")
    assert found["message"] == "kubelet has insufficient memory available"
    cluster.until(60)
    cluster.annotate_node(pressure=None)
    cluster.until(359)
    assert cluster.pressure() == "True"
    cluster.until(360)
    found = condition(cluster.node().status, "MemoryPressure") or {}
    assert (found["status"], found["reason"]) == ("False", "KubeletHasSufficientMemory")
    assert cluster.runner.next_deadline is None


def test_memory_pressure_evicts_one_pod_after_the_other_and_never_a_critical_one(cluster: KubeletCluster) -> None:
    cluster.run("large", containers=_requesting("400Mi"))
    cluster.run("greedy", {"memory-usage": "150Mi"}, containers=_requesting("100Mi"))
    cluster.run("best-effort")
    cluster.run("critical", **CRITICAL)
    cluster.annotate_node(pressure="memory")
    assert cluster.condition("DisruptionTarget", "greedy")[:2] == ("True", "TerminationByKubelet")
    assert cluster.phases() == {
        "large": "Running",
        "greedy": "Running",
        "best-effort": "Running",
        "critical": "Running",
    }
    cluster.until(1)
    assert cluster.phases()["greedy"] == "Evicted"
    ended = cluster.pod("greedy").status
    assert (ended["phase"], ended["containerStatuses"][0]["state"]["terminated"]["exitCode"]) == ("Failed", 137)
    assert ended["message"] == (
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 0. "
        "Container app was using 150Mi, request is 100Mi, has larger consumption of memory. "
    )
    cluster.until(10)
    assert cluster.phases()["best-effort"] == "Running"  # a kubelet observes its node every 10 s
    cluster.until(11)
    assert (cluster.phases()["best-effort"], cluster.phases()["large"]) == ("Evicted", "Running")
    cluster.until(21)
    assert cluster.phases()["large"] == "Evicted"
    assert cluster.phases()["critical"] == "Running"
    assert cluster.runner.next_deadline is None  # no pod is left that may be evicted
    assert cluster.events("EvictionThresholdMet") == ["Attempting to reclaim memory"] * 3


def test_best_effort_pods_are_kept_away_by_memory_pressure(cluster: KubeletCluster) -> None:
    cluster.annotate_node(pressure="memory")
    cluster.run("best-effort")
    status = cluster.pod("best-effort").status
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
    assert status["message"] == "Pod was rejected: The node had condition: [MemoryPressure]. "
    assert "conditions" not in status
    cluster.run("critical", **CRITICAL)
    assert cluster.store.get("Pod", "kube-system", "critical").status["phase"] == "Running"


def test_usage_by_annotation_evicts_until_enough_is_left(cluster: KubeletCluster) -> None:
    for name, usage in (("a", "300Mi"), ("b", "400Mi"), ("c", "200Mi")):
        cluster.run(name, {"memory-usage": usage})
    assert cluster.pressure() == "False"
    assert cluster.runner.next_deadline is None
    cluster.run("d", {"memory-usage": "100Mi"})  # 24Mi of 1Gi are available; the threshold is 100Mi
    assert cluster.pressure() == "True"
    cluster.until(1)
    assert cluster.phases() == {"a": "Running", "b": "Evicted", "c": "Running", "d": "Running"}
    cluster.until(301)
    assert cluster.pressure() == "False"
    assert cluster.phases() == {"a": "Running", "b": "Evicted", "c": "Running", "d": "Running"}


def test_usage_may_grow_by_an_annotation(cluster: KubeletCluster) -> None:
    cluster.run("a", {"memory-usage": "300Mi"}, containers=_requesting("400Mi"))
    cluster.run("b", {"memory-usage": "300Mi"}, containers=_requesting("200Mi"))
    note = {"metadata": {"annotations": {"kschedd.io/memory-usage": "700Mi"}}}
    cluster.store.merge_patch("Pod", "default", "b", note)
    cluster.until(1)
    assert cluster.phases() == {"a": "Running", "b": "Evicted"}


def test_minimum_reclaim_evicts_more_than_the_threshold_would(cluster: KubeletCluster) -> None:
    cluster.annotate_node(eviction_hard="memory.available<200Mi", eviction_minimum_reclaim="memory.available=300Mi")
    for name in "abcd":
        cluster.run(name, {"memory-usage": "220Mi"})
    cluster.until(60)
    assert list(cluster.phases().values()) == ["Evicted", "Evicted", "Running", "Running"]


def test_a_soft_threshold_evicts_after_its_grace_period_and_with_a_graceful_end(cluster: KubeletCluster) -> None:
    cluster.annotate_node(
        eviction_soft="memory.available<500Mi",
        eviction_soft_grace_period="memory.available=1m30s",
        eviction_max_pod_grace_period="7",
    )
    cluster.run("web", {"memory-usage": "600Mi"})
    assert cluster.pressure() == "True"
    cluster.until(89)
    assert cluster.condition("DisruptionTarget")[0] == ""
    cluster.until(96)
    assert cluster.pod().phase == "Running"
    cluster.until(97)
    assert cluster.phases() == {"web": "Evicted"}


def test_short_transition_periods(cluster: KubeletCluster) -> None:
    cluster.annotate_node(pressure="pid", eviction_pressure_transition_period="30s")
    assert cluster.pressure("PIDPressure") == "True"
    cluster.annotate_node(pressure=None)
    cluster.until(30)
    assert cluster.pressure("PIDPressure") == "False"


def test_pid_pressure_goes_by_priority_and_processes(cluster: KubeletCluster) -> None:
    cluster.annotate_node(max_pids="1000", eviction_hard="pid.available<10%")
    cluster.run("few", {"pids": "100"})
    cluster.run("many", {"pids": "500"})
    cluster.run("more", {"pids": "350"})
    cluster.until(1)
    assert cluster.phases() == {"few": "Running", "many": "Evicted", "more": "Running"}


def test_disk_pressure_removes_unused_images_before_it_evicts_anybody(cluster: KubeletCluster) -> None:
    cluster.run(
        "old",
        {"image-size": "3Gi", "run-seconds": "1"},
        restartPolicy="Never",
        containers=[{"name": "app", "image": "old:1"}],
    )
    cluster.until(1)
    cluster.run("web", {"image-size": "1Gi", "storage-usage": "2Gi"})
    images = [image["names"] for image in cluster.node().status["images"]]
    assert images == [["old:1"], ["registry.k8s.io/pause:3.10"]]
    cluster.annotate_node(system_storage="3Gi")  # 1 of 10 GiB is left
    assert [image["names"] for image in cluster.node().status["images"]] == [["registry.k8s.io/pause:3.10"]]
    assert cluster.pressure("DiskPressure") == "True"
    cluster.until(60)
    assert cluster.pod("web").phase == "Running"


def test_disk_pressure_evicts_who_uses_most_and_keeps_everybody_away(cluster: KubeletCluster) -> None:
    cluster.run("a", {"storage-usage": "6Gi"})
    cluster.run("b", {"storage-usage": "3Gi"})
    cluster.until(1)
    assert cluster.phases() == {"a": "Evicted", "b": "Running"}
    cluster.run("c", cpu="100m")
    assert cluster.pod("c").status["message"] == "Pod was rejected: The node had condition: [DiskPressure]. "


def test_a_pressure_that_somebody_states_by_hand_stays(cluster: KubeletCluster) -> None:
    conditions = [c for c in cluster.node().status["conditions"] if c["type"] != "MemoryPressure"]
    conditions.append({"type": "MemoryPressure", "status": "True", "reason": "Stated"})
    patch = {"status": {"conditions": conditions}}
    cluster.store.merge_patch("Node", "", "node-1", patch, subresource="status")
    cluster.until(1000)
    assert cluster.pressure() == "True"
    cluster.run("best-effort")
    assert cluster.phases()["best-effort"] == "Evicted"


def test_kubelets_that_are_started_anew_know_of_the_pressure(cluster: KubeletCluster) -> None:
    cluster.run("web")
    cluster.annotate_node(pressure="memory")
    cluster.annotate_node(pressure=None)
    cluster.restart_kubelets()
    cluster.until(1)
    assert cluster.phases() == {"web": "Evicted"}
    cluster.until(300)
    assert cluster.pressure() == "False"


@pytest.mark.parametrize("wrong", ["thirst", "memory,thirst", "memory available"])
def test_a_pressure_that_nobody_knows_is_none(cluster: KubeletCluster, wrong: str) -> None:
    cluster.annotate_node(pressure=wrong)
    assert cluster.pressure() == "False"


def test_a_node_that_states_no_ephemeral_storage_may_be_short_of_it() -> None:
    cluster = KubeletCluster()
    cluster.run("web", cpu="100m")
    cluster.annotate_node(pressure="disk")
    cluster.until(1)
    assert cluster.pressure("DiskPressure") == "True"
    assert cluster.phases() == {"web": "Evicted"}
