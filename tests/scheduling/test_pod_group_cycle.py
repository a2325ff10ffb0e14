"""Tests of a PodGroup's cycle: its pods are tried in one state of the cluster, and all or none are placed."""

from typing import Any

import pytest

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.clusters.virtual import VirtualCluster
from kschedd.config.loading.load import default_config
from kschedd.config.versions.kube_versions import V1_36
from kschedd.framework.status import Code, Status, error, unschedulable
from kschedd.framework.writes import MergePatch
from kschedd.plugins.resources.noderesourcesfit import NodeResourcesFit
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.gangs.cycle import WAITS_FOR_PREEMPTION, profile_fault
from kschedd.scheduling.gangs.outcome import UNSCHEDULABLE, group_condition

Raw = dict[str, Any]
GATES = {"GenericWorkload": True, "GangScheduling": True}
IMPORTANT = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}
PERMIT = 'one or more plugins asked to wait and no plugin rejected pod "{}"'


def node(name: str, cpu: str) -> Raw:
    status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name: str, cpu: str = "1", group: str = "gang", **spec: Any) -> Raw:
    spec["containers"] = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def group(min_count: int | None, name: str = "gang") -> Raw:
    policy: Raw = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": policy},
    }


class Cluster:
    """A virtual cluster of 1.36 with both feature gates on."""

    def __init__(self, *objects: Raw, gates: dict[str, bool] | None = None) -> None:
        config = default_config(version=V1_36, feature_gates=GATES if gates is None else gates)
        self.engine = VirtualCluster(config).engine
        for raw in objects:
            self.engine.store.create(raw)
        self.engine.run_until_idle()

    def add(self, *objects: Raw) -> None:
        for raw in objects:
            self.engine.store.create(raw)
        self.engine.run_until_idle()

    def nodes(self) -> dict[str, str]:
        return {each.name: each.node_name for each in self.engine.store.list("Pod") if isinstance(each, Pod)}

    def reported(self, name: str) -> str:
        status = self.engine.store.get("Pod", "default", name).status
        return next((c["message"] for c in status.get("conditions") or () if c["type"] == "PodScheduled"), "")

    def condition(self, name: str = "gang") -> tuple[str, str, str]:
        [one] = self.engine.store.get("PodGroup.scheduling.k8s.io", "default", name).status["conditions"]
        return one["status"], one["reason"], one.get("message", "")


def test_a_gang_is_placed_when_its_last_pod_comes() -> None:
    cluster = Cluster(node("n", "4"), group(3), pod("a"), pod("b"))
    assert cluster.nodes() == {"a": "", "b": ""}
    cluster.add(pod("c"))
    assert cluster.nodes() == {"a": "n", "b": "n", "c": "n"}
    assert cluster.condition() == ("True", "Scheduled", "")


def test_of_a_gang_that_does_not_fit_no_pod_is_placed_and_nothing_stays_reserved() -> None:
    cluster = Cluster(node("n", "2"), group(3), pod("a"), pod("b"), pod("c"))
    assert cluster.nodes() == {"a": "", "b": "", "c": ""}
    assert cluster.reported("a") == f"{UNSCHEDULABLE}, {PERMIT.format('a')}"
    assert cluster.reported("b") == f"{UNSCHEDULABLE}, {PERMIT.format('b')}"
    assert cluster.reported("c").startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert cluster.condition() == ("False", "Unschedulable", UNSCHEDULABLE)
    assert cluster.engine.machine.cluster.assumed_pods() == []
    assert not cluster.engine.machine.waiting.pods
    cluster.add(pod("alone", "2", group=""))
    assert cluster.nodes()["alone"] == "n"


def test_it_is_tried_again_and_placed_once_there_is_room() -> None:
    cluster = Cluster(node("n", "2"), group(3), pod("a"), pod("b"), pod("c"))
    cluster.add(node("m", "2"))
    cluster.engine.run_to_rest()
    assert all(cluster.nodes().values())
    assert cluster.condition() == ("True", "Scheduled", "")


def test_pods_beyond_those_that_a_gang_needs_are_placed_as_far_as_they_fit() -> None:
    cluster = Cluster(node("n", "2"), pod("a"), pod("b"), pod("c"), group(2))
    assert sorted(cluster.nodes().values()) == ["", "n", "n"]
    assert cluster.condition() == ("True", "Scheduled", "")


def test_a_pod_that_comes_later_joins_those_that_run_and_the_condition_stays() -> None:
    cluster = Cluster(node("n", "2"), group(2), pod("a"), pod("b"))
    cluster.add(pod("late"))
    assert cluster.nodes() == {"a": "n", "b": "n", "late": ""}
    assert cluster.condition() == ("True", "Scheduled", "")
    cluster.add(node("m", "1"))
    assert cluster.nodes()["late"] == "m"


def test_a_pod_of_higher_priority_is_tried_first() -> None:
    first = pod("z", priorityClassName="high")
    cluster = Cluster(node("n", "1"), IMPORTANT, pod("a"), first, group(1))
    assert cluster.nodes() == {"a": "", "z": "n"}


