"""The file of the daemon's Unix socket: only this user can connect to the socket, and the file is removed at the end.

If two daemons start at the same time, neither may treat the other's socket as stale. The socket is therefore checked,
removed and bound under a lock on the directory, which needs no lock file. The mode is set between bind and listen,
because clients can connect only after listen.

Owns: the socket file, inside the context.  Ends: with the context.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from kschedd.rpc.errors import DaemonRunningError, SocketPathError
from kschedd.rpc.paths import prepare_path

_BACKLOG = 1024  # maximum length of the backlog, which the kernel limits to net.core.somaxconn
_AT_ONCE = 32  # number of connections accepted before other tasks run
#: maximum wait in seconds for another daemon that is starting in the same directory
_LOCK_PATIENCE_S = 5.0


@asynccontextmanager
async def unix_listener(path: str | os.PathLike[str]) -> AsyncIterator[EagerListener]:
    """Open a listener on a socket file that exists inside the context.

    Raises DaemonRunningError if a daemon already answers at the path, and SocketPathError if the path cannot be used.
    """
    where = prepare_path(path)
    bound, made = await _bind(where)
    try:
        async with EagerListener(bound) as listener:
            yield listener
    finally:
        _remove_if_still(where, made)


class EagerListener(trio.abc.Listener[trio.SocketStream]):
    """A listener that accepts all waiting connections in one iteration of the event loop.

    Trio's listener accepts only one connection per iteration. If many connections arrive while the event loop is busy,
    the backlog would fill up, and the kernel would reject non-blocking clients.
    """

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._accepted: deque[socket.socket] = deque()

    async def accept(self) -> trio.SocketStream:
        while not self._accepted:
            await trio.lowlevel.wait_readable(self._listening)
            self._take()
        return trio.SocketStream(trio.socket.from_stdlib_socket(self._accepted.popleft()))

    def _take(self) -> None:
        try:
            while len(self._accepted) < _AT_ONCE:
                accepted, _ = self._listening.accept()
                accepted.setblocking(False)
                self._accepted.append(accepted)
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError:
            if not self._accepted:  # too many open files, after which trio.serve_listeners waits and retries
                raise

    async def aclose(self) -> None:
        trio.lowlevel.notify_closing(self._listening)
        self._listening.close()
        while self._accepted:
            self._accepted.popleft().close()
        await trio.lowlevel.checkpoint()


async def _bind(path: Path) -> tuple[socket.socket, os.stat_result]:
    try:
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise SocketPathError(str(path), f"its directory cannot be read: {error.strerror}") from error
    try:
        await _lock(directory, path)
        _clear_stale(path)
        return _listen(path)
    finally:
        os.close(directory)  # releases the lock


def _listen(path: Path) -> tuple[socket.socket, os.stat_result]:
    """Return the listening socket and the stat of its file, by which the file is recognized when it is removed."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.setblocking(False)
        listening.bind(os.fspath(path))
        made = path.lstat()
        path.chmod(0o600)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise SocketPathError(str(path), f"cannot listen there: {error.strerror}") from error
    return listening, made


async def _lock(directory: int, path: Path) -> None:
    with trio.move_on_after(_LOCK_PATIENCE_S):
        while True:
            try:
                fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                # poll the lock, because waiting for it would need a thread, and contention is rare
                await trio.sleep(0.05)
            except OSError as error:
                # some network file systems have no locks, so a race between two starting daemons remains
                if error.errno in (errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL):
                    return
                raise SocketPathError(str(path), f"cannot lock its directory: {error.strerror}") from error
    message = f"{path.parent} has been locked for {_LOCK_PATIENCE_S:g} s by another process; try again"
    raise SocketPathError(str(path), message)


def _clear_stale(path: Path) -> None:
    """Remove a socket file on which no process listens. Raises an error for any other file."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise SocketPathError(str(path), f"cannot look at it: {error.strerror}") from error
    if not stat.S_ISSOCK(found.st_mode):
        raise SocketPathError(str(path), "a file that is not a socket exists there; move it or use another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        # use a non-blocking socket, because connecting to a suspended daemon (SIGSTOP) with a full backlog would block
        probe.setblocking(False)
        try:
            probe.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            pass
        except BlockingIOError:
            raise DaemonRunningError(str(path)) from None
        except OSError as error:
            raise SocketPathError(str(path), f"cannot tell whether a daemon runs: {error.strerror}") from error
        else:
            raise DaemonRunningError(str(path))
    path.unlink(missing_ok=True)


def _remove_if_still(path: Path, made: os.stat_result) -> None:
    try:
        now = path.lstat()
    except OSError:
        return
    if (now.st_dev, now.st_ino) == (made.st_dev, made.st_ino):
        path.unlink(missing_ok=True)
