"""CreateBackoff: how long a workload waits before it tries again to create what was refused.

Owns the number of refusals in a row by workload; the time of the next attempt is in the timers of its controller.
Source of the delays: client-go v1.34, util/workqueue (the controllers' rate limited queues).
"""

from typing import Final

from kschedd.controllers.running.timers import Timers
from kschedd.controllers.workloads.ownership import Key

_FIRST_RETRY_S: Final = 1.0
_LONGEST_RETRY_S: Final = 300.0


class CreateBackoff:
    def __init__(self, timers: Timers[Key]) -> None:
        self._timers = timers
        self._refusals: dict[Key, int] = {}

    def __contains__(self, key: Key) -> bool:
        """Whether the last attempt was refused."""
        return key in self._refusals

    def waits(self, key: Key, now: float) -> bool:
        """Whether the next attempt is not due yet."""
        at = self._timers.at(key)
        return key in self._refusals and at is not None and at > now

    def refused(self, key: Key, now: float) -> bool:
        """Count a refusal, once until the next attempt is due. Returns whether this one counted."""
        if self.waits(key, now):
            return False
        times = self._refusals.get(key, 0)
        self._refusals[key] = times + 1
        self._timers.set(key, now + min(_FIRST_RETRY_S * 2**times, _LONGEST_RETRY_S))
        return True

    def clear(self, key: Key) -> None:
        self._refusals.pop(key, None)
