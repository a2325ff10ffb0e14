"""Tests of the node pools of a report: nodes over time, node hours, cost, and the section of the page."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kschedd.cli import main
from kschedd.report.model import Columns
from kschedd.report.pools import use_of_pools


def row(pool: str | None, created_s: float, deleted_s: float | None, cost: float) -> dict[str, Any]:
    return {"pool": pool, "created_s": created_s, "deleted_s": deleted_s, "cost": cost}


def test_nodes_are_counted_by_pool_and_weighted_by_time() -> None:
    columns = Columns(3, 600, 1500.0, 0.0, True)
    nodes = [
        row("a", 0.0, None, 1.5),  # exists from the start
        row("a", 300.0, 900.0, 0.25),
        row("b", 1350.0, None, 0.125),
        row(None, 0.0, None, 9.0),  # in no pool
    ]
    first, second = use_of_pools(nodes, columns)
    assert (first.name, first.launched, first.removed, first.nodes) == ("a", 1, 1, 1)
    assert first.node_hours == pytest.approx(2100 / 3600)
    assert first.cost == 1.75
    assert np.allclose(first.series, [1.5, 1.5, 1.0])
    assert (second.name, second.launched, second.removed, second.nodes) == ("b", 1, 0, 1)
    assert np.allclose(second.series, [0.0, 0.0, 0.5]), "the last column ends with the run"
    assert use_of_pools([], columns) == []


def test_the_report_of_a_simulation_has_a_section_of_its_pools(tmp_path: Path) -> None:
    pools, report = tmp_path / "pools.yaml", tmp_path / "report.html"
    pools.write_text('pools: [{name: small, shape: "cpu=4,memory=16Gi", price: 0.2}]\nautoscaler: {name: karpenter}\n')
    words = ("--generate", "3", "--lifetime", "5m", "--seed", "1", "--allow-pending", "--report", str(report))
    assert main(["simulate", "--pools", str(pools), *words]) == 0
    text = report.read_text()
    assert 'id="pools"' in text
    assert "Nodes of each pool over time" in text
    assert "all pools" not in text, "there is one pool only"
    assert main(["simulate", *words, "--generate-nodes", "1"]) == 0
    assert 'id="pools"' not in report.read_text()
