"""The head of the journal: a small file, next to the journal, that records the last commit.

SQLite ends its write-ahead log at the first damaged frame. If the end of the log is truncated or damaged, acknowledged
writes are lost without an error. Each commit is therefore also recorded in the head: version, chain, epoch. A journal
has lost writes if it ends before its head, or if its chain at the head's version differs from the head's chain.

The record is written after the commit and before the write is acknowledged. Records are written alternately to two
slots, so that a torn write leaves one slot intact. Each slot contains the record twice, each time with a checksum, so
that one damaged byte does not hide the record. `write` writes the record to the page cache, which survives `kill -9`.
`sync` flushes the record to disk at most once a second, and soon after the last of a series of writes. After a power
failure the head may therefore be one second old. The journal is flushed first, so the head is never ahead of it.

If both copies in a slot are damaged, the lost record may have been older or newer than the record in the other slot. If
the damaged record is the newer one, it covers one more batch of writes (one transaction). If the journal continues
after the version in the intact slot, the journal contains that batch. If the journal ends at that version, it is
unknown whether a further batch existed.

Raises: JournalError.
"""

import struct
import time
import zlib
from pathlib import Path
from typing import Final

import attrs

from kschedd.store.journal.disk import REAL_DISK, Disk
from kschedd.store.journal.format import JournalError

_RECORD: Final = struct.Struct(">8sQQI32s")  # magic, record number, version, chain, epoch
_MAGIC: Final = b"kschedd2"
_SLOT: Final = 512  # size of a slot: one sector, so that a torn write cannot damage both slots
_COPY: Final = _SLOT // 2  # size of a record, which each slot contains twice
_SYNC_EVERY_S: Final = 1.0
_PROBE_BYTES: Final = 1 << 20  # free space in bytes that is required before writing resumes after a failure


@attrs.frozen
class Head:
    """The last commit; if a journal lacks any version up to it, writes were lost."""

    version: int
    chain: int
    epoch: str


@attrs.frozen
class FoundHead:
    """The latest intact record. `is_last` is False if the other slot may have contained a later record."""

    head: Head
    is_last: bool


@attrs.frozen
class _Slot:
    number: int  # record number, starting at 1
    head: Head


def head_path(journal: Path) -> Path:
    return journal.with_name(journal.name + "-head")


def read_head(path: Path, disk: Disk = REAL_DISK) -> FoundHead | None:
    """Read the latest intact record; return None if the file is missing or both slots are damaged.

    Raises JournalError on read errors.
    """
    try:
        data = disk.read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise JournalError(str(path), f"cannot be read: {error.strerror}") from error
    slots = [data[at : at + _SLOT] for at in (0, _SLOT)]
    found = [slot for each in slots if (slot := _read_slot(each)) is not None]
    if not found:
        return None
    # If the second half is empty, the first write to the slot was never completed or flushed.
    damaged = [each for each in slots if _read_slot(each) is None and any(each[_COPY:])]
    return FoundHead(max(found, key=lambda slot: slot.number).head, is_last=not damaged)


def _read_slot(data: bytes) -> _Slot | None:
    """Parse a slot, or return None if the slot is damaged or was never completely written."""
    return next((found for at in (0, _COPY) if (found := _read_record(data[at : at + _COPY])) is not None), None)


def _read_record(data: bytes) -> _Slot | None:
    body, checksum = data[: _RECORD.size], data[_RECORD.size : _RECORD.size + 4]
    if len(checksum) < 4 or zlib.crc32(body).to_bytes(4, "big") != checksum:
        return None
    magic, number, version, chain, epoch = _RECORD.unpack(body)
    return _Slot(number, Head(version, chain, epoch.decode())) if magic == _MAGIC else None


def _packed(number: int, head: Head) -> bytes:
    """Return the bytes of a slot."""
    body = _RECORD.pack(_MAGIC, number, head.version, head.chain, head.epoch.encode())
    return 2 * (body + zlib.crc32(body).to_bytes(4, "big")).ljust(_COPY, b"\0")


class HeadFile:
    def __init__(self, path: Path, disk: Disk = REAL_DISK) -> None:
        """Open the file; a missing file is created."""
        self._path = path
        self._disk = disk
        self._number = 0
        self._synced_at = time.monotonic()
        self.flushed = True  # True if the last record is on disk
        try:
            self._file = disk.open(path)
            disk.make_private(path)
            slots = [_read_slot(disk.pread(self._file, _SLOT, at)) for at in (0, _SLOT)]
        except OSError as error:
            raise self._failure(error) from error
        self._number = max((slot.number for slot in slots if slot is not None), default=0)

    def write(self, head: Head) -> None:
        """Record a commit. The file is flushed if the last flush was more than a second ago."""
        slot = _packed(self._number + 1, head)
        try:
            written = self._disk.pwrite(self._file, slot, _SLOT * ((self._number + 1) % 2))
            if written != len(slot):
                raise JournalError(str(self._path), f"cannot be written: only {written} of {len(slot)} bytes written")
            self._number += 1
            self.flushed = False
            if time.monotonic() - self._synced_at > _SYNC_EVERY_S:
                self.sync()
        except OSError as error:
            raise self._failure(error) from error

    def sync(self) -> None:
        try:
            self._disk.fdatasync(self._file)
        except OSError as error:
            raise self._failure(error) from error
        self._synced_at = time.monotonic()
        self.flushed = True

    def probe(self) -> None:
        """Raise JournalError if the disk is nearly full, by writing a temporary file of `_PROBE_BYTES`."""
        scratch = self._path.with_name(self._path.name + "-probe")
        try:
            self._disk.unlink(scratch)
            file = self._disk.open(scratch)
            try:
                block = bytes(_PROBE_BYTES)
                if self._disk.pwrite(file, block, 0) != len(block):
                    raise JournalError(str(self._path), "not enough free space on the disk")
                self._disk.fdatasync(file)
            finally:
                self._disk.close(file)
                self._disk.unlink(scratch)
        except OSError as error:
            raise self._failure(error) from error

    def close(self) -> None:
        self._disk.close(self._file)

    def _failure(self, error: OSError) -> JournalError:
        return JournalError(str(self._path), f"cannot be written: {error.strerror or error}")
