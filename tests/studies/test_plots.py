"""Tests of `kschedd plot`: plots of runs and sweeps, and rejected input."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kschedd.cli import main
from kschedd.studies.plots import larger_is_better, non_dominated

pytest.importorskip("matplotlib", reason="the extra plots is not installed")


def lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    usage = {"resource": "cpu", "load": None}
    lines(tmp_path / "run/usage.jsonl", [{**usage, "time_s": t, "used": t / 9, "fragmented": t / 20} for t in range(4)])
    lines(tmp_path / "run/pods.jsonl", [{"wait_s": wait} for wait in (0, 1, 5, None)])
    queue = {"load": None, "running": 1, "pending": 2, "unschedulable": 2, "backoff": 0, "gated": 0}
    lines(tmp_path / "run/queues.jsonl", [{"time_s": t, **queue} for t in range(4)])
    return tmp_path / "run"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    found = [
        {"run": f"{a}{b}{seed}", "status": "ok", "cluster": "c", "a": a, "b": b, "seed": seed, "placed": a * b + seed,
         "pending": a + b, "wall_s": 1}
        for a in (1, 2) for b in (1, 3) for seed in (0, 1)
    ]  # fmt: skip
    lines(tmp_path / "rows/rows.jsonl", found)
    return tmp_path / "rows"


def texts(file: Path) -> set[str]:
    """Return the texts of an SVG, which matplotlib writes as comments next to the glyphs."""
    return set(re.findall(r"<!-- (.*?) -->", file.read_text(encoding="utf-8")))


def test_a_run_is_drawn_over_time(run: Path, tmp_path: Path) -> None:
    assert main(["plot", str(run), "-o", str(tmp_path / "x.svg")]) == 0
    found = texts(tmp_path / "x.svg")
    assert {"virtual time (s)", "requested share of the capacity", "wait for a node (virtual s)", "cpu"} <= found


def test_the_same_tables_give_the_same_picture(run: Path, tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        assert main(["plot", str(run), "-o", str(tmp_path / name), "--kind", "queues"]) == 0
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert {"running", "unschedulable"} <= texts(tmp_path / "a.svg")


def test_costs_and_numbers_of_nodes_are_drawn_over_time(run: Path, tmp_path: Path) -> None:
    cost = {"load": None, "cost_hour_used": 0.0}
    lines(run / "costs.jsonl", [{**cost, "time_s": t, "cost_hour": t / 2} for t in range(4)])
    lines(
        run / "scaling.jsonl", [{"load": None, "time_s": t, "nodes": t, "starting": 1, "leaving": 0} for t in range(4)]
    )
    assert main(["plot", str(run), "-o", str(tmp_path / "x.svg"), "--kind", "costs", "--kind", "scaling"]) == 0
    found = texts(tmp_path / "x.svg")
    assert {"price per hour", "cost_hour", "nodes", "starting"} <= found
    assert not {"cost_hour_used", "leaving"} & found, "columns that are always 0 have no line"


def test_a_table_that_a_run_did_not_write_is_named_with_its_flag(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plot", str(run), "-o", str(tmp_path / "x.svg"), "--kind", "scaling"]) == 2
    assert "has no table scaling, which `kschedd simulate --out` writes with --pools" in capsys.readouterr().err


def test_two_runs_are_compared(run: Path, tmp_path: Path) -> None:
    run.rename(tmp_path / "first")
    lines(tmp_path / "second/usage.jsonl", [{"resource": "cpu", "load": 0.5, "time_s": 1, "used": 0.5}])
    folders = [str(tmp_path / name) for name in ("first", "second")]
    assert main(["plot", *folders, "-o", str(tmp_path / "x.svg"), "--kind", "usage"]) == 0
    assert {"first: cpu", "second: cpu"} <= texts(tmp_path / "x.svg")


def test_a_sweep_is_drawn_by_what_varies(rows: Path, tmp_path: Path) -> None:
    kinds = [word for kind in ("metrics", "pareto", "heatmap") for word in ("--kind", kind)]
    assert main(["plot", str(rows), "-o", str(tmp_path / "x.svg"), *kinds[:4], "--x", "pending"]) == 0
    assert {"placed: mean and deviation over seeds", "2, 3", "Pareto front", "pending"} <= texts(tmp_path / "x.svg")
    assert main(["plot", str(rows), "-o", str(tmp_path / "y.svg"), *kinds[4:]]) == 0
    assert {"a", "b", "placed"} <= texts(tmp_path / "y.svg")


def test_many_configurations_stay_readable(tmp_path: Path) -> None:
    found = [
        {"run": f"{a}{b}", "status": "ok", "cluster": "c", "a": f"workload-{a:02}-with-a-long-name", "b": f"policy-{b}",
         "seed": 0, "placed": a * b, "pending": a + b, "wall_s": 1}
        for a in range(40) for b in range(6)
    ]  # fmt: skip
    lines(tmp_path / "rows.jsonl", found)
    for kind in ("metrics", "pareto", "heatmap"):
        words = ["--kind", kind, *(["--x", "pending"] if kind == "pareto" else [])]
        assert main(["plot", str(tmp_path), "-o", str(tmp_path / f"{kind}.svg"), *words]) == 0
    drawn = {kind: (tmp_path / f"{kind}.svg").read_text(encoding="utf-8") for kind in ("metrics", "pareto", "heatmap")}
    for kind, policies in (("metrics", 6), ("pareto", 6)):  # each policy once, in the legend
        assert sum(drawn[kind].count(f"<!-- policy-{b} -->") for b in range(6)) == policies
    assert all(drawn["metrics"].count(f"<!-- workload-{a:02}-with-a-long-name -->") == 1 for a in range(40))
    height = float(re.findall(r'height="([\d.]+)pt"', drawn["metrics"])[0])
    assert height / 40 > 12, "a line of text needs 12 points"


@pytest.mark.parametrize(("name", "start"), [("x.png", b"\x89PNG"), ("x.html", b"<!doctype html>")])
def test_the_name_decides_the_format(name: str, start: bytes, rows: Path, tmp_path: Path) -> None:
    assert main(["plot", str(rows), "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["-o", "x.pdf"], "x.pdf: the name must end in .svg, .png, .html"),
        (["-o", "x.svg", "--kind", "usage"], 'a sweep has no plot "usage" (allowed: metrics, pareto, heatmap)'),
        (["-o", "x.svg", "--y", "speed"], '--y "speed": no such metric (allowed: placed, pending)'),
        (
            ["-o", "x.svg", "--kind", "heatmap", "--x", "seed"],
            "heatmap: --x and --y must be two parameters that vary (allowed: a, b)",
        ),
    ],
)  # fmt: skip
def test_wrong_use(flags: list[str], text: str, rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", str(rows), *flags]) == 2
    assert capsys.readouterr().err == f"error: {text}\n"


def test_a_folder_without_tables_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", str(tmp_path), "-o", "x.svg"]) == 2
    assert "is not a folder of `kschedd simulate --out` or `kschedd sweep`: usage.jsonl" in capsys.readouterr().err


def test_the_front_is_what_no_other_point_beats() -> None:
    points = [(1, 5), (2, 4), (2, 6), (3, 3), (1, 5)]
    assert non_dominated(points, [False, False]) == [0, 1, 3, 4]
    assert non_dominated(points, [False, True]) == [0, 2, 4]
    assert larger_is_better("gpu_milli_used_end")
    assert not larger_is_better("cpu_fragmented")
