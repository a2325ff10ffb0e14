"""Tests of pods on a node: admitted, rejected, or admitted after preempting others; and of their images."""

import random

import pytest

from kschedd.controllers.kubelets.kubelets import Kubelets
from kschedd.controllers.runner import ControllerRunner
from tests.controllers.kubelets.cluster import KubeletCluster
from tests.store.manifests import node

CRITICAL = {"namespace": "kube-system", "priorityClassName": "system-node-critical"}


@pytest.fixture
def cluster() -> KubeletCluster:
    return KubeletCluster()


def test_a_bare_pod_on_a_full_node_is_refused(cluster: KubeletCluster) -> None:
    cluster.run("full", cpu="3500m")
    cluster.run("late", cpu="1")
    status = cluster.pod("late").status
    assert (status["phase"], status["reason"]) == ("Failed", "OutOfcpu")
    why = "Node didn't have enough resource: cpu, requested: 1000, used: 3500, capacity: 4000"
    assert status["message"] == f"Pod was rejected: {why}"
    assert (status["startTime"], status["qosClass"]) == ("2023-11-14T22:13:20Z", "Burstable")
    assert "conditions" not in status
    assert cluster.events("OutOfcpu") == [why]
    assert cluster.pod("full").phase == "Running"


def test_what_a_pod_leaves_the_next_one_may_have(cluster: KubeletCluster) -> None:
    cluster.run("first", {"run-seconds": "5"}, cpu="3", restartPolicy="Never")
    cluster.run("early", cpu="3")
    cluster.until(5)
    cluster.run("late", cpu="3")
    assert cluster.phases() == {"first": "Succeeded", "early": "OutOfcpu", "late": "Running"}
    cluster.store.delete("Pod", "default", "late", grace_period_s=0)
    cluster.run("last", cpu="3")
    assert cluster.pod("last").phase == "Running"


def test_a_pod_that_is_ending_keeps_its_room_until_it_has_ended(cluster: KubeletCluster) -> None:
    cluster.run("first", cpu="3", terminationGracePeriodSeconds=10)
    cluster.store.delete("Pod", "default", "first")
    cluster.run("early", cpu="3")
    cluster.until(10)
    cluster.run("late", cpu="3")
    assert cluster.phases() == {"early": "OutOfcpu", "late": "Running"}


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"nodeSelector": {"disk": "ssd"}}, "NodeAffinity"),
        ({"containers": [{"name": "a", "image": "a", "ports": [{"containerPort": 1, "hostPort": 80}]}]}, "NodePorts"),
        ({"os": {"name": "windows"}}, "PodOSNotSupported"),
    ],
)
def test_other_refusals(cluster: KubeletCluster, spec: dict[str, object], reason: str) -> None:
    ports = [{"containerPort": 1, "hostPort": 80}]
    cluster.run("there", containers=[{"name": "a", "image": "a", "ports": ports}])
    cluster.run("web", **spec)
    assert cluster.phases() == {"there": "Running", "web": reason}


def test_taints_that_come_later_are_not_the_kubelets_to_act_upon(cluster: KubeletCluster) -> None:
    cluster.run("there")
    taints = {"spec": {"taints": [{"key": "gone", "effect": "NoExecute"}]}}
    cluster.store.merge_patch("Node", "", "node-1", taints)
    cluster.run("web")
    assert cluster.phases() == {"there": "Running", "web": "TaintToleration"}


def test_others_make_way_for_a_critical_pod_which_waits_for_them(cluster: KubeletCluster) -> None:
    cluster.run("large", cpu="2", terminationGracePeriodSeconds=30)
    cluster.run("small", {"termination-seconds": "3"}, cpu="1500m")
    cluster.run("best-effort")
    cluster.run("critical", cpu="1500m", **CRITICAL)

    def critical() -> str:
        return str(cluster.store.get("Pod", "kube-system", "critical").status["phase"])

    assert critical() == "Pending"
    message = "Preempted in order to admit critical pod"
    assert cluster.condition("DisruptionTarget", "small") == ("True", "TerminationByKubelet", message)
    assert cluster.events("Preempting") == [message]
    cluster.until(2.9)
    assert critical() == "Pending"
    cluster.until(3)
    assert critical() == "Running"
    assert cluster.phases() | {"critical": "-"} == {
        "large": "Running",
        "small": "Preempting",
        "best-effort": "Running",
        "critical": "-",
    }
    assert cluster.pod("small").status["message"] == message


