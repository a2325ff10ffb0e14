"""Tests of `kschedd sweep`: rows, their hashes, engines, interruption and resumption, failures, limits and shards."""

import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from kschedd import sweep
from kschedd.cli import main
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.studies.engines import EngineOptions, perform_all
from kschedd.studies.plan import PlannedRun, planned_runs
from kschedd.studies.rows import RowsFile, RowsFileError, read_rows
from kschedd.studies.run import perform
from kschedd.studies.spec import read_spec
from kschedd.studies.sweep import plan
from tests.full_run import every

STRATEGY = "args.NodeResourcesFit.scoringStrategy.type"
DECIDED = ("run", "row_hash", "inputs_hash", "decisions_hash", "placed", "cpu_used_mean")


def spec(**more: Any) -> dict[str, Any]:
    return {
        "clusters": {"small": {"generate": 4, "shape": "cpu=4,memory=16Gi,zones=2"}},
        "workloads": {"few": {"generate": 12, "shapes": ["cpu=1,memory=1Gi", "cpu=500m,memory=2Gi"]}},
        "seeds": 2,
        "parameters": {STRATEGY: ["LeastAllocated", "MostAllocated"]},
        **more,
    }


def written(folder: Path, **more: Any) -> Path:
    path = folder / "study.yaml"
    path.write_text(json.dumps(spec(**more)))
    return path


def hashes(rows: Any) -> dict[str, str]:
    return {row["run"]: row["row_hash"] for row in rows}


@pytest.fixture(scope="module")
def expected() -> dict[str, str]:
    """Return the row hashes of runs in this thread, without an engine."""
    return hashes(map(perform, planned_runs(read_spec(spec()))))


def test_a_row_has_the_inputs_the_versions_and_the_metrics() -> None:
    rows = sweep(spec(), engine="threading")
    assert [(row[STRATEGY], row["seed"]) for row in rows] == [
        ("LeastAllocated", 0), ("MostAllocated", 0), ("LeastAllocated", 1), ("MostAllocated", 1),
    ]  # fmt: skip
    first = rows[0]
    assert (first["cluster"], first["workload"], first["profile"], first["status"]) == ("small", "few", "default", "ok")
    assert (first["kubernetes"], first["placed"], first["pending"]) == ("1.37.2", 12, 0)
    assert len({row["row_hash"] for row in rows}) == len({row["run"] for row in rows}) == 4
    assert rows.to_pandas()["placed"].tolist() == rows.to_polars()["placed"].to_list() == [12] * 4


def test_a_spec_names_the_metrics_of_its_rows() -> None:
    [row, *_] = sweep(spec(metrics=["placed", "cpu_used_max"]), engine="threading")
    assert {"placed", "cpu_used_max"} <= set(row)
    assert "pending" not in row


def test_two_sweeps_give_the_same_row_hashes(expected: dict[str, str]) -> None:
    assert hashes(sweep(spec(), engine="threading", jobs=2)) == expected


def test_another_place_of_the_files_gives_the_same_row_hashes(tmp_path: Path) -> None:
    found = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        (folder / "pods.csv").write_text(
            "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
            "scheduled_time\np,1000,1024,0,0,,LS,Running,0,,0\n"
        )
        path = written(folder, workloads={"one": {"pods": "pods.csv"}})
        found.append(hashes(sweep(path, engine="threading")))
    assert found[0] == found[1]


def killed_once(planned: PlannedRun) -> dict[str, Any]:
    """Kill the worker before its first run, once for each file named by the environment variable."""
    mark = Path(os.environ["KSCHEDD_TEST_MARK"])
    if planned.seed == 1 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return perform(planned)


def killed_always(planned: PlannedRun) -> dict[str, Any]:
    if planned.seed == 1 and planned.names[STRATEGY] == "MostAllocated":
        os.kill(os.getpid(), signal.SIGKILL)
    return perform(planned)


@pytest.mark.full
def test_a_killed_process_loses_only_its_runs_and_they_are_retried(expected: dict[str, str]) -> None:
    runs = list(planned_runs(read_spec(spec())))
    rows = list(perform_all(EngineOptions(jobs=2), runs, killed_always))
    # A run is recorded as failed after it has killed each of its workers.
    [failed] = [row for row in rows if row["status"] == "failed"]
    assert (failed["seed"], failed[STRATEGY]) == (1, "MostAllocated")
    assert "the worker process died 3 times" in failed["error"]
    assert hashes(rows) == {**expected, failed["run"]: failed["row_hash"]}


