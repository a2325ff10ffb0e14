"""The user's editor, run in this terminal."""

import os
import shlex
import subprocess
from pathlib import Path

from kschedd.verbs.command_line.grammar import UsageError


def open_editor(file: Path) -> int:
    """Run the editor in $KUBE_EDITOR, or else in $EDITOR, or else vi.

    Returns its exit status. Raises UsageError if the editor cannot be started.
    """
    chosen = next((os.environ[name] for name in ("KUBE_EDITOR", "EDITOR") if os.environ.get(name)), "vi")
    try:
        return subprocess.run([*shlex.split(chosen), str(file)], check=False).returncode
    except (OSError, ValueError) as wrong:
        why = f"unable to launch the editor {chosen!r}: {wrong}; set $EDITOR to yours"
        raise UsageError(why) from wrong
