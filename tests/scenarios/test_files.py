"""Tests that scenario files pass, and of reading, running and rewriting them.

KSCHEDD_REWRITE_SCENARIOS=1 rewrites the files with the current output; review the difference.
"""

import io
import os
from pathlib import Path

import pytest

from kschedd.scenarios.file import ScenarioError, differences, parse, read, rewritten
from kschedd.scenarios.runner import run_files

ROOT = Path(__file__).parents[2]
FILES = sorted([*(ROOT / "examples/scenarios").glob("*.txt"), *(ROOT / "tests/scenarios").glob("*.txt")])

NODE = """\
apply
apiVersion: v1
kind: Node
metadata: {name: a}
status: {allocatable: {cpu: "1", memory: 1Gi, pods: "10"}}
----
node/a created
"""


@pytest.mark.parametrize("file", [pytest.param(file, id=file.stem) for file in FILES])
def test_scenario(file: Path) -> None:
    scenario = read(file)
    if os.environ.get("KSCHEDD_REWRITE_SCENARIOS"):
        file.write_text(rewritten(scenario), encoding="utf-8")
        return
    assert "\n".join(map(str, differences(scenario))) == ""


def test_there_are_scenarios_for_the_documentations_worked_examples() -> None:
    names = {file.stem for file in FILES}
    assert {
        "topology-spread-one-constraint",
        "topology-spread-two-constraints",
        "topology-spread-conflict",
        "topology-spread-excluding-zone-c",
        "redis-cache-and-web-store",
    } <= names


def test_a_step_that_prints_something_else_is_shown_with_its_line(tmp_path: Path) -> None:
    text = f"# one node\n\n{NODE}\nget nodes\n----\nNAME  STATUS\nb     Ready\n"
    (wrong,) = differences(parse(text, str(tmp_path / "file.txt")))
    answer = str(wrong)
    assert answer.startswith(f"{tmp_path / 'file.txt'}:11: get nodes")
    assert "  -b     Ready" in answer
    assert "  +a      Ready    <none>   0s" in answer


def test_rewriting_puts_in_what_is_printed_and_keeps_the_rest() -> None:
    text = f"# one node\n\n{NODE}\n# and\n\nget nodes\n----\nsomething else\n\n# the end\n"
    once = rewritten(parse(text, "file.txt"))
    assert once == text.replace("something else", "NAME   STATUS   ROLES    AGE   VERSION\na      Ready    <none>   0s")
    assert rewritten(parse(once, "file.txt")) == once
    assert differences(parse(once, "file.txt")) == []


def test_output_with_empty_lines_stands_between_separators() -> None:
    patch = (
        'patch node a\nmetadata: {annotations: {note: "one\\n\\ntwo"}}\n----\nnode/a patched: metadata.annotations\n'
    )
    command = NODE + "\n" + patch
    text = command + "\nget node a -o jsonpath={.metadata.annotations.note}\n----\n"
    once = rewritten(parse(text, "file.txt"))
    assert once.endswith("----\n----\none\n\ntwo\n----\n----\n")
    assert differences(parse(once, "file.txt")) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("# hm\nget nodes\n", 2, id="a-command-without-a-separator"),
        pytest.param("get nodes\n----\n----\nno end\n", 3, id="long-output-without-an-end"),
    ],
)
def test_a_file_that_cannot_be_read_says_where(text: str, line: int) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse(text, "file.txt")
    assert str(caught.value).startswith(f"file.txt:{line}: ")


def test_users_run_files_and_get_a_status(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    good.write_text(NODE)
    bad.write_text(NODE.replace("node/a created", "node/b created"))
    out = io.StringIO()
    assert run_files([good], rewrite=False, out=out) == 0
    assert run_files([good, bad], rewrite=False, out=out) == 1
    assert f"{bad}: 0 of 1 steps as expected" in out.getvalue()
    assert run_files([bad], rewrite=True, out=out) == 0
    assert bad.read_text() == NODE
