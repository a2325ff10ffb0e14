"""The files of a journal: their permissions, which must exist, and whether they were replaced or cut short while open.

`journal.db` and, next to it, SQLite's `-wal` and `-shm` and our `-head`. All are readable by their owner only,
whatever the directory's mode and the umask are.
"""

from pathlib import Path
from typing import Final

from kschedd.store.journal.disk import REAL_DISK, Database, Disk
from kschedd.store.journal.format import JournalError, ours

_COMPANIONS: Final = ("-wal", "-shm", "-head")


def beside(journal: Path, suffix: str) -> Path:
    return journal.with_name(journal.name + suffix)


def connect(path: Path, disk: Disk = REAL_DISK) -> Database:
    """The database, created if it does not exist, with mode 0600. Raises JournalError."""
    for file in (path, *(beside(path, suffix) for suffix in _COMPANIONS)):
        if (found := disk.status(file)) is not None and not found.is_regular:
            # SQLite would open the journal all the same, and refuse the first write.
            raise JournalError(str(path), f"cannot be opened: {file.name} is no regular file; take it away")
    try:
        for file in (path, *(beside(path, suffix) for suffix in _COMPANIONS)):
            if disk.status(file) is not None:
                disk.make_private(file)
        with ours(str(path), "cannot be opened"):
            return disk.connect(path)
    except OSError as error:
        raise JournalError(str(path), f"cannot be opened: {error.strerror}") from error


def flush_log(path: Path, disk: Disk = REAL_DISK) -> None:
    """Have on disk what SQLite's log holds: a process that was killed may have written it, and not flushed it.

    What is read from it is served, and has to be there after a loss of power, as if this process had written it.
    Raises JournalError.
    """
    written = beside(path, "-wal")
    try:
        if (found := disk.status(written)) is not None and found.size:
            disk.flush(written)
    except OSError as error:
        raise JournalError(
            str(path), f"cannot be opened: {written.name} cannot be flushed: {error.strerror}"
        ) from error


def refuse_remains(path: Path, disk: Disk = REAL_DISK) -> None:
    """Raises JournalError if companion files exist without the journal: this is a damaged state, not a new cluster."""
    there = disk.status(path)
    if there is not None and there.size:
        return
    files = (beside(path, suffix) for suffix in _COMPANIONS)
    left = [file.name for file in files if (found := disk.status(file)) is not None and found.size]
    if left:
        what = "is missing" if there is None else "is empty"
        raise JournalError(
            str(path),
            f"{what}, though {' and '.join(left)} {'is' if len(left) == 1 else 'are'} there: put the whole state "
            "directory back; to begin a new cluster, name another directory or remove these files",
        )


class OpenFiles:
    """The files of an open journal, their inodes and sizes; created once all files exist."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self._path = path
        self._disk = disk
        files = (path, beside(path, "-wal"), beside(path, "-head"))
        self._inodes = {file: found.inode for file in files if (found := disk.status(file)) is not None}
        self._sizes: dict[Path, int] = {}
        self.note_sizes()

    def fault(self) -> JournalError | None:
        """That a file is no longer the one that was opened, or lacks its end: writes are lost."""
        for path, inode in self._inodes.items():
            found = self._disk.status(path)
            if found is None or found.inode != inode:
                return self._refused(path, "deleted or replaced")
            if found.size < self._sizes[path]:
                return self._refused(path, "cut short")
        return None

    def note_sizes(self) -> JournalError | None:
        """Take the present sizes as right; for after an operation of ours, since a checkpoint may shrink files.

        What comes back is that a file is no longer the one that was opened.
        """
        fault = None
        for path, inode in self._inodes.items():
            found = self._disk.status(path)
            if found is None or found.inode != inode:
                fault = fault or self._refused(path, "deleted or replaced")
            else:
                self._sizes[path] = found.size
        return fault

    def _refused(self, path: Path, what: str) -> JournalError:
        return JournalError(str(self._path), f"{path.name} was {what} while the daemon was using it")