def test_a_critical_pod_for_which_nobody_can_make_way(cluster: KubeletCluster) -> None:
    cluster.run("critical", cpu="5", **CRITICAL)
    status = cluster.store.get("Pod", "kube-system", "critical").status
    assert status["reason"] == "UnexpectedAdmissionError"
    assert status["message"] == (
        "Pod was rejected: Unexpected error while attempting to recover from admission failure: preemption: error "
        "finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 1000), ]"
    )


def test_a_critical_pod_that_lacks_more_than_resources_has_nobody_make_way(cluster: KubeletCluster) -> None:
    cluster.run("large", cpu="3")
    cluster.run("critical", cpu="3", nodeSelector={"disk": "ssd"}, **CRITICAL)
    assert cluster.store.get("Pod", "kube-system", "critical").status["reason"] == "NodeAffinity"
    assert cluster.pod("large").phase == "Running"


def test_what_is_admitted_is_counted_as_pods_come_and_go(cluster: KubeletCluster) -> None:
    """The counts used by admission equal a new count after any change of pods."""
    kubelets = Kubelets()
    cluster.runner = ControllerRunner(cluster.store, [kubelets])
    cluster.store.create(node("node-2"))
    chance = random.Random(7)
    for number in range(120):
        name, on = f"pod-{chance.randrange(12)}", chance.choice(["node-1", "node-2"])
        if cluster.store.find("Pod", "default", name) is not None:
            cluster.store.delete("Pod", "default", name, grace_period_s=chance.choice([None, 0, 1]))
        else:
            notes = {"run-seconds": str(chance.randrange(3))} if chance.randrange(2) else {}
            cpu = chance.choice([None, "500m", "1500m"])
            cluster.run(name, notes, on=on, cpu=cpu, restartPolicy="Never", terminationGracePeriodSeconds=2)
        cluster.until(number / 2)
        for each in ("node-1", "node-2"):
            usage = kubelets._accounts.on_node(each)
            pods = [pod for pod in cluster.store.pods_on(each) if pod.start_time and not pod.finished]
            assert usage.pods == len(pods)
            assert usage.requested.get("cpu", 0) == sum(pod.requests.get("cpu", 0) for pod in pods) <= 4000


# -- images -----------------------------------------------------------------------------------------------------------


def images(cluster: KubeletCluster, on: str = "node-1") -> list[tuple[str, int]]:
    return [(each["names"][0], each.get("sizeBytes", 0)) for each in cluster.node(on).status.get("images") or ()]


def test_a_node_lists_the_images_of_what_runs_there(cluster: KubeletCluster) -> None:
    cluster.run("a", {"image-size": "100"}, containers=[{"name": "a", "image": "nginx"}])
    cluster.run("b", {"image-size": "300"}, containers=[{"name": "a", "image": "redis:7"}])
    cluster.run("c", containers=[{"name": "a", "image": "nginx:latest"}, {"name": "b", "image": "quiet:1"}])
    assert images(cluster) == [("redis:7", 300), ("nginx:latest", 100), ("quiet:1", 0)]


def test_the_size_of_an_image_is_known_from_other_nodes(cluster: KubeletCluster) -> None:
    other = node("node-2")
    other["status"]["images"] = [{"names": ["big:1"], "sizeBytes": 5000}]
    cluster.store.create(other)
    cluster.run("a", containers=[{"name": "a", "image": "big:1"}])
    assert images(cluster) == [("big:1", 5000)]


def test_a_node_lists_no_more_than_fifty_images(cluster: KubeletCluster) -> None:
    many = [{"name": f"c{number}", "image": f"i:{number}"} for number in range(60)]
    cluster.run("a", containers=many)
    assert len(images(cluster)) == 50
    assert cluster.runner.next_deadline is None


def test_an_image_that_cannot_be_pulled_yet_is_not_listed(cluster: KubeletCluster) -> None:
    cluster.run("a", {"startup-seconds": "10"})
    assert images(cluster) == []
    cluster.until(10)
    assert images(cluster) == [("registry.k8s.io/pause:3.10", 0)]
