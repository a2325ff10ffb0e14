"""Tests that `kschedd bench` runs the selected measurements and rejects invalid ones."""

import argparse
import json
import sys
from pathlib import Path

import pytest

from kschedd.bench import algo, e2e
from kschedd.bench import run as run_module
from kschedd.bench.e2e import ArrivalOptions
from kschedd.bench.own_time import own_time
from kschedd.bench.report import ReportRow
from kschedd.bench.run import BenchRun, add_parser, main
from kschedd.bench.workloads import WORKLOADS, workload
from kschedd.config.loading.load import default_config
from tests.full_run import every


def options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return parser.parse_args(["bench", *words])


@pytest.mark.parametrize("name", every(3, sorted(WORKLOADS)))
def test_every_workload_runs_in_mode_algo_as_it_is_meant_to(name: str) -> None:
    made = workload(name, 120).measured_in("algo")
    timed = algo.run(made, default_config(), seed=1)
    assert len(timed.latencies_s) == len(made.pods)
    failing = len(made.pods) if name == "Unschedulable" else 0
    assert (timed.scheduled, timed.failed) == (len(made.pods) - failing, failing)


@pytest.mark.parametrize("mode", every(2, ["e2e", "both"]))
def test_a_run_prints_its_row_as_json(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--workload", "SchedulingBasic", "--nodes", "110", "--pods", "20", "--mode", mode, "-o", "json")
    assert main(options(*words)) == 0
    rows = json.loads(capsys.readouterr().out)["results"]
    assert [(row["workload"], row["nodes"], row["mode"], row["scheduled"]) for row in rows] == [
        ("SchedulingBasic", 110, each, 20) for each in (("algo", "e2e") if mode == "both" else (mode,))
    ]
    assert {"pods_per_second", "p50_ms", "p99_ms", "rss_mb"} <= rows[0].keys()


def test_pods_come_at_a_rate_to_a_journal_while_questions_are_asked() -> None:
    made = workload("SchedulingBasic", 20, pods=30)
    load = ArrivalOptions(rate=1000.0, journal=True, questions=True, own_time=True)
    timed = e2e.run(made, default_config(), 1, load)
    assert (timed.scheduled, timed.failed, len(timed.latencies_s)) == (30, 0, 30)
    assert timed.answers_s


@pytest.mark.parametrize("counted", [False, True])
def test_own_time_leaves_out_the_time_of_others(counted: bool, tmp_path: Path) -> None:
    schedstat, now_s = tmp_path / "schedstat", 100.0
    if counted:
        schedstat.write_text("1000 0 1\n")
    with own_time(schedstat, lambda: now_s) as clock:
        before = clock()
        now_s = 103.0
        if counted:
            schedstat.write_text("2000 1250000000 2\n")
        assert clock() - before == (1.75 if counted else 3.0)


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        pytest.param(("--workload", "Nonesuch"), "there is no workload 'Nonesuch'", id="unknown-workload"),
        pytest.param(("--workload", "PreemptionBasic", "--nodes", "10", "--pods", "20"), "pods", id="forbidden-size"),
        pytest.param(("--compare", "/nowhere.json"), "/nowhere.json", id="no-such-earlier-result"),
    ],
)
def test_what_cannot_be_run_is_refused(words: tuple[str, ...], answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options(*words)) == 2
    assert answer in capsys.readouterr().err


def test_two_installations_are_measured_in_turns(capsys: pytest.CaptureFixture[str]) -> None:
    words = (
        "--workload",
        "SchedulingBasic",
        "--nodes",
        "10",
        "--pods",
        "2",
        "--against",
        sys.executable,
    )
    assert main(options(*words, "-o", "json")) == 0
    answer = capsys.readouterr()
    (row,) = json.loads(answer.out)["results"]
    assert row["verdict"] == "not enough runs: 1 and 1 runs, at least 4 each (--runs)"
    assert answer.err.count(f"({sys.executable})") == 2


def test_rounds_end_early_where_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []

    def one(run: BenchRun, python: str) -> ReportRow:
        measured.append(f"{run.workload} {python}")
        return ReportRow(
            workload="w", nodes=1, mode="algo", pods_per_second=len(measured), p50_ms=0, p90_ms=0, p99_ms=0, rss_mb=0
        )

    monkeypatch.setattr(run_module, "_in_child", one)
    runs = [BenchRun(name, 1, "algo", 0, 0.0, None, None, 1) for name in "xy"]
    here, there = run_module.measured_in_turns(runs, 5, ["a", "b"], until=lambda: len(measured) >= 8)
    assert measured == ["x a", "x b", "y a", "y b", "x b", "x a", "y b", "y a"]
    assert [row.runs for row in here] == [(1, 6), (3, 8)]
    assert [row.runs for row in there] == [(2, 5), (4, 7)]
