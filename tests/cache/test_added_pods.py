"""Tests that sums of nominated pods, added to rows of a copy, equal adding the pods one by one."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.cache.added_pods import AddedPods
from kschedd.cache.table import NodeTable, TableCopy
from tests.cache.made import pod
from tests.full_run import examples

ROWS = 4
_pods = st.tuples(
    st.fixed_dictionaries(
        {},
        optional={
            "cpu": st.sampled_from(("1", "250m")),
            "memory": st.sampled_from(("1Gi", "9223372036854775807")),
            "example.com/gpu": st.sampled_from(("1", "3")),
            "example.com/nic": st.just("1"),
        },
    ),
    st.sampled_from((0, 0, 80, 81)),  # host port
    st.sampled_from((None, None, "3")),  # CPU in its status, during a resize
)
_rows = st.integers(0, ROWS - 1)


def columns(copy: TableCopy) -> Any:
    by_name = {name: copy.requested[number].tolist() for name, number in copy.resources.items()}
    requested = {name: column for name, column in by_name.items() if any(column)}
    ports = {row: used for row, used in copy.ports.items() if used}
    return requested, copy.nonzero.tolist(), copy.pod_count.tolist(), ports


@settings(max_examples=examples(80), deadline=None)
@given(
    st.lists(st.tuples(_rows, st.lists(_pods, max_size=3)), min_size=1, max_size=8),
    st.lists(_rows, unique=True),
    st.permutations(range(ROWS)),
)
def test_pods_are_counted_as_one_by_one_whatever_was_there_before(
    puts: list[Any], chosen: list[int], of_copy: list[int]
) -> None:
    whole = NodeTable()
    for number in range(ROWS):
        allocatable = {"cpu": "64", "memory": "64Gi", "pods": "110", "example.com/gpu": "8"}
        raw = {"kind": "Node", "metadata": {"name": f"n{number}"}, "status": {"allocatable": allocatable}}
        whole.put_node(Node.from_raw(raw))
    added, last = AddedPods(whole.capacity), dict[int, list[Pod]]()
    for place, (row, made) in enumerate(puts):
        last[row] = [pod(10 * place + number, *each) for number, each in enumerate(made)]
        added.put(whole, row, last[row])
    together, one_by_one, before = (whole.copy_rows(of_copy) for _ in range(3))
    rows = np.array(chosen, dtype=np.int64)
    stamp = together.versions.now
    added.count(together, rows, together.rows_of_whole[rows], 1)
    assert {row for row in range(ROWS) if together.versions.row_pods_at[row] > stamp} == set(chosen)
    for row in chosen:
        for each in last.get(of_copy[row], ()):
            one_by_one.add_pod(row, each)
    assert columns(together) == columns(one_by_one)
    added.count(together, rows, together.rows_of_whole[rows], -1)
    assert columns(together) == columns(before)
