"""The state directory of a daemon: who has its lock may use the journal in it.

The lock is the file `lock`, which stays; it is released with the processes that hold it, however they end: the daemon
and the one that writes its journal, which may outlive a daemon that was killed by what it takes to end a write.
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

_PATIENCE_S: Final = 2.0  # with a process that writes its last
_AGAIN_S: Final = 0.02


@attrs.define(eq=False)
class StateDirError(KscheddError, rpc_code="conflict"):
    """A state directory that cannot be used."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"state directory {self.path}: {self.why}"


class StateDirInUse(StateDirError):
    """Somebody else has its lock."""


@attrs.frozen
class LockedStateDir:
    path: Path
    lock: int  # the descriptor: a process that inherits it holds the lock as well


@contextmanager
def lock_state_dir(state_dir: Path) -> Iterator[LockedStateDir]:
    """Lock the state directory for this process; creates it if needed. Raises StateDirError."""
    where = state_dir.absolute()
    try:
        if where.exists() and not where.is_dir():
            raise StateDirError(str(where), "there is a file there that is no directory; give another path")
        if where.is_symlink() and not where.exists():
            raise StateDirError(str(where), f"a link to {os.readlink(where)}, which is not there")
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
                why = "another daemon uses it; stop that one or give another directory"
                raise StateDirInUse(str(where), why) from None
            time.sleep(_AGAIN_S)
        else:
            return


def _open_lock(path: Path) -> int:
    """A lock is held on what is open for reading as well: on a read-only file system a journal can still be read."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
