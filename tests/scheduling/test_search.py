"""Tests of the nodes that an attempt visits: where it ends, and where the next one starts."""

from typing import Any

import pytest

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.config.changing.changes import with_percentage
from kschedd.config.loading.load import default_config
from kschedd.config.versions.kube_versions import V1_34
from kschedd.framework.status import unschedulable
from kschedd.scheduling.attempt.node_search import nodes_to_find
from kschedd.scheduling.attempt.outcome import ScheduleResult
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.machine import SchedulingMachine
from tests.scheduling.test_scheduler import machine as machine_with
from tests.scheduling.test_scheduler import plugin


@pytest.mark.parametrize(
    ("nodes", "percentage", "wanted"),
    [
        pytest.param(99, 0, 99, id="a-small-cluster-is-searched-whole"),
        pytest.param(99, 10, 99, id="whatever-the-percentage"),
        pytest.param(100, 0, 100, id="never-fewer-than-a-hundred"),
        pytest.param(1000, 0, 420, id="adaptive-42-percent-at-1000"),
        pytest.param(5000, 0, 500, id="adaptive-10-percent-at-5000"),
        pytest.param(15000, 0, 750, id="adaptive-never-under-5-percent"),
        pytest.param(5000, 1, 100, id="one-percent-is-still-a-hundred"),
        pytest.param(5000, 100, 5000, id="all-of-them"),
        pytest.param(5000, 101, 5000, id="never-more-than-there-are"),
    ],
)
def test_how_many_feasible_nodes_end_the_search(nodes: int, percentage: int, wanted: int) -> None:
    assert nodes_to_find(nodes, percentage) == wanted