def test_the_pods_of_a_basic_group_are_placed_as_far_as_they_fit() -> None:
    cluster = Cluster(node("n", "1"), pod("a"), pod("b"), group(None))
    assert sorted(cluster.nodes().values()) == ["", "n"]


def test_without_the_plugin_a_group_is_tried_together_and_placed_as_far_as_it_fits() -> None:
    cluster = Cluster(node("n", "1"), group(2), pod("a"), pod("b"), gates={"GenericWorkload": True})
    assert sorted(cluster.nodes().values()) == ["", "n"]


def test_pods_of_a_gang_see_each_other() -> None:
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
    pods = [pod(name, affinity=apart) for name in "ab"]
    for each in pods:
        each["metadata"]["labels"] = {"app": "x"}
    nodes = [node("n", "4"), node("m", "4")]
    for each in nodes:
        each["metadata"]["labels"] = {"kubernetes.io/hostname": each["metadata"]["name"]}
    cluster = Cluster(*nodes, group(2), *pods)
    assert sorted(cluster.nodes().values()) == ["m", "n"]


def test_a_gang_that_preempts_waits_until_its_victims_are_gone() -> None:
    cluster = Cluster(node("n", "2"), IMPORTANT, pod("victim", group=""))
    cluster.add(group(2), pod("a", priorityClassName="high"), pod("b", priorityClassName="high"))
    assert cluster.reported("a") == f"{UNSCHEDULABLE}, {WAITS_FOR_PREEMPTION}"
    assert cluster.condition() == ("False", "Unschedulable", f"{UNSCHEDULABLE}, {WAITS_FOR_PREEMPTION}")
    cluster.engine.run_to_rest()
    assert cluster.nodes() == {"a": "n", "b": "n"}
    assert cluster.condition() == ("True", "Scheduled", "")


def test_an_error_of_one_pod_is_the_error_of_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    filter_rows = NodeResourcesFit.filter_rows

    def fails(self: NodeResourcesFit, state: Any, pod: Pod, *args: Any) -> Any:
        if pod.name == "b":
            raise OverflowError("too much")
        return filter_rows(self, state, pod, *args)

    monkeypatch.setattr(NodeResourcesFit, "filter_rows", fails)
    cluster = Cluster(node("n", "4"), group(3), pod("a"), pod("b"), pod("c"))
    assert set(cluster.nodes().values()) == {""}
    status, reason, message = cluster.condition()
    assert (status, reason) == ("False", "SchedulerError")
    assert message.startswith("failed to schedule other pod from a pod group: ")
    assert "too much" in message
    assert "too much" in cluster.reported("b")
    assert cluster.engine.machine.cluster.assumed_pods() == []


def test_pods_of_two_profiles_are_no_group() -> None:
    entries = []
    for name, scheduler in (("a", "one"), ("b", "two")):
        raw = pod(name, schedulerName=scheduler)
        made = parse(raw)
        assert isinstance(made, Pod)
        entries.append(QueuedPod(made, made.key, 0))
    same = "all pods in a single pod group should have the same .spec.schedulerName set"
    assert profile_fault(entries) == f'{same}, got: "one" and "two"'
    assert profile_fault(entries[:1]) == ""


def _condition(**answer: Any) -> Raw:
    return {
        "type": "PodGroupScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": UNSCHEDULABLE,
        **answer,
    }


@pytest.mark.parametrize(
    ("before", "status", "after"),
    [
        pytest.param([], Status(Code.SUCCESS), ("True", "Scheduled", "t2"), id="new"),
        pytest.param([], error("x"), ("False", "SchedulerError", "t2"), id="an-error"),
        pytest.param(
            [_condition(lastTransitionTime="t1", message="x")],
            unschedulable(UNSCHEDULABLE),
            ("False", "Unschedulable", "t1"),
            id="other-words-are-no-transition",
        ),
        pytest.param([_condition(lastTransitionTime="t1")], unschedulable(UNSCHEDULABLE), None, id="nothing-new"),
        pytest.param(
            [_condition(lastTransitionTime="t1", status="True", reason="Scheduled", message="")],
            unschedulable(UNSCHEDULABLE),
            None,
            id="once-scheduled-always-scheduled",
        ),
        pytest.param(
            [_condition(lastTransitionTime="t1")], Status(Code.SUCCESS), ("True", "Scheduled", "t2"), id="a-transition"
        ),
    ],
)
def test_the_condition_of_a_group(before: list[Raw], status: Status, after: tuple[str, str, str] | None) -> None:
    found = group_condition(parse({**group(2), "status": {"conditions": before}}), status, "t2")
    if after is None:
        assert found is None
    else:
        assert isinstance(found, MergePatch)
        [one] = found.patch["status"]["conditions"]
        assert (one["status"], one["reason"], one["lastTransitionTime"]) == after
