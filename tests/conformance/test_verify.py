"""Tests of `kschedd verify`: its output, its exit status, and messages about unusable files."""

import argparse
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from kschedd.conformance import cases, verify
from kschedd.printing.terminal.progress import ProgressLine
from tests.conformance.golden_records import ONE_NODE_FITS, case, pod, trace, write_records

WRONG = {**ONE_NODE_FITS, "best": ["b"], "message": "no"}


def run(*args: object) -> int:
    return verify.main([str(arg) for arg in args])


def test_all_passed_is_status_0_and_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_records(tmp_path / "small.jsonl", case(0, want=ONE_NODE_FITS), case(1, want=ONE_NODE_FITS))
    assert run(file) == 0
    printed = capsys.readouterr()
    assert printed.out.split() == ["FAMILY", "PASSED", "FAILED", "UNSUPPORTED", "small", "2", "0", "0"]
    assert printed.err == ""


def test_a_failed_case_is_shown_with_its_first_differences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_records(tmp_path / "small.jsonl", case(0, want=ONE_NODE_FITS), case(1, want=WRONG))
    assert run(file) == 1
    out = capsys.readouterr().out
    assert "small/0001 failed:" in out
    assert "best[0]: want 'b', got 'a'" in out
    assert "message: want 'no', got ''" in out
    assert "small/0000" not in out


def test_json_has_the_counts_by_family(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_records(tmp_path / "a.jsonl", case(0, want=ONE_NODE_FITS), case(1, want=WRONG))
    write_records(tmp_path / "b.jsonl", case(0, want=ONE_NODE_FITS, family="other"))
    assert run(tmp_path, "-o", "json") == 1
    assert json.loads(capsys.readouterr().out) == {
        "families": {
            "other": {"passed": 1, "failed": 0, "unsupported": 0},
            "small": {"passed": 1, "failed": 1, "unsupported": 0},
        }
    }


def test_packed_files_and_folders_are_read(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "small.jsonl.gz", "wt") as file:
        file.write(json.dumps(case(want=ONE_NODE_FITS)) + "\n\n")
    (tmp_path / "README.md").write_text("not a record")
    assert run(tmp_path) == 0


def test_remembered_evaluations_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = []

    def run_case(record: Any, version: Any, *, remember: bool = False) -> Any:
        requests.append(remember)
        return ONE_NODE_FITS

    monkeypatch.setattr(cases, "run_case", run_case)
    file = write_records(tmp_path / "small.jsonl", case(want=ONE_NODE_FITS))
    assert run(file) == run(file, "--remembered") == 0
    assert requests == [False, True]


def test_only_runs_the_records_whose_id_contains_the_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_records(tmp_path / "small.jsonl", case(0, want=ONE_NODE_FITS), case(1, want=WRONG))
    assert run(file, "--only", "/0000") == 0
    assert run(file, "--only", "nothing like this") == 2
    assert "no record's id contains 'nothing like this'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("readme", "flags", "taken"),
    [
        pytest.param(None, [], "1.34.1", id="without-a-readme"),
        pytest.param("What kube-scheduler **v1.36.3** decides\n", [], "1.36", id="as-the-readme-says"),
        pytest.param("# Of kube-scheduler v1.36.3\n", ["--kube-version", "1.34"], "1.34", id="as-the-flag-says"),
    ],
)
def test_records_are_judged_by_the_version_that_made_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, readme: str | None, flags: list[str], taken: str
) -> None:
    requests = []

    def run_case(record: Any, version: Any, *, remember: bool = False) -> Any:
        requests.append(version.name)
        return ONE_NODE_FITS

    monkeypatch.setattr(cases, "run_case", run_case)
    if readme is not None:
        (tmp_path / "README.md").write_text(readme)
    assert run(write_records(tmp_path / "small.jsonl", case(want=ONE_NODE_FITS)), *flags) == 0
    assert requests == [taken]


def test_records_are_judged_with_features_turned_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = []

    def run_case(record: Any, version: Any, *, remember: bool = False) -> Any:
        requests.append((version.gates["DRADeviceTaints"].default, version.gates["DRAExtendedResource"].default))
        return ONE_NODE_FITS

    monkeypatch.setattr(cases, "run_case", run_case)
    file = write_records(tmp_path / "small.jsonl", case(want=ONE_NODE_FITS))
    assert run(file, "--kube-version", "1.36", "--feature-gates", "DRADeviceTaints=false") == 0
    assert requests == [(False, True)]


def test_features_that_cannot_be_turned_off_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_records(tmp_path / "small.jsonl", case(want=ONE_NODE_FITS))
    assert run(file, "--kube-version", "1.36", "--feature-gates", "DRAAdminAccess=false") == 2
    assert "the feature is finished and its gate locked" in capsys.readouterr().err


