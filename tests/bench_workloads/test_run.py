"""`kschedd bench` measures what it is asked to and refuses what it cannot."""

import argparse
import json

import pytest

from kschedd.bench import algo
from kschedd.bench.run import add_parser, main
from kschedd.bench.workloads import WORKLOADS, workload
from kschedd.config.load import default_config


def options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return parser.parse_args(["bench", *words])


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_every_workload_runs_in_mode_algo_as_it_is_meant_to(name: str) -> None:
    made = workload(name, 120).measured_in("algo")
    timed = algo.run(made, default_config(), seed=1)
    assert len(timed.latencies_s) == len(made.pods)
    failing = len(made.pods) if name == "Unschedulable" else 0
    assert (timed.scheduled, timed.failed) == (len(made.pods) - failing, failing)


def test_a_run_prints_its_row_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--workload", "SchedulingBasic", "--nodes", "110", "--pods", "20", "--mode", "both", "-o", "json")
    assert main(options(*words)) == 0
    rows = json.loads(capsys.readouterr().out)["results"]
    assert [(row["workload"], row["nodes"], row["mode"], row["scheduled"]) for row in rows] == [
        ("SchedulingBasic", 110, "algo", 20),
        ("SchedulingBasic", 110, "e2e", 20),
    ]
    assert {"pods_per_second", "p50_ms", "p99_ms", "rss_mb"} <= rows[0].keys()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("--workload", "Nonesuch"), "there is no workload 'Nonesuch'", id="unknown-workload"),
        pytest.param(("--workload", "PreemptionBasic", "--nodes", "10", "--pods", "20"), "pods", id="forbidden-size"),
        pytest.param(("--compare", "/nowhere.json"), "/nowhere.json", id="no-such-earlier-result"),
    ],
)
def test_what_cannot_be_run_is_refused(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options(*words)) == 2
    assert said in capsys.readouterr().err
