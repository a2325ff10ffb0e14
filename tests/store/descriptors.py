"""The files that the process of a test has open.

A count of all descriptors would say nothing: the garbage collector may close those of an earlier test at any moment.
"""

import os
from contextlib import suppress
from pathlib import Path


def open_files(folder: Path) -> list[str]:
    """Return the name of what is open in this folder, and of the folder itself, sorted; one for each descriptor."""
    targets = []
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the one that lists them is closed already
            targets.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
    return sorted(each.name for each in targets if each.is_relative_to(folder))
