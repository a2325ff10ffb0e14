"""Errors of requests, each with a stable code for programs.

The code never changes; the message is for people and may change.

This module does not import Trio, so that the blocking client starts quickly.
"""

from __future__ import annotations

from typing import Any

import attrs

from kschedd.errors import KscheddError

#: Every error code of this package, with its meaning. Errors of other packages define their code in `rpc_code`.
CODES: dict[str, str] = {
    "already_exists": "an object with this name already exists",
    "bad_params": "parameters are missing, unknown, or of the wrong type; `data.faults` lists each",
    "bad_request": "the request contradicts itself: its object is not the one it addresses",
    "cancelled": "the client cancelled the request",
    "conflict": "the object has changed, or its state does not allow this; read it again and retry",
    "done": "a stream ended normally",
    "forbidden": "this client does not have permission",
    "gone": "the events after that resource version are no longer retained: list again, then watch from there",
    "idle": "all slots were in use and this client was idle: connect again",
    "internal": "a bug in the daemon; it is logged with a traceback, and the daemon continues",
    "invalid": "the input is well-formed but invalid",
    "journal": "the journal cannot be read or written",
    "no_match": "no such kind in that version; a custom resource needs its definition first",
    "not_found": "no such object",
    "plugin": "an out-of-tree plugin raised or returned an invalid value; see `data.plugin` and `data.method`",
    "protocol_error": "not a MessagePack-RPC message; the connection is closed if the next message cannot be located",
    "shutting_down": "the daemon is shutting down",
    "timeout": "the time limit was exceeded",
    "too_large": "the request, or an object in it, exceeds the size limit",
    "too_many": "a limit on streams or clients is reached",
    "too_many_requests": "a disruption budget does not allow the eviction now: retry later; `data` has the budget's "
    "name as `budget`, the reason as `why`, the seconds to wait as `retry_after_s` (0: unspecified)",
    "too_slow": "the client reads items or answers too slowly: resume from the last one read",
    "unauthenticated": "not authenticated: the first message must be `rpc.authenticate` with a valid token",
    "unknown_method": "no such method; `data.did_you_mean` has similar names",
}


@attrs.define(eq=False)
class RpcError(KscheddError):
    """A request that a cluster rejects, in the form of the socket protocol.

    `code` is for programs, such as not_found, invalid or conflict. METHODS.md lists all codes. `message`: for people.
    `data` contains details that depend on the code, or None.
    """

    code: str
    message: str
    data: Any = None

    @property
    def rpc_code(self) -> str:
        return self.code

    def __str__(self) -> str:
        return self.message


@attrs.define(eq=False)
class UnknownMethodError(KscheddError, rpc_code="unknown_method"):
    """A method that is not in the table."""

    method: str
    did_you_mean: tuple[str, ...]

    def __str__(self) -> str:
        similar_names = " or ".join(f'"{name}"' for name in self.did_you_mean)
        hint = f"did you mean {similar_names}?" if similar_names else "`rpc.methods` lists them all"
        return f'no method "{self.method}"; {hint}'


@attrs.define(eq=False)
class ReadOnlyError(KscheddError, rpc_code="forbidden"):
    """The error for a read-only user who calls a method that changes something."""

    method: str
    user: str

    def __str__(self) -> str:
        return f"{self.method} changes state, but {self.user} has read-only access: use another token"


@attrs.frozen
class ParamFault:
    """An error in the parameters of a call."""

    param: str
    got: str
    allowed: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.param}: got {self.got}, allowed: {self.allowed}{self.hint}"


@attrs.define(eq=False)
class BadParamsError(KscheddError, rpc_code="bad_params"):
    """Invalid parameters of a call, with all errors."""

    method: str
    faults: tuple[ParamFault, ...]

    def __str__(self) -> str:
        return f"{self.method}: " + "; ".join(str(fault) for fault in self.faults)
