"""Text within XML 1.0."""

import re
from typing import Final

_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(text: str) -> str:
    """The text with a mark in place of each character that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
