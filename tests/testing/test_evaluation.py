"""Tests of kschedd.evaluate: the score of a plugin on a suite, also for broken programs."""

import json
import os
import re
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kschedd import PluginEvaluation, cli, evaluate
from kschedd.testing.evaluation import SuiteError, read_suite
from tests.full_run import FULL, every
from tests.testing.broken_programs import program

GOOD = """
class PackNodes:
    name = "PackNodes"

    def score(self, state, pod, node):
        return 100 if node.pods else 0
"""
SUITE = {"cases": [{"name": "one", "nodes": {"count": 4}, "pods": {"count": 12, "cpu": ["250m", "1", "9"]}}]}
HANGS = "while True: pass\n"
BROKEN = {
    "syntax": ("class A(:\n", "SyntaxError"),
    "exits": ("import os\nos._exit(3)\n", "exit status 3"),
    "raises SystemExit": ("raise SystemExit(4)\n", "SystemExit|exit"),
    "no plugin": ("x = 1\n", "defines no plugin"),
    "breaks a rule": (GOOD.replace("100 if node.pods else 0", "1000"), "PackNodes"),
    "hangs at import": (HANGS, "limit|did not|longer|hang"),
    "kills itself": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "SIGKILL"),
    "takes all memory": ("x = []\nwhile True: x.append(bytearray(1 << 26))\n", "[Mm]emory"),
    "kills its group": (
        "import os, signal\nos.killpg(os.getpgrp(), signal.SIGTERM)\nimport time; time.sleep(9)\n",
        "SIG",
    ),
    "deletes its folder": ("import os, shutil\nshutil.rmtree(os.getcwd())\nos._exit(0)\n", "without a result"),
}

VALID = (4, 6)  # seeds of random programs that are not broken; they end by themselves, however slow the machine is

# Each line stands for nine times as many values as the one before.
ALIAS_BOMB = "a0: &a0 [1]\n" + "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(9))


def plugin(folder: Path, text: str) -> Path:
    file = folder / "plugin.py"
    file.write_text(text)
    return file


def test_a_plugin_gets_a_score(tmp_path: Path) -> None:
    file = plugin(tmp_path, GOOD)
    found = evaluate(file, {**SUITE, "weights": {"placed": 1, "nodes_used": -0.5}}, seeds=3)
    assert (found.valid, found.error) == (True, "")
    assert [(run.case, run.seed) for run in found.runs] == [("one", 0), ("one", 1), ("one", 2)]
    assert found.combined_score == pytest.approx(found.metrics["placed"] - 0.5 * found.metrics["nodes_used"])
    assert 0 < found.metrics["placed"] < 1
    assert "Insufficient cpu" in found.artifacts["messages"]
    again = evaluate(file, {**SUITE, "weights": {"placed": 1, "nodes_used": -0.5}}, seeds=3)
    assert again.combined_score == found.combined_score


@pytest.mark.parametrize("name", every(3, BROKEN))
def test_a_broken_program_is_a_result(tmp_path: Path, name: str) -> None:
    text, reason = BROKEN[name]
    limit_s = 4 if text == HANGS else 60
    found = evaluate(plugin(tmp_path, text), SUITE, seeds=1, time_limit_s=limit_s, memory_limit_mib=1024)
    assert (found.valid, found.combined_score, len(found.runs)) == (False, 0.0, 0)
    assert re.search(reason, found.error)


