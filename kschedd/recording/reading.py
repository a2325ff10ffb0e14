"""Reading a recording: its header, then its notes, frame by frame, as far as they are whole.

A recording that broke off is read up to there, and `broken` says where and why. Raises RecordingError for what is no
recording, one of a newer format, or one without a whole header.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import attrs
import msgpack

from kschedd.recording.format import (
    END,
    FORMAT,
    FRAME_BYTES,
    HEADER,
    MARK,
    MOST_BYTES,
    NOTES,
    RecordingError,
    RecordingHeader,
    checksum,
    frame_head,
)
from kschedd.recording.notes import Note


@attrs.define(eq=False)
class RecordingFile:
    """A context manager: the file is open meanwhile. `notes` may be called once. After them `broken` says why it
    ends before its end, "" if it does not."""

    path: Path
    header: RecordingHeader
    _file: IO[bytes]
    _at: int  # bytes read so far
    broken: str = ""

    @classmethod
    def open(cls, path: Path) -> "RecordingFile":
        """Raises RecordingError."""
        try:
            file = path.open("rb")
        except OSError as fault:
            raise RecordingError(str(path), f"cannot be read: {fault.strerror}") from fault
        try:
            mark = file.read(len(MARK))
            number = file.readline(16)
        except OSError as fault:
            file.close()
            raise RecordingError(str(path), f"cannot be read: {fault.strerror}") from fault
        reading = cls(path, RecordingHeader("", "", 0, 0.0, "", {}, 0, b"", [], {}), file, len(mark) + len(number))
        try:
            reading._begin(mark, number)
        except BaseException:
            file.close()
            raise
        return reading

    def __enter__(self) -> "RecordingFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _begin(self, mark: bytes, number: bytes) -> None:
        name = str(self.path)
        if mark != MARK or not number.strip().isdigit():
            raise RecordingError(name, "is no recording: `kschedd run --record FILE` makes one")
        if int(number) > FORMAT:
            why = f"is of format {int(number)}, which is newer than this kschedd, which reads {FORMAT}"
            raise RecordingError(name, f"{why}; replay it with the kschedd that recorded it, or a later one")
        body = self._frame(0, HEADER)
        if body is None:
            raise RecordingError(name, f"has no whole header ({self.broken}): nothing of it can be replayed")
        self.header = RecordingHeader.read(body, name)

    def notes(self) -> Iterator[Note]:
        """All that are whole, in order."""
        number = 1
        while (body := self._frame(number, NOTES)) is not None:
            yield from self._notes(body)
            number += 1

    def _notes(self, body: bytes) -> Iterator[Note]:
        unpacker = msgpack.Unpacker(use_list=True, strict_map_key=False, max_buffer_size=MOST_BYTES)
        unpacker.feed(zlib.decompress(body))
        for note in unpacker:
            yield tuple(note)

    def _frame(self, number: int, kind: int) -> bytes | None:
        """The body of the next frame; None at the end, and where it is broken off."""
        at = self._at
        head = self._file.read(FRAME_BYTES)
        if not head:
            self.broken = f"it was not ended, as by a crash; it is whole up to byte {at}"
            return None
        if len(head) < FRAME_BYTES:
            self.broken = f"it breaks off at byte {at}"
            return None
        length, there, summed, what = frame_head(head)
        if there != number or length > MOST_BYTES or what not in (kind, END):
            self.broken = f"it is damaged at byte {at}"
            return None
        body = self._file.read(length)
        if len(body) < length:
            self.broken = f"it breaks off at byte {at}"
            return None
        if checksum(there, what, body) != summed:
            self.broken = f"it is damaged at byte {at}"
            return None
        self._at = at + FRAME_BYTES + length
        return None if what == END else body
