"""A recording to pass on: nobody's names in it, and the same decisions."""

import json
from pathlib import Path
from typing import Any

import pytest

from kschedd.recording.format import RecordingError
from kschedd.recording.notes import NoteKind
from kschedd.recording.reading import RecordingFile
from kschedd.recording.redaction import redact
from kschedd.simulate.decisions import line
from kschedd.simulate.replay.player import Player
from kschedd.simulate.replay.run import Replay, StopAt

OURS = ("large", "later", "web", "n4", "n9", "p11")


def decided(file: Path) -> list[dict[str, Any]]:
    """The decision log, without what names anything."""
    lines: list[dict[str, Any]] = []
    with RecordingFile.open(file) as recording:
        Replay(Player(recording), lambda attempt: lines.append(json.loads(line(attempt)))).run(StopAt())
    return [
        {**each, "pod": "", "node": bool(each["node"]), "nominated": bool(each["nominated"]), "message": ""}
        for each in lines
    ]


@pytest.mark.parametrize("run", ["busy", "moody_run", "late_run"])
def test_a_redacted_recording_has_no_names_and_the_same_decisions(
    run: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    file: Path = request.getfixturevalue(run)
    redact(file, tmp_path / "r")
    assert decided(tmp_path / "r") == decided(file)
    with RecordingFile.open(tmp_path / "r") as recording:
        assert recording.header.redacted
        texts = repr([note for note in recording.notes() if note[0] != NoteKind.MADE])
    with RecordingFile.open(file) as recording:
        before = repr(list(recording.notes()))
    for name in OURS:
        assert f"default/{name}" not in texts
        assert f"\\xa{len(name):x}{name}" not in texts, "as MessagePack has a short text"
        assert name in before


def test_the_new_recording_needs_a_new_file(busy: Path) -> None:
    with pytest.raises(RecordingError, match="is there already"):
        redact(busy, busy)
