"""Whole numbers in texts that anybody may have written.

`int` alone takes digits of every script, and refuses more than 4,300 of them with a ValueError, and `str.isdigit` is
true of texts that `int` takes for none, such as "²".
"""

from typing import Final

_MOST_DIGITS: Final = 100


def whole_number(text: str) -> int | None:
    """The number that these ASCII digits are; None where they are not, or are too many for anything that is counted."""
    if len(text) > _MOST_DIGITS or not text.isascii() or not text.isdigit():
        return None
    return int(text)
