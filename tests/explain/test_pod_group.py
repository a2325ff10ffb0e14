"""Explaining a PodGroup: what its next cycle comes to, pod by pod, its causes and remedies."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from kschedd.clusters.virtual import VirtualCluster, VirtualDaemon
from kschedd.config.loading.load import load_config
from kschedd.config.versions.kube_versions import V1_34, V1_36, V1_37, KubernetesVersion
from kschedd.methods import daemon_methods
from kschedd.printing.reports.explaining import explanation
from kschedd.printing.reports.explaining_group import group_explanation
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.service.errors import RpcError

Raw = dict[str, Any]


def node(name: str, cpu: str) -> Raw:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    status = {"allocatable": amounts, "capacity": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name: str, cpu: str = "1", **spec: Any) -> Raw:
    spec["containers"] = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    spec["schedulingGroup"] = {"podGroupName": "gang"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def group(min_count: int) -> Raw:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}},
    }


GATES = {"GenericWorkload": True, "GangScheduling": True}


def cluster(
    *objects: Raw,
    version: KubernetesVersion = V1_36,
    gates: dict[str, bool] = GATES,
    profiles: Sequence[Raw] = ({"schedulerName": "default-scheduler"},),
) -> VirtualDaemon:
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    text = json.dumps({**kind, "profiles": profiles})
    made = VirtualCluster(load_config(text, "config", version=version, feature_gates=gates))
    for raw in objects:
        made.engine.store.create(raw)
    made.engine.run_until_idle()
    return VirtualDaemon(made, daemon_methods)


def reported(daemon: VirtualDaemon) -> Raw:
    answer: Raw = daemon.call("scheduler.explain_group", pod_group="default/gang")
    return answer


def states(answer: Raw) -> dict[str, tuple[str, str | None]]:
    return {each["pod"].partition("/")[2]: (each["state"], each["node"]) for each in answer["members"]}


def test_it_says_which_member_fits_nowhere_and_why() -> None:
    answer = reported(cluster(node("n", "2"), group(3), pod("a"), pod("b"), pod("c")))
    assert states(answer) == {"a": ("fits", "n"), "b": ("fits", "n"), "c": ("unschedulable", None)}
    last = answer["members"][-1]
    assert last["plugin"] == "NodeResourcesFit"
    assert "1 Insufficient cpu" in last["message"]
    assert (answer["fits"], answer["min_count"], answer["scheduled"]) == (False, 3, 0)


def diagnosed(daemon: VirtualDaemon, kind: str = "PodGroup", name: str = "gang") -> Raw:
    answer: Raw = daemon.call("causes.explain", kind=kind, name=name)
    return answer


def proposed(answer: Raw) -> list[tuple[str, str]]:
    return [(each["summary"], each["scheduled"]) for each in answer["remedies"]]


def test_remedies_are_tried_with_the_whole_group() -> None:
    daemon = cluster(node("n", "2"), group(3), pod("a"), pod("b"), pod("c"))
    answer = diagnosed(daemon)
    assert answer["cause"]["code"] == "PodGroupLacksRoom"
    assert "needs 3 pods at once, and only 2 of its 3 pods fit" in answer["cause"]["message"]
    assert proposed(answer) == [("add 1 node like n", "3 of 3"), ("minCount 2", "2 of 2")]
    assert proposed(diagnosed(daemon, "Pod", "a"))[0] == ("add 1 node like n", "1 of 1")
    assert diagnosed(daemon) == answer, "nothing of a trial is left"


def test_a_group_with_a_topology_constraint_lacks_room_in_one_domain() -> None:
    nodes = [node("n", "2"), node("m", "2")]
    for each, zone in zip(nodes, "ab", strict=True):
        each["metadata"]["labels"] = {"zone": zone}
    constrained = group(3)
    constrained["apiVersion"] = "scheduling.k8s.io/v1beta1"
    constrained["spec"]["schedulingConstraints"] = {"topology": [{"key": "zone"}]}
    gates = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}
    daemon = cluster(*nodes, constrained, *map(pod, "abc"), version=V1_37, gates=gates)
    assert states(reported(daemon)) == {"a": ("fits", "n"), "b": ("fits", "n"), "c": ("unschedulable", None)}
    answer = diagnosed(daemon)
    wanted = "needs 3 pods at once within one zone, and in the first one only 2 of its 3 pods fit"
    assert wanted in answer["cause"]["message"]
    assert ("add 1 node like n", "3 of 3") in proposed(answer)


def test_as_many_nodes_are_added_as_the_group_lacks() -> None:
    daemon = cluster(node("n", "1"), node("m", "1"), group(4), pod("a"), pod("b"), pod("c"), pod("d"))
    assert proposed(diagnosed(daemon)) == [("add 2 nodes like n", "4 of 4"), ("minCount 2", "2 of 2")]


def test_a_pod_that_fits_nowhere_by_itself_is_the_cause() -> None:
    daemon = cluster(node("n", "2"), group(2), pod("a"), pod("b", nodeSelector={"disk": "ssd"}))
    answer = diagnosed(daemon)
    assert (answer["workload"]["name"], answer["cause"]["code"]) == ("b", "NodeLabelMissing")
    other = diagnosed(daemon, "Pod", "a")
    assert "its pod default/b fits nowhere by itself" in other["cause"]["message"]
    assert other["remedies"] == []


def test_a_cordoned_node_that_would_take_the_rest_is_named() -> None:
    cordoned = {**node("m", "2"), "spec": {"unschedulable": True}}
    answer = diagnosed(cluster(node("n", "2"), cordoned, group(4), *map(pod, "abcd")))
    assert answer["cause"]["code"] == "NodesCordoned"
    assert proposed(answer)[0] == ("uncordon m", "4 of 4")
    small = {**node("m", "1"), "spec": {"unschedulable": True}}
    assert diagnosed(cluster(node("n", "2"), small, group(4), *map(pod, "abcd")))["cause"]["code"] != "NodesCordoned"


def test_a_remedy_changes_all_pods_of_the_group_that_ask_for_the_same() -> None:
    wrong = {"nodeSelector": {"kubernetes.io/hostnam": "n"}}
    labeled = {**node("n", "2"), "metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "n"}}}
    answer = diagnosed(cluster(labeled, group(2), pod("a", **wrong), pod("b", **wrong)))
    assert answer["cause"]["code"] == "NodeLabelMisspelled"
    assert proposed(answer) == [("use kubernetes.io/hostname=n", "1 of 1")]
    assert [command.count("name: b") for command in answer["remedies"][0]["commands"]].count(0) == 1


def test_a_gang_that_lacks_pods_is_gated() -> None:
    answer = reported(cluster(node("n", "2"), group(3), pod("a")))
    assert states(answer) == {"a": ("gated", None)}
    assert answer["members"][0]["plugin"] == "GangScheduling"
    assert not answer["fits"]
    assert "no other pod of it can be tried yet: it lacks 2 pods\n" in group_explanation(answer, TerminalStyle())


def test_pods_of_a_scheduler_that_is_not_here_are_not_tried() -> None:
    answer = reported(cluster(node("n", "1"), group(2), pod("a"), pod("b"), pod("c", schedulerName="other")))
    assert states(answer) == {"a": ("fits", "n"), "b": ("unschedulable", None), "c": ("gated", None)}
    assert answer["members"][-1]["message"] == 'no profile here is called "other", as the scheduler of the pod is'


def test_pods_that_two_profiles_are_responsible_for_are_not_tried() -> None:
    profiles = [{"schedulerName": "default-scheduler"}, {"schedulerName": "other"}]
    daemon = cluster(node("n", "1"), group(2), pod("a"), pod("b", schedulerName="other"), profiles=profiles)
    answer = reported(daemon)
    assert states(answer) == {"a": ("error", None), "b": ("error", None)}
    assert "should have the same .spec.schedulerName" in group_explanation(answer, TerminalStyle())


@pytest.mark.parametrize(
    ("version", "gates"), [(V1_34, {}), (V1_36, {})], ids=["a-version-without", "without-the-gate"]
)
def test_where_pods_are_tried_one_by_one_that_is_said(version: KubernetesVersion, gates: dict[str, bool]) -> None:
    daemon = cluster(node("n", "1"), pod("a"), version=version, gates=gates)
    with pytest.raises(RpcError, match="without the feature gate GenericWorkload tries the pods of a PodGroup one by"):
        reported(daemon)


def test_without_gang_scheduling_a_group_needs_no_number_of_pods() -> None:
    answer = reported(cluster(node("n", "1"), group(2), pod("a"), pod("b"), gates={"GenericWorkload": True}))
    assert (answer["min_count"], states(answer)) == (0, {"a": ("scheduled", "n"), "b": ("unschedulable", None)})


def test_too_few_pods_are_a_cause() -> None:
    answer = diagnosed(cluster(node("n", "2"), group(3), pod("a")))
    assert answer["cause"]["message"] == "PodGroup gang needs 3 pods at once, and there is 1 of it"
    assert proposed(answer) == [("minCount 1", "1 of 1")]


def test_the_name_of_a_group_is_looked_for_among_those_there_are() -> None:
    lost = pod("a")
    lost["spec"]["schedulingGroup"] = {"podGroupName": "gagn"}
    answer = diagnosed(cluster(node("n", "2"), group(1), lost), "Pod", "a")
    assert answer["cause"]["message"] == "PodGroup gagn does not exist in namespace default (gang does)"
    assert proposed(answer) == [("use PodGroup gang", "1 of 1")]


def test_a_group_that_is_only_named_does_not_exist() -> None:
    answer = reported(cluster(node("n", "2"), pod("a")))
    assert (answer["exists"], answer["policy"]) == (False, "")
    assert states(answer) == {"a": ("gated", None)}


def test_of_a_group_that_is_placed_every_pod_is_scheduled() -> None:
    answer = reported(cluster(node("n", "2"), group(2), pod("a"), pod("b")))
    assert states(answer) == {"a": ("scheduled", "n"), "b": ("scheduled", "n")}


def test_a_group_that_nothing_is_known_of_is_not_found() -> None:
    with pytest.raises(RpcError, match=r'podgroups\.scheduling\.k8s\.io "gang" not found'):
        reported(cluster(node("n", "2")))


def test_an_explanation_of_one_of_its_pods_names_the_group_first() -> None:
    answer = cluster(node("n", "2"), group(3), pod("a"), pod("b"), pod("c")).call("scheduler.explain", pod="default/a")
    assert answer["pod_group"] == "default/gang"
    assert explanation(answer, TerminalStyle()).splitlines()[:2] == [
        "default/a is tried together with the other pods of PodGroup default/gang; "
        "what the group lacks: kschedd explain podgroup/gang -n default",
        "  by itself it would go to n, with 435 points, the only node that fits",
    ]
