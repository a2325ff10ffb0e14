"""Base class of all errors that input or the environment causes; it is never raised for a bug."""

from collections.abc import Mapping
from typing import TypeVar

E = TypeVar("E", bound=BaseException)


class KscheddError(Exception):
    """An error that input or the environment causes; it is never raised for a bug.

    An error that consists only of a reason has it in `why`. `request_warnings` are the warnings about the rejected
    request, and `audit_annotations` the annotations of its audit event. A subclass specifies its error code in the
    socket protocol: `class Missing(KscheddError, rpc_code="not_found")`. Without `rpc_code`, the code is that of the
    base class, or `invalid`.
    """

    request_warnings: tuple[str, ...] = ()
    audit_annotations: Mapping[str, str] = {}

    def __init_subclass__(cls, rpc_code: str = "") -> None:
        if rpc_code:
            type.__setattr__(cls, "rpc_code", rpc_code)  # in RpcError, `rpc_code` is a property

    def __str__(self) -> str:
        return self.why if hasattr(self, "why") else super().__str__()


def without_traceback(error: E) -> E:
    """Return the error without its traceback, so that it can be stored as a value.

    Through the traceback, a stored error and the frame that caught it refer to each other. Only the garbage collector
    frees such a cycle.
    """
    return error.with_traceback(None)
