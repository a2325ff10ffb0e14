"""Splitting of manifests into portions of whole documents that fit into requests.

The YAML is not parsed, and the text between two lines of `---` is not changed. Owns nothing.
"""

import re
from collections.abc import Iterator
from typing import Final

SEPARATOR: Final = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)


def portions(text: str, most: int) -> Iterator[tuple[str, int]]:
    """Yield the text in portions of whole documents of at most `most` bytes, each with the number of lines before it.

    A document of more than `most` bytes is a portion by itself.
    """
    start = line = 0
    held = 0
    cut = 0
    for end in [*(match.start() for match in SEPARATOR.finditer(text)), len(text)]:
        size = len(text[cut:end].encode("utf-8", "replace"))
        if held and held + size > most:
            yield text[start:cut], line
            line += text.count("\n", start, cut)
            start, held = cut, 0
        held += size
        cut = end
    yield text[start:], line
