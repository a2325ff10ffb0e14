"""Tests of tables as data frames of three libraries."""

import pytest

from kschedd import Cluster, node, pod


def cluster() -> Cluster:
    found = Cluster([node("n1", resources={"example.com/gpu": "2"}), node("n2")])
    found.apply(pod("a", resources={"example.com/gpu": "1"}), pod("b"), pod("c", cpu="99"))
    return found


def test_pandas() -> None:
    pytest.importorskip("pandas", reason="the extra frames is not installed")
    frame = cluster().pods.to_pandas()
    assert frame["name"].tolist() == ["a", "b", "c"]
    assert frame["node"].isna().tolist() == [False, False, True]
    assert frame["cpu"].sum() == pytest.approx(99.2)


def test_properties_of_records_are_columns() -> None:
    pytest.importorskip("pandas", reason="the extra frames is not installed")
    found = cluster()
    assert found.nodes.to_pandas()["cpu_used"].tolist() == pytest.approx([0.025, 0.025])
    assert found.pods.to_pandas()["key"].tolist() == ["default/a", "default/b", "default/c"]
    assert found.nodes.columns[-2:] == ("cpu_used", "memory_used")
    assert "cpu_used" not in repr(found.nodes)


def test_plans_and_comparisons_are_tables() -> None:
    pytest.importorskip("pandas", reason="the extra frames is not installed")
    plan = cluster().plan("cordon n1")
    assert plan.nodes.to_pandas()["name"].tolist() == ["n1"]
    assert list(plan.pods.to_pandas().columns)[:2] == ["sign", "change"]
    assert "cpu" in plan.usage.to_pandas()["resource"].tolist()
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    assert len(cluster().compare(config=config).different.to_pandas()) == 0


def test_polars() -> None:
    pytest.importorskip("polars", reason="the extra frames is not installed")
    frame = cluster().nodes.to_polars()
    assert frame["pods"].to_list() == [1, 1]
    assert frame["cpu_allocatable"].to_list() == [4.0, 4.0]


def test_arrow() -> None:
    pytest.importorskip("pyarrow", reason="the extra frames is not installed")
    table = cluster().pending().to_arrow()
    assert table["name"].to_pylist() == ["c"]
    assert table["plugins"].to_pylist() == [["NodeResourcesFit"]]


def test_a_table_without_rows_has_its_columns() -> None:
    pytest.importorskip("pandas", reason="the extra frames is not installed")
    empty = Cluster().pods
    assert list(empty.to_pandas().columns) == list(empty.columns)
    assert empty.to_arrow().column_names == list(empty.columns)
