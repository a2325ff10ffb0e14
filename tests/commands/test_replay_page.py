"""Tests that docs/REPLAY.md shows the output for a recording in the repository, and that its commands work.

KSCHEDD_REWRITE_SCENARIOS=1 rewrites the page; review the difference.
"""

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from kschedd.cli import main
from tests.pages import DOCS, PageCommand, rewritten
from tests.simulation.replay.golden import RECORDINGS

PAGE = DOCS / "REPLAY.md"
_WALL = re.compile(r"(\(\d+\.\d+ s of the run, in )\d+\.\d+( s\))|(\"wall_s\": )\d\S*")
_LINE = re.compile(r"^    kschedd (?P<words>[^#\n]*)", re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    shutil.copy(RECORDINGS / "incident.rec", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    configured = structlog.get_config()
    yield tmp_path
    structlog.configure(**configured)


def test_the_screens_are_what_the_commands_print(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    typed = []

    def printed(command: PageCommand) -> str:
        typed.append(command.words)
        main(shlex.split(command.words))
        reported = capsys.readouterr()
        lines = (reported.out + reported.err).strip("\n").splitlines()
        return "".join(
            f"{line.rstrip()}\n" for line in _WALL.sub(r"\g<1>\g<3>0.01\g<2>", "\n".join(lines)).splitlines()
        )

    page = PAGE.read_text(encoding="utf-8")
    now = rewritten(page, printed)
    if os.environ.get("KSCHEDD_REWRITE_SCENARIOS") == "1":
        PAGE.write_text(now, encoding="utf-8")
    assert len(typed) > 5
    assert now == page


def _lines() -> list[str]:
    """Return the page's commands that replay a recording and end without input."""
    lines = [found["words"].strip() for found in _LINE.finditer(PAGE.read_text(encoding="utf-8"))]
    ending = [line for line in lines if "--serve" not in line and ("--attach" not in line or "-c" in line)]
    return [line for line in ending if line.startswith("replay ")]


@pytest.mark.parametrize("words", _lines())
def test_the_other_lines_work(words: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "profiles").symlink_to(DOCS.parent / "profiles")
    assert main(shlex.split(words)) in (0, 1)
    assert "error" not in capsys.readouterr().err
