"""The methods of the protocol itself, which every table has: they describe it, authenticate and cancel streams."""

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
    """The table of these methods and the built-in ones, in that order."""
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
    writes: Annotated[bool, "read-only users are refused it"]
    items: str | Absent = ABSENT


@attrs.frozen
class PingAnswer:
    """What the daemon says of itself."""

    pong: Annotated[bool, "true"] = True
    server: str | Absent = ABSENT
    version: str | Absent = ABSENT
    pid: int | Absent = ABSENT
    epoch: str | Absent = ABSENT
    max_request_body_bytes: int | Absent = ABSENT
    http: Annotated[str | Absent, "where the REST API is"] = ABSENT


@attrs.frozen
class UserAnswer:
    user: str
    groups: Sequence[Annotated[str, "group"]]
    read_only: bool


@attrs.frozen
class CancelledAnswer:
    cancelled: Annotated[bool, "false if there is no such stream (any more)"]


def describe(method: Method) -> MethodAnswer:
    """The description of a method in the result of `rpc.methods`."""
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
        doc="Every method of this daemon, for programs that write clients or complete names.",
        answer=list[MethodAnswer],
    ),
    Method(
        "rpc.ping",
        _ping,
        reads=True,
        doc="Answers at once: shows that the daemon lives and which one it is.",
        answer=PingAnswer,
    ),
    Method(
        AUTHENTICATE,
        _authenticate,
        (Param("token", "string", False, doc="one of the daemon's token file"),),
        reads=True,
        doc="Says who one is. On TCP it has to be the first message, with a token, unless a client certificate tells; "
        "later, and on the Unix socket, where whoever may open it is let in, it only tells.",
        answer=UserAnswer,
    ),
    Method(
        "stream.cancel",
        _cancel,
        (Param("stream", "integer", doc="the id that the opening call returned", minimum=0),),
        reads=True,
        doc="Ends a stream of this connection. Its `stream.end` follows with code `cancelled`; items "
        "that were on their way may come before it. May be sent as a notification.",
        answer=CancelledAnswer,
    ),
)
