"""What can go wrong with an out-of-tree plugin, as errors that name it; and how its own values are put into messages.

A plugin's exceptions, texts and `repr`s are code or input of the plugin's author: what is made of them here is an exact
`str` of bounded length that can be encoded.
"""

import re
from typing import ClassVar, Final

import attrs

from kschedd.errors import KscheddError

_LONGEST_TEXT: Final = 4000
_LONGEST_SHOWN: Final = 200


@attrs.define(eq=False)
class PluginError(KscheddError):
    """An out-of-tree plugin raised, returned what it must not, or did not return."""

    plugin: str
    method: str
    why: str
    rpc_code: ClassVar[str] = "plugin"

    def __str__(self) -> str:
        return f"plugin {self.plugin}: {self.why}" if self.plugin else self.why


@attrs.define(eq=False)
class PluginTimeout(PluginError):
    """A call that was given up, or was not made because an earlier one still runs."""

    rpc_code: ClassVar[str] = "timeout"


class BadAnswer(Exception):
    """What a plugin returned is not what the method has to return; the text says both."""


def plain_text(text: str) -> str:
    """The text as an exact `str` of bounded length that can be encoded."""
    whole = str.encode(text, "utf-8", "backslashreplace").decode()
    return whole if len(whole) <= _LONGEST_TEXT else f"{whole[:_LONGEST_TEXT]}..."


def shown(value: object) -> str:
    """A value in a message: its repr if it has one, and not all of a long one."""
    try:
        # Where an object lies in memory is another place each time.
        text = re.sub(r" at 0x[0-9a-f]+", "", plain_text(repr(value)))
    except BaseException:  # a repr is the plugin's code
        text = f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
