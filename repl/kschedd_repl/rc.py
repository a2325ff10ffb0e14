"""The rc file: commands that run before the first prompt, such as macros and settings.

The file is `$XDG_CONFIG_HOME/kschedd/replrc`, by default `~/.config/kschedd/replrc`. Errors in the file are reported
with their line and do not prevent the session from starting. Scripts do not read it.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from kschedd_repl.script import Script, ScriptError, read_scripts


def rc_file(environment: Mapping[str, str]) -> Path:
    base = environment.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(base, "kschedd", "replrc")


def read_rc(path: Path) -> Script | None:
    """Return the lines of the file; None if the file does not exist. Raises ScriptError if the file cannot be read."""
    if not path.exists():
        return None
    if path.is_dir():
        raise ScriptError(str(path), "it is a directory")
    return read_scripts([str(path)], [])[0]
