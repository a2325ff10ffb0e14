"""Tests that a batch of pods, added to rows of a copy, equals adding the pods one by one."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.cache.pod_batch import PodBatch
from kschedd.cache.table import NodeTable, TableCopy
from tests.cache.made import pod
from tests.full_run import examples

ROWS = 3
_requests = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(("1", "250m")),
        "memory": st.sampled_from(("1Gi", "9223372036854775807")),
        "example.com/gpu": st.sampled_from(("1", "3")),
    },
)
_pods = st.tuples(
    st.integers(0, ROWS - 1),
    _requests,
    st.sampled_from((0, 0, 80, 81)),  # host port
    st.sampled_from((None, None, "3", "4")),  # CPU in its status, during a resize
)


def table() -> NodeTable:
    made = NodeTable()
    for number in range(ROWS):
        allocatable = {"cpu": "64", "memory": "64Gi", "pods": "110", "example.com/gpu": "8"}
        raw = {"kind": "Node", "metadata": {"name": f"n{number}"}, "status": {"allocatable": allocatable}}
        made.put_node(Node.from_raw(raw))
    return made


def columns(copy: TableCopy) -> Any:
    by_name = {name: copy.requested[number].tolist() for name, number in copy.resources.items()}
    ports = {row: used for row, used in copy.ports.items() if used}
    return by_name, copy.nonzero.tolist(), copy.pod_count.tolist(), ports


def changed_rows(copy: TableCopy, stamp: int) -> list[bool]:
    return [bool(changed_at > stamp) for changed_at in copy.versions.row_pods_at]


@settings(max_examples=examples(80), deadline=None)
@given(st.lists(_pods, min_size=1, max_size=12), st.lists(st.integers(0, ROWS - 1), unique=True))
def test_a_batch_counts_as_its_pods_do_one_by_one(made: list[Any], again: list[int]) -> None:
    whole = table()
    by_row: list[list[Pod]] = [[] for _ in range(ROWS)]
    used: set[tuple[int, int]] = set()
    for number, (row, requests, port, resized) in enumerate(made):
        free = port if (row, port) not in used else 0
        used.add((row, port))
        by_row[row].append(pod(number, requests, free, resized))
    for row, pods in enumerate(by_row):
        for each in pods:
            whole.add_pod(row, each)
    rows = np.array([row for row, pods in enumerate(by_row) if pods], dtype=np.int64)
    first = np.cumsum([0, *(len(by_row[row]) for row in rows)])[:-1]
    together, one_by_one = whole.copy_rows(range(ROWS)), whole.copy_rows(range(ROWS))
    batch = PodBatch.made([each for pods in by_row for each in pods], together)

    batch.count_all(together, rows, first, -1)
    for row, pods in enumerate(by_row):
        for each in pods:
            one_by_one.remove_pod(row, each)
    assert columns(together) == columns(one_by_one)
    assert changed_rows(together, 0) == changed_rows(one_by_one, 0)

    stamps = together.versions.now, one_by_one.versions.now
    there = [(row, int(first[place])) for place, row in enumerate(rows.tolist()) if row in again]
    chosen = np.array([row for row, _ in there], dtype=np.int64)
    batch.count(together, chosen, np.array([place for _, place in there], dtype=np.int64), 1)
    for row, place in there:
        one_by_one.add_pod(row, batch.pods[place])
    assert columns(together) == columns(one_by_one)
    assert changed_rows(together, stamps[0]) == changed_rows(one_by_one, stamps[1])


def test_the_number_of_pods_and_a_request_of_zero_need_no_column() -> None:
    copy = table().copy_rows(range(ROWS))
    PodBatch.made([pod(0, {"pods": "1", "example.com/gpu": "0"}, 0, None)], copy)
    assert set(copy.resources) == {"cpu", "memory", "ephemeral-storage"}
