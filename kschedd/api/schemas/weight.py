"""The weight of an object: its approximate number of values, an estimate of the time to traverse it."""

from typing import Any, Final

LARGE: Final = 2_000
"""An object with more values than this is large: traversing it takes several milliseconds."""
_TEXT: Final = 1 << 9  # number of characters of text that count as one value


def weight(raw: Any, limit: int = LARGE) -> int:
    """Return the approximate number of values in `raw`. The count stops soon after the limit."""
    waiting = [raw]
    counted = 0
    while waiting and counted <= limit:
        value = waiting.pop()
        if type(value) is str:  # most values are texts
            counted += len(value) // _TEXT
        elif isinstance(value, dict):
            counted += 2 * len(value)
            if counted <= limit:
                waiting.extend(value.values())
        elif isinstance(value, list):
            counted += len(value)
            if counted <= limit:
                waiting.extend(value)
    return counted


def is_large(raw: Any) -> bool:
    return weight(raw) > LARGE
