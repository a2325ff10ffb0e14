"""A progress line on a terminal, which is overwritten at each update."""

from typing import Final, TextIO

import attrs

from kschedd.printing.terminal.safe import safe

_LONGEST: Final = 79  # maximum number of columns, because a wrapped line could not be overwritten


@attrs.define(eq=False)
class ProgressLine:
    """A progress line; nothing is written if `out` is not a terminal."""

    out: TextIO
    _width: int = 0

    def show(self, text: str) -> None:
        if self.out.isatty():
            line = safe(text)[:_LONGEST]
            self.out.write(f"\r{line.ljust(self._width)}")
            self.out.flush()
            self._width = len(line)

    def clear(self) -> None:
        if self._width:
            self.out.write(f"\r{' ' * self._width}\r")
            self.out.flush()
            self._width = 0
