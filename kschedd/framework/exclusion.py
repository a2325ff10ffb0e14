"""SchedulerLock: exclusive access to the scheduler's state, for configurations with out-of-tree plugins.

Without out-of-tree plugins, one thread does all work and needs no lock. With out-of-tree plugins, each step of the
scheduling actor runs in a thread that holds the lock. While a step of an attempt waits for a plugin, it releases the
lock (`passed_on`), so that queries and bindings continue. If a plugin calls a function that changes the state, the
function takes the lock first (`GuardedCall`).

A thread-local variable records the lock that the thread holds or must take.

Invariant: a thread that may release the lock has taken it only once, so that one release is enough.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_this_thread = threading.local()


class SchedulerLock:
    """Exclusive access to the state of one scheduler."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    @contextmanager
    def held(self, *, passes_on: bool = False) -> Iterator[None]:
        """Hold the lock. With `passes_on`, release the lock while waiting for a plugin."""
        with self._lock, _known(self, holds=True, passes_on=passes_on):
            yield

    @contextmanager
    def known(self) -> Iterator[None]:
        """Mark plugin calls from this thread as concurrent with the scheduler; before a change, they take the lock."""
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
    """Return the lock that a plugin called from this thread must take before a change.

    Return None if this thread holds the lock, or if there is no lock.
    """
    known: tuple[SchedulerLock, bool, bool] | None = getattr(_this_thread, "lock", None)
    if known is None:
        return None
    lock, holds, passes_on = known
    return lock if passes_on or not holds else None


@contextmanager
def passed_on() -> Iterator[None]:
    """Release the lock while this thread waits for a plugin, if the current step may release it."""
    known: tuple[SchedulerLock, bool, bool] | None = getattr(_this_thread, "lock", None)
    if known is None or not known[2]:
        yield
        return
    with known[0].let_go():
        yield