@pytest.mark.full
@pytest.mark.filterwarnings("default")  # warnings about Dask's sockets and event loop at the end
def test_dask_gives_the_same_row_hashes_and_retries_what_a_killed_worker_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: dict[str, str]
) -> None:
    pytest.importorskip("dask.distributed", reason="the extra dask is not installed")
    monkeypatch.setenv("KSCHEDD_TEST_MARK", str(tmp_path / "mark"))
    rows = list(perform_all(EngineOptions(engine="dask", jobs=2), list(planned_runs(read_spec(spec()))), killed_once))
    assert (tmp_path / "mark").exists()
    assert hashes(rows) == expected


@pytest.mark.full
@pytest.mark.filterwarnings("default")  # warnings about Dask's sockets and event loop at the end
def test_an_existing_dask_cluster_performs_the_runs_and_lives_on(expected: dict[str, str]) -> None:
    distributed = pytest.importorskip("dask.distributed", reason="the extra dask is not installed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        assert hashes(sweep(spec(), engine="dask", address=cluster.scheduler_address)) == expected
        with distributed.Client(cluster) as client:
            assert client.submit(sum, [1, 2]).result(timeout=60) == 3


@pytest.mark.full
@pytest.mark.filterwarnings("default")  # warnings about Ray's processes and files
def test_ray_gives_the_same_row_hashes_and_retries_what_a_killed_worker_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: dict[str, str]
) -> None:
    pytest.importorskip("ray", reason="the extra ray is not installed: Ray has no wheel for every Python")
    monkeypatch.setenv("KSCHEDD_TEST_MARK", str(tmp_path / "mark"))
    rows = list(perform_all(EngineOptions(engine="ray", jobs=2), list(planned_runs(read_spec(spec()))), killed_once))
    assert (tmp_path / "mark").exists()
    assert hashes(rows) == expected


# -- interruption ----------------------------------------------------------------------------------------------------


def test_finished_runs_are_not_performed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "rows"
    first = sweep(spec(), out, engine="threading")
    lines = (out / "rows.jsonl").read_bytes().splitlines(keepends=True)
    # kill -9 leaves such a file: two complete rows and a part of a third
    (out / "rows.jsonl").write_bytes(b"".join(lines[:2]) + lines[2][:50])
    done: list[str] = []
    again = sweep(spec(), out, engine="threading", progress=lambda planned, row: done.append(row["run"]))
    assert len(done) == 2
    assert not set(done) & {json.loads(line)["run"] for line in lines[:2]}
    assert hashes(again) == hashes(first) == hashes(read_rows(out))
    assert (out / "rows.jsonl").read_bytes().startswith(b"".join(lines[:2]))


@pytest.mark.slow
def test_a_sweep_that_was_killed_is_resumed(tmp_path: Path, expected: dict[str, str]) -> None:
    path, out = written(tmp_path), tmp_path / "rows"
    command = [
        sys.executable,
        "-m",
        "kschedd",
        "sweep",
        str(path),
        "--out",
        str(out),
        "--engine",
        "threading",
        "--jobs",
        "1",
    ]
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (out / "rows.jsonl").exists() or not (out / "rows.jsonl").read_bytes().count(b"\n"):
        assert started.poll() is None or (out / "rows.jsonl").read_bytes().count(b"\n")
    started.kill()
    started.wait()
    kept = len(read_rows(out))
    assert kept >= 1
    done: list[str] = []
    rows = sweep(path, out, engine="threading", progress=lambda planned, row: done.append(row["run"]))
    assert (len(done), len(rows)) == (4 - kept, 4)
    assert hashes(rows) == expected


def test_another_input_is_another_run(tmp_path: Path) -> None:
    sweep(spec(), tmp_path, engine="threading")
    other = spec(workloads={"few": {"generate": 13}})
    assert len(plan(other, tmp_path).left) == 4
    assert plan(spec(), tmp_path).left == []


def test_two_sweeps_do_not_write_one_file(tmp_path: Path) -> None:
    with RowsFile.opened(tmp_path), pytest.raises(RowsFileError, match="another sweep is writing this file"):
        sweep(spec(), tmp_path, engine="threading")


def test_the_shards_are_the_whole_sweep_once(tmp_path: Path) -> None:
    parts = [sweep(spec(), tmp_path, engine="threading", shard=f"{number}/3") for number in (1, 2, 3)]
    assert [len(part) for part in parts] == [1, 2, 1]
    assert plan(spec(), tmp_path).left == []
    assert len(read_rows(tmp_path)) == 4
    assert sorted(path.name for path in tmp_path.glob("*.jsonl")) == [f"rows-{n}-of-3.jsonl" for n in (1, 2, 3)]


# -- failures --------------------------------------------------------------------------------------------------------


def test_a_failure_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: []}\n")
    path = written(tmp_path, workloads={"bad": {"files": "bad.yaml"}, "few": {"generate": 3}}, parameters={})
    rows = sweep(path, engine="threading")
    assert [row["status"] for row in rows] == ["failed", "ok", "failed", "ok"]
    assert "bad.yaml:" in rows[0]["error"]
    assert "containers" in rows[0]["error"]


