"""Tests of the page of figures, which needs only result files, and whose plots are self-contained SVG."""

import json
from xml.etree import ElementTree

import attrs
import pytest

from kschedd.bench.environment import BenchEnvironment
from kschedd.bench.figures_page import plotted
from kschedd.bench.report import ReportRow, as_json
from kschedd.bench.run import main
from tests.bench_workloads.test_run import options

ROW = ReportRow(
    workload="SchedulingBasic",
    nodes=5000,
    mode="e2e",
    pods_per_second=9000.0,
    p50_ms=1.0,
    p90_ms=2.0,
    p99_ms=3.0,
    rss_mb=99.6,
    pods=30000,
    runs_pods_per_second=(8000.0, 9000.0, 9500.0),
    other_cpu=0.25,
)
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def recorded_figures(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "shared" / "bench"
    folder.mkdir(parents=True)
    speed = {"median": 900.0, "min": 800.0, "max": 950.0}
    facts = {"init_pods": 5000, "pods": 2000, "percentage": 0, "threads": 2, "p50_ms": 1, "p90_ms": 1, "p99_ms": 1}
    figure = {"workload": "SchedulingBasic", "nodes": 5000, "mode": "e2e", "pods_per_second": speed, **facts}
    figure |= {"rss_mb": 1, "scheduled": 2000, "failed": 0}
    (folder / "kube-scheduler-1.34.1.json").write_text(json.dumps({"rows": [figure]}))
    monkeypatch.setenv("KSCHEDD_SHARED", str(tmp_path / "shared"))


@pytest.mark.usefixtures("recorded_figures")
def test_a_page_has_the_figures_their_spread_and_where_they_were_measured(tmp_path, capsys) -> None:
    about = BenchEnvironment(
        machine="A machine", commit="abc123", date="2026-01-02", python="CPython 3", numpy="2", load="0.1"
    )
    result = tmp_path / "result.json"
    other = attrs.evolve(ROW, workload="Heterogeneous", mode="algo", runs_pods_per_second=(), other_cpu=None)
    result.write_text(as_json([ROW, other], about))
    page = tmp_path / "docs" / "FIGURES.md"
    assert main(options("--page", str(page), "--from", str(result))) == 0
    names = ["FIGURES.md", "figures-algo-5000.svg", "figures-e2e-5000.svg"]
    assert capsys.readouterr().out.split() == [str(page.with_name(name)) for name in names]
    text = page.read_text()
    assert "| abc123 | 2026-01-02 | A machine | CPython 3 | 2 | 0.1 |" in text
    assert "| SchedulingBasic | 30,000 | 9,000 | 8,000 to 9,500 | 3 | 900 | 10x | 1.000 | 3.000 | 100 | 0.25 |" in text
    assert "| Heterogeneous | 30,000 | 9,000 | 9,000 to 9,000 | 1 | - | - | 1.000 | 3.000 | 100 | - |" in text
    assert "(figures-e2e-5000.svg)" in text


@pytest.mark.usefixtures("recorded_figures")
def test_a_plot_has_each_run_and_kube_scheduler_where_it_is_known() -> None:
    plot = ElementTree.fromstring(plotted([ROW, attrs.evolve(ROW, workload="A & B")]))
    assert len(plot.findall(f"{SVG}circle")) == 6
    assert [line.get("class") for line in plot.findall(f"{SVG}line")].count("kube") == 1
    assert "A & B" in [text.text for text in plot.findall(f"{SVG}text")]
    (first, second) = plot.findall(f"{SVG}rect")
    assert first.get("width") == second.get("width") != "0"


def test_nothing_measured_can_be_plotted() -> None:
    row = attrs.evolve(ROW, workload="Nothing", pods_per_second=0.0, runs_pods_per_second=())
    ElementTree.fromstring(plotted([row]))
    assert ElementTree.fromstring(plotted([])).get("viewBox") == "0 0 900 44"


def test_a_page_of_no_result_is_refused(tmp_path, capsys) -> None:
    assert main(options("--page", str(tmp_path / "page.md"))) == 2
    assert "--from FILE" in capsys.readouterr().err
