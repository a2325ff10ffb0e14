"""Escaping of text for Markdown and XML 1.0."""

import re
from typing import Final


def cell(text: str) -> str:
    """Return the text for a table cell, with all markup escaped."""
    for sign in "\\`*_[]<>|":
        text = text.replace(sign, f"\\{sign}" if sign not in "<>" else {"<": "&lt;", ">": "&gt;"}[sign])
    return " ".join(text.split())


_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(text: str) -> str:
    """Return the text with a replacement character for each character that XML forbids."""
    return _NOT_XML.sub("\ufffd", text)
