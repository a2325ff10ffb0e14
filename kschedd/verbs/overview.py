"""Names with what they mean: a line each, or several where the terminal is narrow."""

import textwrap
from collections.abc import Iterable


def listing(entries: Iterable[tuple[str, str]], columns: int, width: int = 0) -> str:
    """`columns` is the terminal's width, 0 where there is none: nothing is broken then. `width`: of names at least."""
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
    # On a very narrow terminal the meaning goes below its name.
    return f"  {name}\n" + "".join(f"    {line}\n" for line in textwrap.wrap(meaning, max(columns - 4, 16)))


def paragraph(text: str, columns: int) -> str:
    """Text in lines that fit, or as it is where there is no terminal."""
    return (textwrap.fill(text, columns) if columns else text) + "\n"
