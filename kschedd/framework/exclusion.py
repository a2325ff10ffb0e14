"""SchedulerLock: who works on the scheduler's state, where out-of-tree plugins make that more than one thread.

Without out-of-tree plugins one thread does everything, and nobody takes the lock. With them, each step of the
scheduling actor runs in a thread that holds it. A step of an attempt passes it on (`passed_on`) while it waits for a
plugin, so that questions are answered and bindings go on meanwhile; whatever is called by a plugin and would change the
state takes it first (`GuardedCall`).

A thread knows by `current` which lock it holds or, if it holds none, which one is to be taken.

Invariant: a thread that holds the lock and passes it on holds it once, so that passing on lets others in.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_this_thread = threading.local()


class SchedulerLock:
    """Exclusive use of the state of one scheduler."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    @contextmanager
    def held(self, *, passes_on: bool = False) -> Iterator[None]:
        """Hold it; with `passes_on` except while waiting for a plugin."""
        with self._lock, _known(self, holds=True, passes_on=passes_on):
            yield

    @contextmanager
    def known(self) -> Iterator[None]:
        """Plugins that this thread calls run beside the scheduler, and take the lock where they need it."""
        with _known(self, holds=False, passes_on=False):
            yield

    @contextmanager
    def taken(self) -> Iterator[None]:
        with self._lock:
            yield

    @contextmanager
    def let_go(self) -> Iterator[None]:
        self._lock.release()
        try:
            yield
        finally:
            self._lock.acquire()


@contextmanager
def _known(lock: SchedulerLock, *, holds: bool, passes_on: bool) -> Iterator[None]:
    before = getattr(_this_thread, "lock", None)
    _this_thread.lock = lock, holds, passes_on
    try:
        yield
    finally:
        _this_thread.lock = before


def to_be_taken() -> SchedulerLock | None:
    """The lock that a plugin called from this thread must take to change anything; None: this thread holds it for it,
    or there is none."""
    known: tuple[SchedulerLock, bool, bool] | None = getattr(_this_thread, "lock", None)
    if known is None:
        return None
    lock, holds, passes_on = known
    return lock if passes_on or not holds else None


@contextmanager
def passed_on() -> Iterator[None]:
    """While this thread waits for a plugin: let others in, if it is a step that may."""
    known: tuple[SchedulerLock, bool, bool] | None = getattr(_this_thread, "lock", None)
    if known is None or not known[2]:
        yield
        return
    with known[0].let_go():
        yield
