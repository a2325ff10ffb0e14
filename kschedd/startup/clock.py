"""The clock with which a daemon starts: the machine's clock, or a clock that continues from its recorded time."""

from typing import Final

import structlog

from kschedd.actors.clock import REAL, VIRTUAL, Clock
from kschedd.api.text.times import stamp
from kschedd.startup.options import DaemonOptions
from kschedd.store.journal.clock_mark import ClockMark

log = structlog.get_logger("kschedd.clock")

EPOCH = 1_735_689_600.0  # 2025-01-01T00:00:00Z, the start of virtual time, as in simulations
_BEHIND_S: Final = 1.0


def started_clock(options: DaemonOptions, mark: ClockMark | None) -> Clock:
    """Return the clock for the options; any clock except the machine's continues from its recorded time.

    The cluster's time never goes back: if the machine's clock is behind the recorded time, real time continues from
    there. A warning is logged if the cluster's time differs from the requested time.
    """
    kept = None if mark is None else mark.read()
    if options.speed == REAL and options.start_s is None:
        clock = Clock.started()
        if kept is not None and clock.now() < kept - _BEHIND_S:
            log.warning("clock_behind", cluster_continues_at=stamp(kept), machine=stamp(clock.now()))
            clock.move_to(kept)
    else:
        first = EPOCH if options.start_s is None and options.speed == VIRTUAL else options.start_s
        clock = Clock.started(first if kept is None else kept, options.speed)
        if kept is not None and options.start_s is not None:
            log.warning("time_goes_on", at=stamp(kept), instead_of=stamp(options.start_s))
    if mark is not None:
        mark.write(clock.now())
    return clock
