"""The clock that a daemon starts with: the machine's, or one that goes on from its mark."""

from kschedd.actors.clock import REAL, VIRTUAL, Clock
from kschedd.startup.options import DaemonOptions
from kschedd.store.clock_mark import ClockMark

EPOCH = 1_735_689_600.0  # 2025-01-01T00:00:00Z: the start of virtual time, as in simulations


def started_clock(options: DaemonOptions, mark: ClockMark | None) -> Clock:
    """The clock that the options ask for; one that is not the machine's goes on from its mark."""
    if options.speed == REAL and options.start_s is None:
        return Clock.started()
    kept = None if mark is None else mark.read()
    first = EPOCH if options.start_s is None and options.speed == VIRTUAL else options.start_s
    clock = Clock.started(first if kept is None else kept, options.speed)
    if mark is not None:
        mark.write(clock.now())
    return clock
