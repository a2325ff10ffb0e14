"""Tests that the commands of SKILL.md work on a dump of the demo, and that its front matter is complete."""

import gzip
import json
import shlex
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from kschedd.cli import main

SKILL = files("kschedd.assistants").joinpath("SKILL.md").read_text(encoding="utf-8")
DEMO = Path(__file__).parents[2] / "examples" / "demo"
COMMANDS = [
    line
    for block in SKILL.split("```sh\n")[1:]
    for line in block.partition("```")[0].splitlines()
    if line.startswith("kschedd ")
]
#: exit statuses other than 0
STATUSES = {"plan drain": 1, "compare --kube-version": 1}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the demo's cluster as a dump, and a manifest that fits."""
    items = [each for file in sorted(DEMO.glob("*.yaml")) for each in yaml.safe_load_all(file.read_text("utf-8"))]
    dump = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    (tmp_path / "cluster.json.gz").write_bytes(gzip.compress(dump.encode()))
    container = {"name": "report", "image": "report:2", "resources": {"requests": {"memory": "1Gi"}}}
    fixed = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "smaller"}, "spec": {"containers": [container]}}
    (tmp_path / "fixed.yaml").write_text(yaml.safe_dump(fixed), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_of_the_skill_work(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(command)[1:]
    status = main(words)
    shown = capsys.readouterr()
    assert status == STATUSES.get(" ".join(words[:2]), 0), shown.err
    assert shown.out


@pytest.mark.usefixtures("folder")
def test_the_keys_of_the_answer_are_those_of_the_skill(capsys: pytest.CaptureFixture[str]) -> None:
    main(["explain", "report", "--from", "cluster.json.gz", "-o", "json"])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert answer.keys() >= {"cause", "also", "confidence", "remedies", "tried"}
    assert answer["cause"].keys() >= {"code", "message", "evidence"}


def test_the_front_matter_names_and_describes_the_skill() -> None:
    _, front, text = SKILL.split("---\n", 2)
    about = yaml.safe_load(front)
    assert about["name"].replace("-", "").isalnum()
    assert len(about["name"]) <= 64
    assert 100 < len(about["description"]) <= 1024
    assert len(text.splitlines()) < 120


def test_the_command_prints_the_skill(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "--skill"]) == 0
    assert capsys.readouterr().out == SKILL