def test_a_version_that_there_is_not_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_records(tmp_path / "small.jsonl", case(want=ONE_NODE_FITS))
    assert run(file, "--kube-version", "1.33") == 2
    (tmp_path / "README.md").write_text("kube-scheduler v1.29.0\n")
    assert run(file) == 2
    answer = capsys.readouterr().err
    assert (
        'Kubernetes "1.33" is not supported (supported: 1.34.1, 1.34, 1.35, 1.36, 1.37); 1.34 is the closest' in answer
    )
    assert 'README.md: Kubernetes "1.29.0" is not supported' in answer


def test_what_is_not_built_is_unsupported_and_not_passed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_case(record: Any, version: Any, *, remember: bool = False) -> Any:
        raise ModuleNotFoundError("No module named 'kschedd.plugins.later'", name="kschedd.plugins.later")

    monkeypatch.setattr(cases, "run_case", run_case)
    assert run(write_records(tmp_path / "small.jsonl", case(want=ONE_NODE_FITS)), "-o", "json") == 1
    assert json.loads(capsys.readouterr().out)["families"]["small"] == {"passed": 0, "failed": 0, "unsupported": 1}


def test_an_operation_nobody_knows_is_unsupported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = trace([{"op": "teleport", "kind": "Node", "name": "a"}], [{"attempts": []}])
    assert run(write_records(tmp_path / "t.jsonl", record)) == 1
    assert "there is an operation 'teleport'" in capsys.readouterr().out


def test_a_breakdown_of_ours_fails_the_record_and_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = case(0, want=ONE_NODE_FITS, pod={**pod("p"), "spec": {"containers": 7}})
    file = write_records(tmp_path / "small.jsonl", broken, case(1, want=ONE_NODE_FITS))
    assert run(file) == 1
    out = capsys.readouterr().out
    assert "kschedd failed: TypeError" in out
    assert out.split()[4:8] == ["small", "1", "1", "0"]


def test_a_configuration_that_is_refused_fails_the_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(write_records(tmp_path / "s.jsonl", case(want=ONE_NODE_FITS, config={"kind": "Other"}))) == 1
    assert "refused:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "why"),
    [
        pytest.param("{", "is no JSON", id="no-json"),
        pytest.param("[1]", "a mapping is expected", id="no-mapping"),
        pytest.param(json.dumps({"id": "x", "family": "f"}), "objects is missing", id="field-missing"),
        pytest.param(json.dumps(case(want=[])), "want is list", id="field-of-wrong-type"),
        pytest.param(json.dumps(case(want={}, objects=[{}])), "objects[0] is no object", id="no-object"),
        pytest.param(json.dumps(case(want={}, config=3)), "config must be null or a mapping", id="bad-config"),
        pytest.param(json.dumps(trace([{"op": "run"}], [])), "one step for each of ops", id="steps-missing"),
        pytest.param("[" * 100_000, "nested too deeply", id="too-deep"),
        pytest.param("\udcff", "no text in UTF-8", id="no-text"),
    ],
)
def test_a_bad_record_is_told_with_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, why: str
) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_bytes(f"{json.dumps(case(want=ONE_NODE_FITS))}\n{line}\n".encode(errors="surrogateescape"))
    good = write_records(tmp_path / "good.jsonl", case(want=ONE_NODE_FITS, family="good"))
    assert run(file, good) == 2
    printed = capsys.readouterr()
    assert f"error: {file}:2: " in printed.err
    assert why in printed.err
    assert printed.out.split()[4:12] == ["good", "1", "0", "0", "small", "1", "0", "0"]


def test_a_torn_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = gzip.compress(json.dumps(case(want=ONE_NODE_FITS)).encode())
    (tmp_path / "torn.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    assert run(tmp_path / "torn.jsonl.gz") == 2
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["away", "empty-folder", "empty-file"])
def test_a_path_in_vain_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str) -> None:
    path = tmp_path / what
    if what == "empty-folder":
        path.mkdir()
    elif what == "empty-file":
        path.touch()
    assert run(path) == 2
    answer = {
        "away": "no such file or folder",
        "empty-folder": "has no golden records",
        "empty-file": "is empty",
    }
    assert f"{path}: {answer[what]}" in capsys.readouterr().err


def test_it_is_mounted_as_a_verb(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    verify.add_parser(parser.add_subparsers())
    args = parser.parse_args(["verify", str(write_records(tmp_path / "s.jsonl", case(want=ONE_NODE_FITS)))])
    assert args.run(args) == 0


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_to_a_terminal_only(tmp_path: Path) -> None:
    file = write_records(tmp_path / "s.jsonl", case(want=ONE_NODE_FITS))
    for out, shown in ((Terminal(), True), (io.StringIO(), False)):
        progress = ProgressLine(out)
        verify.verify(verify.VerifyOptions((file,)), progress=verify.shown_on(progress))
        progress.clear()
        assert ("small: 1 records" in out.getvalue()) is shown
