"""Text in columns, separated by three spaces as in kubectl's tables, or by two if the terminal is too narrow."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

import attrs

from kschedd.printing.terminal.style import TerminalStyle, color_of

NONE = "<none>"
_GAP, *_NARROW = "   ", "  ", " "
#: a word with the space before it, or a part of a name such as NodeResourcesFit
_WORD: Final = re.compile(r"\s*\S+?(?:(?=\s)|$|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=\())")
#: minimum number of columns of a last column; if it has less space and longer text, it is printed below its row
_LEAST_ROOM: Final = 20
#: about the maximum number of lines of a text in a last column; a longer text is printed below its row
_MOST_LINES: Final = 4
_PAINT: Final = re.compile("\x1b\\[[0-9;]*m")
_BULLETS: Final = ("- ", "· ", "~ ", "+ ", "! ")
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
    """Return the number of terminal columns that the text fills."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(bool(unicodedata.combining(char)) for char in text)


def widths_of(table: Table) -> list[int]:
    """Return the width of each column, which a watch passes to `render` for later rows."""
    return [
        max(width_of(table.headers[place]), *(width_of(clean(row[place])) for row in table.rows), 0)
        for place in range(len(table.headers))
    ]


def render(
    table: Table, style: TerminalStyle, *, headers: bool = True, widths: Sequence[int] | None = None, indent: str = ""
) -> str:
    """Return the table as lines, each with a line feed. The last column is not padded; status words are colored.

    On a narrow terminal, columns without any value are omitted, the gaps become smaller, and cells are wrapped between
    words. If there is too little space for a long last column, its cells are printed below their rows. `widths` are the
    widths of an earlier part of the table, which does not change.
    """
    below: list[str] = []  # cells of the last column that are printed below their row
    gap = _GAP
    if widths is None and style.width:
        room = style.width - width_of(indent)
        fitted, columns, gap = _fitted(table, room)
        while len(fitted.headers) > 2:
            longest = widths_of(fitted)[1:]
            cramped = columns[-1] < _LEAST_ROOM < longest[-1] and columns[-1] < longest[-1]
            cramped = cramped or _MOST_LINES * columns[-1] < longest[-1]
            if not cramped and (_total(columns, gap) <= room or max(longest) <= _LEAST_ROOM):
                break
            cells = [clean(row[-1]) for row in (fitted.headers, *fitted.rows)]
            below = [_GAP.join(filter(None, pair)) for pair in zip(cells, below, strict=True)] if below else cells
            fitted = Table(fitted.headers[:-1], tuple(row[:-1] for row in fitted.rows))
            fitted, columns, gap = _fitted(fitted, room)
        table = fitted
    else:
        columns = widths_of(table) if widths is None else list(widths)
    lines = [
        _row(row, table.headers, columns, style, gap, header=not number, indent=indent)
        for number, row in enumerate((table.headers, *table.rows))
    ]
    for number, text in enumerate(below):
        lines[number] += flowing(f"{indent}    {text}\n", style) if text not in ("", NONE) else ""
    return "".join(lines if headers else lines[1:])


def flowing(text: str, style: TerminalStyle) -> str:
    """Return prose: lines that are too long for the terminal are broken at spaces and indented like the first line."""
    if not style.width:
        return text
    lines = []
    for line in text.split("\n"):
        if width_of(_PAINT.sub("", line)) <= style.width:
            lines.append(line)
            continue
        margin = " " * (len(line) - len(line.lstrip(" ")))
        margin += "  " if _PAINT.sub("", line).lstrip(" ")[:2] in _BULLETS else ""
        part = ""
        for word in line.lstrip(" ").split(" "):
            longer = f"{part} {word}" if part.strip() else part + word
            if part.strip() and width_of(_PAINT.sub("", longer)) > style.width:
                lines.append(part.rstrip(" "))
                part = margin + word
            else:
                part = longer if part else " " * (len(line) - len(line.lstrip(" "))) + word
        lines.append(part)
    return "\n".join(lines)


def _fitted(table: Table, room: int) -> tuple[Table, list[int], str]:
    """Return the table, the gap, and the column widths, reduced to fit into `room` as far as the words allow."""
    widths = widths_of(table)
    if _total(widths, _GAP) <= room:
        return table, widths, _GAP
    kept = [
        place
        for place in range(len(table.headers))
        if not place or not table.rows or any(row[place] not in ("", NONE) for row in table.rows)
    ]
    headers = tuple(table.headers[place] for place in kept)
    table = Table(headers, tuple(tuple(row[place] for place in kept) for row in table.rows))
    widths = widths_of(table)
    least = [
        max(
            width_of(word.strip())
            for row in (headers, *table.rows)
            for word in _WORD.findall(clean(row[place])) or [""]
        )
        for place in range(len(headers))
    ]
    gap = next((each for each in (_GAP, *_NARROW) if _total(least, each) <= room), _NARROW[0])
    for _ in range(_total(widths, gap) - room):  # one column at a time; always the widest column that can be narrower
        able = [place for place in range(len(widths)) if widths[place] > least[place]]
        if not able:
            break
        widths[max(able, key=lambda place: widths[place])] -= 1
    return table, widths, gap


def _total(widths: Sequence[int], gap: str) -> int:
    return sum(widths) + len(gap) * (len(widths) - 1)


def _wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a cell: its text is broken between words so that each line fits, if possible."""
    if width_of(text) <= width:
        return [text]
    lines = [""]
    for word in _WORD.findall(text):
        if lines[-1] and width_of((lines[-1] + word).rstrip()) > width:
            lines.append("")
        lines[-1] += word if lines[-1] else word.lstrip()
    return [line.rstrip() for line in lines]


def _row(
    cells: Sequence[str],
    headers: Sequence[str],
    widths: Sequence[int],
    style: TerminalStyle,
    gap: str,
    *,
    header: bool,
    indent: str,
) -> str:
    """Return the lines of a row; there are several if a cell is wrapped."""
    wrapped = [_wrapped(clean(cell), width) for cell, width in zip(cells, widths, strict=True)]
    text = ""
    for number in range(max(map(len, wrapped))):
        parts = []
        for place, lines in enumerate(wrapped):
            shown = lines[number] if number < len(lines) else ""
            padding = " " * max(0, widths[place] - width_of(shown)) if place < len(headers) - 1 else ""
            if header:
                color = "bold"
            elif headers[place] in _TONED:
                color = color_of(clean(cells[place]))
            else:
                color = ""
            parts.append(style.paint(shown, color) + padding)
        text += indent + gap.join(parts).rstrip(" ") + "\n"
    return text
