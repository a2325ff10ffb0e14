"""Commands from files, from -c, or from standard input, line by line.

A line that ends with a backslash continues on the next line. `apply -f -` reads the following lines, up to a line with
a single dot.
"""

import sys
from collections.abc import Iterator, Sequence

import attrs

from kschedd.errors import KscheddError


@attrs.define(eq=False)
class ScriptError(KscheddError):
    """A script cannot be read."""

    file: str
    why: str

    def __str__(self) -> str:
        return f"{self.file}: cannot be read: {self.why}"


@attrs.frozen
class Script:
    name: str
    lines: Sequence[str]
    from_command: bool = False  # True if the text was given with -c: standard input is then available to commands


def read_scripts(files: Sequence[str], commands: Sequence[str]) -> list[Script]:
    """Return all scripts, files first. Raises ScriptError before any of the scripts runs."""
    scripts = []
    for file in files:
        try:
            if file == "-":
                text = sys.stdin.read()
            else:
                with open(file, encoding="utf-8") as opened:
                    text = opened.read()
        except OSError as wrong:
            raise ScriptError(file, wrong.strerror or str(wrong)) from wrong
        except UnicodeDecodeError as wrong:
            raise ScriptError(file, f"not UTF-8 text: {wrong.reason} at byte {wrong.start}") from wrong
        scripts.append(Script("standard input" if file == "-" else file, text.splitlines()))
    return [*scripts, *(Script("-c", text.splitlines(), True) for text in commands)]


class Lines:
    """An iterator of pairs (line number, command); a command may read the lines after its own with `block`."""

    def __init__(self, script: Script) -> None:
        self.from_command = script.from_command
        self._lines = script.lines
        self._at = 0

    def __iter__(self) -> Iterator[tuple[int, str]]:
        while self._at < len(self._lines):
            number = self._at + 1
            line = self._next()
            while line.endswith("\\") and self._at < len(self._lines):
                line = line[:-1] + " " + self._next()
            yield number, line

    def _next(self) -> str:
        self._at += 1
        return self._lines[self._at - 1]

    def block(self) -> str:
        """Return the lines up to a line with a single dot, or to the end."""
        taken = []
        while self._at < len(self._lines):
            line = self._next()
            if line.strip() == ".":
                break
            taken.append(line)
        return "".join(f"{line}\n" for line in taken)
