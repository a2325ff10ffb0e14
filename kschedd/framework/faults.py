"""Errors of out-of-tree plugins, which name the plugin; and safe formatting of plugin values in messages.

A plugin's exceptions, strings and `repr`s are untrusted, so they are converted here to an exact `str` of limited length
that can be encoded.
"""

import re
from typing import Final

import attrs

from kschedd.errors import KscheddError

_LONGEST_TEXT: Final = 4000
_LONGEST_SHOWN: Final = 200


@attrs.define(eq=False)
class PluginError(KscheddError, rpc_code="plugin"):
    """A failure of an out-of-tree plugin: it raised, returned an invalid value, or did not return."""

    plugin: str
    method: str
    why: str

    def __str__(self) -> str:
        return f"plugin {self.plugin}: {self.why}" if self.plugin else self.why


@attrs.define(eq=False)
class PluginTimeout(PluginError, rpc_code="timeout"):
    """The error for a call that exceeded the time limit, or that was omitted because such a call is still running."""


class BadAnswer(Exception):
    """An invalid value returned by a plugin; the message contains the actual and the required value."""


def plain_text(text: str) -> str:
    """Return the text as an exact `str` of limited length that is valid UTF-8."""
    whole = str.encode(text, "utf-8", "backslashreplace").decode()
    return whole if len(whole) <= _LONGEST_TEXT else f"{whole[:_LONGEST_TEXT]}..."


def shown(value: object) -> str:
    """Return the value's repr for a message, truncated if long; the name of its type if the repr fails."""
    try:
        # memory addresses differ from run to run, but messages must be reproducible
        text = re.sub(r" at 0x[0-9a-f]+", "", plain_text(repr(value)))
    except BaseException:  # the repr runs plugin code
        text = f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
