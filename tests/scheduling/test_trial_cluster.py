"""Tests that a trial cluster places pods with the scheduler's filters, and reverts to a mark."""

from typing import Any

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.config.loading.load import config_from_raw
from kschedd.scheduling.trial_cluster import TrialCluster


def node(name: str, cpu: str = "2") -> Node:
    amounts = {"cpu": cpu, "memory": "4Gi", "pods": "10"}
    return Node.from_raw({"metadata": {"name": name}, "status": {"capacity": amounts, "allocatable": amounts}})


def pod(name: str, cpu: str = "1", node_name: str = "", **fields: Any) -> Pod:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], "nodeName": node_name, **fields}
    return Pod.from_raw({"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec})


def test_all_changes_since_a_mark_are_reverted() -> None:
    trials = TrialCluster.of(config_from_raw(None), [node("a"), node("b"), pod("running", "2", "a")])
    assert trials.feasible(pod("new")) == ["b"]
    mark = trials.mark()
    trials.place(pod("new"), "b")
    trials.remove_pod(trials.pods_on("a")[0])
    trials.remove_node("a")
    trials.put_node(node("c", "8"))
    trials.put_node(node("b", "1"))
    assert trials.feasible(pod("other")) == ["c"]
    trials.revert(mark)
    assert [each.name for each in trials.nodes()] == ["a", "b"]
    assert [each.name for each in trials.pods_on("a")] == ["running"]
    assert trials.feasible(pod("other")) == ["b"]
    assert trials.feasible(pod("large", "2")) == ["b"]


def test_the_reasons_are_those_of_the_filters() -> None:
    trials = TrialCluster.of(config_from_raw(None), [node("a"), pod("running", "2", "a")])
    assert trials.why_not(pod("new"), "a") == ("Insufficient cpu",)
    trials.remove_pod(trials.pods_on("a")[0])
    assert trials.why_not(pod("new"), "a") == ()


def test_pods_without_a_node_are_not_in_the_trial_cluster() -> None:
    trials = TrialCluster.of(config_from_raw(None), [node("a"), pod("pending", "2"), pod("running", "1", "a")])
    assert [each.name for each in trials.pods_on("a")] == ["running"]
    assert trials.feasible(pod("new")) == ["a"]


def test_a_pod_of_another_scheduler_is_tried_with_the_first_profile() -> None:
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {"schedulerName": "strict"},
            {
                "schedulerName": "blind",
                "plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}},
            },
        ],
    }
    trials = TrialCluster.of(config_from_raw(raw), [node("a")])
    assert trials.feasible(pod("large", "8", schedulerName="unknown")) == []
    assert trials.feasible(pod("large", "8", schedulerName="blind")) == ["a"]


def test_a_cluster_without_nodes_is_the_reason() -> None:
    trials = TrialCluster.of(config_from_raw(None), [node("a")])
    trials.remove_node("a")
    assert trials.feasible(pod("new")) == []
    assert trials.why_not(pod("new"), "a") == ["no nodes available to schedule pods"]


def test_a_cluster_is_loaded_with_pauses() -> None:
    objects = [*(node(f"n{number}") for number in range(150)), pod("pending", "2"), pod("running", "2", "n0")]
    steps, pauses = TrialCluster.in_steps(objects), 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            trials: TrialCluster = end.value
            break
        pauses += 1
    assert pauses == 3, "before each 100 objects, and at the end"
    assert len(trials.nodes()) == 150
    assert [each.name for each in trials.pods_on("n0")] == ["running"]
    assert len(trials.feasible(pod("new", "2"))) == 149


def test_a_node_that_pre_filter_excludes_has_the_reason_of_the_excluded_nodes() -> None:
    trials = TrialCluster.of(config_from_raw(None), [node("a"), node("b")])
    only_b = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [only_b]}}}
    pinned = pod("pinned", affinity=affinity)
    assert trials.why_not(pinned, "a") == ("node(s) didn't satisfy plugin(s) [NodeAffinity]",)
    assert trials.why_not(pinned, "b") == ()


def test_a_node_that_does_not_exist_has_no_pods() -> None:
    trials = TrialCluster.of(config_from_raw(None), [node("a"), pod("running", "1", "a")])
    assert (trials.node("gone"), trials.pods_on("gone")) == (None, [])
    assert trials.node("a") is not None


def test_the_rejection_by_pre_filter_is_the_reason_on_all_nodes() -> None:
    trials = TrialCluster.of(config_from_raw(None), [node("a")])
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}]
    stores = pod("stores", volumes=volumes)
    assert trials.feasible(stores) == []
    assert trials.why_not(stores, "a") == ['0/1 nodes are available: persistentvolumeclaim "missing" not found.']
