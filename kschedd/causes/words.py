"""Text for numbers and lists in descriptions of causes."""

from collections.abc import Collection, Sequence
from heapq import nsmallest
from typing import Final

_MOST_JOINED: Final = 8
_LONGEST: Final = 1_000  # maximum number of characters in a sentence; names in it may have any length


def cut(text: str) -> str:
    """Return the sentence, cut to a maximum length."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def some(names: Collection[str], most: int = 3) -> str:
    """Return `a, b, c and 4 more`."""
    rest = len(names) - most
    return ", ".join(nsmallest(most, names)) + (f" and {rest} more" if rest > 0 else "")


def counted(number: int, word: str) -> str:
    """`1 node`, `3 nodes`."""
    return f"{number:,} {word}" + ("" if number == 1 else "s")


def every(number: int, word: str = "node") -> str:
    """Return `the only node`, `both nodes` or `all 3 nodes`."""
    if number == 1:
        return f"the only {word}"
    return f"both {word}s" if number == 2 else f"all {counted(number, word)}"


def suitable(number: int, word: str = "node") -> str:
    """Return `the only suitable node`, `both suitable nodes` or `all 3 suitable nodes`."""
    return every(number, f"suitable {word}")


def joined(words: Sequence[str], last: str = "and") -> str:
    """Return `a`, `a and b` or `a, b and c`.

    For a long list, return the first items and the number of further items.
    """
    if len(words) > _MOST_JOINED:
        words = [*words[: _MOST_JOINED - 1], f"{len(words) - _MOST_JOINED + 1:,} more"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"
