"""The cluster's time in seconds since the epoch, as in API objects. It never goes back.

The clock runs at the speed of real time or N times as fast; with `speed` 0 (virtual time) it only moves on request.
Real time is Trio's clock, so setting the machine's clock while the daemon runs has no effect. With Trio's mock clock,
real time is mock time. Tasks wait for a cluster time with `move_on_at`, which respects changes of the clock. Waits that
do not depend on cluster time (sockets, disks, limits of plugins and extenders) use Trio's deadlines.

Create the clock within a Trio run; only tasks of this run may use it.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Self

import attrs
import trio

from kschedd.queue.entry import SECOND

REAL: Final = 1.0  # as fast as real time
VIRTUAL: Final = 0.0  # speed at which time only moves on request


@attrs.define(eq=False)
class Clock:
    _base_s: float  # cluster time (since the epoch) at `_origin`
    _origin: float  # on Trio's clock
    speed: float = attrs.field(default=REAL, kw_only=True)  # cluster seconds per real second; `set_speed` changes it
    # the machine's time (since the epoch) when Trio's clock was 0; None: the clock is compared with no machine
    _machine_s: float | None = attrs.field(default=None, kw_only=True)
    _waits: dict[trio.CancelScope, float] = attrs.field(factory=dict, init=False)  # the end of each wait
    # used because it is faster than `trio.current_time`; the time is read about five times per pod
    _trio_s: Callable[[], float] = attrs.field(factory=lambda: trio.lowlevel.current_clock().current_time, init=False)

    @classmethod
    def started(cls, epoch_s: float | None = None, speed: float = REAL) -> Self:
        """Return a clock that starts at `epoch_s` (None means the machine's time)."""
        machine_s, trio_s = time.time(), trio.current_time()
        return cls(machine_s if epoch_s is None else epoch_s, trio_s, speed=speed, machine_s=machine_s - trio_s)

    @property
    def is_virtual(self) -> bool:
        """True if the time only moves on request."""
        return self.speed == VIRTUAL

    def now(self) -> float:
        return self._base_s + (self._trio_s() - self._origin) * self.speed

    @property
    def ahead_s(self) -> int:
        """Seconds by which real time is ahead of the machine's clock; 0 for virtual and faster time."""
        if self.speed != REAL or self._machine_s is None:
            return 0
        return max(0, round(self._base_s - self._origin - self._machine_s))

    def now_ns(self) -> int:
        return round(self.now() * SECOND)

    def deadline(self, at_s: float | None) -> float:
        """Return a cluster time as a Trio deadline, valid until the clock is changed; None means never."""
        if at_s is None or at_s == math.inf:
            return math.inf
        if self.speed == REAL:
            return self._origin + at_s - self._base_s
        if self.speed == VIRTUAL:
            return math.inf if at_s > self._base_s else -math.inf
        # add one float step, so that a rounding error cannot leave `now` before `at_s` after the deadline
        return self._origin + (at_s + math.ulp(at_s) - self._base_s) / self.speed

    @contextmanager
    def move_on_at(self, at_s: float | None) -> Iterator[trio.CancelScope]:
        """Cancel the body when the cluster's time reaches `at_s`; with None, never cancel it."""
        with trio.CancelScope(deadline=self.deadline(at_s)) as scope:
            if at_s is None or at_s == math.inf:
                yield scope
                return
            self._waits[scope] = at_s
            try:
                yield scope
            finally:
                del self._waits[scope]

    def next_deadline(self) -> float | None:
        """Return the earliest future time for which a task waits, or None."""
        now = self.now()
        return min((at_s for at_s in self._waits.values() if at_s > now), default=None)

    def set_speed(self, speed: float) -> None:
        """Set the speed at which time passes; with 0, it only moves on request."""
        assert speed >= 0, "time does not go back"
        self._base_s, self._origin, self.speed = self.now(), trio.current_time(), speed
        self._rearm()

    def move_to(self, at_s: float) -> None:
        """Move the time forward to `at_s`, unless the time is already later."""
        self._base_s, self._origin = max(self.now(), at_s), trio.current_time()
        self._rearm()

    def _rearm(self) -> None:
        for scope, at_s in self._waits.items():
            scope.deadline = self.deadline(at_s)
