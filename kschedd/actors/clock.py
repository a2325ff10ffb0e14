"""The daemon's time: seconds since the epoch, as in API objects, advanced by Trio's clock and therefore monotonic.

Setting the machine's clock while the daemon runs has no effect here. Under Trio's mock clock it is mock time.
Created within a Trio run; to be read from its tasks only, not from worker threads.
"""

import math
import time
from typing import Self

import attrs
import trio

from kschedd.queue.entry import SECOND


@attrs.frozen(eq=False)
class Clock:
    _epoch_s: float  # the time since the epoch at `_origin`
    _origin: float  # on Trio's clock

    @classmethod
    def started(cls, epoch_s: float | None = None) -> Self:
        """A clock that starts at `epoch_s` (None: the machine's time)."""
        return cls(time.time() if epoch_s is None else epoch_s, trio.current_time())

    def now(self) -> float:
        return self._epoch_s + trio.current_time() - self._origin

    def now_ns(self) -> int:
        return round(self.now() * SECOND)

    def deadline(self, at_s: float | None) -> float:
        """A time of this clock as a Trio deadline; None means never."""
        return math.inf if at_s is None else self._origin + at_s - self._epoch_s
