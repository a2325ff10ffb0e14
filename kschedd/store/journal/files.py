"""The files of a journal: permissions, required files, and detection of replaced or truncated files while open.

The files are `journal.db`, SQLite's files `-wal` and `-shm` next to it, and kschedd's file `-head`. All files are
readable only by their owner, whatever the mode of the directory and the umask.
"""

from pathlib import Path
from typing import Final

from kschedd.store.journal.disk import REAL_DISK, Database, Disk
from kschedd.store.journal.format import JournalError, ours

_COMPANIONS: Final = ("-wal", "-shm", "-head")


def beside(journal: Path, suffix: str) -> Path:
    return journal.with_name(journal.name + suffix)


def connect(path: Path, disk: Disk = REAL_DISK) -> Database:
    """Open the database with mode 0600; a missing file is created. Raises JournalError."""
    for file in (path, *(beside(path, suffix) for suffix in _COMPANIONS)):
        if (found := disk.status(file)) is not None and not found.is_regular:
            # SQLite would open the journal, and fail at the first write.
            raise JournalError(str(path), f"cannot be opened: {file.name} is not a regular file; remove it")
    try:
        for file in (path, *(beside(path, suffix) for suffix in _COMPANIONS)):
            if disk.status(file) is not None:
                disk.make_private(file)
        with ours(str(path), "cannot be opened"):
            return disk.connect(path)
    except OSError as error:
        raise JournalError(str(path), f"cannot be opened: {error.strerror}") from error


def flush_log(path: Path, disk: Disk = REAL_DISK) -> None:
    """Flush SQLite's write-ahead log, because a killed process may have left unflushed writes in it.

    Clients receive data from the log, so the data must survive a power failure. Raises JournalError.
    """
    written = beside(path, "-wal")
    try:
        if (found := disk.status(written)) is not None and found.size:
            disk.flush(written)
    except OSError as error:
        raise JournalError(
            str(path), f"cannot be opened: {written.name} cannot be flushed: {error.strerror}"
        ) from error


def reject_remains(path: Path, disk: Disk = REAL_DISK) -> None:
    """Raise JournalError if companion files exist without the journal, because the state is then damaged."""
    there = disk.status(path)
    if there is not None and there.size:
        return
    files = (beside(path, suffix) for suffix in _COMPANIONS)
    left = [file.name for file in files if (found := disk.status(file)) is not None and found.size]
    if left:
        what = "is missing" if there is None else "is empty"
        raise JournalError(
            str(path),
            f"{what}, but {' and '.join(left)} {'exists' if len(left) == 1 else 'exist'}: restore a copy of the whole "
            "state directory; for a new cluster, give another directory or remove these files",
        )


class OpenFiles:
    """The files of an open journal, with their inodes and sizes. Create an instance only after all files exist."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self._path = path
        self._disk = disk
        files = (path, beside(path, "-wal"), beside(path, "-head"))
        self._inodes = {file: found.inode for file in files if (found := disk.status(file)) is not None}
        self._sizes: dict[Path, int] = {}
        self.note_sizes()

    def fault(self) -> JournalError | None:
        """Return an error if a file was replaced or truncated after it was opened, because writes are then lost."""
        for path, inode in self._inodes.items():
            found = self._disk.status(path)
            if found is None or found.inode != inode:
                return self._refused(path, "deleted or replaced")
            if found.size < self._sizes[path]:
                return self._refused(path, "truncated")
        return None

    def note_sizes(self) -> JournalError | None:
        """Record the current sizes of the files. Call this method after an operation that may shrink files.

        Returns an error if a file was replaced after it was opened.
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
