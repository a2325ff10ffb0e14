"""The head of the journal: a small file beside it that says how far it goes.

SQLite's write-ahead log ends, for SQLite, at the first frame that is not whole: where its end was cut off or damaged,
writes that were answered are gone and nothing says so. So each commit is noted here as well: version, chain, epoch.
A journal that ends before its head, or has another chain there, has lost something.

The record is written after the commit and before anybody hears of it, in turns into one of two slots, each with its
checksum, so that one of them is always whole. `write` puts it into the page cache, which `kill -9` does not touch; it
is brought to the disk (`sync`) once a second at most, which costs nothing one could measure. A power cut may therefore
set the head back by a second; never beyond the journal, which is on disk first.

Owns the file's descriptor, until `close`. Raises: JournalError.
"""

import os
import struct
import time
import zlib
from pathlib import Path
from typing import Final, Protocol

import attrs

from kschedd.store.journal_format import JournalError

_RECORD: Final = struct.Struct(">8sQQI32s")  # magic, number of the record, version, chain, epoch
_MAGIC: Final = b"kschedd2"
_SLOT: Final = 512  # a sector each: what tears one does not touch the other
_SYNC_EVERY_S: Final = 1.0
_PROBE_BYTES: Final = 1 << 20  # for so much there must be room before writing goes on


@attrs.frozen
class Head:
    """The last commit: nothing before it may be missing."""

    version: int
    chain: int
    epoch: str


class Disk(Protocol):
    """What the journal asks of the disk by itself, without SQLite. OSError for what goes wrong."""

    def pwrite(self, descriptor: int, data: bytes, offset: int, /) -> int: ...
    def fdatasync(self, descriptor: int, /) -> None: ...


def head_path(journal: Path) -> Path:
    return journal.with_name(journal.name + "-head")


def read_head(path: Path) -> Head | None:
    """None if there is none, or none that is whole. Raises JournalError where it cannot be read."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise JournalError(str(path), f"cannot be read: {error.strerror}") from error
    slots = [found for found in (_slot(data[:_SLOT]), _slot(data[_SLOT:])) if found is not None]
    return max(slots, key=lambda slot: slot[0])[1] if slots else None


def _slot(data: bytes) -> "tuple[int, Head] | None":
    body, checksum = data[: _RECORD.size], data[_RECORD.size : _RECORD.size + 4]
    if len(checksum) < 4 or zlib.crc32(body).to_bytes(4, "big") != checksum or any(data[_RECORD.size + 4 :]):
        return None
    magic, number, version, chain, epoch = _RECORD.unpack(body)
    return (number, Head(version, chain, epoch.decode())) if magic == _MAGIC else None


class HeadFile:
    def __init__(self, path: Path, disk: Disk = os) -> None:
        """Made if it is not there."""
        self._path = path
        self._disk = disk
        self._number = 0
        self._synced_at = time.monotonic()
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.fchmod(self._file, 0o600)
        except OSError as error:
            raise self._failure(error) from error
        slots = (_slot(os.pread(self._file, _SLOT, at)) for at in (0, _SLOT))
        self._number = max((slot[0] for slot in slots if slot), default=0)

    def write(self, head: Head) -> None:
        """Note a commit; brought to the disk within a second of commits."""
        body = _RECORD.pack(_MAGIC, self._number + 1, head.version, head.chain, head.epoch.encode())
        slot = body + zlib.crc32(body).to_bytes(4, "big")
        slot += bytes(_SLOT - len(slot))
        try:
            written = self._disk.pwrite(self._file, slot, _SLOT * ((self._number + 1) % 2))
            if written != len(slot):
                raise JournalError(str(self._path), f"cannot be written: {written} of {len(slot)} bytes were taken")
            self._number += 1
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

    def probe(self) -> None:
        """Raises JournalError unless there is room: so much is written to a file of its own, and removed again."""
        scratch = self._path.with_name(self._path.name + "-probe")
        try:
            file = os.open(scratch, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                block = bytes(_PROBE_BYTES)
                if self._disk.pwrite(file, block, 0) != len(block):
                    raise JournalError(str(self._path), "there is not enough room on the disk")
                self._disk.fdatasync(file)
            finally:
                os.close(file)
                scratch.unlink(missing_ok=True)
        except OSError as error:
            raise self._failure(error) from error

    def close(self) -> None:
        os.close(self._file)

    def _failure(self, error: OSError) -> JournalError:
        return JournalError(str(self._path), f"cannot be written: {error.strerror or error}")
