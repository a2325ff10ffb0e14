"""SQLite, the real one, on a fake disk: a VFS of apsw over it, and a connection that behaves as sqlite3's does."""

import errno
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

if TYPE_CHECKING:
    from tests.faults.fake_disk import FakeDisk, File


@contextmanager
def _as_sqlite(kind: type[apsw.Error], extended: int) -> Iterator[None]:
    """Convert an OSError of the disk to SQLite's matching error."""
    try:
        yield
    except OSError as error:
        full = error.errno == errno.ENOSPC
        raised: apsw.Error = apsw.FullError("full") if full else kind(str(error))
        raised.extendedresult = apsw.SQLITE_FULL if full else extended
        raise raised from None


class OpenFile:
    def __init__(self, disk: "FakeDisk", file: "File", path: Path, delete: bool) -> None:
        self._disk, self._file, self._path, self._delete = disk, file, path, delete
        self._generation = disk.generation
        self._lock = 0

    def _is_over(self) -> bool:
        """Return whether a killed process is closing its files, which then has no effect.

        Raises OSError for any other call of a killed process.
        """
        if self._disk.dead and self._disk.closing:
            return True
        if self._disk.dead or self._disk.generation != self._generation:
            raise OSError(errno.EIO, "the process was killed")
        return False

    def xRead(self, amount: int, offset: int) -> bytes:
        return bytes(self._file.content[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:
        with _as_sqlite(apsw.IOError, apsw.SQLITE_IOERR_WRITE):
            while data and not self._is_over():  # as unixWrite: repeat until the disk takes no more data
                taken = self._disk.write(self._file, data, offset)
                if taken == 0:
                    raise OSError(errno.ENOSPC, "nothing was taken")
                data, offset = data[taken:], offset + taken

    def xTruncate(self, size: int) -> None:
        with _as_sqlite(apsw.IOError, apsw.SQLITE_IOERR_TRUNCATE):
            if not self._is_over():
                self._disk.truncate(self._file, size)

    def xSync(self, flags: int) -> None:
        with _as_sqlite(apsw.IOError, apsw.SQLITE_IOERR_FSYNC):
            if not self._is_over():
                self._disk.flush_file(self._file)

    def xFileSize(self) -> int:
        return len(self._file.content)

    def xLock(self, level: int) -> None:
        self._lock = level

    def xUnlock(self, level: int) -> None:
        self._lock = level

    def xCheckReservedLock(self) -> bool:
        return False

    def xFileControl(self, operation: int, pointer: int) -> bool:
        return False

    def xSectorSize(self) -> int:
        return 4096

    def xDeviceCharacteristics(self) -> int:
        return int(apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE)  # as on Linux: a torn write damages no neighboring bytes

    def xClose(self) -> None:
        if self._delete and not self._disk.dead and self._disk.generation == self._generation:
            self._disk.unlink(self._path)


class Vfs(apsw.VFS):
    def __init__(self, name: str, disk: "FakeDisk") -> None:
        self.name = name
        self.disk = disk
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        path = Path(name.filename() if isinstance(name, apsw.URIFilename) else name or f"/temporary-{id(flags)}")
        with _as_sqlite(apsw.CantOpenError, apsw.SQLITE_CANTOPEN):
            if not flags[0] & apsw.SQLITE_OPEN_CREATE and path not in self.disk.names:
                raise OSError(errno.ENOENT, "no such file")
            file = self.disk.create(path)
        flags[1] = flags[0]
        return OpenFile(self.disk, file, path, bool(flags[0] & apsw.SQLITE_OPEN_DELETEONCLOSE))

    def xAccess(self, path: str, flags: int) -> bool:
        return Path(path) in self.disk.names

    def xDelete(self, path: str, sync_directory: bool) -> None:
        if self.disk.dead and self.disk.closing:
            return
        with _as_sqlite(apsw.IOError, apsw.SQLITE_IOERR_DELETE):
            self.disk.unlink(Path(path))

    def xFullPathname(self, name: str) -> str:
        return name

    def xRandomness(self, amount: int) -> bytes:
        return bytes(amount)

    def xSleep(self, microseconds: int) -> int:
        return microseconds

    def xCurrentTime(self) -> float:
        return 2440587.5 + time.time() / 86400

    def xCurrentTimeInt64(self) -> int:
        return int(self.xCurrentTime() * 86400_000)

    def xGetLastError(self) -> tuple[int, str]:
        return 0, ""

    def excepthook(self, *error: object) -> None:
        """SQLite continues after the errors reported here, such as a second error during the cleanup of a first."""


@contextmanager
def _as_sqlite3() -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raised = sqlite3.OperationalError(str(error))
        raised.sqlite_errorcode = getattr(error, "extendedresult", 1) or getattr(error, "result", 1)
        raise raised from error
    except UnicodeDecodeError as error:  # of a damaged text
        raised = sqlite3.OperationalError(str(error))
        raised.sqlite_errorcode = apsw.SQLITE_CORRUPT
        raise raised from error


class ApswRows:
    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def fetchone(self) -> Any:
        with _as_sqlite3():
            row = self._cursor.fetchone()
            self._cursor.close(True)
            return row

    def __iter__(self) -> Iterator[Any]:
        with _as_sqlite3():
            yield from self._cursor


class ApswDatabase:
    def __init__(self, path: Path, vfs: Vfs) -> None:
        self._vfs = vfs
        with _as_sqlite3():
            self._db = apsw.Connection(str(path), vfs=vfs.name)
            # Keep the log's index in memory: this disk has no shared memory.
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE").fetchall()

    @property
    def in_transaction(self) -> bool:
        return self._db.in_transaction

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> ApswRows:
        with _as_sqlite3():
            return ApswRows(self._db.execute(sql, tuple(parameters)))

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]]) -> object:
        with _as_sqlite3():
            return self._db.executemany(sql, [tuple(each) for each in parameters]).fetchall()

    def executescript(self, sql: str) -> object:
        with _as_sqlite3():
            return self._db.execute(sql).fetchall()

    def close(self) -> None:
        self._vfs.disk.closing = True
        try:
            self._db.close(True)
        except apsw.Error:  # the class of the module sqlite3, whose message would not name the error
            pass
        finally:
            self._vfs.disk.closing = False
