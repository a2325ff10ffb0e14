"""`kschedd journal` and `kschedd snapshot` as a user types them."""

import json
from pathlib import Path

import pytest

from kschedd import cli
from kschedd.store.journal import Journal
from kschedd.store.store import Store
from tests.store.manifests import Clock, config_map


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir()
    store = Store(now=Clock(), seed=1)
    store.create(config_map("one", text="x" * 100))
    journal = Journal(folder / "journal.db")
    journal.append(store.written_after(0))
    journal.close()
    return folder


def test_a_journal_is_verified_compacted_and_exported(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["journal", "verify", str(state)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "whole: every row is as it was written"
    assert cli.main(["journal", "compact", str(state)]) == 0
    assert "bytes before" in capsys.readouterr().out
    assert cli.main(["journal", "export", str(state)]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    assert "one" in [item["metadata"]["name"] for item in items]
    assert cli.main(["journal", "repair", str(state)]) == 0
    assert capsys.readouterr().out == "whole: there is nothing to repair\n"


def test_damage_ends_verify_with_a_status_and_is_in_its_json(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = state / "journal.db"
    file.write_bytes(file.read_bytes().replace(b"x" * 100, b"y" * 100))
    assert cli.main(["journal", "verify", "-o", "json", str(state)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert not found["whole"]
    assert "is damaged" in found["damage"]
    assert cli.main(["journal", "export", str(state)]) == 1
    exported = capsys.readouterr()
    assert exported.out == ""
    assert "is damaged" in exported.err


def test_a_snapshot_goes_from_one_state_directory_into_another(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, new = str(tmp_path / "file"), str(tmp_path / "new")
    assert cli.main(["snapshot", "save", file, "--state", str(state)]) == 0
    assert cli.main(["snapshot", "restore", file, "--state", new]) == 0
    assert "versions go on from 1,000,000" in capsys.readouterr().out
    assert cli.main(["snapshot", "restore", file, "--state", new]) == 1
    assert "there is a journal already" in capsys.readouterr().err
    assert cli.main(["journal", "verify", new]) == 0
