"""Tests of in-place resizes: allocations by simulated kubelets, and the scheduler's counts meanwhile."""

from typing import Any

import pytest

from kschedd.controllers.runner import ControllerRunner
from kschedd.store.errors import Invalid
from tests.controllers.kubelets.cluster import KubeletCluster, init


def requests(cpu: str, memory: str | None = None) -> dict[str, Any]:
    return {"requests": {"cpu": cpu} | ({"memory": memory} if memory else {})}


def resize(cluster: KubeletCluster, cpu: str, pod: str = "web", name: str = "app", **also: Any) -> None:
    patch = {"spec": {"containers": [{"name": name, "resources": {**requests(cpu), **also}}]}}
    cluster.store.patch("Pod", "default", pod, patch, subresource="resize")
    cluster.run_until_idle()


def has(cluster: KubeletCluster, pod: str = "web", name: str = "app") -> str:
    """Return the CPU of the container that the kubelet reports."""
    entry = cluster.container(name, pod)
    assert entry["resources"]["requests"] == entry["allocatedResources"]
    cpu: str = entry["allocatedResources"]["cpu"]
    return cpu


@pytest.fixture
def cluster() -> KubeletCluster:
    """node-1 has 4 cpu."""
    return KubeletCluster()


def test_a_running_pod_says_what_its_containers_have(cluster: KubeletCluster) -> None:
    cluster.run(cpu="1")
    cluster.run("idle")
    assert has(cluster) == "1"
    idle = cluster.container(pod="idle")
    assert (idle["resources"], "allocatedResources" in idle) == ({}, False)
    assert not cluster.pod().reports_resources, "what it has is what it asks for"


def test_a_resize_that_fits_is_done_at_once(cluster: KubeletCluster) -> None:
    cluster.run(cpu="1")
    resize(cluster, "3")
    assert has(cluster) == "3"
    assert cluster.pod().requests["cpu"] == 3000
    assert cluster.condition("PodResizePending") == ("", "", "")
    assert cluster.container()["restartCount"] == 0
    version = cluster.store.version
    cluster.run_until_idle()
    assert cluster.store.version == version


def test_a_resize_that_the_node_could_not_bear_is_infeasible(cluster: KubeletCluster) -> None:
    cluster.run(cpu="1")
    resize(cluster, "5")
    message = "Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000"
    assert cluster.condition("PodResizePending") == ("True", "Infeasible", message)
    assert has(cluster) == "1"
    assert cluster.pod().requests["cpu"] == 1000, "what is asked for in vain does not count"
    resize(cluster, "2")
    assert (has(cluster), cluster.condition("PodResizePending")) == ("2", ("", "", ""))


def test_a_resize_waits_for_what_others_have(cluster: KubeletCluster) -> None:
    cluster.run(cpu="1")
    cluster.run("other", cpu="2")
    resize(cluster, "3")
    message = "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"
    assert cluster.condition("PodResizePending") == ("True", "Deferred", message)
    assert (has(cluster), cluster.pod().requests["cpu"]) == ("1", 3000), "the scheduler counts what is asked for"
    cluster.store.delete("Pod", "default", "other", grace_period_s=0)
    cluster.run_until_idle()
    assert (has(cluster), cluster.condition("PodResizePending")) == ("3", ("", "", ""))


def test_another_pod_that_is_made_smaller_makes_room(cluster: KubeletCluster) -> None:
    cluster.run(cpu="1")
    cluster.run("other", cpu="3")
    resize(cluster, "2")
    assert has(cluster) == "1"
    resize(cluster, "1", "other")
    assert (has(cluster, "other"), has(cluster)) == ("1", "2")


def test_a_resize_that_waits_keeps_nobody_else_from_a_smaller_one(cluster: KubeletCluster) -> None:
    cluster.run(cpu="1")
    cluster.run("other", cpu="1")
    cluster.run("third", cpu="1")
    resize(cluster, "3")
    resize(cluster, "2", "other")
    assert (has(cluster), has(cluster, "other")) == ("1", "2")


def test_of_those_that_wait_the_higher_priority_comes_first(cluster: KubeletCluster) -> None:
    cluster.store.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 7}
                         | {"metadata": {"name": "high"}})  # fmt: skip
    cluster.run(cpu="1")
    cluster.run("high", cpu="1", priorityClassName="high")
    cluster.run("other", cpu="2")
    resize(cluster, "3")
    resize(cluster, "3", "high")
    cluster.store.delete("Pod", "default", "other", grace_period_s=0)
    cluster.run_until_idle()
    assert (has(cluster), has(cluster, "high")) == ("1", "3")


def test_a_node_that_has_grown_is_seen_within_three_minutes(cluster: KubeletCluster) -> None:
    cluster.run(cpu="2")
    cluster.run("other", cpu="2")
    resize(cluster, "3")
    status = {part: {**cluster.node().status[part], "cpu": "8"} for part in ("capacity", "allocatable")}
    cluster.store.merge_patch("Node", "", "node-1", {"status": status}, subresource="status")
    cluster.until(170)
    assert has(cluster) == "2"
    cluster.until(181)
    assert has(cluster) == "3"


def test_a_container_is_started_again_where_its_policy_says_so(cluster: KubeletCluster) -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    app = init("app", resources=requests("1", "1Gi"), resizePolicy=policy)
    cluster.run(containers=[app, init("side", resources=requests("1"))])
    cluster.until(60)
    resize(cluster, "1", requests={"cpu": "1", "memory": "2Gi"})
    assert cluster.container()["restartCount"] == 0, "of memory the policy says nothing"
    resize(cluster, "2", requests={"cpu": "2", "memory": "2Gi"})
    entry = cluster.container()
    assert (entry["restartCount"], entry["state"]) == (1, {"running": {"startedAt": "2023-11-14T22:14:20Z"}})
    assert cluster.container("side")["restartCount"] == 0


def test_kubelets_that_begin_anew_go_on_with_a_resize(cluster: KubeletCluster) -> None:
    cluster.run(cpu="1")
    cluster.run("other", cpu="3")
    resize(cluster, "2")
    cluster.restart_kubelets()
    assert cluster.condition("PodResizePending")[1] == "Deferred"
    cluster.store.delete("Pod", "default", "other", grace_period_s=0)
    cluster.run_until_idle()
    assert has(cluster) == "2"


def test_what_is_asked_while_the_node_is_away_waits_for_it(cluster: KubeletCluster) -> None:
    cluster.run(cpu="1")
    cluster.annotate_node(kubelet="stopped")
    resize(cluster, "2")
    assert has(cluster) == "1"
    cluster.annotate_node(kubelet=None)
    assert has(cluster) == "2"


def test_what_may_not_change_is_refused_by_the_server(cluster: KubeletCluster) -> None:
    cluster.run(cpu="1")
    with pytest.raises(Invalid, match="resource requests cannot be removed"):
        resize(cluster, "1", requests={"cpu": None, "memory": "1Gi"})


def test_in_a_copy_of_the_kubelets_a_resize_is_the_copys_own(cluster: KubeletCluster) -> None:
    cluster.run(cpu="1")
    cluster.run("other", cpu="3")
    resize(cluster, "2")
    copied = KubeletCluster()
    copied.store = cluster.store.fork()
    copied.runner = ControllerRunner(copied.store, states=cluster.runner.states())
    copied.store.delete("Pod", "default", "other", grace_period_s=0)
    copied.run_until_idle()
    assert (has(copied), has(cluster)) == ("2", "1")
    resize(cluster, "1")
    copied.run("third", cpu="2")
    assert copied.phases()["third"] == "Running", "the copy counts what it gave itself"
