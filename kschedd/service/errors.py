"""Refusals of requests, each with its stable code.

The code is for programs and never changes; the message is for people and may change.

Does not import Trio, so that the blocking client starts quickly.
"""

from __future__ import annotations

from typing import Any

import attrs

from kschedd.errors import KscheddError

#: Every code that this package uses, with its meaning. Errors of other packages define theirs in `rpc_code`.
CODES: dict[str, str] = {
    "already_exists": "an object of that name is there already",
    "bad_params": "parameters are missing, unknown, or of the wrong type; `data.faults` lists each",
    "bad_request": "the request contradicts itself: the object in it is not the one it was made for",
    "cancelled": "the client took back what it had asked for",
    "conflict": "the object changed in between, or its state does not allow this; read it again and retry",
    "done": "a stream came to its natural end",
    "forbidden": "this client may not do that",
    "gone": "the events after that resource version are no longer kept: list again, then watch from there",
    "idle": "all places were taken and nothing came from this client for some time: connect again",
    "internal": "a bug in the daemon: it is logged there with a traceback, and the daemon goes on",
    "invalid": "the input was understood and is wrong",
    "journal": "the journal cannot be read or written",
    "no_match": "there is no such kind in that version; that of a custom resource needs its definition first",
    "not_found": "there is no such object",
    "plugin": "an out-of-tree plugin raised, or returned what it must not; `data.plugin` and `data.method` say which",
    "protocol_error": "what came is no MessagePack-RPC message; where the next one cannot be made out, the "
    "connection is closed",
    "shutting_down": "the daemon is ending",
    "timeout": "it took longer than was allowed",
    "too_large": "the request, or an object in it, is larger than is taken",
    "too_many": "a limit on streams or clients is reached",
    "too_many_requests": "a disruption budget does not allow the eviction now: try again later; `data` has the "
    "budget's name as `budget`, what it lacks as `why`, the seconds to wait as `retry_after_s` (0: none said)",
    "too_slow": "items came faster than they were read, or answers: resume from the last one read",
    "unauthenticated": "nobody knows who asks: the first message has to be `rpc.authenticate` with a valid token",
    "unknown_method": "there is no such method; `data.did_you_mean` has near names",
}


@attrs.define(eq=False)
class RpcError(KscheddError):
    """An error in its protocol form: clients raise it, and a handler may raise it to be sent unchanged."""

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
    """A method that changes something, called by a user who may only read."""

    method: str
    user: str

    def __str__(self) -> str:
        return f"{self.method} changes something, and {self.user} may only read here: another token is needed"


@attrs.frozen
class ParamFault:
    """One fault in the parameters of a call."""

    param: str
    got: str
    allowed: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.param}: got {self.got}, allowed: {self.allowed}{self.hint}"


@attrs.define(eq=False)
class BadParamsError(KscheddError, rpc_code="bad_params"):
    """Invalid parameters of a call, with all faults."""

    method: str
    faults: tuple[ParamFault, ...]

    def __str__(self) -> str:
        return f"{self.method}: " + "; ".join(str(fault) for fault in self.faults)
