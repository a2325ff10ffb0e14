"""Tests of PodGroups with topology constraints (1.37): domains, their scores, and the message if none fits."""

from typing import Any

import pytest

from kschedd.api.pods import Pod
from kschedd.clusters.virtual import VirtualCluster
from kschedd.config.loading.load import config_from_raw
from kschedd.config.versions.kube_versions import V1_37
from kschedd.framework.status import Status, error
from kschedd.metrics.catalogue import GENERATED_PLACEMENTS, PLACEMENT_EVALUATION_DURATION, PLACEMENT_EVALUATIONS
from kschedd.plugins.podgrouppodscount import PodGroupPodsCount
from kschedd.plugins.resources.noderesourcesfit import NodeResourcesFit
from kschedd.scheduling.profiles.metrics import SchedulingMetrics
from tests.scheduling.test_metrics import shown
from tests.scheduling.test_pod_groups_of_1_37 import HIGH, group, pod

Raw = dict[str, Any]
GATES = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}
ZONE = "topology.kubernetes.io/zone"
IN_ZONE = {"schedulingConstraints": {"topology": [{"key": ZONE}]}}


def node(name: str, zone: str, cpu: int) -> Raw:
    labels = {ZONE: zone} if zone else {}
    amounts = {"cpu": str(cpu), "memory": "8Gi", "pods": "10"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": amounts},
    }


class Cluster:
    def __init__(self, *objects: Raw, plugins: Raw | None = None, controlled: bool = True) -> None:
        profile = {"schedulerName": "default-scheduler", **({"plugins": plugins} if plugins else {})}
        config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        loaded = config_from_raw({**config, "profiles": [profile]}, version=V1_37, feature_gates=GATES)
        self.engine = VirtualCluster(loaded, controlled=controlled).engine
        self.add(HIGH, *objects)

    def add(self, *objects: Raw) -> None:
        for raw in objects:
            self.engine.store.create(raw)
        self.engine.run_to_rest()

    def nodes(self) -> dict[str, str]:
        return {each.name: each.node_name for each in self.engine.store.list("Pod") if isinstance(each, Pod)}

    def message(self) -> str:
        [one] = self.engine.store.get("PodGroup.scheduling.k8s.io", "default", "gang").status["conditions"]
        return str(one["message"])


def test_all_pods_of_a_group_are_placed_in_one_domain() -> None:
    cluster = Cluster(node("a1", "a", 1), node("b1", "b", 1), node("b2", "b", 1))
    cluster.add(group(2, **IN_ZONE), pod("p"), pod("q"))
    assert set(cluster.nodes().values()) == {"b1", "b2"}


def test_without_a_constraint_the_domains_do_not_matter() -> None:
    cluster = Cluster(node("a1", "a", 1), node("b1", "b", 1))
    cluster.add(group(2), pod("p"), pod("q"))
    assert set(cluster.nodes().values()) == {"a1", "b1"}


def test_the_fuller_domain_is_preferred() -> None:
    cluster = Cluster(node("a1", "a", 8), node("b1", "b", 2))
    cluster.add(group(2, **IN_ZONE), pod("p"), pod("q"))
    assert set(cluster.nodes().values()) == {"b1"}


def test_the_domain_for_more_pods_is_preferred() -> None:
    cluster = Cluster(node("a1", "a", 2), node("b1", "b", 3))
    cluster.add(group(2, **IN_ZONE), pod("p"), pod("q"), pod("r"))
    assert set(cluster.nodes().values()) == {"b1"}


def test_a_weight_changes_the_choice() -> None:
    plugins = {"placementScore": {"enabled": [{"name": "NodeResourcesFit", "weight": 100}]}}
    cluster = Cluster(node("a1", "a", 2), node("b1", "b", 3), node("b2", "b", 8), plugins=plugins)
    cluster.add(group(2, **IN_ZONE), pod("p"), pod("q"), pod("r"))
    assert set(cluster.nodes().values()) == {"a1", ""}


def _scoring(monkeypatch: pytest.MonkeyPatch, plugin: type[Any], scores: list[int] | Status) -> None:
    monkeypatch.setattr(plugin, "score_placements", lambda self, group, placements, table: scores)


def test_scores_are_multiplied_by_their_weights_and_added(monkeypatch: pytest.MonkeyPatch) -> None:
    _scoring(monkeypatch, NodeResourcesFit, [10, 11])
    _scoring(monkeypatch, PodGroupPodsCount, [100, 0])
    chosen = []
    for weight in (1, 200):
        plugins = {"placementScore": {"enabled": [{"name": "NodeResourcesFit", "weight": weight}]}}
        cluster = Cluster(node("a1", "a", 2), node("b1", "b", 2), plugins=plugins)
        cluster.add(group(2, **IN_ZONE), pod("p"), pod("q"))
        chosen += set(cluster.nodes().values())
    assert chosen == ["a1", "b1"]


def test_an_error_of_a_placements_score_is_the_error_of_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    _scoring(monkeypatch, PodGroupPodsCount, error("no idea"))
    cluster = Cluster(node("a1", "a", 2), node("b1", "b", 2))
    cluster.add(group(2, **IN_ZONE), pod("p"), pod("q"))
    assert set(cluster.nodes().values()) == {""}
    assert cluster.message() == 'running PlacementScore plugins: plugin "PodGroupPodsCount" failed with: no idea'


