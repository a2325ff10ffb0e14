"""The threads in which actors work, apart from those of clients and of plugins that may hang.

They are counted by a limiter of their own, one for each Trio run, so that it can be told whether any actor is at work.
"""

from collections.abc import Callable
from typing import Final, TypeVar

import trio

from kschedd.threads import in_thread

T = TypeVar("T")

_MOST: Final = 40  # as Trio's default
_LIMITER: Final = trio.lowlevel.RunVar[trio.CapacityLimiter]("threads of actors")


def actor_threads() -> trio.CapacityLimiter:
    """The limiter of this run."""
    try:
        return _LIMITER.get()
    except LookupError:
        limiter = trio.CapacityLimiter(_MOST)
        _LIMITER.set(limiter)
        return limiter


async def in_actor_thread(work: Callable[[], T], *, abandon_on_cancel: bool = False) -> T:
    """Do this in a thread that counts as an actor's work."""
    return await in_thread(work, abandon_on_cancel=abandon_on_cancel, limiter=actor_threads())
