"""Built-in methods of the protocol, part of every table: describe methods, authenticate clients, cancel streams."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import attrs

from kschedd.access.users import Caller
from kschedd.answers import ABSENT, Absent
from kschedd.rpc.protocol import AUTHENTICATE
from kschedd.service.params import Param
from kschedd.service.table import Call, Method


def method_table(methods: Iterable[Method]) -> dict[str, Method]:
    """Return the table with these methods, followed by the built-in methods."""
    table: dict[str, Method] = {}
    for method in (*methods, *BUILT_IN):
        assert method.name not in table, f"two methods are called {method.name}"
        table[method.name] = method
    return table


@attrs.frozen
class ParamAnswer:
    name: str
    type: str
    required: bool
    doc: str
    default: Any | Absent = ABSENT
    choices: Sequence[Annotated[str, "choice"]] | Absent = ABSENT
    minimum: float | Absent = ABSENT
    maximum: float | Absent = ABSENT


@attrs.frozen
class MethodAnswer:
    name: str
    doc: str
    params: Sequence[ParamAnswer]
    returns: str
    writes: Annotated[bool, "rejected for read-only users"]
    items: str | Absent = ABSENT


@attrs.frozen
class PingAnswer:
    """Information about the daemon, as returned by ping."""

    pong: Annotated[bool, "true"] = True
    server: str | Absent = ABSENT
    version: str | Absent = ABSENT
    pid: int | Absent = ABSENT
    epoch: str | Absent = ABSENT
    max_request_body_bytes: int | Absent = ABSENT
    http: Annotated[str | Absent, "address of the REST API"] = ABSENT


@attrs.frozen
class UserAnswer:
    user: str
    groups: Sequence[Annotated[str, "group"]]
    read_only: bool


@attrs.frozen
class CancelledAnswer:
    cancelled: Annotated[bool, "false if there is no such stream"]


def describe(method: Method) -> MethodAnswer:
    """Return the description of a method for the result of `rpc.methods`."""
    params = [
        ParamAnswer(
            param.name,
            param.type,
            param.required,
            param.doc,
            ABSENT if param.required else param.default,
            param.choices or ABSENT,
            ABSENT if param.minimum is None else param.minimum,
            ABSENT if param.maximum is None else param.maximum,
        )
        for param in method.params
    ]
    return MethodAnswer(method.name, method.doc, params, method.returns, not method.reads, method.items or ABSENT)


async def _methods(call: Call) -> list[MethodAnswer]:
    return [describe(method) for method in call.services.methods.values()]


async def _ping(call: Call) -> PingAnswer:
    return PingAnswer(**call.services.identity)


async def _authenticate(call: Call) -> UserAnswer:
    return who_is(call.services.caller)


def who_is(caller: Caller) -> UserAnswer:
    return UserAnswer(caller.user.name, caller.user.groups, caller.user.read_only)


async def _cancel(call: Call) -> CancelledAnswer:
    return CancelledAnswer(call.services.cancel_stream(call["stream"]))


BUILT_IN: tuple[Method, ...] = (
    Method(
        "rpc.methods",
        _methods,
        reads=True,
        judged=True,
        doc="Lists every method of this daemon, for programs that generate clients or complete names.",
        answer=list[MethodAnswer],
    ),
    Method(
        "rpc.ping",
        _ping,
        reads=True,
        judged=True,
        doc="Answers immediately, which shows that the daemon is running, and identifies the daemon.",
        answer=PingAnswer,
    ),
    Method(
        AUTHENTICATE,
        _authenticate,
        (Param("token", "string", False, doc="a token from the daemon's token file"),),
        reads=True,
        judged=True,
        doc="Authenticates the client and returns its user. On TCP, this must be the first message; it requires a "
        "token, unless a client certificate authenticates the client. In later calls, the method only returns the "
        "user. The same applies on the Unix socket, where every client that can open the socket has access.",
        answer=UserAnswer,
    ),
    Method(
        "stream.cancel",
        _cancel,
        (Param("stream", "integer", doc="the id in the result of the call that opened the stream", minimum=0),),
        reads=True,
        judged=True,
        doc="Ends a stream of this connection. The message `stream.end` with the code `cancelled` follows; items that "
        "were already sent may arrive before it. This method may be sent as a notification.",
        answer=CancelledAnswer,
    ),
)
