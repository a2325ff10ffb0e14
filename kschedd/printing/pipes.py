"""Standard output that leads to another program, and whether that program still reads it."""

import io
import os
import select
import stat
from typing import IO


def pipe_of(stream: IO[str]) -> int | None:
    """The descriptor of a stream that leads to another program; None for a file, a terminal, no descriptor."""
    try:
        descriptor = stream.fileno()
    except io.UnsupportedOperation:
        return None
    mode = os.fstat(descriptor).st_mode
    return descriptor if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else None


def wait_until_unread(descriptor: int) -> None:
    """Wait until nobody reads what is written there any more."""
    poll = select.poll()
    poll.register(descriptor, 0)  # that its reader is gone is reported in any case
    poll.poll()
