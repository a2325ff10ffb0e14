"""Rate limit of requests: a token bucket with client-go's `qps` and `burst`.

Source: Kubernetes v1.34, client-go/util/flowcontrol (NewTokenBucketRateLimiter),
client-go/rest (RESTClientFor: a negative qps is no limit).
"""

import attrs
import trio


@attrs.define
class RateLimit:
    """A rate limit of `qps` requests per second (0 or less: unlimited), with bursts of `burst` after a pause."""

    _qps: float
    _burst: int
    _full_at: float = attrs.field(default=float("-inf"), init=False)  # time at which the bucket will be full again

    @property
    def is_limited(self) -> bool:
        return self._qps > 0

    def next_at(self, now: float) -> float:
        """Return the time at which the next request may be sent, and take its token.

        In seconds of any clock.
        """
        if self._qps <= 0:
            return now
        one_s = 1 / self._qps
        self._full_at = max(self._full_at, now) + one_s
        return max(now, self._full_at - max(self._burst, 1) * one_s)

    async def wait(self) -> None:
        """Wait until the rate limit allows the next request. This method is no checkpoint if it need not wait."""
        now = trio.current_time()
        at = self.next_at(now)
        if at > now:
            await trio.sleep_until(at)
