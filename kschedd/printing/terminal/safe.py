"""Sanitizing of text for the terminal: no control sequences, no bidirectional control characters.

Names, labels and messages are untrusted input. Control characters (C0 except line feed and tab, DEL, C1) and
bidirectional controls are printed as visible escapes. In JSON and YAML, whose content must not change, these characters
are printed as escapes of the format.
"""

import re
from typing import Final

from kschedd.printing.terminal.style import CODES

_LONGEST_PART: Final = 200  # characters
_UNSAFE: Final = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
_COMMANDS: Final = re.compile(_UNSAFE)
_OURS: Final = "|".join(sorted({"0", *CODES.values()}))
_COMMANDS_BUT_OURS: Final = re.compile(f"(\x1b\\[(?:{_OURS})m)|({_UNSAFE})")


def safe(text: str, *, color: bool = False) -> str:
    """Return `text` without unsafe characters; with `color`, the color codes of `style` remain."""
    if _COMMANDS.search(text) is None:
        return text
    if color:
        return _COMMANDS_BUT_OURS.sub(lambda found: found[1] or _readable(found[2]), text)
    return _COMMANDS.sub(lambda found: _readable(found[0]), text)


def brief(text: str) -> str:
    """Return `text` for use in a message, truncated if it is long."""
    return text if len(text) <= _LONGEST_PART else f"{text[:_LONGEST_PART]}..."


def exact(document: str) -> str:
    """Return JSON, or YAML with unsafe strings double-quoted, without unsafe characters and with equal content."""
    return _COMMANDS.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def has_commands(text: str) -> bool:
    return _COMMANDS.search(text) is not None


def _readable(char: str) -> str:
    return char.encode("unicode_escape").decode()
