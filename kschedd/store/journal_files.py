"""The files of a journal: their permissions, which must exist, and whether they were replaced or cut short while open.

`journal.db` and, next to it, SQLite's `-wal` and `-shm` and our `-head`. All are readable by their owner only,
whatever the directory's mode and the umask are.
"""

import os
import sqlite3
from pathlib import Path
from typing import Final

from kschedd.store.journal_format import JournalError, ours

_COMPANIONS: Final = ("-wal", "-shm", "-head")


def beside(journal: Path, suffix: str) -> Path:
    return journal.with_name(journal.name + suffix)


def connect(path: Path) -> sqlite3.Connection:
    """The database, created if it does not exist, with mode 0600. Raises JournalError."""
    for file in (path, *(beside(path, suffix) for suffix in _COMPANIONS)):
        if file.exists() and not file.is_file():
            # SQLite would open the journal all the same, and refuse the first write.
            raise JournalError(str(path), f"cannot be opened: {file.name} is no regular file; take it away")
    try:
        # SQLite gives its other files the mode of the database file.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        for file in (path, *(beside(path, suffix) for suffix in _COMPANIONS)):
            if file.exists():
                file.chmod(0o600)
    except OSError as error:
        raise JournalError(str(path), f"cannot be opened: {error.strerror}") from error
    with ours(str(path), "cannot be opened"):
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    # Invalid UTF-8 is detected by the row's checksum, so decoding it must not raise.
    db.text_factory = lambda text: text.decode("utf-8", "replace")
    return db


def refuse_remains(path: Path) -> None:
    """Raises JournalError if companion files exist without the journal: this is a damaged state, not a new cluster."""
    if path.exists() and path.stat().st_size:
        return
    left = [file.name for suffix in _COMPANIONS if (file := beside(path, suffix)).exists() and file.stat().st_size]
    if left:
        what = "is empty" if path.exists() else "is missing"
        raise JournalError(
            str(path),
            f"{what}, though {' and '.join(left)} {'is' if len(left) == 1 else 'are'} there: put the whole state "
            "directory back; to begin a new cluster, name another directory or remove these files",
        )


class OpenFiles:
    """The files of an open journal, their inodes and sizes; created once all files exist."""

    def __init__(self, path: Path) -> None:
        self._path = path
        files = (path, beside(path, "-wal"), beside(path, "-head"))
        self._inodes = {file: _inode(found) for file in files if (found := _found(file)) is not None}
        self._sizes: dict[Path, int] = {}
        self.note_sizes()

    def check(self) -> None:
        """Raises JournalError if a file is no longer the one that was opened, or lacks its end: writes are lost."""
        for path, inode in self._inodes.items():
            found = _found(path)
            if found is None or _inode(found) != inode:
                raise self._refused(path, "deleted or replaced")
            if found.st_size < self._sizes[path]:
                raise self._refused(path, "cut short")

    def note_sizes(self) -> None:
        """Take the present sizes as right; called after each operation of ours, since a checkpoint may shrink files."""
        for path in self._inodes:
            found = _found(path)
            if found is not None:
                self._sizes[path] = found.st_size

    def _refused(self, path: Path, what: str) -> JournalError:
        return JournalError(str(self._path), f"{path.name} was {what} while the daemon was using it")


def _found(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _inode(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
