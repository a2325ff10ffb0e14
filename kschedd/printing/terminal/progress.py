"""A line on a terminal that says how far something is, and is overwritten as it goes on."""

from typing import TextIO

import attrs

from kschedd.printing.terminal.safe import safe


@attrs.define(eq=False)
class ProgressLine:
    """See the module; writes nothing if `out` is not a terminal."""

    out: TextIO
    _width: int = 0

    def show(self, text: str) -> None:
        if self.out.isatty():
            line = safe(text)
            self.out.write(f"\r{line.ljust(self._width)}")
            self.out.flush()
            self._width = len(line)

    def clear(self) -> None:
        if self._width:
            self.out.write(f"\r{' ' * self._width}\r")
            self.out.flush()
            self._width = 0
