"""Tests of node pools in simulations and sweeps: Karpenter, Cluster Autoscaler and fixed nodes in one sweep."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kschedd import sweep
from kschedd.cli import main
from kschedd.studies.plan import planned_runs
from kschedd.studies.rows import read_rows
from kschedd.studies.spec import read_spec

EXAMPLE = Path(__file__).parents[2] / "examples" / "sweeps" / "autoscalers.yaml"
POOLS = """\
pools:
- {name: small, shape: "cpu=4,memory=16Gi", price: 0.2}
- {name: large, shape: "cpu=16,memory=64Gi", price: 0.7}
autoscaler: {name: %s}
"""
WEB = """{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1,
 selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {
 terminationGracePeriodSeconds: 0, containers: [{name: a, image: a, resources: {requests: {cpu: "1"}}}]}}}}"""
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


def test_the_example_compares_karpenter_cluster_autoscaler_and_fixed_nodes(tmp_path: Path) -> None:
    spec = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    spec["workloads"]["churn"]["generate"], spec["until"], spec["seeds"] = 20, "30m", 1
    rows = {
        row["cluster"]: row for row in sweep(spec, tmp_path / "rows", data=EXAMPLE.parent, engine="threading", jobs=1)
    }
    assert {row["status"] for row in rows.values()} == {"ok"}, rows
    assert rows["karpenter"]["launched"] > 0 < rows["cluster-autoscaler"]["launched"]
    assert rows["fixed"]["cost_total"] == pytest.approx(40 * 0.2 * 0.5, rel=0.01)
    assert rows["karpenter"]["cost_total"] < rows["fixed"]["cost_total"]


def test_pools_are_part_of_the_inputs_of_a_run_only_if_there_are_some(tmp_path: Path) -> None:
    (tmp_path / "pools.yaml").write_text(POOLS % "karpenter")
    hashes = []
    for clusters in ({"c": {"generate": 1}}, {"c": {"generate": 1, "pools": [str(tmp_path / "pools.yaml")]}}):
        (run,) = planned_runs(read_spec({"clusters": clusters, "workloads": {"w": {"generate": 1}}, "seeds": 1}))
        hashes.append(run.inputs_hash)
    assert hashes[0] != hashes[1]


@pytest.mark.parametrize("flag", ["--pools", "--descheduler"])
def test_controllers_are_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str) -> None:
    (tmp_path / "file.yaml").write_text(POOLS % "karpenter")
    assert main(["simulate", flag, str(tmp_path / "file.yaml"), "--frozen", "--from", str(tmp_path)]) == 2
    assert f"{flag} and --frozen exclude each other" in capsys.readouterr().err


def test_a_descheduler_runs_together_with_an_autoscaler(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "policy.yaml").write_text(
        "{apiVersion: descheduler/v1alpha2, kind: DeschedulerPolicy, profiles: [{name: p, pluginConfig: ["
        "{name: PodLifeTime, args: {maxPodLifeTimeSeconds: 600}}], plugins: {deschedule: {enabled: [PodLifeTime]}}}]}"
    )
    (tmp_path / "web.yaml").write_text(WEB)
    given = ["-f", str(tmp_path / "web.yaml"), "--descheduler", str(tmp_path / "policy.yaml"), "--out", str(tmp_path)]
    simulated(tmp_path, capsys, "karpenter, scaleDown: false", *given, "--until", "30m")
    pods = [json.loads(line) for line in (tmp_path / "pods.jsonl").read_text().splitlines()]
    evicted = [pod for pod in pods if pod["pod"].startswith("default/web-") and pod["disruption"]]
    assert {pod["disruption"] for pod in evicted} == {"EvictionByEvictionAPI"}
    assert len(evicted) == 2, "each of the pods lives for 10 minutes, and the policy runs every 5 minutes"
