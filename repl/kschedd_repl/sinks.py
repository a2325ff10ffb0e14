"""Destinations of a command's output: the terminal, a pager, a file, or a shell command.

Verbs write from a worker thread; a write blocks while the reader is slow. `close` waits for the reader and returns its
exit status. `interrupt` may be called from another thread during these calls. Raises SinkError for errors that the user
can correct. If the reader has exited, a write raises ReaderLeft: this ends the command and is not an error.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol

import attrs

from kschedd.errors import KscheddError
from kschedd.printing.terminal.screen import rows_of
from kschedd.printing.terminal.style import TerminalStyle

_SHELL = "/bin/sh"


@attrs.define(eq=False)
class SinkError(KscheddError):
    """The output cannot be written to its destination."""

    why: str

    def __str__(self) -> str:
        return self.why


class ReaderLeft(Exception):
    """Raised when the reader of the output has exited, as `head` does, and needs no more output."""


class OutputSink(Protocol):
    def write(self, text: str) -> None: ...

    def close(self) -> int:
        """Wait for the reader and return its exit status. Raises SinkError."""

    def interrupt(self) -> None:
        """End the reader."""


@attrs.define(eq=False)
class FileSink:
    """A file. `shown` is the name of the destination as the user typed it."""

    shown: str
    _file: IO[str]

    @classmethod
    def open(cls, name: str, *, append: bool) -> "FileSink":
        path = Path(os.path.expanduser(name))
        try:
            return cls(name, path.open("a" if append else "w", encoding="utf-8", errors="backslashreplace"))
        except (OSError, ValueError) as wrong:
            raise SinkError(f"{name}: cannot be written: {getattr(wrong, 'strerror', None) or wrong}") from wrong

    def write(self, text: str) -> None:
        try:
            self._file.write(text)
        except OSError as wrong:
            raise SinkError(f"{self.shown}: cannot be written: {wrong.strerror}") from wrong

    def close(self) -> int:
        try:
            self._file.close()
        except OSError as wrong:
            raise SinkError(f"{self.shown}: cannot be written: {wrong.strerror}") from wrong
        return 0

    def interrupt(self) -> None:
        pass


@attrs.define(eq=False)
class ShellSink:
    """The standard input of a shell command, which writes to the terminal itself."""

    command: str
    left: bool = False  # True if the program exited, or closed its input, before it had read all output
    _child: "subprocess.Popen[bytes]" = attrs.field(init=False)
    _interrupts: int = 0

    def __attrs_post_init__(self) -> None:
        try:
            self._child = subprocess.Popen([_SHELL, "-c", self.command], stdin=subprocess.PIPE)
        except (OSError, ValueError) as wrong:
            raise SinkError(f"{self.command}: cannot be run: {getattr(wrong, 'strerror', None) or wrong}") from wrong

    def write(self, text: str) -> None:
        assert self._child.stdin is not None, "opened with a pipe"
        try:
            self._child.stdin.write(text.encode("utf-8", "backslashreplace"))
            self._child.stdin.flush()
        except BrokenPipeError:
            self.left = True
            raise ReaderLeft from None

    def close(self) -> int:
        assert self._child.stdin is not None, "opened with a pipe"
        try:
            self._child.stdin.close()
        except BrokenPipeError:
            self.left = True
        return self._child.wait()

    def interrupt(self) -> None:
        """End the command: the terminal has already sent Ctrl-C to the command, but some programs ignore it."""
        self._interrupts += 1
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM if self._interrupts == 1 else signal.SIGKILL)


def ending(command: str, status: int) -> str:
    """Return the message about a shell command with a status other than 0; "" for status 0."""
    name = (command.split() or [""])[0]
    if status == 127:
        return f"({name}: command not found: status 127)"
    if status < 0 or status > 128:
        number = -status if status < 0 else status - 128
        known = {each.value: each.name for each in signal.Signals}
        return f"({name} was ended by {known.get(number, f'signal {number}')})"
    return f"({name} ended with status {status})" if status else ""


@attrs.define(eq=False)
class PagedSink:
    """The terminal; if the output is longer than the screen, it is passed to a pager when the command has ended."""

    _write: Callable[[str], None]
    _style: TerminalStyle
    _pager: str  # a shell command
    _text: list[str] = attrs.field(factory=list)

    def write(self, text: str) -> None:
        self._text.append(text)

    def close(self) -> int:
        text = "".join(self._text)
        if not is_long(text, self._style):
            self._write(text)
            return 0
        # `-F -R -X`, unless the user has set $LESS: colors are preserved, and the text remains on the screen.
        environment = {"LESS": "FRX", **os.environ}
        subprocess.run([_SHELL, "-c", self._pager], input=text.encode("utf-8", "replace"), env=environment, check=False)
        return 0

    def interrupt(self) -> None:
        """Do nothing: pagers handle Ctrl-C themselves."""


def is_long(text: str, style: TerminalStyle) -> bool:
    """Return whether the text does not fit on the screen together with the prompt and its status bar."""
    if not style.height:
        return False
    room = max(style.height - 2, 1)
    lines = text.splitlines()
    return len(lines) > room or sum(rows_of(line, style.width) for line in lines) > room


def pager_of(setting: str, environment: Mapping[str, str]) -> str:
    """Return the command of the pager; "" if the pager is off, unsupported by the terminal, or not installed."""
    if setting == "off" or environment.get("TERM", "dumb") == "dumb":
        return ""
    command = environment.get("PAGER", "less") if setting == "on" else setting
    try:
        program = shlex.split(command)[:1]
    except ValueError:
        return ""
    return command if program and shutil.which(program[0]) else ""


#: verbs whose output is shown in a pager when they end; other verbs print their output immediately
PAGED = frozenset(
    "config count decisions describe diff events explain get help history kinds api-resources macro plugins queue "
    "setting status info top weights".split()
)
_FOLLOWS = re.compile("--watch(-only)?(=.*)?|-[A-Za-z]*w[A-Za-z]*")


def may_be_paged(words: Sequence[str]) -> bool:
    return words[0] in PAGED and not any(_FOLLOWS.fullmatch(word) for word in words[1:])
