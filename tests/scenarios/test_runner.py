"""Tests of scenarios as tests: expectations, reports, exit statuses, rewriting, JUnit XML."""

import io
import os
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from kschedd.cli import main
from kschedd.scenarios.file import matches, parse, rewritten
from kschedd.scenarios.junit import junit_xml
from kschedd.scenarios.runner import BAD_INPUT, FAILED, PASSED, files_of, report, run_each, run_file

CLUSTER = """\
# a node, and a pod that fits

apply
{apiVersion: v1, kind: Node, metadata: {name: a, labels: {topology.kubernetes.io/zone: east}},
 status: {allocatable: {cpu: "1", memory: 1Gi, pods: "10"}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: small}, spec: {containers: [{name: c, image: i}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: big},
 spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "2"}}}]}}
----
...

"""
GOOD = CLUSTER + "expect pod small on zone east\nexpect pod big pending because Insufficient cpu after 10m\n"
BAD = CLUSTER + "expect pod small on zone west\n# the end\nexpect nothing pending after 10m\n"


def written(folder: Path, **texts: str) -> list[Path]:
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    return [folder / f"{name}.txt" for name in texts]


def reported(path: Path, *, rewrite: bool = False) -> tuple[int, str]:
    out = io.StringIO()
    return report(run_file(path, rewrite=rewrite), out.write), out.getvalue()


def test_expectations_that_hold_pass(tmp_path: Path) -> None:
    (good,) = written(tmp_path, good=GOOD)
    assert reported(good) == (PASSED, f"{good}: 3 of 3 steps as expected\n")


def test_one_that_does_not_hold_is_told_with_its_line_what_is_and_why(tmp_path: Path) -> None:
    (bad,) = written(tmp_path, bad=BAD)
    status, text = reported(bad)
    assert status == FAILED
    lines = text.splitlines()
    assert lines[0] == f"{bad}: 1 of 3 steps as expected"
    assert lines[1:4] == [
        f"{bad}:14: expect pod small on zone west",
        "  expected: pod small on zone west",
        "  found:    pod small is Running on a (zone east)",
    ]
    assert lines[4] == f"{bad}:16: expect nothing pending after 10m"
    assert lines[6] == "  found:    1 of 2: big"
    assert lines[7].startswith("  why:      big: 0/1 nodes are available: 1 Insufficient cpu.")


def test_rewriting_writes_what_is_so_and_keeps_the_rest(tmp_path: Path) -> None:
    (bad,) = written(tmp_path, bad=BAD)
    assert reported(bad, rewrite=True) == (PASSED, f"{bad}: rewritten\n")
    text = bad.read_text()
    assert text == CLUSTER + "expect pod small on zone east\n# the end\nexpect 1 pod pending after 10m\n"
    assert reported(bad, rewrite=True) == (PASSED, f"{bad}: 3 of 3 steps as expected\n")
    assert bad.read_text() == text


def test_rewriting_leaves_a_claim_that_it_has_no_words_for_and_says_so(tmp_path: Path) -> None:
    (file,) = written(tmp_path, file=CLUSTER + "expect max skew <= 1 over rack\n\nget nodes -o name\n----\nelse\n")
    status, text = reported(file, rewrite=True)
    assert status == FAILED
    assert "no node has the label rack" in text
    assert file.read_text().endswith("expect max skew <= 1 over rack\n\nget nodes -o name\n----\nnode/a\n")


@pytest.mark.parametrize(
    ("more", "line", "why"),
    [
        pytest.param("expect pod small runing\n", 14, 'did you mean "running"', id="assertion"),
        pytest.param("expect pod small running --al\n", 14, "unknown flag --al", id="flag"),
        pytest.param("expect pod 'small running\n", 14, "No closing quotation", id="quotes"),
        pytest.param("get pods\n", 14, "no line ----", id="separator"),
        pytest.param(
            "advance 5s\n\napply\nkind: Nonsense\n----\n",
            14,
            'reads no input, but line 16 follows it: "apply": end the step with a line ----',
            id="step after a command for time",
        ),
        pytest.param(
            "get pods\n\nadvance 5s\n----\n...\n", 14, 'line 16 follows it: "advance 5s"', id="step after a verb"
        ),
        pytest.param("apply -f file.txt\nadvance 5s\n----\n...\n", 14, "reads no input", id="input beside a file"),
        pytest.param("config show\nadvance 5s\n----\n...\n", 14, "reads no input", id="step after config show"),
    ],
)
def test_what_cannot_be_understood_is_bad_input(tmp_path: Path, more: str, line: int, why: str) -> None:
    (file,) = written(tmp_path, file=CLUSTER + more)
    status, text = reported(file)
    assert status == BAD_INPUT
    assert text.startswith(f"error: {file}:{line}: ")
    assert why in text


