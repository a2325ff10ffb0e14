"""Tests that files and requests of each release work with the present version. `make` describes the files."""

import gzip
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from kschedd.cli import main
from tests.corpus.make import objects_of, placements_of
from tests.corpus.steps import RELEASED, command, corpus_daemon, missing

FOLDERS = sorted(file.parent for file in RELEASED.glob("*/state.tar.gz"))

pytestmark = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def lines_of(file: Path) -> list[Any]:
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]


def unpacked(folder: Path, to: Path) -> None:
    with tarfile.open(folder / "state.tar.gz") as archive:
        archive.extractall(to / "state", filter="data")


def test_requests_and_commands_get_the_recorded_answers(folder: Path, tmp_path: Path) -> None:
    differences: list[str] = []
    flags = ("--config", str(folder / "config.yaml"), "--record", str(tmp_path / "recording.rec"))
    steps = lines_of(folder / "conversation.jsonl.gz")
    assert len(steps) >= 40
    with corpus_daemon(tmp_path, *flags) as conversation:
        for step in steps:
            name = step.get("method") or step.get("path") or " ".join(step["command"])
            differences += missing(step["answer"], conversation.answer(step), name)
    assert differences == []


def test_a_state_folder_opens_with_all_its_objects_and_continues(folder: Path, tmp_path: Path) -> None:
    unpacked(folder, tmp_path)
    (recorded,) = lines_of(folder / "objects.json.gz")
    assert len(recorded) >= 40
    with corpus_daemon(tmp_path) as conversation:
        assert list(missing(recorded, objects_of(conversation))) == []
        given = "{kind: Pod, apiVersion: v1, metadata: {name: later}, spec: {containers: [{name: c, image: i}]}}"
        assert command(tmp_path / "k.sock", ["apply", "-f", "-"], given)[0] == 0
        assert command(tmp_path / "k.sock", ["advance", "10s"])[0] == 0
        assert command(tmp_path / "k.sock", ["expect", "pod", "later", "running"])[0] == 0
    assert main(["journal", "verify", str(tmp_path / "state")]) == 0


def test_a_snapshot_is_restored_with_all_its_objects(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["snapshot", "restore", str(folder / "snapshot"), "--state", str(tmp_path / "state")]) == 0
    capsys.readouterr()
    assert main(["journal", "export", str(tmp_path / "state")]) == 0
    exported = {
        f"{each['kind']}/{each['metadata'].get('namespace', '')}/{each['metadata']['name']}"
        for each in json.loads(capsys.readouterr().out)["items"]
    }
    (recorded,) = lines_of(folder / "objects.json.gz")
    assert exported >= set(recorded)


def test_a_dump_gives_the_same_cluster(folder: Path) -> None:
    recorded = json.loads((folder / "placements.json").read_text())
    assert len(recorded["placements"]) >= 10
    assert placements_of(folder / "dump.json.gz") == recorded


def test_a_scenario_passes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", str(folder / "scenario.txt")]) == 0, capsys.readouterr().out
