"""Tests of `kschedd simulate --out DIR`: the tables of one run, their schema, and reading them with other libraries."""

import argparse
import json
import re
from pathlib import Path
from typing import Any

import pytest

from kschedd.commands.studies.simulate import add_parser
from kschedd.simulation.results.tables import COLUMNS, MOST_SAMPLES

ROOT = Path(__file__).parents[2]
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,2,T4\nn2,64000,262144,2,\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
PODS += "".join(f"p{n},1000,1024,1,500,,LS,Running,{n},{n + 10},{n}\n" for n in range(6))


def simulated(folder: Path, *flags: str, nodes: str = NODES) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "nodes.csv").write_text(nodes)
    (folder / "pods.csv").write_text(PODS)
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    inputs = ["--nodes", str(folder / "nodes.csv"), "--pods", str(folder / "pods.csv")]
    out = folder / "out"
    options = parser.parse_args(["simulate", *inputs, "--allow-pending", "--out", str(out), *flags])
    assert options.run(options) == 0
    return out


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_run_writes_its_tables(tmp_path: Path) -> None:
    out = simulated(tmp_path)
    pods = rows(out / "pods.jsonl")
    assert [(row["pod"], row["created_s"], row["ended_s"], row["gpu_milli"]) for row in pods] == [
        (f"default/p{n}", n, n + 10, 500) for n in range(6)
    ]
    assert [row["pod"] for row in rows(out / "attempts.jsonl")] == [f"default/p{n}" for n in range(6)]
    assert [row["gpu_milli_allocatable"] for row in rows(out / "nodes.jsonl")] == [2000, 2000]
    most = max(row["used"] for row in rows(out / "usage.jsonl") if row["resource"].endswith("gpu-milli"))
    assert most == 0.75
    assert rows(out / "queues.jsonl")[-1]["running"] == 0


def test_prices_give_a_table_of_costs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "prices.yaml").write_text("resources: {alibabacloud.com/gpu-milli: 0.9}")
    out = simulated(tmp_path, "--prices", str(tmp_path / "prices.yaml"), "--until", "1h")
    found = rows(out / "costs.jsonl")
    assert {row["cost_hour"] for row in found} == {3600.0}  # two nodes with 2,000 units each
    assert max(row["cost_hour_used"] for row in found) == 3600.0
    assert found[-1]["cost_total"] == 3600.0
    # The first pod arrives at 0 s, the second pod at 1 s on the other node; the last pods end at 14 s and 15 s.
    assert found[-1]["cost_total_used"] == pytest.approx((15 + 13) * 0.5, abs=1.1)
    assert not (simulated(tmp_path / "plain") / "costs.jsonl").exists()


def with_pools(folder: Path) -> list[str]:
    """Return flags for node pools; in these runs, the fixed nodes are too small for the pods."""
    (folder / "pools.yaml").write_text(
        'pools: [{name: a, shape: "cpu=2,memory=4Gi,alibabacloud.com/gpu-milli=1000", '
        "price: 0.5}]\nautoscaler: {name: karpenter, bootTime: 10s}\n"
    )
    (folder / "prices.yaml").write_text("resources: {cpu: 0.5}")
    return ["--pools", str(folder / "pools.yaml"), "--prices", str(folder / "prices.yaml"), "--until", "2m"]


def test_node_pools_give_tables_of_their_nodes_and_of_the_work_of_the_autoscaler(tmp_path: Path) -> None:
    out = simulated(tmp_path, *with_pools(tmp_path), nodes=NODES.partition("n1")[0])
    nodes, scaling, costs = (rows(out / f"{name}.jsonl") for name in ("pool_nodes", "scaling", "costs"))
    first = nodes[0]
    assert (first["node"], first["pool"], first["price"]) == ("a-1", "a", 0.5)
    assert (first["created_s"], first["ready_s"]) == (pytest.approx(6, abs=1), pytest.approx(11, abs=1))
    assert {row["reason"] for row in nodes if row["deleted_s"] is not None} <= {"Empty", "Underutilized"}
    assert scaling[-1]["launched"] == len(nodes) > 0
    assert scaling[-1]["removed_nodes"] == sum(row["deleted_s"] is not None for row in nodes) > 0
    assert scaling[-1]["nodes"] == scaling[-1]["launched"] - scaling[-1]["removed_nodes"]
    assert costs[-1]["cost_total"] == pytest.approx(sum(row["cost"] for row in nodes), abs=1e-4)


def test_the_axis_of_a_filled_cluster_is_the_requested_load(tmp_path: Path) -> None:
    out = simulated(tmp_path, "--fill", "alibabacloud.com/gpu-milli=150%")
    loads = [row["load"] for row in rows(out / "queues.jsonl")]
    assert loads == sorted(loads)
    assert (loads[0], loads[-1]) == (0.0, 1.5)
    assert [row["load"] for row in rows(out / "attempts.jsonl")][:3] == [0.125, 0.25, 0.375]


def test_a_long_run_has_a_bounded_number_of_samples(tmp_path: Path) -> None:
    out = simulated(tmp_path, "--fill", "alibabacloud.com/gpu-milli=9000%")
    found = rows(out / "queues.jsonl")
    assert MOST_SAMPLES / 2 < len(found) <= MOST_SAMPLES + 1
    assert found[-1]["load"] == 90.0


def test_readers_read_the_tables_directly(tmp_path: Path) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    out = simulated(tmp_path, *with_pools(tmp_path))
    for name in COLUMNS:
        lines = pandas.read_json(out / f"{name}.jsonl", lines=True)
        frame = pandas.read_parquet(out / f"{name}.parquet")
        assert list(frame.columns)[: len(COLUMNS[name])] == list(COLUMNS[name])
        assert len(lines) == len(frame) == polars.read_parquet(out / f"{name}.parquet").height > 0
        assert list(lines.columns) == list(frame.columns)


def test_duckdb_reads_the_tables_directly(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed; it is in no extra")
    out = simulated(tmp_path)
    for kind in ("parquet", "jsonl"):
        found = duckdb.sql(f"select count(*), max(ended_s) from '{out}/pods.{kind}'").fetchall()
        assert found == [(6, 15.0)]


def test_the_page_lists_the_columns_of_each_table() -> None:
    page = (ROOT / "docs" / "DATA.md").read_text(encoding="utf-8")
    for name, columns in COLUMNS.items():
        section = page.partition(f"\n### {name}\n")[2].partition("\n### ")[0]
        assert re.findall(r"^\| `(\w+)` \| (\w+) \|", section, re.M) == list(columns.items())
