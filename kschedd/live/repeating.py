"""The rules that decide whether a failed request is sent again before its failure is reported.

A server that is too busy or shutting down returns 429 or 5xx with Retry-After if it has not executed the request. If
the server refuses the connection, nothing was sent, so every request may be sent again. If the connection is lost, only
a GET is sent again, because the server may have executed the request.

Pure. Source: Kubernetes v1.37, client-go/rest/with_retry.go (IsNextRetry, checkWait) and request.go
(isErrRetryableFunc). Unlike kschedd, client-go repeats only a GET after a refused connection.
"""

from typing import Final

from kschedd.live.errors import LiveError

MOST_REPEATS: Final = 10
_LONGEST_PAUSE_S: Final = 30.0  # a request fails if the server requests a longer pause
_FIRST_PAUSE_S: Final = 0.1
_STEADY_PAUSE_S: Final = 1.0


def pause_before_repeat(failure: LiveError, method: str, repeats: int) -> float | None:
    """Return the pause in seconds before the next attempt, or None if the request must not be sent again.

    `repeats`: number of repeated attempts so far.
    """
    if repeats >= MOST_REPEATS:
        return None
    if failure.retry_after_s is not None:
        return failure.retry_after_s if failure.retry_after_s <= _LONGEST_PAUSE_S else None
    if failure.is_refused or (failure.is_lost and method == "GET"):
        return min(_FIRST_PAUSE_S * 2.0**repeats, _STEADY_PAUSE_S)
    return None
