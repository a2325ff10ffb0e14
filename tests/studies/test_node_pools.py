"""Tests of node pools in simulations and sweeps: Karpenter, Cluster Autoscaler and fixed nodes in one sweep."""

import json
from pathlib import Path
from typing import Any

import pytest

from kschedd import sweep
from kschedd.cli import main
from kschedd.studies.plan import planned_runs
from kschedd.studies.rows import read_rows
from kschedd.studies.spec import read_spec

POOLS = """\
pools:
- {name: small, shape: "cpu=4,memory=16Gi", price: 0.2}
- {name: large, shape: "cpu=16,memory=64Gi", price: 0.7}
autoscaler: {name: %s}
"""
WORKLOAD = ["--generate", "30", "--arrival-rate", "0.1", "--lifetime", "20m"]


def simulated(folder: Path, capsys: pytest.CaptureFixture[str], autoscaler: str, *flags: str) -> dict[str, Any]:
    (folder / "pools.yaml").write_text(POOLS % autoscaler)
    main(["simulate", "--pools", str(folder / "pools.yaml"), *WORKLOAD, "--allow-pending", "-o", "json", *flags])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("autoscaler", ["karpenter", "cluster-autoscaler"])
def test_a_simulation_reports_launches_costs_and_waiting_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], autoscaler: str
) -> None:
    found = simulated(tmp_path, capsys, autoscaler, "--until", "2h")
    pools = found["pools"]
    assert pools["autoscaler"] == autoscaler
    assert pools["launched"] >= 2
    assert pools["launched"] - pools["removed_nodes"] == found["nodes"]
    assert pools["removed_nodes"] == sum(pools["removed"].values())
    assert pools["cost_total"] > 0
    assert pools["wait_s_max"] >= 60, "the first pod waits for the boot of a node"


def test_the_text_names_the_results_of_the_autoscaler(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pools.yaml").write_text(POOLS % "karpenter")
    main(["simulate", "--pools", str(tmp_path / "pools.yaml"), *WORKLOAD, "--allow-pending", "--until", "1h"])
    text = capsys.readouterr().out
    assert "karpenter: " in text
    assert "nodes launched" in text
    assert "per hour" in text


def test_equal_seeds_give_equal_decision_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = []
    for name in ("a", "b"):
        simulated(tmp_path, capsys, "karpenter", "--decisions", str(tmp_path / name), "--until", "1h", "--seed", "7")
        logs.append((tmp_path / name).read_bytes())
    assert logs[0] == logs[1]
    assert logs[0]


def test_autoscalers_and_fixed_nodes_are_compared_in_one_sweep(tmp_path: Path) -> None:
    for name in ("karpenter", "cluster-autoscaler"):
        (tmp_path / f"{name}.yaml").write_text(POOLS % name)
    (tmp_path / "spec.yaml").write_text(
        "clusters:\n"
        "  karpenter: {pools: [karpenter.yaml]}\n"
        "  cluster-autoscaler: {pools: [cluster-autoscaler.yaml]}\n"
        "  fixed: {generate: 10, shape: 'cpu=4,memory=16Gi'}\n"
        "workloads: {few: {generate: 30, arrival_rate: 0.1, lifetime: 20m}}\n"
        "until: 1h\n"
        "metrics: [launched, removed_nodes, disrupted, cost_total, wait_s_mean]\n"
    )
    sweep(tmp_path / "spec.yaml", tmp_path / "rows", engine="threading", jobs=1)
    rows = {row["cluster"]: row for row in read_rows(tmp_path / "rows")}
    assert {row["status"] for row in rows.values()} == {"ok"}, rows
    assert rows["karpenter"]["launched"] >= 2
    assert rows["karpenter"]["cost_total"] > 0
    assert rows["cluster-autoscaler"]["launched"] >= 2
    assert not rows["fixed"].get("launched")


def test_pools_are_part_of_the_inputs_of_a_run_only_if_there_are_some(tmp_path: Path) -> None:
    (tmp_path / "pools.yaml").write_text(POOLS % "karpenter")
    hashes = []
    for clusters in ({"c": {"generate": 1}}, {"c": {"generate": 1, "pools": [str(tmp_path / "pools.yaml")]}}):
        (run,) = planned_runs(read_spec({"clusters": clusters, "workloads": {"w": {"generate": 1}}, "seeds": 1}))
        hashes.append(run.inputs_hash)
    assert hashes[0] != hashes[1]


def test_pools_need_controllers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pools.yaml").write_text(POOLS % "karpenter")
    assert main(["simulate", "--pools", str(tmp_path / "pools.yaml"), "--frozen", "--from", str(tmp_path)]) == 2
    assert "--pools and --frozen exclude each other" in capsys.readouterr().err
