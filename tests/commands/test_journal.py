"""Tests of `kschedd journal` and `kschedd snapshot` on the command line."""

import json
from pathlib import Path

import msgpack
import pytest

from kschedd import cli
from kschedd.store.journal.format import CODES
from kschedd.store.journal.journal import Journal
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
    assert capsys.readouterr().out.splitlines()[-1] == "intact: every row has the checksum it was written with"
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
    assert cli.main(["snapshot", "save", file, "--state", str(state)]) == 1
    assert f"{file} already exists; --force overwrites it" in capsys.readouterr().err
    assert cli.main(["snapshot", "save", file, "--force", "--state", str(state)]) == 0
    assert cli.main(["snapshot", "restore", file, "--state", new]) == 0
    assert "versions continue from 1,000,000" in capsys.readouterr().out
    assert cli.main(["snapshot", "restore", file, "--state", new]) == 1
    assert "already exists: give another directory" in capsys.readouterr().err
    assert cli.main(["journal", "verify", new]) == 0


@pytest.mark.parametrize(
    ("value", "why"),
    [
        pytest.param(b"hi", "data.x: a value of type bytes is not JSON", id="bytes"),
        pytest.param(float("nan"), "data.x: nan is not a JSON number", id="nan"),
        pytest.param([1.5, float("inf")], "data.x[1]: inf is not a JSON number", id="inf"),
    ],
)
def test_an_object_that_is_not_json_is_set_aside_listed_and_removed(
    state: Path, capsys: pytest.CaptureFixture[str], value: object, why: str
) -> None:
    bad = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bad", "namespace": "default"}}
    journal = Journal(state / "journal.db")
    version, first = journal.version, CODES["ADDED"]
    journal.write([(version + 1, first, "ConfigMap", "default", "bad", msgpack.packb({**bad, "data": {"x": value}}))])
    store = journal.load(now=Clock())
    journal.close()
    assert store is not None
    assert [each.name for each in store.list("ConfigMap", "default")] == ["one"]
    assert [(str(each.ref), each.why) for each in store.set_aside] == [
        ("ConfigMap/default/bad", f"an object of kind ConfigMap cannot be read: {why}")
    ]

    assert cli.main(["journal", "verify", str(state)]) == 1
    assert f"unreadable: ConfigMap/default/bad: an object of kind ConfigMap cannot be read: {why}" in (
        capsys.readouterr().out
    )
    assert cli.main(["journal", "export", str(state)]) == 0
    exported = capsys.readouterr()
    assert "bad" not in [item["metadata"]["name"] for item in json.loads(exported.out)["items"]]
    assert exported.err == f"Warning: ConfigMap/default/bad is omitted: {why}\n"
    assert cli.main(["journal", "export", "--events", str(state)]) == 0
    assert '"name": "bad"' in capsys.readouterr().out

    assert cli.main(["journal", "remove", str(state), "ConfigMap/default/bad"]) == 0
    copy = state / "set-aside" / "ConfigMap.default.bad.json"
    assert capsys.readouterr().out == f"ConfigMap/default/bad removed; a copy is in {copy}\n"
    assert copy.exists()
    assert cli.main(["journal", "verify", str(state)]) == 0
    assert cli.main(["journal", "remove", str(state), "ConfigMap/default/bad"]) == 1
    assert "has no object ConfigMap/default/bad; kschedd journal export lists the objects" in capsys.readouterr().err
    assert cli.main(["journal", "remove", str(state), "ConfigMap"]) == 1
    assert 'remove: "ConfigMap" must be KIND/NAMESPACE/NAME' in capsys.readouterr().err


def test_text_beyond_ascii_and_numbers_with_fractions_are_json(state: Path) -> None:
    journal = Journal(state / "journal.db")
    raw = {**config_map("two", text="čęĄ"), "extra": {"x": 1.5, "y": [None, True, 2**63]}}
    raw["metadata"]["namespace"] = "default"
    version, first = journal.version, CODES["ADDED"]
    journal.write([(version + 1, first, "ConfigMap", "default", "two", msgpack.packb(raw))])
    store = journal.load(now=Clock())
    journal.close()
    assert store is not None
    assert not store.set_aside
    assert [each.name for each in store.list("ConfigMap", "default")] == ["one", "two"]
