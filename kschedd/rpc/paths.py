"""The path of the socket, and the security checks of its directory.

The default is `$KSCHEDD_SOCKET`, otherwise `kschedd/kschedd.sock` in `$XDG_RUNTIME_DIR`, otherwise `kschedd.sock` in
`kschedd-UID` under the directory for temporary files. All users can write to the directory for temporary files, so
`kschedd-UID` must belong to this user and must not be accessible to others. If other users could write to
`kschedd-UID`, they could impersonate the daemon.

This module accesses the file system, and does not import Trio.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from kschedd.access.addresses import SCHEME
from kschedd.rpc.errors import SocketPathError

SOCKET_NAME = "kschedd.sock"
VARIABLE = "KSCHEDD_SOCKET"


def default_socket_path() -> Path:
    """Return the default path of the socket, for the daemon and for clients.

    This function does not access the disk. Raises SocketPathError.
    """
    if given := os.environ.get(VARIABLE):
        if given.startswith(SCHEME):
            raise SocketPathError(given, f"${VARIABLE} is an address for clients; a daemon listens there with --listen")
        return Path(given)
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(runtime) / "kschedd" / SOCKET_NAME
    return Path(tempfile.gettempdir()) / f"kschedd-{os.getuid()}" / SOCKET_NAME


def is_own_directory(path: Path) -> bool:
    """Return whether kschedd chooses and creates the socket's directory, so that strict checks apply."""
    return not os.environ.get(VARIABLE) and path == default_socket_path()


def prepare_path(given: str | os.PathLike[str]) -> Path:
    """Return the absolute path on which the daemon should listen, in an existing directory.

    The directory is created with mode 0700 if it does not exist; it is checked if kschedd chose it
    (`is_own_directory`).

    A directory that the user chose is not changed, because the socket's mode 0600 protects it.
    Raises SocketPathError.
    """
    path = Path(given).absolute()
    check_length(path)
    directory = path.parent
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
        if is_own_directory(path):
            check_directory(path)
            # The umask restricts mkdir's mode, and an earlier version may have created the directory with a wider mode.
            directory.chmod(0o700)
    except OSError as error:
        raise SocketPathError(str(path), f"its directory cannot be created: {error.strerror}") from error
    return path


def check_directory(path: Path) -> None:
    """Raise SocketPathError if the directory exists but is not a directory, or if others can write to it."""
    directory = path.parent
    try:
        found = directory.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise SocketPathError(str(path), f"cannot read its directory: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode):
        raise SocketPathError(str(path), f"{directory} is not a directory; remove it, or set ${VARIABLE}")
    if found.st_uid != os.geteuid():
        raise SocketPathError(
            str(path),
            f"{directory} belongs to user {found.st_uid}, not to you ({os.geteuid()}); "
            f"give another path (--socket PATH or ${VARIABLE})",
        )
    if found.st_mode & 0o022:
        raise SocketPathError(
            str(path), f"others may write to {directory} (mode {found.st_mode & 0o777:04o}); chmod it to 0700"
        )


def check_length(path: Path) -> None:
    """Raise SocketPathError if the path exceeds the system's limit for a socket."""
    longest = 107
    size = len(os.fsencode(path))
    if size > longest:
        raise SocketPathError(str(path), f"{size} bytes long; a socket's path may have {longest}")


def path_to_connect(path: str | os.PathLike[str] | None) -> Path:
    """Return the path to connect to; if kschedd chose its directory, the directory is checked.

    Raises SocketPathError.
    """
    chosen = default_socket_path() if path is None else Path(path)
    check_length(chosen)
    if is_own_directory(chosen):
        check_directory(chosen)
    return chosen
