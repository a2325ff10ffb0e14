"""Whole numbers in untrusted text.

`int` alone accepts digits of every script, and raises ValueError for more than 4,300 digits. `str.isdigit` is True for
texts that `int` rejects, such as "²".
"""

from typing import Final

_MOST_DIGITS: Final = 100


def whole_number(text: str) -> int | None:
    """Return the number with these ASCII digits; None for other characters, or for too many digits."""
    if len(text) > _MOST_DIGITS or not text.isascii() or not text.isdigit():
        return None
    return int(text)
