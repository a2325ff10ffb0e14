"""The state directory of a daemon, and its lock: only a process that holds the lock may use the journal.

The lock is the file `lock`, which is never removed. The lock is released when all processes that hold it have ended,
even if they were killed. The processes that hold the lock are the daemon and the process that writes its journal. After
a daemon is killed, its journal process may hold the lock until the current write is complete.
"""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from kschedd.errors import KscheddError

_FROM_DUMP: Final = "from-dump"
_PATIENCE_S: Final = 2.0  # maximum wait for a journal process that is completing its last write
_AGAIN_S: Final = 0.02


def note_dump(state_dir: Path) -> None:
    """Record that the cluster in this directory contains a dump; later starts then treat the cluster as a copy."""
    (state_dir / _FROM_DUMP).touch()


def contains_dump(state_dir: Path) -> bool:
    """Return whether a dump was loaded into the cluster in this directory."""
    return (state_dir / _FROM_DUMP).exists()


@attrs.define(eq=False)
class StateDirError(KscheddError, rpc_code="conflict"):
    """The state directory cannot be used."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"state directory {self.path}: {self.why}"


class StateDirInUse(StateDirError):
    """Another process has locked the state directory."""


@attrs.frozen
class LockedStateDir:
    path: Path
    lock: int  # file descriptor; a process that inherits the descriptor also holds the lock


@contextmanager
def lock_state_dir(state_dir: Path) -> Iterator[LockedStateDir]:
    """Lock the state directory for this process, and create the directory if needed. Raises StateDirError."""
    where = state_dir.absolute()
    try:
        if where.exists() and not where.is_dir():
            raise StateDirError(str(where), "is a file, not a directory; give another path")
        if where.is_symlink() and not where.exists():
            raise StateDirError(str(where), f"is a link to {os.readlink(where)}, which does not exist")
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = _open_lock(where / "lock")
    except OSError as error:
        raise StateDirError(str(where), error.strerror or str(error)) from error
    try:
        _take(lock, where)
        yield LockedStateDir(where, lock)
    finally:
        os.close(lock)


def _take(lock: int, where: Path) -> None:
    patience = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > patience:
                why = "in use by another daemon; stop that daemon or give another directory"
                raise StateDirInUse(str(where), why) from None
            time.sleep(_AGAIN_S)
        else:
            return


def _open_lock(path: Path) -> int:
    """Open the lock file.

    Opens the lock file read-only if necessary, so that a journal on a read-only file system can be read.
    """
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
