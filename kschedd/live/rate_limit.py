"""Rate limit of requests: a token bucket with client-go's `qps` and `burst`.

Source: Kubernetes v1.34, client-go/util/flowcontrol (NewTokenBucketRateLimiter),
client-go/rest (RESTClientFor: a negative qps is no limit).
"""

from typing import Any, Final

import attrs
import trio

from kschedd.live.api_server import ApiServer
from kschedd.live.connection import ServerRequest
from kschedd.live.errors import LiveError


@attrs.define
class RateLimit:
    """A rate limit of `qps` requests per second (0 or less: unlimited), with bursts of `burst` after a pause."""

    _qps: float
    _burst: int
    _full_at: float = attrs.field(default=float("-inf"), init=False)  # time at which the bucket will be full again

    def next_at(self, now: float) -> float:
        """Return the time at which the next request may be sent, and take its token.

        In seconds of any clock.
        """
        if self._qps <= 0:
            return now
        one_s = 1 / self._qps
        self._full_at = max(self._full_at, now) + one_s
        return max(now, self._full_at - max(self._burst, 1) * one_s)


ANSWER_S: Final = 10.0  # maximum time in seconds from a request to its response


async def ask_at_pace(server: ApiServer, rate: RateLimit, request: ServerRequest) -> dict[str, Any]:
    """Return the object in the response to the request, within the rate limit.

    Raises LiveError if there is no response within `ANSWER_S`.
    """
    await trio.sleep_until(rate.next_at(trio.current_time()))
    with trio.move_on_after(ANSWER_S):
        return await server.ask(request)
    raise LiveError(server.url, f"{request.method} {request.path} was not answered within {ANSWER_S:.0f} s")
