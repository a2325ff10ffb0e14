"""Tests that the data kept about each node's pods always equals data computed from scratch."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.scheduling.preemption.row_pods import PodsByImportance, RowPods, importance

NODES = 3


def node(number: int) -> Node:
    return Node.from_raw({"kind": "Node", "metadata": {"name": f"n{number}"}, "status": {"allocatable": {"cpu": "4"}}})


def pod(name: str, on: int, priority: int, start: int | None) -> Pod:
    status: dict[str, Any] = {} if start is None else {"startTime": f"2025-01-01T00:00:{start:02}Z"}
    meta = {"name": name, "namespace": "default", "uid": name}
    spec = {"containers": [], "priority": priority, "nodeName": f"n{on}"}
    return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": spec, "status": status})


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "remove", "node"]),
        st.sampled_from("abcde"),
        st.integers(0, NODES - 1),
        st.integers(-1, 2),
        st.none() | st.integers(0, 3),
    ),
    max_size=20,
)


@given(CHANGES, st.integers(-2, 3))
@settings(max_examples=60, deadline=None)
def test_the_pods_of_each_row(changes: list[tuple[str, str, int, int, int | None]], priority: int) -> None:
    cluster = SchedulerCache()
    cluster.load(node(number) for number in range(NODES))
    kept = PodsByImportance(cluster.table, unstarted_in_order=True)
    for what, name, on, own, start in changes:
        if what == "put":
            cluster.put(pod(name, on, own, start))
        elif what == "remove":
            cluster.remove(pod(name, on, own, start))
        else:
            cluster.remove(node(on))
            cluster.put(node(on))
        rows = np.array(list(cluster.table), dtype=np.int64)
        for row, found in zip(rows.tolist(), kept.on(rows), strict=True):
            there = cluster.table.pods[row]
            assert list(found.pods) == sorted(there, key=importance)
            assert found.kinds == RowPods.of(there, unstarted_in_order=True).kinds
            below = found.below(priority)
            assert list(below.pods) == [each for each in sorted(there, key=importance) if each.priority < priority]
            assert list(below.kinds) == [each.signature.id for each in below.pods]


@pytest.mark.parametrize(
    ("in_order", "expected"),
    [pytest.param(True, "gacfbde", id="since-1.37"), pytest.param(False, "gacfedb", id="before-1.37")],
)
def test_equal_pods_that_have_not_started(in_order: bool, expected: str) -> None:
    pods = [
        pod("a", 0, 1, None),
        pod("b", 0, 0, None),
        pod("c", 0, 0, 1),
        pod("d", 0, 0, None),
        pod("e", 0, 0, None),
        pod("f", 0, 0, 1),
        pod("g", 0, 2, None),
    ]
    assert "".join(each.name for each in RowPods.of(pods, in_order).pods) == expected


def test_two_pods_that_have_not_started_change_places_before_1_37() -> None:
    pods = [pod("a", 0, 0, None), pod("b", 0, 0, None), pod("c", 0, 0, 1)]
    assert ["".join(each.name for each in RowPods.of(pods, in_order).pods) for in_order in (True, False)] == [
        "cab",
        "cba",
    ]
