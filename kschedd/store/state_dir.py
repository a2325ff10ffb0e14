"""The state directory of a daemon: who has its lock may use the journal in it.

The lock is the file `lock`, which stays; it is released with the process that holds it, however that ends.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import attrs

from kschedd.errors import KscheddError


@attrs.define(eq=False)
class StateDirError(KscheddError):
    """A state directory that cannot be used."""

    path: str
    why: str
    rpc_code: ClassVar[str] = "conflict"

    def __str__(self) -> str:
        return f"state directory {self.path}: {self.why}"


class StateDirInUse(StateDirError):
    """Somebody else has its lock."""


@contextmanager
def lock_state_dir(state_dir: Path | None) -> Iterator[Path | None]:
    """Lock the state directory for this process; creates it if needed. Raises StateDirError."""
    if state_dir is None:
        yield None
        return
    where = state_dir.absolute()
    if where.exists() and not where.is_dir():
        raise StateDirError(str(where), "there is a file there that is no directory; give another path")
    try:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(where / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StateDirError(str(where), error.strerror or str(error)) from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            why = "another daemon uses it; stop that one or give another directory"
            raise StateDirInUse(str(where), why) from None
        yield where
    finally:
        os.close(lock)