def test_a_failure_is_performed_again_on_request(tmp_path: Path) -> None:
    tight = spec(limits={"time": "1ns"})
    assert {row["status"] for row in sweep(tight, tmp_path, engine="threading")} == {"timeout"}
    (tmp_path / "rows.jsonl").write_text((tmp_path / "rows.jsonl").read_text())
    assert plan(tight, tmp_path).left == []
    loose = spec(limits={"time": "1h"})  # limits do not affect decisions, so the runs are the same
    rows = sweep(loose, tmp_path, engine="threading", retry_failed=True)
    assert {row["status"] for row in rows} == {"ok"}
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 4


def test_a_run_that_takes_too_long_is_a_row() -> None:
    [row, *_] = sweep(spec(limits={"time": "1ns"}), engine="threading")
    assert (row["status"], row["error"]) == ("timeout", "time limit exceeded: 1e-09 s")


_SPINNING = """
class Spinning:
    name = "Spinning"

    def pre_filter(self, state, pod, cluster):
        while True:
            pass
"""


def test_a_run_that_another_shard_repeats_has_the_later_row(tmp_path: Path) -> None:
    tight, loose = spec(limits={"time": "1ns"}), spec()
    sweep(tight, tmp_path, engine="threading")
    sweep(loose, tmp_path, engine="threading", shard="1/2", retry_failed=True)
    assert sorted(row["status"] for row in read_rows(tmp_path)) == ["ok", "ok", "timeout", "timeout"]
    sweep(tight, tmp_path, engine="threading", shard="1/2", retry_failed=True)
    assert len(plan(loose, tmp_path, retry_failed=True).left) == 2


