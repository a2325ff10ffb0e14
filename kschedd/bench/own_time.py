"""A clock that stands still while other programs have the processor: what a latency would be on a quiet machine.

Linux counts how long each thread was ready to run and had to wait for a processor (`/proc/PID/task/TID/schedstat`, its
second number, in nanoseconds). A clock is of the thread that made it, and asking it costs about 5 us. Waiting of other
threads (the journal's) is not taken off: what is measured is rather too long than too short.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Clock = Callable[[], float]

_SCHEDSTAT = Path("/proc/thread-self/schedstat")


@contextmanager
def own_time(schedstat: Path = _SCHEDSTAT, wall: Clock = time.perf_counter) -> Iterator[Clock]:
    """Seconds in which this thread ran or slept; the wall's where the system does not count its waiting."""
    try:
        counts = schedstat.open("rb", buffering=0)
    except OSError:
        yield wall
        return

    def now() -> float:
        counts.seek(0)
        return wall() - int(counts.read(64).split()[1]) / 1e9

    with counts:
        yield now
