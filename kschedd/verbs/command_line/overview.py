"""Lists of names with descriptions, wrapped to the width of the terminal."""

import textwrap
from collections.abc import Iterable


def listing(entries: Iterable[tuple[str, str]], columns: int, width: int = 0) -> str:
    """`columns`: terminal width, 0 if there is no terminal (no wrapping). `width`: minimum width of the name column."""
    found = list(entries)
    width = max([width, *(len(name) for name, _ in found)]) + 2
    return "".join(_entry(name, meaning, width, columns) for name, meaning in found)


def _entry(name: str, meaning: str, width: int, columns: int) -> str:
    head = f"  {name:<{width}}"
    if not columns or len(head) + len(meaning) <= columns:
        return f"{head}{meaning}\n"
    if columns - len(head) >= 24:
        first, *rest = textwrap.wrap(meaning, columns - len(head))
        return f"{head}{first}\n" + "".join(f"{' ' * len(head)}{line}\n" for line in rest)
    # On a very narrow terminal the description goes below its name.
    return f"  {name}\n" + "".join(f"    {line}\n" for line in textwrap.wrap(meaning, max(columns - 4, 16)))


def paragraph(text: str, columns: int) -> str:
    """The text wrapped to `columns`, or unchanged if there is no terminal."""
    return (textwrap.fill(text, columns) if columns else text) + "\n"
