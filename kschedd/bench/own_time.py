"""A clock that stops while other programs use the processor: latencies as on an otherwise idle machine.

Linux counts how long each thread was ready to run but waited for a processor (`/proc/PID/task/TID/schedstat`, second
number, in nanoseconds). A clock belongs to the thread that created it. Reading the clock takes about 5 µs. Waiting
times of other threads (such as the journal's) are not subtracted, so measured times may be too long but not too short.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Clock = Callable[[], float]

_SCHEDSTAT = Path("/proc/thread-self/schedstat")


@contextmanager
def own_time(schedstat: Path = _SCHEDSTAT, wall: Clock = time.perf_counter) -> Iterator[Clock]:
    """Yield a clock that counts the seconds in which this thread ran or slept.

    If the system does not count waiting times, yield the wall clock.
    """
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