def test_dots_for_the_whole_output_ask_for_success(tmp_path: Path) -> None:
    (file,) = written(tmp_path, file="get pods nobody\n----\n...\n")
    status, text = reported(file)
    assert status == FAILED
    assert "+Error from server" in text or "+error: " in text


@pytest.mark.parametrize(
    ("expected", "got", "same"),
    [
        ("a\n...\nd", "a\nb\nc\nd", True),
        ("a\n...\nd", "a\nd", True),
        ("a\n...", "a", True),
        ("...\nd", "a.b\nd", True),
        ("...", "", True),
        ("a\n...\nd", "a\nb", False),
        ("a.c\n...", "abc", False),
        ("a", "a", True),
    ],
)
def test_a_line_of_dots_stands_for_any_lines(expected: str, got: str, *, same: bool) -> None:
    assert matches(expected, got) is same


def test_dots_that_match_stay_when_rewritten() -> None:
    text = CLUSTER + "get pods -o name\n----\n...\npod/small\n"
    assert rewritten(parse(text, "file.txt")) == text


def test_an_expectation_with_a_separator_is_a_command_like_others() -> None:
    text = (
        CLUSTER
        + "expect pod small gone\n----\nexpected: pod small gone\nfound:    pod small is Running on a (zone east)\n"
    )
    assert rewritten(parse(text, "file.txt")) == text


def test_files_of_folders_come_by_name_and_each_once(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    b, a = written(tmp_path, b=GOOD, a=GOOD)
    (c,) = written(tmp_path / "more", c=GOOD)
    (tmp_path / "README.md").write_text("no scenario")
    assert files_of([tmp_path]) == [a, b, c]
    assert files_of([b, tmp_path]) == [b, a, c]


def test_beside_each_other_the_results_are_the_same_and_in_order(tmp_path: Path) -> None:
    files = written(tmp_path, a=BAD, b=GOOD, c="nonsense")

    def text(jobs: int) -> str:
        out = io.StringIO()
        for result in run_each(files, jobs=jobs, rewrite=False):
            report(result, out.write)
        return out.getvalue()

    assert text(2) == text(1)


def test_the_results_as_junit_xml(tmp_path: Path) -> None:
    files = written(tmp_path, a=BAD, b=GOOD, c=CLUSTER + "expect pod small runing\n")
    root = fromstring(junit_xml([run_file(file, clock=lambda: 0.0) for file in files]))
    assert root.attrib == {"name": "kschedd test", "tests": "8", "failures": "2", "errors": "1", "time": "0.000"}
    assert [suite.attrib["name"] for suite in root] == [str(file) for file in files]
    case = root[0][1]
    assert case.attrib["name"] == "14: expect pod small on zone west"
    assert case.attrib["line"] == "14"
    assert case[0].tag == "failure"
    assert case[0].attrib["message"] == "pod small is Running on a (zone east)"
    assert root[2][1][0].tag == "error"


def test_the_message_of_another_output_is_its_first_line_that_differs(tmp_path: Path) -> None:
    (file,) = written(tmp_path, file=CLUSTER + "get nodes -o name\n----\nnode/other\n")
    failure = next(fromstring(junit_xml([run_file(file)])).iter("failure"))
    assert failure.attrib["message"] == "-node/other"


def test_a_control_character_does_not_break_the_xml(tmp_path: Path) -> None:
    (file,) = written(tmp_path, file="get pods \x1b[1m\n----\n\x07\n")
    assert fromstring(junit_xml([run_file(file)])).attrib["failures"] == "1"


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = written(tmp_path, good=GOOD, bad=BAD)
    assert main(["test", str(good)]) == PASSED
    assert capsys.readouterr().out.endswith("1 of 1 scenarios as expected, 3 steps\n")
    assert main(["test", str(tmp_path), "--junit", str(tmp_path / "out.xml")]) == FAILED
    assert "1 of 2 scenarios as expected, 6 steps\n" in capsys.readouterr().out
    assert fromstring((tmp_path / "out.xml").read_bytes()).attrib["failures"] == "2"
    assert main(["test", str(bad), "--rewrite"]) == PASSED
    assert main(["test", str(tmp_path)]) == PASSED


def test_bad_paths_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", str(tmp_path / "nowhere")]) == BAD_INPUT
    assert "there is no such file or folder" in capsys.readouterr().err
    assert main(["test", str(tmp_path)]) == BAD_INPUT
    assert "no scenario in this folder" in capsys.readouterr().err
    os.mkfifo(tmp_path / "pipe.txt")
    assert main(["test", str(tmp_path / "pipe.txt")]) == BAD_INPUT
    assert "neither a file nor a folder" in capsys.readouterr().err
    assert main(["test", str(tmp_path)]) == BAD_INPUT
    assert "no scenario in this folder" in capsys.readouterr().err
    (good,) = written(tmp_path, good=GOOD)
    assert main(["test", str(good), "--junit", str(tmp_path / "no" / "out.xml")]) == BAD_INPUT
    assert "cannot be written" in capsys.readouterr().err
