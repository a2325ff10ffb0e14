"""Output of commands that have no session: notes, warnings and errors in the form of verbs, and wrapped text."""

import os
import sys
from typing import Final

from kschedd.printing.terminal.safe import safe
from kschedd.printing.terminal.style import style_of
from kschedd.printing.terminal.tables import flowing

_PROGRAMS: Final = ("kubectl ", "kschedd ")


def note(text: str) -> None:
    """Write what was assumed about the input, or another fact beside the output."""
    _write("Note:", "cyan", text)


def warn(text: str) -> None:
    _write("Warning:", "yellow", text)


def report_error(text: str) -> None:
    _write("error:", "red", text)


def _write(label: str, color: str, text: str) -> None:
    """Write the text after its label, wrapped at the width of the terminal."""
    style = style_of(sys.stderr, os.environ)
    print(safe(flowing(f"{style.paint(label, color)} {text}", style), color=style.color), file=sys.stderr)


def show(text: str) -> None:
    """Write text to standard output, wrapped at the width of the terminal, without breaking lines of commands."""
    style = style_of(sys.stdout, os.environ)
    lines, within = [], ""  # the end of the text that a command reads, while its lines are written
    for line in text.splitlines(keepends=True):
        words = line.strip()
        is_command = bool(within) or words.startswith(_PROGRAMS)
        lines.append(line if is_command else flowing(line, style))
        if within:
            within = "" if words == within else within
        elif is_command and "<<" in words:
            within = words.rpartition("<<")[2].strip("'")
    sys.stdout.write(safe("".join(lines)))
