"""The number of values in an object: how long walking through it takes, without walking through all of it."""

from typing import Any, Final

LARGE: Final = 2_000
"""An object with more values than this is large: walking through it takes several milliseconds."""
_TEXT: Final = 1 << 9  # each so many characters of text count as one more value


def weight(raw: Any, limit: int = LARGE) -> int:
    """The approximate number of values in `raw`; counting stops soon after the limit."""
    waiting = [raw]
    counted = 0
    while waiting and counted <= limit:
        value = waiting.pop()
        if isinstance(value, dict):
            counted += 2 * len(value)
            if counted <= limit:
                waiting.extend(value.values())
        elif isinstance(value, list):
            counted += len(value)
            if counted <= limit:
                waiting.extend(value)
        elif isinstance(value, str):
            counted += len(value) // _TEXT
    return counted


def is_large(raw: Any) -> bool:
    return weight(raw) > LARGE
