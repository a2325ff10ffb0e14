"""The threads of actors. Threads for clients, and for plugins that may hang, are separate.

Each Trio run has a separate limiter that counts these threads. The count shows whether any actor is at work outside of
the event loop: in a thread, or waiting for another process.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import attrs
import trio

from kschedd.threads import in_thread

T = TypeVar("T")

_MOST: Final = 40  # Trio's default


@attrs.define(eq=False)
class _Elsewhere:
    """The worker threads for the actors of one Trio run."""

    threads: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(_MOST))
    waiting: int = 0  # number of waits for other processes


_ELSEWHERE: Final = trio.lowlevel.RunVar[_Elsewhere]("work of actors outside the event loop")


def _elsewhere() -> _Elsewhere:
    try:
        return _ELSEWHERE.get()
    except LookupError:
        ours = _Elsewhere()
        _ELSEWHERE.set(ours)
        return ours


def any_at_work() -> bool:
    """Return whether an actor waits for a thread or another process."""
    ours = _elsewhere()
    return bool(ours.threads.borrowed_tokens or ours.waiting)


async def in_actor_thread(work: Callable[[], T], *, abandon_on_cancel: bool = False) -> T:
    """Run work in a thread that is counted as an actor's work."""
    return await in_thread(work, abandon_on_cancel=abandon_on_cancel, limiter=_elsewhere().threads)


@contextmanager
def at_work() -> Iterator[None]:
    """Count an actor as at work while it waits for another process."""
    ours = _elsewhere()
    ours.waiting += 1
    try:
        yield
    finally:
        ours.waiting -= 1
