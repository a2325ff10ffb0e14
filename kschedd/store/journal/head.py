"""The head of the journal: a small file next to it that records the last commit.

SQLite ends its write-ahead log at the first damaged frame: if the end of the log was cut off or damaged, acknowledged
writes are lost without any error. So each commit is recorded here too: version, chain, epoch. A journal that ends
before its head, or has another chain at that version, has lost writes.

The record is written after the commit and before the write is acknowledged, alternately into one of two slots, so that
a torn write leaves the other one. A slot has it twice, each time with a checksum: where the log's end is damaged, a
damaged byte of the head as well hides nothing. `write` puts it into the page cache, which survives `kill -9`; `sync`
flushes it to disk at most once a second, at no measurable cost, and soon after the last write where no further one
comes. A power cut may therefore set the head back by a second, but the head is never ahead of the journal, which is on
disk first.

A slot that is damaged wholly may have had the record before or after the other one's. The later one is of one more
batch, in one transaction: if the journal goes on after the other slot's version, it has that batch. If it does not,
whether there was one cannot be known.

Owns the file's descriptor, until `close`. Raises: JournalError.
"""

import struct
import time
import zlib
from pathlib import Path
from typing import Final

import attrs

from kschedd.store.journal.disk import REAL_DISK, Disk
from kschedd.store.journal.format import JournalError

_RECORD: Final = struct.Struct(">8sQQI32s")  # magic, number of the record, version, chain, epoch
_MAGIC: Final = b"kschedd2"
_SLOT: Final = 512  # one sector per slot: a torn write cannot damage both
_COPY: Final = _SLOT // 2  # each half of a slot has the record
_SYNC_EVERY_S: Final = 1.0
_PROBE_BYTES: Final = 1 << 20  # free space required before writing resumes after a failure


@attrs.frozen
class Head:
    """The last commit: a journal that lacks a version up to this one has lost writes."""

    version: int
    chain: int
    epoch: str


@attrs.frozen
class FoundHead:
    """The latest record that is whole. `is_last`: no later one can have been in the other slot."""

    head: Head
    is_last: bool


@attrs.frozen
class _Slot:
    number: int  # of the record; 1 is the first
    head: Head


def head_path(journal: Path) -> Path:
    return journal.with_name(journal.name + "-head")


def read_head(path: Path, disk: Disk = REAL_DISK) -> FoundHead | None:
    """None if the file is missing or both slots are damaged. Raises JournalError if it cannot be read."""
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
    # Nothing in the second half: no record was ever written there whole, or none was flushed before the power was lost.
    damaged = [each for each in slots if _read_slot(each) is None and any(each[_COPY:])]
    return FoundHead(max(found, key=lambda slot: slot.number).head, is_last=not damaged)


def _read_slot(data: bytes) -> _Slot | None:
    """None if it is damaged, or was never written whole."""
    return next((found for at in (0, _COPY) if (found := _read_record(data[at : at + _COPY])) is not None), None)


def _read_record(data: bytes) -> _Slot | None:
    body, checksum = data[: _RECORD.size], data[_RECORD.size : _RECORD.size + 4]
    if len(checksum) < 4 or zlib.crc32(body).to_bytes(4, "big") != checksum:
        return None
    magic, number, version, chain, epoch = _RECORD.unpack(body)
    return _Slot(number, Head(version, chain, epoch.decode())) if magic == _MAGIC else None


def _packed(number: int, head: Head) -> bytes:
    """A slot."""
    body = _RECORD.pack(_MAGIC, number, head.version, head.chain, head.epoch.encode())
    return 2 * (body + zlib.crc32(body).to_bytes(4, "big")).ljust(_COPY, b"\0")


class HeadFile:
    def __init__(self, path: Path, disk: Disk = REAL_DISK) -> None:
        """Opens the file, creating it if it does not exist."""
        self._path = path
        self._disk = disk
        self._number = 0
        self._synced_at = time.monotonic()
        self.flushed = True  # what was recorded last
        try:
            self._file = disk.open(path)
            disk.make_private(path)
            slots = [_read_slot(disk.pread(self._file, _SLOT, at)) for at in (0, _SLOT)]
        except OSError as error:
            raise self._failure(error) from error
        self._number = max((slot.number for slot in slots if slot is not None), default=0)

    def write(self, head: Head) -> None:
        """Record a commit; flushed to disk if the last flush is more than a second ago."""
        slot = _packed(self._number + 1, head)
        try:
            written = self._disk.pwrite(self._file, slot, _SLOT * ((self._number + 1) % 2))
            if written != len(slot):
                raise JournalError(str(self._path), f"cannot be written: {written} of {len(slot)} bytes were taken")
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
        """Raises JournalError if free space is short; checked by writing `_PROBE_BYTES` to a temporary file."""
        scratch = self._path.with_name(self._path.name + "-probe")
        try:
            self._disk.unlink(scratch)
            file = self._disk.open(scratch)
            try:
                block = bytes(_PROBE_BYTES)
                if self._disk.pwrite(file, block, 0) != len(block):
                    raise JournalError(str(self._path), "there is not enough room on the disk")
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
