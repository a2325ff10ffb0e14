"""The REPL as a separate process at a pseudo-terminal, with a terminal emulator as its screen.

`Console.wait_for` returns as soon as the screen shows the awaited text, so no test sleeps. The terminal is the
process's controlling terminal, so Ctrl-C is a signal unless it is read as a key.
"""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import attrs
import pyte
from pyte.screens import Char

PATIENCE_S = 180.0
_AGAIN_S = 1.0
_WRAPPED = Char("+")
_ANSWER = re.compile(r"\^\[\[\d+;\d+R")  # where the cursor is
_EMPTY_PROMPT = r"^kschedd( \S+)* (❯|>)$"  # noqa: RUF001 - the sign of a prompt
#: makes its standard input, a terminal, its controlling terminal, and executes the program
_TAKE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


class Emulator(pyte.Screen):
    """A screen that reports its cursor position on request, as terminals do."""

    def __init__(self, columns: int, rows: int, keys: int) -> None:
        super().__init__(columns, rows)
        self._keys = keys
        self._drawing = False
        self._rows: list[str] = []

    def draw(self, data: str) -> None:
        self._drawing = True
        try:
            super().draw(data)
        finally:
            self._drawing = False

    def linefeed(self) -> None:
        """Move to the next row; if a character did not fit, mark the row in the cell to the right of its last one."""
        if self._drawing:
            self.buffer[self.cursor.y][self.columns] = _WRAPPED
        super().linefeed()

    def text(self) -> str:
        """Return the rows as lines, with wrapped rows joined.

        A full row that is not marked as wrapped ends its line. Only rows that have changed are read again: a large
        screen has 24,000 cells, and is read after each piece of output. The cell after a wide character is empty.
        """
        self._rows[self.lines :] = []
        for y in range(self.lines) if len(self._rows) < self.lines else self.dirty:
            if y < self.lines:
                line = self.buffer[y]
                self._rows[y : y + 1] = ["".join(line[x].data for x in range(self.columns))]
        self.dirty.clear()
        rows = self._rows
        wrapped = (self.buffer[y][self.columns] is _WRAPPED and row[-1] != " " for y, row in enumerate(rows))
        return "".join(row if goes_on else f"{row.rstrip()}\n" for row, goes_on in zip(rows, wrapped, strict=True))

    def write_process_input(self, data: str) -> None:
        os.write(self._keys, data.encode())


@attrs.define(eq=False)
class Console:
    """A user's screen and keyboard. A thread reads the program's output immediately, as a terminal does."""

    keys: int
    child: "subprocess.Popen[bytes]"
    screen: Emulator
    raw: bytearray = attrs.field(factory=bytearray)  # all output of the program
    over: bool = False  # the program has ended, and the screen shows all its output
    _changed: threading.Condition = attrs.field(factory=threading.Condition)

    def read_all(self) -> None:
        stream = pyte.ByteStream(self.screen)
        while True:
            try:
                data = os.read(self.keys, 65536)
            except OSError:  # the other end of the terminal is closed
                data = b""
            with self._changed:
                self.raw += data
                stream.feed(data)
                self.over = not data
                self._changed.notify_all()
            if not data:
                return

    def type(self, keys: str) -> None:
        os.write(self.keys, keys.encode("utf-8", "surrogateescape"))

    def ready(self) -> None:
        """Wait for an empty prompt; before it, the terminal itself interprets control characters."""
        self.wait_match(_EMPTY_PROMPT)

    def line(self, text: str) -> None:
        """Type a line at an empty prompt."""
        self.ready()
        self.type(f"{text}\r")

    @property
    def text(self) -> str:
        """Return the text on the screen, with wrapped rows joined.

        The terminal's replies to queries are left out. They are echoed if they arrive before the program reads keys.
        """
        return _ANSWER.sub("", self.screen.text()).rstrip()

    def wait(self, shown: Callable[[], bool], what: str) -> None:
        """Wait until the condition holds for the screen."""
        with self._changed:
            self._changed.wait_for(lambda: shown() or self.over, PATIENCE_S)
            assert shown(), f"{what} was not shown; the screen is:\n{self.text}"

    def wait_for(self, *texts: str) -> None:
        """Wait until all of these texts are on the screen."""
        self.wait(lambda: all(text in self.text for text in texts), repr(texts))

    def wait_without(self, text: str) -> None:
        self.wait(lambda: text not in self.text, f"a screen without {text!r}")

    def wait_match(self, pattern: str) -> None:
        """Wait until the pattern matches; ^ and $ match at the ends of each line."""
        self.wait(lambda: re.search(pattern, self.text, re.MULTILINE) is not None, pattern)

    def type_until(self, typed: str, pattern: str) -> None:
        """Type the text at an empty prompt repeatedly until the pattern matches.

        Names arrive by a watch, and a menu shows the names known when a key was pressed.
        """

        def is_shown() -> bool:
            return self.over or re.search(pattern, self.text, re.MULTILINE) is not None

        end = time.monotonic() + PATIENCE_S
        self.type(typed)
        with self._changed:
            while not self._changed.wait_for(is_shown, _AGAIN_S) and time.monotonic() < end:
                self.type("\x15" + typed)
        self.wait_match(pattern)

    def resize(self, columns: int, rows: int) -> None:
        with self._changed:
            self.screen.resize(rows, columns)
        fcntl.ioctl(self.keys, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def ends(self) -> int:
        """Wait for the end of the program; return its exit status."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.over, PATIENCE_S), f"it goes on:\n{self.text}"
        return self.child.wait(PATIENCE_S)


@contextmanager
def console(
    words: list[str],
    where: Path,
    *,
    columns: int = 100,
    rows: int = 30,
    environment: Mapping[str, str] = {},
    folder: Path | None = None,
) -> Iterator[Console]:
    """Run `kschedd WORDS` at a terminal of this size, with state and configuration in `where`, in `folder`."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "PAGER", "LESS")}
    env = {
        **inherited,
        "XDG_STATE_HOME": str(where / "state"),
        "XDG_CONFIG_HOME": str(where / "config"),
        "TERM": "xterm-256color",
        "LC_ALL": "C.UTF-8",
        **environment,
    }
    command = [sys.executable, "-c", _TAKE_TERMINAL, sys.executable, "-m", "kschedd", *words]
    child = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=folder, start_new_session=True
    )
    os.close(theirs)
    screen = Emulator(columns, rows, ours)
    shown = Console(ours, child, screen)
    reading = threading.Thread(target=shown.read_all)
    reading.start()
    try:
        yield shown
    finally:
        child.kill()
        child.wait()
        reading.join()
        os.close(ours)
