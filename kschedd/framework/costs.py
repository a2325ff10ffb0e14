"""CallCosts: the number of calls of out-of-tree plugins and extenders, with their durations and timeouts.

`kschedd plugin costs` and `daemon.info` show these costs. Quantiles cover the latest calls of each kind. All other
values cover the time since the start of the daemon, including calls of replaced plugin instances. Several threads may
record calls.
"""

from collections import deque
from threading import Lock
from typing import Final

import attrs

_RECENT: Final = 1000  # number of latest calls of each kind that the quantiles cover


@attrs.frozen
class CallCost:
    """The cost of one method of a plugin, or one verb of an extender.

    The durations are None until a call has returned.
    """

    name: str
    method: str
    calls: int
    p50_s: float | None
    p99_s: float | None
    longest_s: float | None
    timeouts: int
    failures: int  # number of calls that raised an exception or returned an invalid value, without timeouts


@attrs.define(eq=False)
class _Kind:
    calls: int = 0
    timeouts: int = 0
    failures: int = 0
    longest_s: float = 0.0
    recent_s: deque[float] = attrs.field(factory=lambda: deque(maxlen=_RECENT))


class CallCosts:
    """The costs of the calls of plugins and extenders."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kinds: dict[tuple[str, str], _Kind] = {}

    def returned(self, name: str, method: str, seconds: float, *, failed: bool) -> None:
        """Record a call that returned, successfully or not."""
        with self._lock:
            kind = self._kinds.setdefault((name, method), _Kind())
            kind.calls += 1
            kind.failures += failed
            kind.longest_s = max(kind.longest_s, seconds)
            kind.recent_s.append(seconds)

    def timed_out(self, name: str, method: str) -> None:
        """Record a call that was abandoned."""
        with self._lock:
            kind = self._kinds.setdefault((name, method), _Kind())
            kind.calls += 1
            kind.timeouts += 1

    def all(self) -> list[CallCost]:
        """Return all costs, by name and method."""
        with self._lock:
            return [_cost(name, method, kind) for (name, method), kind in sorted(self._kinds.items())]


def _cost(name: str, method: str, kind: _Kind) -> CallCost:
    if not kind.recent_s:
        return CallCost(name, method, kind.calls, None, None, None, kind.timeouts, kind.failures)
    in_order = sorted(kind.recent_s)
    last = len(in_order) - 1
    p50, p99 = (in_order[round(last * share)] for share in (0.5, 0.99))
    return CallCost(name, method, kind.calls, p50, p99, kind.longest_s, kind.timeouts, kind.failures)
