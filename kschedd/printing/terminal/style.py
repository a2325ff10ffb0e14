"""Terminal capabilities and style: color, Unicode, width and height.

Colors repeat information in the text: green means healthy, yellow pending, red failed.
"""

import os
from collections.abc import Mapping
from typing import Any

import attrs

CODES = {"green": "32", "yellow": "33", "red": "31", "cyan": "36", "dim": "2", "bold": "1"}
_PLAIN = str.maketrans({"→": "->", "…": "...", "●": "*", "✓": "+", "✗": "x", "·": "-", "│": "|", "─": "-"})


@attrs.frozen
class TerminalStyle:
    """The output style for one terminal or file."""

    color: bool = False
    unicode: bool = False
    width: int = 0  # number of columns; 0 if the output is not a terminal
    height: int = 0  # lines

    def paint(self, text: str, color: str) -> str:
        """Return `text` in this color, or unchanged if the color is ""."""
        return f"\x1b[{CODES[color]}m{text}\x1b[0m" if self.color and color and text else text

    def plain(self, text: str) -> str:
        """Return `text`; on a terminal without Unicode, kschedd's own non-ASCII characters are replaced by ASCII."""
        return text if self.unicode else text.translate(_PLAIN)


def style_of(stream: Any, environment: Mapping[str, str]) -> TerminalStyle:
    """Return the style for `stream`. $NO_COLOR and TERM=dumb disable color; $FORCE_COLOR enables it in pipes, too."""
    terminal = bool(getattr(stream, "isatty", lambda: False)())
    able = terminal and environment.get("TERM", "dumb") != "dumb"
    color = not environment.get("NO_COLOR") and (able or bool(environment.get("FORCE_COLOR")))
    encoding = (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "")
    width = height = 0
    if terminal:
        try:
            width, height = os.get_terminal_size(stream.fileno())
        except (OSError, ValueError, AttributeError):
            pass
    return TerminalStyle(color, terminal and encoding == "utf8" and not _is_ascii(environment), width, height)


def _is_ascii(environment: Mapping[str, str]) -> bool:
    """Return whether the locale is ASCII only. Python writes UTF-8 in the C locale.

    LC_CTYPE is ignored: Python may have set the locale to C.UTF-8 (PEP 538), although LANG is C.
    """
    chosen = environment.get("LC_ALL") or environment.get("LANG") or ""
    return chosen in ("C", "POSIX")


TONES: Mapping[str, str] = {
    **dict.fromkeys(
        ("Running", "Ready", "Active", "Bound", "True", "Succeeded", "Completed", "Complete", "Available"),
        "green",
    ),
    **dict.fromkeys(
        (
            "Pending",
            "SchedulingGated",
            "Terminating",
            "ContainerCreating",
            "Warning",
            "Unknown",
            "Released",
            "pending",
            "backoff",
            "unschedulable",
            "gated",
            "error_backoff",
            "pending_group",
            "incomplete_group",
        ),
        "yellow",
    ),
    **dict.fromkeys(("Failed", "Error", "NotReady", "Lost", "Evicted", "CrashLoopBackOff", "Unschedulable"), "red"),
    "UnschedulableAndUnresolvable": "red",
    "active": "green",
    "in_flight": "cyan",
}


def color_of(word: str) -> str:
    """Return the color of a status word in a table; "" for other words."""
    color = TONES.get(word)
    if color is not None:
        return color
    if ",SchedulingDisabled" in word or word.startswith(("OutOf", "Init:")):
        return "red" if word.startswith("OutOf") else "yellow"
    return ""
