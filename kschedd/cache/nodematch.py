"""Node selectors over columns: the rows that a pod's nodeSelector and required node affinity allow.

A requirement is evaluated on the value ids of its label column, never on a node's own labels: In and NotIn look up the
ids of their values; Gt and Lt parse the column's values once and cache them as integers. A term that could not be
parsed matches no row; `NodeSelector.problems` contains its errors.

NodeAffinity and PodTopologySpread use this module, on the whole table or a what-if copy. The parsed integers of a label
column are dropped with the column. Shapes: results are bool, one for each of `rows` (None: for each row of the table,
with or without a node). Source: Kubernetes v1.34, component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go.
"""

from collections.abc import Mapping
from weakref import WeakKeyDictionary

import numpy as np

from kschedd.api.selecting.selectors import (
    DOES_NOT_EXIST,
    EXISTS,
    GT,
    IN,
    NODE_NAME,
    NOT_IN,
    FieldRequirement,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
    integer,
)
from kschedd.cache.table import Bools, Ints, LabelColumn, NodeTable, Rows

_integers: WeakKeyDictionary[LabelColumn, tuple[int, Ints, Bools]] = WeakKeyDictionary()


def matching_rows(
    table: NodeTable, node_selector: Mapping[str, str], required: NodeSelector | None, rows: Rows | None
) -> Bools:
    """Return whether each row meets the pod's nodeSelector and required node affinity."""
    met: Bools | None = None
    for key, value in node_selector.items():
        holds = _equal(table.label(key), value, rows)
        met = holds if met is None else met & holds
    if required is not None:
        holds = selected_rows(table, required, rows)
        met = holds if met is None else met & holds
    return _constant(table, rows, True) if met is None else met


def selected_rows(table: NodeTable, selector: NodeSelector, rows: Rows | None) -> Bools:
    """Return whether each row meets at least one of the selector's terms."""
    met: Bools | None = None
    for term in selector.terms:
        holds = term_rows(table, term, rows)
        met = holds if met is None else met | holds
    return _constant(table, rows, False) if met is None else met


def term_rows(table: NodeTable, term: NodeSelectorTerm, rows: Rows | None) -> Bools:
    """Return whether each row meets the whole term. An empty term, or a term with problems, matches no row."""
    if term.problems or term.empty:
        return _constant(table, rows, False)
    met: Bools | None = None
    for requirement in term.match_expressions:
        holds = requirement_rows(table, requirement, rows)
        met = holds if met is None else met & holds
    for field in term.match_fields:
        holds = _field_rows(table, field, rows)
        met = holds if met is None else met & holds
    assert met is not None, "a term that is not empty states something"
    return met


def requirement_rows(table: NodeTable, requirement: Requirement, rows: Rows | None) -> Bools:
    """Return whether each row's label meets the requirement.

    NotIn and DoesNotExist also match rows without the label.
    """
    column = table.label(requirement.key)
    operator = requirement.operator
    if operator == EXISTS:
        return _ids(column, rows) >= 0
    if operator == DOES_NOT_EXIST:
        return _ids(column, rows) < 0
    if operator in (IN, NOT_IN):
        holds = _among(column, requirement.values, rows)
        return holds if operator == IN else ~holds
    if requirement.number is None:
        return _constant(table, rows, False)
    numbers, readable = _numbers(column)
    accepted = np.zeros(len(column.values) + 1, dtype=np.bool_)
    compared = numbers > requirement.number if operator == GT else numbers < requirement.number
    accepted[:-1] = readable & compared
    return _looked_up(accepted, column, rows)


def _ids(column: LabelColumn, rows: Rows | None) -> Ints:
    return column.ids if rows is None else column.ids[rows]


def _looked_up(accepted: Bools, column: LabelColumn, rows: Rows | None) -> Bools:
    """Return the entry of `accepted` for each row's value id; the last entry is for rows without the label."""
    holds: Bools = accepted[_ids(column, rows)]
    return holds


def _equal(column: LabelColumn, value: str, rows: Rows | None) -> Bools:
    number = column.numbers.get(value, -2)  # id -2 matches no row, because no node has this value
    equal: Bools = _ids(column, rows) == number
    return equal


def _among(column: LabelColumn, values: tuple[str, ...], rows: Rows | None) -> Bools:
    if len(values) == 1:
        return _equal(column, values[0], rows)
    accepted = np.zeros(len(column.values) + 1, dtype=np.bool_)
    for value in values:
        number = column.numbers.get(value)
        if number is not None:
            accepted[number] = True
    return _looked_up(accepted, column, rows)


def _field_rows(table: NodeTable, field: FieldRequirement, rows: Rows | None) -> Bools:
    if field.key != NODE_NAME:
        return _constant(table, rows, field.matches(""))
    row = table.row_of.get(field.value, -1)
    chosen = np.arange(table.capacity) if rows is None else rows
    named: Bools = chosen == row
    return named if field.operator == IN else ~named


def _numbers(column: LabelColumn) -> tuple[Ints, Bools]:
    """Return the column's values as integers, and a mask of the values that parse as integers."""
    known = _integers.get(column)
    if known is not None and known[0] == column.renumbered:
        numbers, readable = known[1:]
    else:
        numbers, readable = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_)
    if known is None or len(numbers) < len(column.values):
        read = [integer(value) for value in column.values[len(numbers) :]]
        numbers = np.concatenate((numbers, np.array([number or 0 for number in read], dtype=np.int64)))
        readable = np.concatenate((readable, np.array([number is not None for number in read], dtype=np.bool_)))
        _integers[column] = (column.renumbered, numbers, readable)
    return numbers, readable


def _constant(table: NodeTable, rows: Rows | None, value: bool) -> Bools:
    return np.full(table.capacity if rows is None else len(rows), value, dtype=np.bool_)
