"""RateLimit: how many requests a second a server is sent, by a token bucket, as client-go's `qps` and `burst`.

Pure: the time is an argument.  Source: Kubernetes v1.34, client-go/util/flowcontrol (NewTokenBucketRateLimiter),
client-go/rest (RESTClientFor: a negative qps is no limit).
"""

import attrs


@attrs.define
class RateLimit:
    """`qps` requests a second (0 and less: no limit), `burst` of them at once after a rest."""

    _qps: float
    _burst: int
    _full_at: float = attrs.field(default=float("-inf"), init=False)  # when the bucket will have all its tokens again

    def next_at(self, now: float) -> float:
        """When the next request may be sent (`now` or later); it counts as sent then. In seconds of any clock."""
        if self._qps <= 0:
            return now
        one_s = 1 / self._qps
        self._full_at = max(self._full_at, now) + one_s
        return max(now, self._full_at - max(self._burst, 1) * one_s)
