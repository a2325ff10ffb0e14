"""Command history of this session and of earlier sessions.

A line is added when its command has succeeded. The line of a failed command can be recalled once, immediately after the
failure, in order to correct it. The line of a failed command is neither saved nor suggested.
Owns: the history file, which only the user may read.
"""

import os
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path

from prompt_toolkit.history import FileHistory, History


def history_file() -> Path:
    """Return the file that stores the history between sessions."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(base, "kschedd", "history")


class LineHistory(History):
    """The command history. If the file cannot be written, the history lasts only for the session."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file: FileHistory | None = None
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600))
            self._file = FileHistory(str(path))
            self._kept = list(self._file.load_history_strings())[::-1]  # the oldest first
        except (OSError, UnicodeDecodeError):
            self._file, self._kept = None, []
        self._typed = ""  # the latest line while its command runs, or if its command failed

    def keep(self, line: str) -> None:
        """Add the line of a command that succeeded."""
        if self._typed == line:
            self._typed = ""
        if line.strip() and line != next(reversed(self._kept), None):
            self._kept.append(line)
            self.store_string(line)

    # -- what prompt_toolkit calls -------------------------------------------------------------------------------

    async def load(self) -> AsyncGenerator[str, None]:
        """Yield the lines to recall, latest first."""
        for line in [self._typed, *reversed(self._kept)]:
            if line:
                yield line

    def get_strings(self) -> list[str]:
        """Return the lines to suggest, oldest first."""
        return list(self._kept)

    def append_string(self, string: str) -> None:
        self._typed = "" if "\n" in string else string

    def load_history_strings(self) -> Iterable[str]:
        return list(reversed(self._kept))

    def store_string(self, string: str) -> None:
        if self._file is not None:
            try:
                self._file.store_string(string)
            except OSError:
                self._file = None
