"""Errors between a client and the daemon, and their stable codes in the protocol.

An error is encoded as a map `{code, message, data?}`. The code is for programs and never changes; the
message is for people and may change; data contains the fields of the error, if it has any.

No I/O; does not import Trio, so that the blocking client starts quickly.
"""

from __future__ import annotations

import datetime
import enum
import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

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
class NoDaemonError(KscheddError):
    """No daemon answers at the socket."""

    path: str

    def __str__(self) -> str:
        return f"no daemon at {self.path}: start one with `kschedd run`"


@attrs.define(eq=False)
class SocketPathError(KscheddError):
    """A socket path that cannot be used, with the remedy."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"socket {self.path}: {self.why}"


@attrs.define(eq=False)
class DaemonRunningError(KscheddError):
    """Another daemon already listens on the socket path."""

    path: str
    rpc_code: ClassVar[str] = "conflict"

    def __str__(self) -> str:
        return (
            f"another daemon answers at {self.path}: stop it first, or give this one a path of its own "
            "(--socket PATH or $KSCHEDD_SOCKET)"
        )


@attrs.define(eq=False)
class ConnectionLostError(KscheddError):
    """The connection ended while a response was outstanding."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"lost the daemon at {self.path}: {self.why}"


@attrs.define(eq=False)
class UnknownMethodError(KscheddError):
    """A method that is not in the table."""

    method: str
    did_you_mean: tuple[str, ...]
    rpc_code: ClassVar[str] = "unknown_method"

    def __str__(self) -> str:
        similar_names = " or ".join(f'"{name}"' for name in self.did_you_mean)
        hint = f"did you mean {similar_names}?" if similar_names else "`rpc.methods` lists them all"
        return f'no method "{self.method}"; {hint}'


@attrs.define(eq=False)
class ReadOnlyError(KscheddError):
    """A method that changes something, called by a user who may only read."""

    method: str
    user: str
    rpc_code: ClassVar[str] = "forbidden"

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
class BadParamsError(KscheddError):
    """Invalid parameters of a call, with all faults."""

    method: str
    faults: tuple[ParamFault, ...]
    rpc_code: ClassVar[str] = "bad_params"

    def __str__(self) -> str:
        return f"{self.method}: " + "; ".join(str(fault) for fault in self.faults)


def wire_error(error: KscheddError) -> tuple[str, str, Any]:
    """Code, message and data (or None) that encode an error of this program."""
    if isinstance(error, RpcError):
        return error.code, error.message, error.data
    data = _fields(error) if attrs.has(type(error)) else None
    return str(getattr(error, "rpc_code", "invalid")), str(error) or type(error).__name__, data


def read_wire_error(error: Any) -> RpcError:
    """The error of a response. Any value is accepted: other servers may not follow our error format."""
    if isinstance(error, dict) and isinstance(error.get("code"), str):
        return RpcError(error["code"], str(error.get("message", "")), error.get("data"))
    return RpcError("internal", str(error), error)


def _plain(value: Any) -> Any:
    """A field's value in MessagePack types; a value of any other type becomes its text."""
    match value:
        case None | bool() | float() | bytes():
            return value
        case int():
            return value if -(2**63) <= value < 2**64 else str(value)
        case enum.Enum():
            return _plain(value.value)
        case str():
            return value.encode("utf-8", "replace").decode()
        case os.PathLike() | datetime.datetime():
            return str(value)
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case Sequence() | set() | frozenset():
            items = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value
            return [_plain(item) for item in items]
        case _ if attrs.has(type(value)):
            return _fields(value)
        case _:
            return str(value)


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: _plain(getattr(value, field.name)) for field in attrs.fields(type(value))}