def node(name: str, zone: str = "", **spec: Any) -> Node:
    labels = {"topology.kubernetes.io/zone": zone} if zone else {}
    status = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}}
    return Node.from_raw({"kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec, "status": status})


def pod(name: str, **spec: Any) -> Pod:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]
    meta = {"name": name, "namespace": "default", "uid": name}
    return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": {"containers": containers, **spec}})


def machine(*nodes: Node, percentage: int = 0) -> SchedulingMachine:
    config = with_percentage(default_config(version=V1_34), percentage) if percentage else default_config(version=V1_34)
    made = SchedulingMachine(config, seed=1)
    made.cluster.load(nodes)
    return made


def visited(made: SchedulingMachine, name: str) -> list[str]:
    result = drive(made.begin(pod(name), {}))
    assert isinstance(result, ScheduleResult)
    return [made.cluster.table.names[row] for row in result.verdicts.rows.tolist()]


BETA = "failure-domain.beta.kubernetes.io/zone"


@pytest.mark.parametrize(
    ("labels", "zone"),
    [
        pytest.param({"topology.kubernetes.io/zone": "a"}, ":\x00:a", id="zone"),
        pytest.param({"topology.kubernetes.io/zone": "a", BETA: "b"}, ":\x00:b", id="beta-label-first"),
        pytest.param({"topology.kubernetes.io/zone": "a", BETA: ""}, "", id="beta-label-first-if-empty"),
        pytest.param(
            {"topology.kubernetes.io/region": "r", "failure-domain.beta.kubernetes.io/region": "", BETA: "b"},
            ":\x00:b",
            id="region-likewise",
        ),
        pytest.param({}, "", id="neither"),
    ],
)
def test_the_zone_that_orders_nodes(labels: dict[str, str], zone: str) -> None:
    assert Node.from_raw({"kind": "Node", "metadata": {"name": "n", "labels": labels}}).zone == zone


def test_nodes_are_visited_zone_by_zone_in_turn() -> None:
    made = machine(node("a1", "a"), node("a2", "a"), node("a3", "a"), node("b1", "b"), node("c1", "c"), node("c2", "c"))
    assert visited(made, "p") == ["a1", "b1", "c1", "a2", "c2", "a3"]


def test_the_next_pod_starts_where_the_last_one_stopped() -> None:
    made = machine(*(node(f"n{number:03}") for number in range(250)), percentage=40)
    assert visited(made, "p1") == [f"n{number:03}" for number in range(100)]
    assert visited(made, "p2") == [f"n{number:03}" for number in range(100, 200)]
    assert visited(made, "p3") == [f"n{number % 250:03}" for number in range(200, 300)]


def test_nodes_that_do_not_fit_are_passed_and_count_as_visited() -> None:
    made = machine(*(node(f"n{n:03}", unschedulable=n % 2 == 0) for n in range(300)), percentage=34)
    first = visited(made, "p1")
    assert len(first) == 204  # 102 feasible nodes, and the cordoned nodes between them
    assert visited(made, "p2")[0] == "n204"


def test_a_search_in_several_windows_visits_the_nodes_in_turn() -> None:
    names = [f"n{number:03}" for number in range(300)]
    late = plugin("Late", filter=lambda state, pod, node: None if int(node.name[1:]) % 3 else unschedulable("no"))
    made = machine_with(late, nodes=[node(name) for name in names])
    [scheduler] = made.schedulers.values()
    scheduler.profile.percentage = 34
    for start in (0, 153, 6):
        assert made.start.index == start
        result = drive(made.begin(pod("p"), {}))
        assert [name for name, _ in result.verdicts.by_node()] == [names[(start + n) % 300] for n in range(153)]
        assert result.feasible.tolist() == [row for row in result.verdicts.rows.tolist() if row % 3]


def test_the_search_ends_at_the_last_feasible_node_if_exactly_enough_are_feasible() -> None:
    feasible = {*range(9), *range(20, 111)}
    made = machine(*(node(f"n{n:03}", unschedulable=n not in feasible) for n in range(150)), percentage=67)
    for name in ("p1", "p2", "p3"):  # the later ones use cached results
        made.start.index = 10
        assert visited(made, name) == [f"n{n % 150:03}" for n in range(10, 150 + 9)]


def test_a_nominated_node_that_prefilter_leaves_out_is_asked_all_the_same() -> None:
    """Visit it first, as upstream does before it reads the PreFilter result; the diagnosis keeps its verdict."""
    only_b = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [only_b]}}
    wishing = pod("p", affinity={"nodeAffinity": required})
    wishing = Pod.from_raw({**wishing.raw, "status": {"nominatedNodeName": "a"}})
    made = machine(node("a", unschedulable=True), node("b", unschedulable=True), node("c"), node("d"))
    result = drive(made.begin(wishing, {}))
    answer = "2 node(s) didn't satisfy plugin(s) [NodeAffinity NodeUnschedulable], 2 node(s) were unschedulable."
    assert result.message.startswith(f"0/4 nodes are available: {answer}")
    assert result.diagnosis.unschedulable_plugins == {"NodeAffinity", "NodeUnschedulable"}


def test_a_cluster_without_nodes_says_so() -> None:
    result = drive(machine().begin(pod("p"), {}))
    assert result.message == "no nodes available to schedule pods"


def test_one_seed_makes_the_same_choices_and_another_others() -> None:
    def run(seed: int) -> list[str]:
        made = SchedulingMachine(default_config(version=V1_34), seed=seed)
        made.cluster.load(node(f"n{number}") for number in range(50))
        chosen = []
        for number in range(20):
            result = drive(made.begin(pod(f"p{number}"), {}))
            made.cluster.assume(result.pod, result.node_name)
            chosen.append(result.node_name)
        return chosen

    assert run(7) == run(7)
    assert run(7) != run(8)


def test_ties_are_broken_evenly() -> None:
    made = machine(*(node(f"n{number}") for number in range(4)))
    counts: dict[str, int] = {}
    for number in range(400):
        result = drive(made.begin(pod(f"p{number}"), {}))
        counts[result.node_name] = counts.get(result.node_name, 0) + 1
    assert set(counts) == {"n0", "n1", "n2", "n3"}
    assert min(counts.values()) > 60
