"""Tests of the verdicts on nodes with nominated pods: their inputs, their cache, and faults of plugins."""

from collections.abc import Callable
from typing import Any

import pytest

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Code, Status, unschedulable
from kschedd.scheduling.nominations.counted import NominatedPods
from kschedd.scheduling.nominations.nominator import Nominator
from kschedd.scheduling.verdicts import EXPLICIT
from tests.scheduling.test_scheduler import machine, plugin

SPREAD = [
    {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
]


def node(name: str, cpu: int = 4, **spec: Any) -> Node:
    status = {"allocatable": {"cpu": str(cpu), "memory": "8Gi", "pods": "9"}}
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    return Node.from_raw({"kind": "Node", "metadata": meta, "spec": spec, "status": status})


def pod(name: str, cpu: int = 1, on: str = "", app: str = "", priority: int = 0, **spec: Any) -> Pod:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}]
    spec = {"containers": containers, "priority": priority, **spec}
    meta = {"name": name, "namespace": "default", "uid": name, "labels": {"app": app}}
    return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": {**spec, "nodeName": on} if on else spec})


class Cluster:
    """A cluster of the nodes a to d with four CPUs each, and nominated pods."""

    def __init__(self, *plugins: type[Any]) -> None:
        made = machine(*plugins, nodes=[node(name) for name in "abcd"])
        self.scheduler = made.schedulers["default-scheduler"]
        self.cluster = made.cluster
        self.nominator = Nominator()
        self.tried: list[Pod] = []  # a signature is kept as long as a pod has it

    def nominate(self, name: str, on: str, cpu: int = 4, **fields: Any) -> None:
        self.nominator.add(pod(name, cpu, priority=9, **fields), on)

    def rejected(self, incoming: Pod, cached: bool = False) -> dict[str, str | Status]:
        """Return the nodes that are rejected with their nominated pods, each with the plugin or the status."""
        self.tried.append(incoming)
        state, table = CycleState(), self.cluster.table
        self.scheduler.pre_filters.at_once(state, incoming)
        counted = NominatedPods(table, incoming, self.nominator.nominated).everywhere
        known = None
        if cached:
            for _ in range(2):  # the first attempt of a class has no evaluation of its own
                known = self.scheduler.evaluations.of(incoming, state)
            assert known is not None
            assert not known.shared
        rows = table.order
        found = self.scheduler.search.nominated_pods.rejected(state, incoming, rows, counted, known)
        names = {}
        for row, failed, code in zip(rows[found.places].tolist(), found.failed, found.codes.tolist(), strict=True):
            explicit = code == EXPLICIT
            assert explicit is (row in found.explicit_status)
            filters = self.scheduler.profile.filters
            names[table.names[row]] = found.explicit_status[row] if explicit else filters[failed].name
        return names

    def both(self, incoming: Pod) -> dict[str, str | Status]:
        """Return the rejected nodes after comparing them with the cached verdicts."""
        found = self.rejected(incoming)
        assert self.rejected(incoming, cached=True) == found
        return found


def test_nodes_without_room_beside_their_nominated_pods_are_rejected() -> None:
    made = Cluster()
    assert made.both(pod("p")) == {}
    made.nominate("full", "a")
    made.nominate("small", "b", cpu=1)
    assert made.both(pod("p")) == {"a": "NodeResourcesFit"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(lambda made: made.nominate("q", "b"), "ab", id="a-nomination"),
        pytest.param(lambda made: made.nominate("q", "c"), "ac", id="a-further-nomination"),
        pytest.param(lambda made: made.nominator.remove(pod("n")), "", id="no-nomination"),
        pytest.param(lambda made: made.nominate("n", "a", cpu=1), "", id="a-smaller-nominated-pod"),
        pytest.param(lambda made: made.cluster.put_node(node("a", 9)), "", id="a-larger-node"),
        pytest.param(lambda made: made.cluster.put_node(node("c", 1)), "ac", id="a-smaller-node"),
        pytest.param(lambda made: made.cluster.put_pod(pod("r", 3, on="c")), "ac", id="a-pod"),
        pytest.param(lambda made: made.cluster.remove_node("a"), "", id="no-node"),
    ],
)
@pytest.mark.parametrize("limit", [1000, 2], ids=["logged", "log-too-short"])
def test_cached_verdicts_are_updated_after(change: Callable[[Cluster], None], expected: str, limit: int) -> None:
    made = Cluster()
    made.cluster.versions.nodes.limit = limit
    made.nominate("n", "a")
    made.nominate("m", "c", cpu=1)
    assert list(made.both(pod("p"))) == ["a"]
    change(made)
    for _ in range(8 if limit == 2 else 0):
        made.cluster.put_node(node("d"))
    assert "".join(made.both(pod("p"))) == expected


def test_cached_verdicts_cover_nodes_that_were_added() -> None:
    made = Cluster()
    made.nominate("n", "a")
    assert list(made.both(pod("p"))) == ["a"]
    capacity = made.cluster.table.capacity
    for number in range(capacity):
        made.cluster.put_node(node(f"n{number}"))
    assert made.cluster.table.capacity > capacity
    made.nominate("m", f"n{capacity - 1}")
    assert list(made.both(pod("p"))) == ["a", f"n{capacity - 1}"]


def test_verdicts_that_depend_on_other_nodes_are_not_cached() -> None:
    made = Cluster()
    made.nominate("n", "a", cpu=1, app="x")
    spread = pod("p", app="x", topologySpreadConstraints=SPREAD)
    assert made.both(spread) == {"a": "PodTopologySpread"}
    for name in "bcd":
        made.cluster.put_pod(pod(f"on-{name}", on=name, app="x"))
    assert made.both(spread) == {}


def test_only_the_rows_rejected_by_a_per_node_filter_have_a_status_of_their_own() -> None:
    status = unschedulable("no")
    made = Cluster(plugin("Own", filter=lambda state, pod, node: status if node.name == "b" else None))
    made.nominate("n", "a")
    made.nominate("m", "b", cpu=1)
    assert made.rejected(pod("p")) == {"a": "NodeResourcesFit", "b": status.by("Own")}


@pytest.mark.parametrize("raises", [False, True])
def test_a_plugin_that_follows_pods_rejects_a_node_or_fails_on_it(raises: bool) -> None:
    def pre_filter(state: Any, pod: Any, cluster: Any) -> None:
        state.data["added"] = ()

    def add_pod(state: Any, pod: Any, other: Any, node: Any) -> None:
        if raises and node.name == "a":
            raise ValueError("broken")
        state.data["added"] += (other.name,)

    own = plugin(
        "Own",
        pre_filter=pre_filter,
        add_pod=add_pod,
        remove_pod=add_pod,
        filter=lambda state, pod, node: unschedulable(" ".join(state.data["added"])) if "b" in node.name else None,
    )
    made = Cluster(own)
    for on in "abc":
        made.nominate(f"on-{on}", on, cpu=1)
    found = made.rejected(pod("p"))
    assert found.pop("b") == unschedulable("on-b").by("Own")
    if raises:
        status = found.pop("a")
        assert isinstance(status, Status)
        assert status.code == Code.ERROR
        assert "broken" in status.message
    assert found == {}
