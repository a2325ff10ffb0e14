r"""The file format of a recording: a mark, then frames; each frame has its length, number and checksum.

    KSCHEDD-RECORDING\n  1\n          the mark and the format's number, as text
    frame 0                           the header (`RecordingHeader`)
    frame 1 ...                       notes (`notes`), one after the other, compressed
    last frame                        END: how the recording ended

A frame is `>IIIB`: the length of its body in bytes, its number, the CRC-32 of number, kind and body, and its kind; the
body follows. A recording that was truncated, for example by SIGKILL, ends within a frame or without END; its complete
frames are valid. A frame with a wrong checksum, or a missing frame, also ends the recording.
"""

import struct
import zlib
from collections.abc import Iterable
from typing import IO, Any, Final, get_origin

import attrs
import msgpack

from kschedd.errors import KscheddError

FORMAT: Final = 2
"""The format's version.

Since 2, Kubernetes versions since 1.35 take the first of equally good nodes; before, all drew one.
"""
MARK: Final = b"KSCHEDD-RECORDING\n"
HEADER, NOTES, END = 0, 1, 2
_LEVEL: Final = 1  # zlib level: three times as fast as the default, with 20 % more bytes
_FRAME: Final = struct.Struct(">IIIB")
FRAME_BYTES: Final = _FRAME.size
LATEST_S: Final = 253_402_300_799.0  # the last second of the year 9999, the limit of a cluster's time
MOST_BYTES: Final = 1 << 30  # maximum length of a frame; a larger length means that the frame is damaged


@attrs.define(eq=False)
class RecordingError(KscheddError):
    """The file is not a recording, or this version cannot use it."""

    file: str
    why: str

    def __str__(self) -> str:
        return f"{self.file}: {self.why}"


@attrs.frozen
class RecordingHeader:
    """The initial state of a run.

    `config` is a KubeSchedulerConfiguration; settings made with flags are separate fields.
    """

    kschedd: str  # the version of kschedd that recorded the run
    kube_version: str
    seed: int
    start_s: float  # seconds since the epoch
    config: str
    feature_gates: dict[str, bool]
    unschedulable_flush_s: int
    controllers: bytes  # a ControllerOptions, packed
    without: list[str]  # names of controllers that the daemon did not run
    plugins: dict[str, list[str]]  # out-of-tree plugins, each with the methods of its extension points
    redacted: bool = False
    holds_preemptors: bool = False  # field of SchedulingMachine; false in recordings of earlier versions

    def packed(self) -> bytes:
        packed: bytes = msgpack.packb(attrs.asdict(self))
        return packed

    @classmethod
    def read(cls, body: bytes, file: str) -> "RecordingHeader":
        """Return the header, without the fields that this version does not support. Raises RecordingError."""
        try:
            fields: dict[str, Any] = msgpack.unpackb(body)
            known = {a.name: fields[a.name] for a in attrs.fields(cls) if a.name in fields}
            for field in attrs.fields(cls):
                expected = get_origin(field.type) or field.type
                if field.name in known and not isinstance(known[field.name], expected):
                    raise TypeError(f"{field.name} is a {type(known[field.name]).__name__}")
            header = cls(**known)
        except (ValueError, TypeError, msgpack.UnpackException) as wrong:
            raise RecordingError(file, f"its header cannot be read: {wrong}") from wrong
        if not 0 <= header.start_s <= LATEST_S:
            raise RecordingError(file, "the start time in its header is impossible")
        return header


def frame(number: int, kind: int, body: bytes) -> bytes:
    return _FRAME.pack(len(body), number, checksum(number, kind, body), kind) + body


def checksum(number: int, kind: int, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(b"%d/%d" % (number, kind)))


def frame_head(head: bytes) -> tuple[int, int, int, int]:
    """Return the packed length, number, checksum and kind of a frame."""
    length, number, summed, kind = _FRAME.unpack(head)
    return length, number, summed, kind


class FrameWriter:
    """Writes the frames of a recording to an open file, one after the other. Raises the exceptions of the file."""

    def __init__(self, file: IO[bytes]) -> None:
        self.bytes = 0
        self._file = file
        self._frames = 0

    def begin(self, header: RecordingHeader) -> None:
        self._write(MARK + b"%d\n" % FORMAT)
        self._add(HEADER, header.packed())

    def add_notes(self, packed: Iterable[bytes]) -> None:
        """Write these notes as a frame."""
        self._add(NOTES, zlib.compress(b"".join(packed), _LEVEL))

    def end(self) -> None:
        self._add(END, b"")

    def _add(self, kind: int, body: bytes) -> None:
        self._write(frame(self._frames, kind, body))
        self._frames += 1
        self._file.flush()

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self.bytes += len(data)
