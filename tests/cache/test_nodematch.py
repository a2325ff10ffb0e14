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


NODES = [{"zone": "a", "size": "3"}, {"zone": "b", "size": "5"}, {"zone": "c", "size": "-1"}, {"size": "big"}, {}]


def matched(term: dict[str, Any]) -> list[int]:
    """Return the numbers of the nodes that a required node affinity of one term allows."""
    table = table_of(NODES)
    met = matching_rows(table, {}, parse_node_selector({"nodeSelectorTerms": [term]}), None)
    return [number for number in range(len(NODES)) if met[table.row_of[f"node-{number}"]]]


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        pytest.param("zone", "Exists", [], [0, 1, 2], id="exists"),
        pytest.param("zone", "DoesNotExist", [], [3, 4], id="does-not-exist"),
        pytest.param("zone", "In", ["b"], [1], id="in-one-value"),
        pytest.param("zone", "In", ["c", "gone", "a"], [0, 2], id="in-several-values"),
        pytest.param("zone", "NotIn", ["b"], [0, 2, 3, 4], id="not-in-includes-nodes-without-the-label"),
        pytest.param("zone", "NotIn", ["c", "gone", "a"], [1, 3, 4], id="not-in-several-values"),
        pytest.param("size", "Gt", ["4"], [1], id="gt-compares-as-integers"),
        pytest.param("size", "Gt", ["3"], [1], id="gt-excludes-the-bound"),
        pytest.param("size", "Lt", ["4"], [0, 2], id="lt-excludes-text-and-absent-labels"),
        pytest.param("size", "Lt", ["3"], [2], id="lt-excludes-the-bound"),
    ],
)
def test_a_requirement_is_met_by(key: str, operator: str, values: list[str], expected: list[int]) -> None:
    assert matched({"matchExpressions": [{"key": key, "operator": operator, "values": values}]}) == expected


@pytest.mark.parametrize(
    ("field", "operator", "expected"),
    [
        pytest.param("metadata.name", "In", [1], id="the-named-node"),
        pytest.param("metadata.name", "NotIn", [0, 2, 3, 4], id="all-other-nodes"),
        pytest.param("metadata.other", "In", [], id="an-unknown-field-has-no-value"),
        pytest.param("metadata.other", "NotIn", [0, 1, 2, 3, 4], id="which-differs-from-every-value"),
    ],
)
def test_a_field_is_met_by(field: str, operator: str, expected: list[int]) -> None:
    assert matched({"matchFields": [{"key": field, "operator": operator, "values": ["node-1"]}]}) == expected


def test_values_seen_later_and_values_with_a_reused_id_are_compared_too() -> None:
    table = table_of([{"size": "1"}, {"size": "2"}])
    required = parse_node_selector(
        {"nodeSelectorTerms": [{"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["2"]}]}]}
    )
    assert not matching_rows(table, {}, required, None).any()
    for number, size in [(0, "9"), (1, "8")]:  # "8" gets the id that "1" had
        metadata = {"name": f"node-{number}", "labels": {"size": size}}
        row = table.put_node(Node.from_raw({"kind": "Node", "metadata": metadata}))
        assert matching_rows(table, {}, required, np.array([row], dtype=np.int64)).all()
