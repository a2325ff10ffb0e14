"""Tests of NodeTies, which chooses among equally good nodes, against a plain heap of Go's container/heap."""

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.clusters.virtual import VirtualCluster
from kschedd.config.loading.load import default_config
from kschedd.config.versions.kube_versions import V1_34, V1_35, V1_36, KubernetesVersion, kube_version
from kschedd.scheduling.attempt.batch import SortedNodes
from kschedd.scheduling.attempt.ties import NodeTies, first_in_heap, heapify, pop_first
from kschedd.scheduling.machine import SchedulingMachine


class PlainHeap:
    """The functions Init, Pop and down of container/heap, over entries of total and name, the highest total first."""

    def __init__(self, entries: list[tuple[int, str]]) -> None:
        self.entries = list(entries)
        for at in reversed(range(len(entries) // 2)):
            self._down(at, len(entries))

    def pop(self) -> str:
        last = len(self.entries) - 1
        self._swap(0, last)
        self._down(0, last)
        return self.entries.pop()[1]

    def _less(self, i: int, j: int) -> bool:
        return self.entries[i][0] > self.entries[j][0]

    def _swap(self, i: int, j: int) -> None:
        self.entries[i], self.entries[j] = self.entries[j], self.entries[i]

    def _down(self, i: int, n: int) -> None:
        while True:
            left = 2 * i + 1
            if left >= n:
                return
            j = left
            right = left + 1
            if right < n and self._less(right, left):
                j = right
            if not self._less(j, i):
                return
            self._swap(i, j)
            i = j


def test_the_first_of_a_heap_is_not_always_the_first_that_was_visited() -> None:
    assert first_in_heap(np.array([2, 3])) == 1, "place 3 is below place 1, which is left of place 2"
    assert first_in_heap(np.array([0, 1])) == 0


@given(st.lists(st.integers(0, 3), min_size=1, max_size=80))
def test_the_order_is_that_of_container_heap(totals: list[int]) -> None:
    names = [f"n{place}" for place in range(len(totals))]
    plain = PlainHeap(list(zip(totals, names, strict=True)))
    expected = [plain.pop() for _ in names]
    places = (np.array(totals) == max(totals)).nonzero()[0]
    assert names[int(places[first_in_heap(places)])] == expected[0]
    left, order = list(totals), list(names)
    heapify(left, order)
    popped = []
    while order:
        popped.append(order[0])
        pop_first(left, order)
    assert popped == expected


@given(st.lists(st.integers(0, 3), min_size=2, max_size=40))
def test_a_batch_goes_on_with_the_heap_of_its_first_attempt(totals: list[int]) -> None:
    names = [f"n{place}" for place in range(len(totals))]
    plain = PlainHeap(list(zip(totals, names, strict=True)))
    expected = [plain.pop() for _ in names]
    places = np.arange(len(totals))
    nodes = SortedNodes.of(expected[0], places, np.array(totals), names, {"Plugin": places})
    ties, got = NodeTies(Random(0), drawn=False), [expected[0]]
    while nodes:
        got.append(nodes.pop(ties))
        assert nodes.names == [f"n{place}" for place in nodes.raw["Plugin"]], "raw scores stay with their nodes"
    assert got == expected


def test_drawn_ties_go_by_the_seed() -> None:
    rows, names = np.arange(10), [f"n{place}" for place in range(10)]
    drawn = [[NodeTies(Random(seed))(rows, names, rows) for _ in range(3)] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_fork_makes_the_same_choices_from_then_on() -> None:
    rows, names = np.arange(10), [f"n{place}" for place in range(10)]
    for drawn in (True, False):
        ties = NodeTies(Random(5), drawn)
        ties(rows, names, None)
        fork = ties.fork()
        assert fork.drawn is drawn
        assert [fork(rows, names, None) for _ in range(5)] == [ties(rows, names, None) for _ in range(5)]


def test_where_an_extender_scored_one_is_drawn_by_every_release() -> None:
    rows, names = np.arange(10), [f"n{place}" for place in range(10)]
    in_order, drawn = NodeTies(Random(3), drawn=False), NodeTies(Random(3))
    assert [in_order(rows, names, None) for _ in range(5)] == [drawn(rows, names, None) for _ in range(5)]
    assert in_order(rows, names, rows) == 0


@pytest.mark.parametrize(
    ("version", "drawn"),
    [
        pytest.param(V1_34, True, id="before-1.35"),
        pytest.param(V1_35, False, id="since-1.35"),
        pytest.param(V1_36.with_random_ties(), True, id="asked-for"),
        pytest.param(kube_version("1.36 with random ties"), True, id="by-name"),
    ],
)
def test_the_version_decides_how_ties_are_broken(version: KubernetesVersion, drawn: bool) -> None:
    machine = SchedulingMachine(default_config(version=version))
    assert isinstance(machine.choose, NodeTies)
    assert machine.choose.drawn is drawn
    machine.reconfigure(default_config(version=V1_36))
    assert not machine.choose.drawn


def _node(name: str) -> dict[str, Any]:
    room = {"cpu": "4", "memory": "8Gi", "pods": "9"}
    status = {"allocatable": room, "capacity": room}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def _pod(name: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pods_take_equal_nodes_in_turn_since_1_35(seed: int) -> None:
    engine = VirtualCluster(default_config(version=V1_36), seed=seed).engine
    for name in ("a", "b", "c"):
        engine.store.create(_node(name))
    for name in ("p0", "p1", "p2"):
        engine.store.create(_pod(name))
    engine.run_until_idle()
    found = [engine.store.get("Pod", "default", name) for name in ("p0", "p1", "p2")]
    assert [pod.raw["spec"]["nodeName"] for pod in found if pod is not None] == ["a", "b", "c"]
