"""Tests of the verbs record start and record stop."""

from pathlib import Path

import pytest

from tests.verbs.conftest import Typed

STATE = {"file": "/tmp/r.rec", "bytes": 2000, "notes": 1234, "since_s": 0.0, "failure": ""}


def test_a_recording_is_begun_and_ended(typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typed.daemon, "recording_start", lambda **named: STATE, raising=False)
    monkeypatch.setattr(typed.daemon, "recording_stop", lambda: STATE, raising=False)
    typed.folder = tmp_path
    assert typed("record start r.rec --timeout 3s") == 0
    assert typed.daemon.calls[-1] == ("recording.start", {"file": str(tmp_path / "r.rec"), "wait_s": 3.0})
    assert typed.out == "recording into /tmp/r.rec, until `record stop`\n"
    assert typed("record stop") == 0
    assert typed.out == "recorded 1,234 notes into /tmp/r.rec\n"


def test_one_that_had_ended_by_itself_is_told(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typed.daemon, "recording_stop", lambda: {**STATE, "failure": "disk full"}, raising=False)
    assert typed("record stop") == 1
    assert "/tmp/r.rec: the recording ended early: disk full" in typed.err


@pytest.mark.parametrize("line", ["record start", "record stop r.rec"])
def test_a_file_is_given_to_begin_with_and_not_to_end(typed: Typed, line: str) -> None:
    assert typed(line) == 1
    assert "either `record start FILE` or `record stop`" in typed.err
