"""Errors of the transport between a client and the daemon, and the decoding of errors.

This module does no I/O and does not import Trio, so that the blocking client starts quickly.
"""

from __future__ import annotations

from typing import Any

import attrs

from kschedd.errors import KscheddError
from kschedd.service.errors import RpcError


@attrs.define(eq=False)
class NoDaemonError(KscheddError):
    """The error if no daemon answers at the socket."""

    path: str

    def __str__(self) -> str:
        return f"no daemon at {self.path}: start one with `kschedd run --detach`"


@attrs.define(eq=False)
class SocketPathError(KscheddError):
    """The error if the path of the socket cannot be used; the message contains a remedy."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"socket {self.path}: {self.why}"


@attrs.define(eq=False)
class DaemonRunningError(KscheddError, rpc_code="conflict"):
    """The error if another daemon listens at the path."""

    path: str

    def __str__(self) -> str:
        return (
            f"another daemon answers at {self.path}: stop it with `kschedd --socket {self.path} stop`, or "
            "give this one another path (--socket PATH or $KSCHEDD_SOCKET)"
        )


@attrs.define(eq=False)
class ConnectionLostError(KscheddError):
    """The error if the connection ended before a response arrived."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"lost the daemon at {self.path}: {self.why}"


def read_wire_error(error: Any) -> RpcError:
    """Return the error of a response.

    Any value is accepted, because other servers may use another error format.
    """
    if isinstance(error, dict) and isinstance(error.get("code"), str):
        return RpcError(error["code"], str(error.get("message", "")), error.get("data"))
    return RpcError("internal", str(error), error)
