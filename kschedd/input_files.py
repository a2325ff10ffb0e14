"""Files that users name, opened without blocking.

Opening a named pipe blocks until a process writes to it, perhaps forever; a device may have no end.
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

_KINDS: Final = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


MANIFEST_SUFFIXES: Final = (".yaml", ".yml", ".json")


def manifest_files(path: Path) -> list[Path]:
    """Return the path of a file, or the sorted manifest files anywhere below a folder."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*") if file.suffix in MANIFEST_SUFFIXES and file.is_file())


def open_input(path: Path, *, pipes: bool) -> BinaryIO:
    """Open a file for reading; with `pipes`, a pipe is accepted, and the call waits until a process writes to it.

    Raises OSError, whose `strerror` contains the reason, also if the path is neither a file nor an accepted pipe.
    """
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "no file has a null character in its name")
    flags = os.O_RDONLY | os.O_CLOEXEC | (0 if pipes else os.O_NONBLOCK)
    descriptor = os.open(path, flags)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode) and not (pipes and stat.S_ISFIFO(mode)):
            kind = _KINDS.get(stat.S_IFMT(mode), "something else")
            raise OSError(errno.EINVAL, f"a file is expected, and this is {kind}")
        return open(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise
