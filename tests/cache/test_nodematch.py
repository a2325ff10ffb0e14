"""Tests that the columnar node selector selects the same rows as the plain rule for each node."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.api.nodes import Node
from kschedd.api.selecting.selectors import NodeSelector, SelectorError, parse_node_selector
from kschedd.cache.nodematch import matching_rows
from kschedd.cache.table import NodeTable

KEYS = ("zone", "disk", "size")
VALUES = ("a", "b", "1", "5", "-3", "05", "x1")


def table_of(nodes: list[dict[str, str]]) -> NodeTable:
    table = NodeTable(2)
    for number, labels in enumerate(nodes):
        metadata = {"name": f"node-{number}", "labels": labels}
        table.put_node(Node.from_raw({"kind": "Node", "metadata": metadata}))
    return table


def plainly(labels: dict[str, str], name: str, node_selector: dict[str, str], required: NodeSelector | None) -> bool:
    if any(labels.get(key) != value for key, value in node_selector.items()):
        return False
    if required is None:
        return True
    try:
        return required.matches(labels, name)
    except SelectorError:
        return False


labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
values = st.lists(st.sampled_from(VALUES), min_size=1, max_size=3)
expression = st.one_of(
    st.builds(
        lambda key, operator, values: {"key": key, "operator": operator, "values": values},
        st.sampled_from(KEYS),
        st.sampled_from(["In", "NotIn"]),
        values,
    ),
    st.builds(
        lambda key, operator: {"key": key, "operator": operator},
        st.sampled_from(KEYS),
        st.sampled_from(["Exists", "DoesNotExist", "Unheard"]),
    ),
    st.builds(
        lambda key, operator, value: {"key": key, "operator": operator, "values": [value]},
        st.sampled_from(KEYS),
        st.sampled_from(["Gt", "Lt"]),
        st.sampled_from(VALUES),
    ),
)
field = st.builds(
    lambda key, operator, value: {"key": key, "operator": operator, "values": [value]},
    st.sampled_from(["metadata.name", "metadata.other"]),
    st.sampled_from(["In", "NotIn"]),
    st.sampled_from(["node-0", "node-1", "gone", ""]),
)
term = st.fixed_dictionaries(
    {"matchExpressions": st.lists(expression, max_size=3), "matchFields": st.lists(field, max_size=2)}
)
required_affinity = st.none() | st.fixed_dictionaries({"nodeSelectorTerms": st.lists(term, max_size=3)})


@given(st.lists(labels, min_size=1, max_size=6), labels, required_affinity, st.randoms())
def test_columns_equal_the_plain_rule(
    nodes: list[dict[str, str]], node_selector: dict[str, str], raw: dict[str, Any] | None, random: Any
) -> None:
    table = table_of(nodes)
    required = None if raw is None else parse_node_selector(raw)
    numbers = [random.randrange(len(nodes)) for _ in range(2 * len(nodes))]
    rows = np.array([table.row_of[f"node-{number}"] for number in numbers], dtype=np.int64)
    expected = [plainly(nodes[number], f"node-{number}", node_selector, required) for number in numbers]
    assert matching_rows(table, node_selector, required, rows).tolist() == expected
    everywhere = matching_rows(table, node_selector, required, None)
    assert everywhere[rows].tolist() == expected
    assert len(everywhere) == table.capacity
    copy = table.copy_rows(rows[:1].tolist())
    first = np.zeros(1, dtype=np.int64)
    assert matching_rows(copy, node_selector, required, first).tolist() == expected[:1]


@pytest.mark.parametrize(
    ("operator", "bound", "expected"),
    [
        pytest.param("Gt", "4", ["5"], id="gt-compares-as-integers"),
        pytest.param("Lt", "4", ["3", "-1"], id="lt-leaves-out-text-and-absent-labels"),
    ],
)
def test_order_is_numeric(operator: str, bound: str, expected: list[str]) -> None:
    sizes = ["3", "5", "-1", "big", ""]
    table = table_of([{"size": size} if size else {} for size in sizes])
    required = parse_node_selector(
        {"nodeSelectorTerms": [{"matchExpressions": [{"key": "size", "operator": operator, "values": [bound]}]}]}
    )
    rows = np.array([table.row_of[f"node-{n}"] for n in range(len(sizes))], dtype=np.int64)
    met = matching_rows(table, {}, required, rows)
    assert [size for size, holds in zip(sizes, met, strict=True) if holds] == expected


def test_values_seen_later_are_compared_too() -> None:
    table = table_of([{"size": "1"}])
    required = parse_node_selector(
        {"nodeSelectorTerms": [{"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["2"]}]}]}
    )
    assert not matching_rows(table, {}, required, None).any()
    row = table.put_node(Node.from_raw({"kind": "Node", "metadata": {"name": "new", "labels": {"size": "9"}}}))
    assert matching_rows(table, {}, required, np.array([row], dtype=np.int64)).all()
