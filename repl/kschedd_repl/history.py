"""The lines typed before, in this session and in those before it.

A line enters when it has been carried out: one that failed does not. It can be recalled once, right after, to be
mended; it is neither written down nor suggested. Owns: the file, which only its owner may read.
"""

import os
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path

from prompt_toolkit.history import FileHistory, History


def history_file() -> Path:
    """Where lines are kept between sessions."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(base, "kschedd", "history")


class LineHistory(History):
    """See the module. A file that cannot be written is no obstacle: the history then ends with the session."""

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
        self._typed = ""  # the latest line, of which nothing is known yet, or that failed

    def keep(self, line: str) -> None:
        """Note down a line that was carried out."""
        if self._typed == line:
            self._typed = ""
        if line.strip() and line != next(reversed(self._kept), None):
            self._kept.append(line)
            self.store_string(line)

    # -- what prompt_toolkit asks --------------------------------------------------------------------------------

    async def load(self) -> AsyncGenerator[str, None]:
        """What can be recalled, the latest first."""
        for line in [self._typed, *reversed(self._kept)]:
            if line:
                yield line

    def get_strings(self) -> list[str]:
        """What may be suggested, the oldest first."""
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
