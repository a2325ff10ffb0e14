"""What may go to a terminal: text in which nothing is a command to it, or turns the reading direction round.

Names, labels and messages come from anybody. Control characters (C0 but line ends and tabs, DEL, C1) and marks of
direction are written as escapes that can be read. Where the content has to stay exact, in JSON and YAML, they are
written in the escapes of these formats instead.
"""

import re
from typing import Final

from kschedd.printing.look import CODES

_UNSAFE: Final = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
_COMMANDS: Final = re.compile(_UNSAFE)
_OURS: Final = "|".join(sorted({"0", *CODES.values()}))
_COMMANDS_BUT_OURS: Final = re.compile(f"(\x1b\\[(?:{_OURS})m)|({_UNSAFE})")


def safe(text: str, *, colour: bool = False) -> str:
    """`text` as it may be written; with `colour`, tones of ours in it stay what they are."""
    if _COMMANDS.search(text) is None:
        return text
    if colour:
        return _COMMANDS_BUT_OURS.sub(lambda found: found[1] or _readable(found[2]), text)
    return _COMMANDS.sub(lambda found: _readable(found[0]), text)


def exact(document: str) -> str:
    """A JSON document, or a YAML one whose unsafe texts are in double quotes, without changing what it says."""
    return _COMMANDS.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def has_commands(text: str) -> bool:
    return _COMMANDS.search(text) is not None


def _readable(char: str) -> str:
    return char.encode("unicode_escape").decode()
