"""JSON texts from outside, before they are decoded.

JSON can write half of a surrogate pair, `"\\ud800"`. Python decodes it to a character that no encoder takes afterwards:
neither the journal, nor the socket, nor a terminal. Go's decoder has U+FFFD in its place, and so have we.
"""

import re
from typing import Final

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
