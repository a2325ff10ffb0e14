"""Times as API objects write them: RFC 3339 in whole seconds, UTC.  Inside, time is seconds since the epoch."""

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(256)
def _stamp(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def stamp(now: float) -> str:
    """`now` (seconds since the epoch) as metav1.Time prints it; the fraction is cut off."""
    return _stamp(int(now))


@lru_cache(1 << 12)
def seconds(text: str) -> float:
    """The inverse of `stamp`, for any RFC 3339 text (metav1.MicroTime included); raises ValueError."""
    return datetime.fromisoformat(text).timestamp()
