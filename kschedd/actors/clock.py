"""The daemon's time: seconds since the epoch as API objects write them, going on with Trio's clock and so never back.

Setting the machine's clock while the daemon runs changes nothing here. Under Trio's mock clock it is mock time.
Made within a Trio run; read from its tasks only, not from worker threads.
"""

import math
import time
from typing import Self

import attrs
import trio

from kschedd.queue.entry import SECOND


@attrs.frozen(eq=False)
class Clock:
    _epoch_s: float  # what the time was
    _origin: float  # when Trio's clock said this

    @classmethod
    def started(cls, epoch_s: float | None = None) -> Self:
        """A clock that says `epoch_s` (None: the machine's time) now."""
        return cls(time.time() if epoch_s is None else epoch_s, trio.current_time())

    def now(self) -> float:
        return self._epoch_s + trio.current_time() - self._origin

    def now_ns(self) -> int:
        return round(self.now() * SECOND)

    def deadline(self, at_s: float | None) -> float:
        """A moment of this clock as Trio's deadlines count; None is never."""
        return math.inf if at_s is None else self._origin + at_s - self._epoch_s
