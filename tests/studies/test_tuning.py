"""Tests of `kschedd tune`: the study, its restart, the comparison on held-out seeds, and faults of a specification."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from kschedd.cli import main
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.studies.engines import EngineOptions
from kschedd.studies.plan import ParameterValueError
from kschedd.studies.rows import read_rows
from kschedd.studies.tuning import Tuning, TuningError, interval, read_tuning_spec, student_t

pytest.importorskip("optuna", reason="the extra research is not installed")

STRATEGY = "args.NodeResourcesFit.scoringStrategy.type"
THREADS = EngineOptions(engine="threading", jobs=1)


def spec(**more: Any) -> dict[str, Any]:
    return {
        "clusters": {"small": {"generate": 6, "shape": "cpu=4,memory=16Gi"}},
        "workloads": {"few": {"generate": 14, "shapes": ["cpu=1,memory=1Gi"], "lifetime": "1h"}},
        "until": "10s",
        "seeds": 3,
        "held_out": "10-13",
        "trials": 6,
        "search": {
            "weights.NodeResourcesFit": {"low": 1, "high": 20},
            STRATEGY: {"choices": ["LeastAllocated", "MostAllocated"]},
        },
        "objectives": {"nodes_used": "minimize"},
        **more,
    }  # fmt: skip


def test_the_best_trial_beats_the_given_profile_on_held_out_seeds(tmp_path: Path) -> None:
    [best] = Tuning(read_tuning_spec(spec()), tmp_path, THREADS).run()
    assert best.parameters[STRATEGY] == "MostAllocated"
    [compared] = best.compared
    assert compared.metric == "nodes_used"
    assert compared.low <= compared.difference <= compared.high < 0
    assert {row["seed"] for row in read_rows(tmp_path)} == {0, 1, 2, 10, 11, 12, 13}


def test_a_trace_is_tuned_on(tmp_path: Path) -> None:
    job = " {0} {0} 0 3600 1 -1 -1 1 -1 -1 1 1 1 -1 1 -1 -1 -1\n"
    (tmp_path / "jobs.swf").write_text("".join(job.format(number) for number in range(1, 10)))
    given = spec(workloads={"jobs": {"pods": "jobs.swf"}}, trials=4)
    [best] = Tuning(read_tuning_spec(_written(tmp_path, given), tmp_path), tmp_path / "study", THREADS).run()
    assert best.objectives["nodes_used"] == pytest.approx(0.5)  # nine jobs of one core on six nodes of four


def _written(folder: Path, given: dict[str, Any]) -> Path:
    path = folder / "study.yaml"
    path.write_text(json.dumps(given))
    return path


def test_a_study_goes_on_where_it_was(tmp_path: Path) -> None:
    done: list[int] = []
    Tuning(read_tuning_spec(spec(trials=4)), tmp_path, THREADS, done.append).run()
    Tuning(read_tuning_spec(spec(trials=6)), tmp_path, THREADS, done.append).run()
    assert done == [4, 6]
    rows = len(read_rows(tmp_path))
    [best] = Tuning(read_tuning_spec(spec(trials=6)), tmp_path, THREADS, done.append).run()
    assert (done, len(read_rows(tmp_path))) == ([4, 6], rows)
    assert best.objectives["nodes_used"] < 1


def test_a_folder_has_the_study_of_one_specification(tmp_path: Path) -> None:
    Tuning(read_tuning_spec(spec(trials=1)), tmp_path, THREADS).run()
    [longer] = Tuning(read_tuning_spec(spec(trials=2, held_out="20-21")), tmp_path, THREADS).run()
    assert longer.compared
    for other in ({"seeds": 2}, {"objectives": {"nodes_used": "maximize"}}, {"search": {STRATEGY: {"choices": [
        "LeastAllocated", "MostAllocated"]}}}):  # fmt: skip
        with pytest.raises(TuningError, match="has a study with other inputs, values or objectives"):
            Tuning(read_tuning_spec(spec(trials=2, **other)), tmp_path, THREADS).run()


@pytest.mark.parametrize(
    ("search", "text"),
    [
        ({STRATEGY: {"choices": ["MostAllocated", "Foo"]}}, '"Foo": not one of the values'),
        ({"weights.NodeResourcesFit": {"low": -1, "high": 3}}, "weights.NodeResourcesFit=-1: "),
        ({"weights.NodeResourcesFit": {"low": 0.5, "high": 3}}, "weights.NodeResourcesFit=0.5: "),
        ({"weights.NoPlugin": {"low": 1, "high": 3}}, '"NoPlugin": no such plugin'),
    ],
)
def test_a_value_that_no_configuration_may_have_is_refused(search: dict[str, Any], text: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterValueError) as refused:
        Tuning(read_tuning_spec(spec(search=search)), tmp_path, THREADS)
    assert text in str(refused.value)


def test_a_value_that_requires_another_one_is_searched(tmp_path: Path) -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    search = {
        STRATEGY: {"choices": ["MostAllocated", "RequestedToCapacityRatio"]},
        "args.NodeResourcesFit.scoringStrategy.requestedToCapacityRatio": {"choices": [{"shape": shape}]},
    }
    assert Tuning(read_tuning_spec(spec(search=search, trials=2)), tmp_path, THREADS).run()


def test_failed_runs_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _written(tmp_path, spec(limits={"time": "1ns"}, trials=1))
    assert main(["tune", str(path), "--engine", "threading", "--jobs", "1"]) == 1
    out, err = capsys.readouterr()
    assert out.split() == ["TRIAL", "NODES_USED", "PARAMETERS"]
    assert err.splitlines()[-1].endswith("the first: time limit exceeded: 1e-09 s")


def test_two_objectives_give_the_set_that_no_trial_beats(tmp_path: Path) -> None:
    both = spec(objectives={"nodes_used": "minimize", "cpu_used_max": "maximize"}, trials=4)
    found = Tuning(read_tuning_spec(both), tmp_path, THREADS).run()
    values = [tuple(each.objectives.values()) for each in found]
    assert len(set(values)) == len(values) >= 1
    assert not any(a[0] <= b[0] and a[1] >= b[1] for a in values for b in values if a != b)


def test_the_command_writes_the_configuration_to_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(json.dumps(spec(trials=4)))
    assert main(["tune", str(path), "--engine", "threading", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    number = re.search(r"^trial (\d+) on held-out seeds", out, re.MULTILINE)
    assert number is not None
    assert "95% interval" in out
    assert main(["config", "check", "-f", str(tmp_path / f"t-study/trial-{number[1]}.yaml")]) == 0


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"search": {}}, "$.search: a mapping of paths to {low, high} or {choices} is required"),
        ({"search": {"weights.A": {"low": 3}}}, "no values (allowed: {low: 1, high: 10} or {choices: [A, B]})"),
        ({"search": {"args": {"choices": [1]}}}, "a plugin is required: weights.NAME, args.NAME.FIELD"),
        ({"objectives": {"speed": "minimize"}}, '"speed": no such metric (allowed: placed, '),
        ({"objectives": {"placed": "most"}}, '"most": not one of the values (allowed: minimize, maximize)'),
        ({"versions": ["1.36", "1.37"]}, "$.versions: tuning has one"),
        ({"held_out": "2-5"}, "$.held_out: [2]: these are seeds of the trials"),
        ({"seed": 1}, '$.seed: no such field; did you mean "seeds"?'),
    ],
)
def test_a_fault_says_where_what_and_what_is_allowed(more: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigErrors) as raised:
        read_tuning_spec(spec(**more))
    assert text in str(raised.value)


def test_the_interval_is_students() -> None:
    for freedom, known in ((1, 12.706), (2, 4.303), (3, 3.182), (9, 2.262), (30, 2.042)):
        assert student_t(freedom) == pytest.approx(known, abs=0.01)
    low, high = interval([1.0, 2.0, 3.0])
    assert (low + high) / 2 == pytest.approx(2)
    assert high - 2 == pytest.approx(4.303 / math.sqrt(3), abs=0.01)
    assert interval([1.0]) == (-math.inf, math.inf)
