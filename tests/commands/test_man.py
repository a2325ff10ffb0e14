"""Tests that every command has a manual page with all its flags."""

import shutil
import subprocess
from pathlib import Path

import pytest

from kschedd import cli
from kschedd.commands.shell.man import all_pages, roff
from kschedd.verbs.table import VERBS

PAGES = {page.name: page for page in all_pages(cli.MOUNTED)}


def test_every_command_has_a_page_with_its_flags() -> None:
    assert set(PAGES) == {"", *cli.MOUNTED, *(verb.name for verb in VERBS)}
    for verb in VERBS:
        text = roff(PAGES[verb.name])
        for flag in verb.parser().flags():  # a verb with the same name as a command has its flags on the command's page
            assert f"\\fB{flag.replace('-', chr(92) + '-')}\\fR" in text
    assert "\\-\\-decisions" in roff(PAGES["simulate"])


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_is_whole(name: str) -> None:
    if shutil.which("groff") is None:
        pytest.skip("there is no groff here")
    done = subprocess.run(
        ["groff", "-man", "-ww", "-z", "-Tutf8"], input=roff(PAGES[name]).encode(), capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_one_page_is_printed(capsys) -> None:
    assert cli.main(["man", "explain"]) == 0
    assert capsys.readouterr().out == roff(PAGES["explain"])
    assert cli.main(["man"]) == 0
    assert capsys.readouterr().out.startswith('.TH "KSCHEDD" "1"')
    assert cli.main(["man", "expain"]) == 2
    assert 'did you mean "explain"' in capsys.readouterr().err


def test_all_of_them_are_written(tmp_path: Path, capsys) -> None:
    assert cli.main(["man", "--dir", str(tmp_path / "man1")]) == 0
    assert {file.name for file in (tmp_path / "man1").iterdir()} == {f"{page.title}.1" for page in PAGES.values()}
    (tmp_path / "file").write_text("")
    assert cli.main(["man", "--dir", str(tmp_path / "file")]) == 1
    assert "cannot be written" in capsys.readouterr().err
