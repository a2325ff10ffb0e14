"""Requests at the pace that the configuration allows: a token bucket, as client-go's `qps` and `burst`.

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


ANSWER_S: Final = 10.0  # for which an answer is waited for, from when it is asked for


async def ask_at_pace(server: ApiServer, rate: RateLimit, asked: ServerRequest) -> dict[str, Any]:
    """Return the object in the response to the request. Raises LiveError if there is none within `ANSWER_S`."""
    await trio.sleep_until(rate.next_at(trio.current_time()))
    with trio.move_on_after(ANSWER_S):
        return await server.ask(asked)
    raise LiveError(server.url, f"{asked.method} {asked.path} was not answered within {ANSWER_S:.0f} s")
