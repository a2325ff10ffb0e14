"""Disk interface of the journal: a small Protocol, and its implementation with the operating system and SQLite.

All file operations of the journal go through a `Disk`. Tests use a `Disk` that fails, loses unflushed data, or ends the
process between two calls. All calls block. File operations raise OSError, and operations of a `Database` raise
sqlite3.Error.
"""

import os
import shutil
import sqlite3
import stat as modes
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import attrs


class Rows(Protocol):
    def fetchone(self) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...


class Database(Protocol):
    """The part of sqlite3.Connection that the journal uses, in autocommit mode."""

    @property
    def in_transaction(self) -> bool: ...
    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Rows: ...
    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> object: ...
    def executescript(self, sql: str, /) -> object: ...
    def close(self) -> None: ...


@attrs.frozen
class FileStatus:
    inode: tuple[int, int]  # device and inode number, which show whether another file has replaced the file
    size: int  # bytes
    is_regular: bool


class Disk(Protocol):
    def connect(self, path: Path, /) -> Database:
        """Open the database, or create the file if it is missing."""

    def status(self, path: Path, /) -> FileStatus | None:
        """Return the status of the file, or None if it does not exist."""

    def make_private(self, path: Path, /) -> None:
        """Restrict reading and writing of the file to its owner."""

    def open(self, path: Path, /) -> int:
        """Open a file for reading and writing; return its descriptor.

        A missing file is created, and is accessible only to its owner.
        """

    def close(self, descriptor: int, /) -> None: ...
    def pread(self, descriptor: int, length: int, offset: int, /) -> bytes: ...

    def pwrite(self, descriptor: int, data: bytes, offset: int, /) -> int:
        """Return the number of bytes written, which may be smaller than requested."""

    def fdatasync(self, descriptor: int, /) -> None: ...

    def flush(self, path: Path, /) -> None:
        """Flush the file and its directory entry to disk, including data that another process wrote."""

    def read(self, path: Path, /) -> bytes: ...
    def copy(self, source: Path, target: Path, /) -> None: ...
    def link(self, source: Path, target: Path, /) -> None: ...
    def replace(self, source: Path, target: Path, /) -> None: ...

    def unlink(self, path: Path, /) -> None:
        """Remove the file. Does nothing if the file does not exist."""


class RealDisk:
    def connect(self, path: Path) -> Database:
        # SQLite gives its additional files the mode of the database file.
        os.close(self.open(path))
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        # Invalid UTF-8 must not raise an error here, because the row's checksum detects it.
        db.text_factory = lambda text: text.decode("utf-8", "replace")
        return cast(Database, db)

    def status(self, path: Path) -> FileStatus | None:
        try:
            found = path.stat()
        except OSError:
            return None
        return FileStatus((found.st_dev, found.st_ino), found.st_size, modes.S_ISREG(found.st_mode))

    def make_private(self, path: Path) -> None:
        path.chmod(0o600)

    def open(self, path: Path) -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def pread(self, descriptor: int, length: int, offset: int) -> bytes:
        return os.pread(descriptor, length, offset)

    def pwrite(self, descriptor: int, data: bytes, offset: int) -> int:
        return os.pwrite(descriptor, data, offset)

    def fdatasync(self, descriptor: int) -> None:
        os.fdatasync(descriptor)

    def flush(self, path: Path) -> None:
        for each in (path, path.parent):
            descriptor = os.open(each, os.O_RDONLY)
            try:
                self.fdatasync(descriptor)
            finally:
                os.close(descriptor)

    def read(self, path: Path) -> bytes:
        return path.read_bytes()

    def copy(self, source: Path, target: Path) -> None:
        shutil.copy2(source, target)

    def link(self, source: Path, target: Path) -> None:
        os.link(source, target)

    def replace(self, source: Path, target: Path) -> None:
        source.replace(target)

    def unlink(self, path: Path) -> None:
        path.unlink(missing_ok=True)


REAL_DISK: Disk = RealDisk()