def test_random_programs_neither_end_nor_hang_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluate programs from broken_programs.py; KSCHEDD_BROKEN_PROGRAMS is their number."""
    many = int(os.environ.get("KSCHEDD_BROKEN_PROGRAMS") or (12 if FULL else 3))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def evaluated(seed: int) -> PluginEvaluation:
        file = tmp_path / f"program_{seed}.py"
        file.write_bytes(program(seed))
        limit_s = 600 if seed in VALID else 12
        return evaluate(file, SUITE, seeds=1, rules=seed % 4 == 0, time_limit_s=limit_s, memory_limit_mib=1024)

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(evaluated, range(many)))
    assert len(found) == many
    for each in found:
        assert each.valid == (not each.error)
        json.dumps(each.to_dict(), allow_nan=False)
    assert [seed for seed in VALID if seed < many and not found[seed].valid] == []
    assert any(not each.valid for each in found)
    assert list(tmp_path.glob("kschedd-evaluate-*")) == []
    reasons = Counter(re.sub(r"[0-9]+|'.*'|/\S*", "#", each.error)[:60] or "valid" for each in found)
    print("\n".join(f"{count:5} {reason}" for reason, count in reasons.most_common()))


@pytest.mark.parametrize("change", ["os.mkfifo('answer.json')", "os.symlink('/dev/zero', 'answer.json')"])
def test_an_answer_that_is_no_file_is_not_read(tmp_path: Path, change: str) -> None:
    found = evaluate(plugin(tmp_path, f"import os\n{change}\nos._exit(0)\n"), SUITE, seeds=1)
    assert "without a result" in found.error


def test_a_text_that_cannot_be_encoded_is_escaped(tmp_path: Path) -> None:
    found = evaluate(plugin(tmp_path, "raise ValueError('\\ud800')\n"), SUITE, seeds=1)
    assert "\\ud800" in found.error
    found.error.encode()


def test_a_process_in_another_session_is_killed_as_well(tmp_path: Path) -> None:
    left = tmp_path / "pid"
    text = f"""import subprocess
child = subprocess.Popen(["sleep", "300"], start_new_session=True)
open({str(left)!r}, "w").write(str(child.pid))
"""
    evaluate(plugin(tmp_path, text + GOOD), SUITE, seeds=1, rules=False)
    status = Path(f"/proc/{left.read_text()}/status")
    assert not status.exists() or "zombie" in status.read_text()


@pytest.mark.parametrize(
    "answer",
    [
        "{",
        "[" * 100_000,
        '{"error": 3}',
        '{"error": "", "runs": [], "artifacts": {}}',
        '{"error": "", "runs": [{}], "artifacts": {}}',
    ],
)
def test_a_forged_answer_is_not_valid(tmp_path: Path, answer: str) -> None:
    text = f"import os\nopen('answer.json', 'w').write({answer!r})\nos._exit(0)\n"
    found = evaluate(plugin(tmp_path, text), SUITE, seeds=1)
    assert (found.valid, found.combined_score) == (False, 0.0)
    assert "result" in found.error


def test_a_fault_in_an_attempt_costs_that_pod_its_node(tmp_path: Path) -> None:
    text = GOOD.replace("return 100 if node.pods else 0", "raise ValueError('no')")
    found = evaluate(plugin(tmp_path, text), SUITE, seeds=1, rules=False)
    assert (found.valid, found.metrics["placed"]) == (True, 0.0)
    assert "ValueError" in found.artifacts["messages"]


def test_output_of_the_program_is_kept_up_to_a_limit(tmp_path: Path) -> None:
    found = evaluate(plugin(tmp_path, "print('x' * (3 << 20))\n" + GOOD), SUITE, seeds=1)
    assert found.valid
    assert len(found.artifacts["output"]) == 1 << 20


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "a map with a list `cases` is required"),
        ("cases: []", "a map with a list `cases` is required"),
        ("cases: [3]", r"cases\[0\]: a map is required"),
        ("cases: [{name: a}]", "one of nodes, files and from is required"),
        ("cases: [{nodes: {count: 0}}]", "a count from 1 to 100000"),
        ("cases: [{nodes: {count: 2}, size: 3}]", 'unknown field "size"'),
        ("cases: [{nodes: {count: 2}}]\nweights: {speed: 1}", "metrics: placed"),
        ("cases: [{nodes: {count: 2}}]\nweights: {placed: high}", "numbers are required"),
        ("cases: {", "cannot be read"),
        ("cases: []\n---\ncases: []", "a map with a list `cases` is required"),
        (ALIAS_BOMB, "cannot be read"),
    ],
)
def test_a_wrong_suite_is_refused_with_the_place(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(text)
    with pytest.raises(SuiteError, match=why):
        read_suite(file)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(plugin(tmp_path, GOOD))
    suite = tmp_path / "suite.yaml"
    suite.write_text(json.dumps(SUITE))
    assert cli.main(["evaluate", file, "--suite", str(suite), "--seeds", "2", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["valid"], len(found["runs"])) == (True, 2)
    assert cli.main(["evaluate", str(tmp_path / "none.py")]) == 2
    assert "no such file" in capsys.readouterr().err
    assert cli.main(["evaluate", file, "--suite", str(tmp_path / "none.yaml")]) == 2
    assert cli.main(["evaluate", file, "--seeds", "0"]) == 2
