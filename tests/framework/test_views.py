"""Tests of the read-only views for out-of-tree plugins."""

import numpy as np

from kschedd.cache.table import NodeTable
from kschedd.framework.guarding.views import TableView


def test_views_of_one_table_are_equal_and_a_copy_of_its_rows_is_another() -> None:
    table = NodeTable()
    assert TableView(table) == TableView(table)
    assert hash(TableView(table)) == hash(TableView(table))
    assert TableView(table) != TableView(NodeTable())
    assert TableView(table) != TableView(table.copy_rows(np.zeros(0, dtype=np.int64)))
    assert TableView(table) != table
