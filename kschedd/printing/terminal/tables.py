"""Text in columns, three spaces apart, like kubectl's tables."""

import unicodedata
from collections.abc import Iterable, Sequence

import attrs

from kschedd.printing.terminal.style import TerminalStyle, color_of

NONE = "<none>"
_GAP = "   "
_TONED = frozenset({"STATUS", "TYPE", "PLACE", "VERDICT", "READY"})


@attrs.frozen
class Table:
    """A table: headers in capitals, and rows with one cell per header."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def clean(text: str) -> str:
    """Return `text` on one line, with control characters escaped."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else " " if char in "\n\t" else char.encode("unicode_escape").decode()
        for char in text
    )


def width_of(text: str) -> int:
    """Return the number of terminal columns that the text takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(bool(unicodedata.combining(char)) for char in text)


def widths_of(table: Table) -> list[int]:
    """Return the width of each column; a watch passes it on to `render` for later rows."""
    return [
        max(width_of(table.headers[place]), *(width_of(clean(row[place])) for row in table.rows), 0)
        for place in range(len(table.headers))
    ]


def render(
    table: Table, style: TerminalStyle, *, headers: bool = True, widths: Sequence[int] | None = None, indent: str = ""
) -> str:
    """Return the table as lines, each with a line end. The last column is not padded; status words are coloured."""
    columns = widths_of(table) if widths is None else list(widths)
    lines = [_line(table.headers, table.headers, columns, style, header=True, indent=indent)] if headers else []
    lines += [_line(row, table.headers, columns, style, header=False, indent=indent) for row in table.rows]
    return "".join(lines)


def _line(
    cells: Iterable[str],
    headers: Sequence[str],
    widths: Sequence[int],
    style: TerminalStyle,
    *,
    header: bool,
    indent: str,
) -> str:
    parts = []
    for place, cell in enumerate(cells):
        text = clean(cell)
        padding = " " * max(0, widths[place] - width_of(text)) if place < len(headers) - 1 else ""
        if header:
            color = "bold"
        elif headers[place] in _TONED:
            color = color_of(text)
        else:
            color = ""
        parts.append(style.paint(text, color) + padding)
    return indent + _GAP.join(parts).rstrip(" ") + "\n"
