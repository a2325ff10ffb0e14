"""JSON texts from outside: before they are decoded, and how deep they may nest.

JSON can write half of a surrogate pair, `"\\ud800"`. Python decodes it to a character that no encoder takes afterwards:
neither the journal, nor the socket, nor a terminal. Go's decoder has U+FFFD in its place, and so have we.
"""

import json
import re
from typing import Any, Final

DEEPEST: Final = 100
"""Levels of arrays and objects; a pod's affinity takes 12."""
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.", re.DOTALL
)


def without_lone_surrogates(text: str) -> str:
    """The JSON text with `\\ufffd` for each half of a surrogate pair without its other half."""
    if _HALF.search(text) is None:
        return text
    return _ESCAPE.sub(_repaired, text)


def _repaired(escape: re.Match[str]) -> str:
    found = escape.group()
    return r"\ufffd" if len(found) == 6 else found


def json_value(text: str) -> Any:
    """What a JSON text within an object says, such as an annotation. Raises ValueError, also for what is nested more
    than DEEPEST levels deep."""
    too_many = f"nested more than {DEEPEST} levels deep"
    try:
        value = json.loads(without_lone_surrogates(text))
    except RecursionError:
        raise ValueError(too_many) from None
    if too_deep(value):
        raise ValueError(too_many)
    return value


def too_deep(value: Any) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEEPEST):
        if not level:
            return False
        level = [
            item
            for container in level
            for item in (container.values() if type(container) is dict else container)
            if type(item) is dict or type(item) is list
        ]
    return bool(level)
