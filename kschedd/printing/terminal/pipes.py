"""Detection of a closed pipe at standard output."""

import io
import os
import select
import stat
from typing import IO


def pipe_of(stream: IO[str]) -> int | None:
    """Return the descriptor of a stream that is a pipe or socket; None for a file, a terminal, or no descriptor."""
    try:
        descriptor = stream.fileno()
    except io.UnsupportedOperation:
        return None
    mode = os.fstat(descriptor).st_mode
    return descriptor if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else None


def wait_until_unread(descriptor: int) -> None:
    """Block until the reading side closes the pipe."""
    poll = select.poll()
    poll.register(descriptor, 0)  # no event mask needed: POLLERR and POLLHUP are always reported
    poll.poll()