def test_an_error_in_one_placement_ends_the_trials_uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    filter_rows = NodeResourcesFit.filter_rows

    def fails(self: NodeResourcesFit, state: Any, pod: Pod, *args: Any) -> Any:
        if pod.name == "q":
            raise OverflowError("too much")
        return filter_rows(self, state, pod, *args)

    monkeypatch.setattr(NodeResourcesFit, "filter_rows", fails)
    cluster = Cluster(node("a1", "a", 2), node("b1", "b", 2))
    machine = cluster.engine.driver.machine
    machine.metrics = SchedulingMetrics(lambda: 0.0)
    machine.reconfigure(machine.config)
    for raw in (group(2, **IN_ZONE), pod("p"), pod("q")):
        cluster.engine.store.create(raw)
    cluster.engine.run_until_idle()
    assert set(cluster.nodes().values()) == {""}
    assert "too much" in cluster.message()
    assert not shown(cluster.engine.driver).get(PLACEMENT_EVALUATIONS.name)


def test_without_the_generator_all_nodes_are_one_placement() -> None:
    plugins = {"placementGenerate": {"disabled": [{"name": "*"}]}}
    cluster = Cluster(node("a1", "a", 1), node("b1", "b", 1), plugins=plugins)
    cluster.add(group(2, **IN_ZONE), pod("p"), pod("q"))
    assert set(cluster.nodes().values()) == {"a1", "b1"}


def test_further_pods_go_to_the_domain_of_the_placed_ones() -> None:
    cluster = Cluster(node("a1", "a", 2), node("b1", "b", 8))
    cluster.add(group(1, **IN_ZONE), pod("p"))
    assert cluster.nodes() == {"p": "a1"}
    cluster.add(pod("q"), pod("r"))
    assert set(cluster.nodes().values()) == {"a1", ""}


def test_a_fuller_domain_is_not_preferred_to_the_domain_of_the_placed_pods() -> None:
    cluster = Cluster(node("a1", "a", 2), node("b1", "b", 8), controlled=False)
    cluster.add(group(1, **IN_ZONE), pod("p", nodeName="b1"), pod("q", nodeName="b1"), pod("r"))
    assert cluster.nodes()["r"] == "b1"


def test_a_group_that_fits_nowhere_reports_its_first_domain() -> None:
    cluster = Cluster(node("a1", "a", 1), node("b1", "b", 1))
    cluster.add(group(2, **IN_ZONE), pod("p"), pod("q"))
    assert set(cluster.nodes().values()) == {""}
    assert cluster.message() == (
        "pod group is unschedulable, 0/2 placements are available, first placement status: "
        "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining, "
        "pod group preemption: No preemption victims found for incoming preemptor"
    )


def test_nodes_without_the_label_are_in_no_domain() -> None:
    cluster = Cluster(node("a1", "", 8))
    cluster.add(group(1, **IN_ZONE), pod("p"))
    assert cluster.message().startswith("no feasible placements found")


@pytest.mark.parametrize(
    ("on", "message"),
    [
        (("a1", "b1"), "more than 1 domain found for pod group: a, b"),
        (("c1",), "no topology domain found for pod default/on-c1"),
        (("gone",), 'getting node for pod default/on-gone: nodeinfo not found for node name "gone"'),
    ],
)
def test_placed_pods_without_one_domain_are_an_error(on: tuple[str, ...], message: str) -> None:
    cluster = Cluster(node("a1", "a", 8), node("b1", "b", 8), node("c1", "", 8), controlled=False)  # keeps all pods
    cluster.add(group(1, **IN_ZONE), *(pod(f"on-{name}", nodeName=name) for name in on))
    cluster.add(pod("p"))
    assert cluster.nodes()["p"] == ""
    assert cluster.message() == f"cannot determine domain for already scheduled pods: {message}"


def test_a_group_preempts_in_one_domain() -> None:
    cluster = Cluster(node("a1", "a", 1), node("b1", "b", 2))
    cluster.add(pod("low-1", "", nodeName="b1"), pod("low-2", "", nodeName="b1"))
    high = {"priorityClassName": "high"}
    cluster.add(group(2, **high, **IN_ZONE), pod("p", **high), pod("q", **high))
    assert {name: on for name, on in cluster.nodes().items() if not name.startswith("low")} == {"p": "b1", "q": "b1"}


def test_victims_on_an_unknown_node_are_an_error() -> None:
    cluster = Cluster(node("a1", "a", 1), controlled=False)  # keeps the pod of the unknown node
    low = [pod(f"on-{name}", "low", nodeName=name) for name in ("a1", "gone")]
    cluster.add(group(2, "low", disruptionMode={"all": {}}), *low)
    high = {"priorityClassName": "high"}
    cluster.add(group(1, **high), pod("p", **high))
    why = 'failed to get node info for node "gone" from snapshot: nodeinfo not found for node name "gone"'
    assert cluster.message() == (
        f'error in "DefaultPreemption" PodGroupPostFilter plugins: pod group preemption: failed to create domain: {why}'
    )


def test_the_trials_are_counted() -> None:
    cluster = Cluster(node("a1", "a", 1), node("b1", "b", 2), node("c1", "c", 2))
    machine = cluster.engine.driver.machine
    machine.metrics = SchedulingMetrics(lambda: 0.0)
    machine.reconfigure(machine.config)
    cluster.add(group(2, **IN_ZONE), pod("p"), pod("q"))
    found, profile = shown(cluster.engine.driver), "default-scheduler"
    assert found[GENERATED_PLACEMENTS.name] == {(profile,): 3}
    assert found[PLACEMENT_EVALUATIONS.name] == {("feasible", profile): 2, ("infeasible", profile): 1}
    assert found[PLACEMENT_EVALUATION_DURATION.name] == {("feasible", profile): (2, 0), ("infeasible", profile): (1, 0)}