def test_rows_are_replaced_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep(spec(limits={"time": "1ns"}, seeds=1), tmp_path, engine="threading")
    before = (tmp_path / "rows.jsonl").read_bytes()
    with monkeypatch.context() as patched, RowsFile.opened(tmp_path) as file:
        patched.setattr(os, "replace", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            file.forget(["timeout"])
    assert (tmp_path / "rows.jsonl").read_bytes() == before
    with RowsFile.opened(tmp_path) as file:
        file.forget(["timeout"])
        assert (tmp_path / "rows.jsonl").read_bytes() == b""
        with pytest.raises(RowsFileError, match="another sweep"), RowsFile.opened(tmp_path):
            pass
        file.append({"run": "a"})
    assert [row["run"] for row in read_rows(tmp_path)] == ["a"]


def test_equal_values_of_a_parameter_are_one_run() -> None:
    assert len(plan(spec(parameters={STRATEGY: ["MostAllocated", "MostAllocated"]}, seeds=1)).runs) == 1


@pytest.mark.parametrize("engine", every(2, ["loky", "threading"]))
def test_the_time_limit_ends_a_single_long_attempt(tmp_path: Path, engine: str) -> None:
    (tmp_path / "spinning.py").write_text(_SPINNING)
    profile = {
        "plugins": ["spinning.py"],
        "config": {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Spinning"}]}}}]},
    }
    limits = {"time": "200ms"}
    path = written(tmp_path, profiles={"p": profile}, limits=limits, trust_plugins=True, parameters={}, seeds=2)
    before = signal.getsignal(signal.SIGALRM)
    rows = sweep(path, engine=engine, jobs=1)
    assert [(row["status"], row["error"]) for row in rows] == [("timeout", "time limit exceeded: 0.2 s")] * 2
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_the_time_limit_ends_work_outside_of_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    def spin(*given: Any) -> None:
        while True:
            pass

    monkeypatch.setattr("kschedd.studies.run.Simulation.load", spin)
    [row] = sweep(spec(limits={"time": "100ms"}, parameters={}, seeds=1), engine="threading", jobs=1)
    assert (row["status"], row["error"]) == ("timeout", "time limit exceeded: 0.1 s")


def test_a_run_that_takes_too_much_memory_is_a_row() -> None:
    large = next(planned_runs(read_spec(spec(limits={"memory": "32Mi"}, clusters={"large": {"generate": 40_000}}))))
    # In a new process, since one that has run other tests has free memory to reuse.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as worker:
        row = worker.submit(perform, large).result()
        assert (row["status"], row["error"]) == ("memory", "memory limit exceeded: 33,554,432 bytes")
        assert worker.submit(perform, next(planned_runs(read_spec(spec())))).result()["status"] == "ok"


def test_a_file_that_changed_after_the_plan_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n")
    [run, *_] = planned_runs(read_spec(written(tmp_path, workloads={"one": {"files": "pod.yaml"}})))
    (tmp_path / "pod.yaml").write_text("")
    assert "differs from the file that the sweep was planned with" in perform(run)["error"]


def test_prices_by_type_or_resource_give_the_cost_of_the_nodes(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text("resources: {cpu: 0.5, memory: 0.125}")
    path = written(
        tmp_path,
        prices="prices.yaml",
        workloads={"one": {"generate": 1, "lifetime": "1000h"}},
        until="1h",
        parameters={},
        seeds=1,
    )
    [row] = sweep(path, engine="threading")
    assert (row["cost_hour"], row["cost_hour_used"]) == (16, 4)  # four nodes of 4 cores and 16 GiB
    assert row["cost_total"] == 16
    assert 3.9 < row["cost_total_used"] < 4  # since the arrival of the pod
    [row] = sweep(spec(prices={"nodes": {"m5.large": 1}}, parameters={}, seeds=1), engine="threading")
    assert row["error"] == ('prices: node node-0 has no price; give one for its instance type "" or for its resources')


# -- the command -----------------------------------------------------------------------------------------------------


def test_the_command_prints_a_row_for_each_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, metrics=["placed", "pending"])
    assert main(["sweep", str(path), "--engine", "threading"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0].split() == [STRATEGY.upper(), "RUNS", "PLACED", "PENDING"]
    assert out.splitlines()[1].split() == ["LeastAllocated", "2", "12", "±0", "0", "±0"]
    assert err.splitlines()[-1].startswith("4 runs, 0 failed, ")
    assert err.splitlines()[-1].endswith(f" CPU seconds; rows in {tmp_path / 'study-rows'}")
    assert main(["sweep", str(path), "--dry-run"]) == 0
    planned = capsys.readouterr().out
    assert re.match(r"4 runs, 4 finished \([0-9.e-]+ CPU seconds\), 0 to perform\nestimate: 0s with", planned)
    assert planned.endswith(out)
    assert main(["sweep", str(path), "--dry-run", "-o", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 4


def test_a_dry_run_prints_the_results_of_an_interrupted_sweep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, metrics=["placed"])
    assert main(["sweep", str(path), "--engine", "threading", "--shard", "1/2"]) == 0
    capsys.readouterr()
    rows = (tmp_path / "study-rows" / "rows-1-of-2.jsonl").read_bytes()
    assert main(["sweep", str(path), "--dry-run"]) == 0
    first, _, *table = capsys.readouterr().out.splitlines()
    assert first.startswith("4 runs, 2 finished (")
    assert table[0].split() == [STRATEGY.upper(), "RUNS", "PLACED"]
    assert [line.split() for line in table[1:]] == [["LeastAllocated", "1", "12"], ["MostAllocated", "1", "12"]]
    assert [path.read_bytes() for path in (tmp_path / "study-rows").glob("*.jsonl")] == [rows]


def test_the_command_fails_if_a_run_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, limits={"time": "1ns"}, parameters={}, seeds=1)
    assert main(["sweep", str(path), "--engine", "threading", "-o", "json"]) == 1
    assert json.loads(capsys.readouterr().out)[0]["status"] == "timeout"


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--shard", "3/2"], "--shard 3/2: must be I/N with I from 1 to N, such as 1/4"),
        (["--address", "tcp://x:1"], "--address requires --engine dask or ray, not loky"),
        (["--jobs", "-1"], "--jobs -1: must be 0 or more"),
    ],
)
def test_wrong_flags(flags: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", str(written(tmp_path)), *flags]) == 2
    assert capsys.readouterr().err == f"error: {text}\n"


def test_a_memory_limit_requires_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, limits={"memory": "1Gi"})
    assert main(["sweep", str(path), "--engine", "threading"]) == 2
    assert capsys.readouterr().err.startswith("error: limits.memory requires workers that are processes")


def test_without_joblib_the_command_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    monkeypatch.setitem(sys.modules, "joblib", None)
    assert main(["sweep", str(written(tmp_path))]) == 2
    assert (
        capsys.readouterr().err == 'error: joblib is not installed; install it with: pip install "kschedd[research]"\n'
    )


def test_a_profile_chooses_among_equal_nodes() -> None:
    profiles = {ties: {"ties": ties} for ties in ("release", "random", "name")}
    spec = {"clusters": {"a": {"generate": 20}}, "workloads": {"w": {"generate": 30}}, "profiles": profiles, "seeds": 3}
    hashes: dict[str, set[str]] = {}
    for row in sweep(spec, engine="threading", jobs=1):
        hashes.setdefault(row["profile"], set()).add(row["decisions_hash"])
    assert len(set().union(*hashes.values())) == sum(map(len, hashes.values())) == 9
    with pytest.raises(ConfigErrors, match=r"profiles\.a\.ties"):
        sweep({**spec, "profiles": {"a": {"ties": "first"}}})
