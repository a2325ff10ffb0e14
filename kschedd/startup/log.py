"""The daemon's log: structured lines on standard error, by level."""

import logging
import os
import select
import sys
from collections.abc import Callable
from time import monotonic
from typing import Final

import structlog

from kschedd.printing.terminal.safe import safe

_ACCEPTING: Final = "trio.serve_listeners"  # Trio's logger
_QUIET_S: Final = 60.0


class LogOutput:
    """Standard error, looked up at each write; writing never waits for a reader.

    If standard error is a full pipe, lines are dropped, because waiting would block the daemon. The number of dropped
    lines is written when the pipe has room again. A write error ends the log: the daemon continues without it.
    """

    def __init__(self) -> None:
        self._dropped = 0

    def write(self, text: str) -> None:
        text = safe(text, color=sys.stderr.isatty())
        try:
            descriptor = sys.stderr.fileno()
        except (OSError, ValueError):  # not a file
            sys.stderr.write(text)
            return
        try:
            if self._dropped and _has_room(descriptor):
                dropped, self._dropped = self._dropped, 0
                os.write(descriptor, f"{dropped} log writes were dropped: standard error was not read\n".encode())
            self._dropped += not _written(descriptor, text.encode("utf-8", "backslashreplace"))
        except OSError:
            self._give_up()

    def flush(self) -> None:
        try:
            sys.stderr.flush()
        except OSError:
            self._give_up()

    def _give_up(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stderr.fileno())
        os.close(nowhere)


def _written(descriptor: int, data: bytes) -> bool:
    """Write as much as the pipe has room for; return whether everything was written."""
    view = memoryview(data)
    while view:
        if not _has_room(descriptor):
            return False
        try:
            view = view[os.write(descriptor, view[: select.PIPE_BUF]) :]
        except BlockingIOError:
            return False
    return True


def _has_room(descriptor: int) -> bool:
    """Return whether PIPE_BUF bytes can be written without waiting; always True for a file and after an error."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(0))


class NotAccepting(logging.Handler):
    """A handler for Trio's messages about connections that cannot be accepted because file descriptors are exhausted.

    The handler logs at most one line per minute; Trio would write ten tracebacks per second for each listener.
    """

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._now = now
        self._quiet_until = float("-inf")

    def emit(self, record: logging.LogRecord) -> None:
        now = self._now()
        if now >= self._quiet_until:
            self._quiet_until = now + _QUIET_S
            structlog.get_logger("kschedd").error("connections_wait", why=record.getMessage())


def configure_log(level: str) -> None:
    """Log structured lines of this level and above to standard error."""
    accepting = logging.getLogger(_ACCEPTING)
    accepting.handlers, accepting.propagate = [NotAccepting()], False
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            # Local variables of the frames are omitted, because formatting them would take seconds and thousands of
            # lines.
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            ),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(LogOutput()),  # type: ignore[arg-type]  # uses no other methods
        cache_logger_on_first_use=False,
    )
