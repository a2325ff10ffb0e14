"""The cluster's time in a file beside the journal, so that a virtual clock continues from this time after a restart.

The file is one line of fixed length, overwritten in place. If the process ends, even by a kill, the time in the file is
correct. If the machine crashes, the file may contain an older time. A file that cannot be read or parsed is
ignored.
"""

import os
from pathlib import Path
from typing import Final

import structlog

from kschedd.api.text.times import FIRST_S, LAST_S

log = structlog.get_logger("kschedd.clock")

FILE: Final = "clock"
_LENGTH: Final = 32


class ClockMark:
    """The clock file in a state directory. Must be closed."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / FILE
        self._file: int | None = None

    def read(self) -> float | None:
        """Return the recorded time in seconds since the epoch; None if no time is recorded."""
        try:
            with open(self._path, encoding="ascii", opener=_open_without_waiting) as file:
                kept = float(file.read(_LENGTH))
            if not FIRST_S <= kept <= LAST_S:
                raise ValueError(f"the recorded time {kept} is outside the years 0 to 9999")
            return kept
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as fault:
            log.warning("clock_mark_unreadable", file=str(self._path), why=str(fault))
            return None

    def write(self, now_s: float) -> None:
        try:
            if self._file is None:
                self._file = _open_without_waiting(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC)
            os.pwrite(self._file, f"{now_s!r}".ljust(_LENGTH - 1).encode() + b"\n", 0)
        except OSError as fault:
            log.warning("clock_mark_unwritable", file=str(self._path), why=str(fault))

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _open_without_waiting(path: str | Path, flags: int) -> int:
    """Open with O_NONBLOCK so that a FIFO without a reader does not block."""
    return os.open(path, flags | os.O_NONBLOCK, 0o600)
