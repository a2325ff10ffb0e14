"""Layout of text on a terminal: long lines wrap to the next row, and color codes have no width."""

import re
from typing import Final

from kschedd.printing.terminal.style import TerminalStyle
from kschedd.printing.terminal.tables import width_of

_ESCAPE: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def rows_of(line: str, columns: int) -> int:
    """Return the number of terminal rows that a line fills."""
    width = width_of(_ESCAPE.sub("", line))
    return max(1, -(-width // columns)) if columns else 1


def first_screen(text: str, style: TerminalStyle, taken: int = 0) -> str:
    """Return the beginning of the text that fits below `taken` rows, and the number of omitted lines."""
    lines = text.splitlines(keepends=True)
    # The cursor needs a row below the text.
    room = max(1, style.height - taken - 1)
    needed = [rows_of(line.rstrip("\n"), style.width) for line in lines]
    if sum(needed) <= room:
        return text
    shown, used = 0, 1  # one row is reserved for the number of omitted lines
    while shown < len(lines) and used + needed[shown] <= room:
        used += needed[shown]
        shown += 1
    rest = len(lines) - shown
    return "".join(lines[:shown]) + style.plain(f"… and {rest} more {'line' if rest == 1 else 'lines'}\n")
