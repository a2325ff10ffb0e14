"""The rules by which a failed request is sent again, before its failure is reported.

A server that is too busy or shutting down (429, 5xx) says with Retry-After that it has not executed the request. A
refused connection has sent nothing. After a lost connection only a GET is repeated, because the server may have
executed the request.

Pure.
Source: Kubernetes v1.37, client-go/rest/with_retry.go (IsNextRetry, checkWait), request.go (isErrRetryableFunc), which
repeats only a GET after a refused connection.
"""

from typing import Final

from kschedd.live.errors import LiveError

MOST_REPEATS: Final = 10
_LONGEST_PAUSE_S: Final = 30.0  # if the server requests a longer pause, the request fails
_FIRST_PAUSE_S: Final = 0.1
_STEADY_PAUSE_S: Final = 1.0


def pause_before_repeat(failure: LiveError, method: str, repeats: int) -> float | None:
    """Return the pause in seconds before the request is sent again; None if it must not be sent again.

    `repeats` is the number of times that the request was already repeated.
    """
    if repeats >= MOST_REPEATS:
        return None
    if failure.retry_after_s is not None:
        return failure.retry_after_s if failure.retry_after_s <= _LONGEST_PAUSE_S else None
    if failure.is_refused or (failure.is_lost and method == "GET"):
        return min(_FIRST_PAUSE_S * 2.0**repeats, _STEADY_PAUSE_S)
    return None
