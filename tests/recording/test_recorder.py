"""Tests of a recording's file: intact notes are read again, and a failing disk ends the recording only."""

import errno
import io
from pathlib import Path
from typing import IO, Any

import pytest

from kschedd.recording.format import FRAME_BYTES, MARK, RecordingError, RecordingHeader
from kschedd.recording.notes import NoteKind
from kschedd.recording.reading import RecordingFile
from kschedd.recording.recorder import RunRecorder

HEADER = RecordingHeader("0.1", "1.34", 7, 100.0, "kind: KubeSchedulerConfiguration", {"A": True}, 300, b"", [], {})


def recorded(path: Path, notes: int) -> None:
    recorder = RunRecorder(path)
    recorder.begin(HEADER)
    for number in range(notes):
        recorder.note((NoteKind.TICK, float(number)))
        recorder.wake()
    recorder.close()
    assert recorder.failure == ""


def read(path: Path) -> tuple[list[Any], str]:
    with RecordingFile.open(path) as recording:
        return list(recording.notes()), recording.broken


def test_what_was_noted_is_read_again(tmp_path: Path) -> None:
    recorded(tmp_path / "r", 12_000)
    with RecordingFile.open(tmp_path / "r") as recording:
        assert recording.header == HEADER
        assert list(recording.notes()) == [(NoteKind.TICK, float(number)) for number in range(12_000)]
        assert recording.broken == ""


def test_every_cut_leaves_what_is_whole_before_it(tmp_path: Path) -> None:
    recorded(tmp_path / "r", 11_000)
    whole = (tmp_path / "r").read_bytes()
    notes, _ = read(tmp_path / "r")
    header_ends = whole.index(b"\n", len(MARK)) + 1 + FRAME_BYTES + len(HEADER.packed())
    for cut in range(header_ends, len(whole), 997):
        (tmp_path / "cut").write_bytes(whole[:cut])
        there, broken = read(tmp_path / "cut")
        assert there == notes[: len(there)]
        assert "byte" in broken
    (tmp_path / "cut").write_bytes(whole[: header_ends - 1])
    with pytest.raises(RecordingError, match="no complete header"):
        RecordingFile.open(tmp_path / "cut")


def test_no_flipped_bit_changes_a_note(tmp_path: Path) -> None:
    recorded(tmp_path / "r", 6_000)
    whole = bytearray((tmp_path / "r").read_bytes())
    notes, _ = read(tmp_path / "r")
    header_ends = whole.index(b"\n", len(MARK)) + 1 + FRAME_BYTES + len(HEADER.packed())
    for place in range(header_ends, len(whole), 401):
        whole[place] ^= 1 << place % 8
        (tmp_path / "bad").write_bytes(whole)
        there, broken = read(tmp_path / "bad")
        assert there == notes[: len(there)]
        assert broken
        whole[place] ^= 1 << place % 8


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(b"", "not a recording", id="empty"),
        pytest.param(b"kind: Pod\n", "not a recording", id="a-manifest"),
        pytest.param(MARK + b"99\n", "newer than this kschedd", id="a-newer-format"),
        pytest.param(MARK + b"1\n", "no complete header", id="nothing-but-the-mark"),
    ],
)
def test_what_is_no_recording_is_refused_in_words(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "r").write_bytes(content)
    with pytest.raises(RecordingError, match=why):
        RecordingFile.open(tmp_path / "r")


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("mine")
    with pytest.raises(RecordingError, match="already exists"):
        RunRecorder(tmp_path / "r").begin(HEADER)
    assert (tmp_path / "r").read_text() == "mine"


class FullDisk(io.RawIOBase):
    """A disk that has space for the header only."""

    room = 2_000

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.room -= len(data)
        if self.room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return len(data)


def test_a_full_disk_ends_the_recording_and_says_so(tmp_path: Path) -> None:
    disk: Any = FullDisk()

    def open_file(path: Path) -> IO[bytes]:
        return disk

    recorder = RunRecorder(tmp_path / "r", open_file)
    recorder.begin(HEADER)
    for number in range(100_000):
        recorder.note((NoteKind.TICK, number * 1.1))
    recorder.close()
    assert recorder.state().failure == "No space left on device"
    recorder.note((NoteKind.TICK, 1.0))
    assert not recorder.behind
