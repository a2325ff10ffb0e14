"""Notes, warnings and errors of commands that have no session, in the form that verbs use, on standard error."""

import os
import sys

from kschedd.printing.terminal.safe import safe
from kschedd.printing.terminal.style import style_of
from kschedd.printing.terminal.tables import flowing


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
