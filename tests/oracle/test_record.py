"""Tests of recording and checking, with a fake oracle."""

import gzip
import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import check
from tests.oracle.answers import ask
from tests.oracle.record import CRASHED, REFUSED, UNDETERMINED, record

PROGRAM = """\
#!{python}
import json, os, pathlib, sys

lines = [json.loads(line) for line in sys.stdin]
if any(one["id"] == "crash" for one in lines):
    sys.exit(2)
count = pathlib.Path(sys.argv[0] + ".runs")
run = int(count.read_text()) + 1 if count.exists() else 0
count.write_text(str(run))
for one in lines:
    if sys.argv[1] == "case":
        answer = {{"id": one["id"], "want": {{"best": ["n1"]}}, "cycle": {{"agrees": one["id"] != "disagrees"}}}}
        if one["id"] == "refused":
            answer = {{"id": "refused", "refused": "no nodes"}}
        if one["id"] == "varies":
            answer["variants"] = ["a", "b"]
        if one["id"] == "bound":
            answer["binding"] = {{"node": "n1"}}
        print(json.dumps(answer))
    elif one["id"] == "refused":
        print('"refused": no such field', file=sys.stderr)
    else:
        steps = [{{"attempts": [], "deleted": [], "now_ms": run if one["id"] == "varies" else 0}}]
        print(json.dumps(one | {{"want": {{"steps": steps}}}}))
"""


@pytest.fixture
def oracle(tmp_path: Path) -> str:
    program = tmp_path / "oracle"
    program.write_text(PROGRAM.format(python=sys.executable), encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def case(name: str) -> dict[str, Any]:
    return {"id": name, "family": "nodename", "config": None, "objects": [], "pod": {}}


def trace(name: str) -> dict[str, Any]:
    return {"id": name, "family": "traces", "objects": [], "ops": [{"op": "run"}]}


def test_cases_that_chance_decides_are_left_out(oracle: str) -> None:
    names = ["same", "bound", "varies", "disagrees", "refused", "crash"]
    found = record(oracle, [case(name) for name in names])
    assert [one["id"] for one in found.kept] == ["same", "bound"]
    assert found.kept[0] == case("same") | {"want": {"best": ["n1"]}}
    assert found.kept[1]["binding"] == {"node": "n1"}
    assert found.left_out == {
        "varies": UNDETERMINED,
        "disagrees": "the whole cycle at once disagrees with its phases",
        "refused": f"{REFUSED}: no nodes",
        "crash": CRASHED,
    }


def test_traces_whose_runs_differ_are_left_out(oracle: str) -> None:
    found = record(oracle, [trace("same"), trace("varies"), trace("refused")])
    assert [one["id"] for one in found.kept] == ["same"]
    assert found.left_out == {"varies": UNDETERMINED, "refused": f"{REFUSED}: no such field"}


def test_inputs_beside_one_that_ends_the_program_are_answered(oracle: str) -> None:
    inputs = [case("a"), case("b"), case("crash"), case("c"), case("d")]
    assert sorted(ask(oracle, "case", inputs)) == ["a", "b", "c", "d"]


def test_a_check_counts_records_that_differ(oracle: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [case("same") | {"want": {"best": ["n1"]}}, case("other") | {"want": {"best": ["n2"]}}]
    file = tmp_path / "records.jsonl.gz"
    file.write_bytes(gzip.compress("".join(json.dumps(one) + "\n" for one in records).encode()))
    assert check.main([oracle, str(file)]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[-1] == "all files: {'same': 1, 'differs': 1}"
    assert json.loads(err) == ["other", "differs", ["want.best[0]: want 'n2', got 'n1'"]]
