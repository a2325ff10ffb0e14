"""A text of manifests in parts that fit into requests, cut where one document ends and the next begins.

Reads no YAML: what stands between two lines of `---` is left as it is. Owns nothing.
"""

import re
from collections.abc import Iterator
from typing import Final

SEPARATOR: Final = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)


def portions(text: str, most: int) -> Iterator[tuple[str, int]]:
    """The text in parts of whole documents that take `most` bytes each, and after how many lines of it each begins.

    A document that is longer is a part by itself.
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
