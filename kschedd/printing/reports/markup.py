"""Texts within Markdown and within XML 1.0."""

import re
from typing import Final


def cell(text: str) -> str:
    """Text within a table: nothing in it is markup."""
    for sign in "\\`*_[]<>|":
        text = text.replace(sign, f"\\{sign}" if sign not in "<>" else {"<": "&lt;", ">": "&gt;"}[sign])
    return " ".join(text.split())


_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(text: str) -> str:
    """The text with a mark in place of each character that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
