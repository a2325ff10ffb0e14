r"""Untrusted JSON texts: removal of lone surrogates, and the nesting limit.

JSON can contain half of a surrogate pair, `"\ud800"`. Python decodes it to a character that cannot be encoded again,
but the journal, the socket and terminals must encode it. Go's decoder and this module replace it by U+FFFD.
"""

import json
import re
from typing import Any, Final

DEEPEST: Final = 100
"""Maximum levels of arrays and objects; a pod's affinity takes 12."""
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.", re.DOTALL
)


def without_lone_surrogates(text: str) -> str:
    r"""Return the JSON text with `\ufffd` in place of each surrogate that lacks its other half."""
    if _HALF.search(text) is None:
        return text
    return _ESCAPE.sub(_repaired, text)


def _repaired(escape: re.Match[str]) -> str:
    found = escape.group()
    return r"\ufffd" if len(found) == 6 else found


def json_value(text: str) -> Any:
    """Decode JSON text inside an object, such as in an annotation.

    Raises ValueError, also for more than DEEPEST levels of nesting.
    """
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
