"""Base class of all errors caused by input or environment, never by a bug."""

from typing import TypeVar

E = TypeVar("E", bound=BaseException)


class KscheddError(Exception):
    """An error caused by input or environment; never raised for a bug.

    If the error has only a reason, the reason is in `why`. `request_warnings` are the warnings for the rejected
    request. A subclass specifies its code in the socket's protocol: `class Missing(KscheddError,
    rpc_code="not_found")`; without `rpc_code`, the code is that of the base class, or `invalid`.
    """

    request_warnings: tuple[str, ...] = ()

    def __init_subclass__(cls, rpc_code: str = "") -> None:
        if rpc_code:
            type.__setattr__(cls, "rpc_code", rpc_code)  # RpcError has `rpc_code` as a property

    def __str__(self) -> str:
        return self.why if hasattr(self, "why") else super().__str__()


def without_traceback(error: E) -> E:
    """Return the error without its traceback, so that it can be stored as a value.

    A stored error and the frame that caught it refer to each other through the traceback. Only the garbage collector
    frees such a cycle.
    """
    return error.with_traceback(None)
