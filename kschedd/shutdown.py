"""Signals that stop the daemon, and the deadline of a stop.

SIGTERM, SIGINT and a closed terminal (SIGHUP, except under nohup) stop the daemon gracefully. A second signal stops it
immediately, and cancels requests in progress. A SIGHUP while the terminal is open, or without a terminal, reloads the
daemon's files instead.

A graceful stop may take long if a plugin or a disk hangs, because a thread or a blocked event loop cannot be stopped.
Each signal, and `daemon.stop`, therefore sets a deadline after which the process exits immediately, with the tracebacks
of all threads on standard error; all acknowledged writes are in the journal by then. A thread that does not run Python
code enforces the deadline (`faulthandler`), so the deadline also applies while Python code hangs.

Owns: the handlers of these signals while they are `heeded`. Ends: with the context, which restores the previous
handlers.
"""

import faulthandler
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

import trio

ORDERLY_S: Final = 20.0
"""Beyond the grace period: for bindings under way, the limits of plugins, and the journal."""
AT_ONCE_S: Final = 3.0

_STANDARD_ERROR: Final = 2


def end_within(seconds: float) -> None:
    """Exit with status 1 after this time, unless the deadline is removed or set again."""
    faulthandler.dump_traceback_later(seconds, exit=True, file=_STANDARD_ERROR)


def lift_deadline() -> None:
    faulthandler.cancel_dump_traceback_later()


@contextmanager
def heeded(notify: Callable[[signal.Signals, int], None], reload: Callable[[], None]) -> Iterator[None]:
    """In the Trio run, call `notify` for each terminating signal, with their number so far, and `reload` for a SIGHUP.

    The signal handler itself sets the deadlines: it runs as soon as any Python code runs, even if the event loop is
    blocked.
    """
    loop = trio.lowlevel.current_trio_token()
    terminal = _terminal()
    count = 0

    def handle(number: int, _frame: FrameType | None) -> None:
        nonlocal count
        if number == signal.SIGHUP and not _gone(terminal):
            with suppress(trio.RunFinishedError):
                loop.run_sync_soon(reload)
            return
        count += 1
        end_within(AT_ONCE_S if count > 1 else ORDERLY_S)
        try:
            loop.run_sync_soon(notify, signal.Signals(number), count)
        except trio.RunFinishedError:
            end_within(AT_ONCE_S)  # Trio has ended, but something prevents the process from exiting

    heeded = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        heeded.append(signal.SIGHUP)
    before = {number: signal.signal(number, handle) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if terminal is not None:
            os.close(terminal)


def _terminal() -> int | None:
    """Return the controlling terminal, which stays open so that its end is noticed; None without a terminal."""
    try:
        return os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None


def _gone(terminal: int | None) -> bool:
    if terminal is None:
        return False
    try:
        os.tcgetpgrp(terminal)
    except OSError:
        return True
    return False
