"""Tests that `kschedd bench --config` runs the selected cases, reports those it cannot run, and compares thresholds."""

import argparse
import json

import pytest

from kschedd.bench.run import add_parser, main

FILE = """\
- name: Good
  workloadTemplate:
  - {opcode: createNodes, count: 2}
  - {opcode: createPods, count: 5, collectMetrics: true}
  workloads:
  - {name: 2Nodes, labels: [performance], threshold: 1000000000, featureGates: {NodeDeclaredMoons: true}}
- name: Strange
  workloadTemplate:
  - {opcode: createMoons, count: 2}
  workloads:
  - {name: Any, labels: [performance]}
"""


def options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return parser.parse_args(["bench", *words])


def test_a_missed_threshold_and_an_unknown_operation_are_told(tmp_path, capsys) -> None:
    file = tmp_path / "performance-config.yaml"
    file.write_text(FILE)
    out = tmp_path / "made" / "here"
    assert main(options("--config", str(file), "--topic", "here", "--data-items-dir", str(out))) == 1
    answer = capsys.readouterr()
    assert 'expected "SchedulingThroughput" "Average" to be higher: got ' in answer.err
    assert "feature gate NodeDeclaredMoons: there is none in 1.37; it has no effect" in answer.err
    assert f"{file}:9: $[1].workloadTemplate[0].opcode: 'createMoons' is not supported" in answer.err
    _, good, strange = answer.out.splitlines()
    assert good.split()[:2] == ["Good", "2Nodes"]
    assert good.endswith("threshold missed")
    assert strange.endswith("not run")
    (written,) = out.iterdir()
    assert written.name.startswith("BenchmarkPerfScheduling_benchmark_here_")
    items = json.loads(written.read_text())["dataItems"]
    assert {item["labels"]["Name"] for item in items} == {"BenchmarkPerfScheduling/Good/2Nodes/namespace-1"}
    assert items[0]["data"]["AverageThreshold"] == 1000000000


def test_own_time_is_told(tmp_path, capsys) -> None:
    file = tmp_path / "performance-config.yaml"
    file.write_text(FILE)
    main(options("--config", str(file), "--case", "Good", "--own-time"))
    assert "own time: without that in which others had the processor" in capsys.readouterr().err


def test_the_workloads_are_listed(tmp_path, capsys) -> None:
    file = tmp_path / "performance-config.yaml"
    file.write_text(FILE)
    assert main(options("--config", str(file), "--list")) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["Good", "2Nodes"],
        ["Strange", "Any"],
    ]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        pytest.param(("--config", "/nowhere.yaml"), "/nowhere.yaml: cannot be read", id="no-file"),
        pytest.param(("--case", "None"), "there is no case 'None'; there are: Good, Strange", id="no-case"),
    ],
)
def test_what_cannot_be_chosen_is_refused(tmp_path, capsys, words, answer) -> None:
    file = tmp_path / "performance-config.yaml"
    file.write_text(FILE)
    assert main(options("--config", str(file), *words)) == 2
    assert answer in capsys.readouterr().err
