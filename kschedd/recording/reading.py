"""Reading a recording: its header, then its notes, frame by frame, up to the last complete frame.

A truncated recording is read up to its end, and `broken` states where it ends and why. Raises RecordingError for a file
that is not a recording, has a newer format, or has no complete header.
"""

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import attrs
import msgpack

from kschedd.config.versions.kube_versions import KUBE_VERSIONS, kube_version
from kschedd.config.versions.removed_gates import why_removed
from kschedd.errors import KscheddError
from kschedd.framework.status import fault_text
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


@contextmanager
def distrusting(file: Path) -> Iterator[None]:
    """Convert any exception in the context to a RecordingError: a recording is untrusted input."""
    try:
        yield
    except KscheddError:
        raise
    except Exception as fault:  # any value may have an unexpected type
        raise RecordingError(str(file), f"contains an unusable value: {fault_text(fault)}") from fault


_PIECE: Final = 1 << 20
_MOST_OF_NOTE: Final = 1 << 28


@attrs.define(eq=False)
class RecordingFile:
    """A recording; a context manager that keeps the file open. `notes` may be called once.

    After `notes` has ended, `broken` is the reason why the recording ends early; "" if the recording is complete.
    """

    path: Path
    header: RecordingHeader
    _file: IO[bytes]
    _at: int  # bytes read so far
    _size: int
    broken: str = ""

    @classmethod
    def open(cls, path: Path) -> "RecordingFile":
        """Open a recording. Raises RecordingError."""
        try:
            file = path.open("rb")
        except OSError as fault:
            raise RecordingError(str(path), f"cannot be read: {fault.strerror}") from fault
        try:
            mark = file.read(len(MARK))
            number = file.readline(16)
            size = os.fstat(file.fileno()).st_size
        except OSError as fault:
            file.close()
            raise RecordingError(str(path), f"cannot be read: {fault.strerror}") from fault
        reading = cls(
            path, RecordingHeader("", "", 0, 0.0, "", {}, 0, b"", [], {}), file, len(mark) + len(number), size
        )
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
            raise RecordingError(name, "is not a recording: `kschedd run --record FILE` writes a recording")
        if int(number) > FORMAT:
            why = f"is of format {int(number)}, which is newer than this kschedd, which reads {FORMAT}"
            raise RecordingError(name, f"{why}; replay it with the kschedd that recorded it, or a later one")
        body = self._frame(0, HEADER)
        if body is None:
            raise RecordingError(name, f"has no complete header ({self.broken}): it cannot be replayed")
        header = RecordingHeader.read(body, name)
        self.header = header if int(number) > 1 else _of_format_1(header)

    def notes(self) -> Iterator[Note]:
        """Yield all complete notes, in order."""
        number = 1
        while (body := self._frame(number, NOTES)) is not None:
            try:
                yield from _notes(body)
            except (zlib.error, ValueError, msgpack.UnpackException) as wrong:
                self.broken = f"the frame before byte {self._at} cannot be read: {wrong}"
                return
            number += 1

    def _frame(self, number: int, kind: int) -> bytes | None:
        """Return the body of the next frame; None at the end, which may be the end of a truncated recording."""
        at = self._at
        head = self._file.read(FRAME_BYTES)
        if not head:
            self.broken = f"it has no end, for example because of a crash; it is complete up to byte {at}"
            return None
        if len(head) < FRAME_BYTES:
            self.broken = f"it is truncated at byte {at}"
            return None
        length, there, summed, what = frame_head(head)
        if there != number or length > MOST_BYTES or what not in (kind, END):
            self.broken = f"it is damaged at byte {at}"
            return None
        if length > self._size - at - FRAME_BYTES:  # the length is checked before memory is allocated for the body
            self.broken = f"it is truncated at byte {at}"
            return None
        body = self._file.read(length)
        if len(body) < length:
            self.broken = f"it is truncated at byte {at}"
            return None
        if checksum(there, what, body) != summed:
            self.broken = f"it is damaged at byte {at}"
            return None
        self._at = at + FRAME_BYTES + length
        return None if what == END else body


def _of_format_1(header: RecordingHeader) -> RecordingHeader:
    """Return the header of a recording in format 1, converted to the current format.

    In format 1, all versions choose randomly among equally good nodes, and have feature gates that their release has
    removed.
    """
    if header.kube_version not in KUBE_VERSIONS:
        return header  # the caller reports the unsupported version
    version = kube_version(header.kube_version).with_random_ties()
    states = header.feature_gates.items()
    gates = {name: state for name, state in states if name in version.gates or not why_removed(name)[0]}
    return attrs.evolve(header, kube_version=version.name, feature_gates=gates)


def _notes(body: bytes) -> Iterator[Note]:
    """Yield the notes one by one, because a small compressed body may be large when it is decompressed.

    Raises zlib.error, ValueError and UnpackException.
    """
    unpacker = msgpack.Unpacker(use_list=True, strict_map_key=False, max_buffer_size=_MOST_OF_NOTE)
    inflating = zlib.decompressobj()
    while body and not inflating.eof:
        unpacker.feed(inflating.decompress(body, _PIECE))
        body = inflating.unconsumed_tail
        for note in unpacker:
            if not isinstance(note, list) or not note or type(note[0]) is not int:
                raise ValueError("a note must be a list whose first element is its kind")
            yield tuple(note)
    if not inflating.eof:
        raise ValueError("a compressed frame ends too early")
