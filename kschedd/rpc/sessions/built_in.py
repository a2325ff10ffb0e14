"""The methods of the protocol itself, which every table has: they describe it, authenticate and cancel streams."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kschedd.access.users import Caller
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


def describe(method: Method) -> dict[str, Any]:
    """The description of a method in the result of `rpc.methods`."""
    params = []
    for param in method.params:
        entry: dict[str, Any] = {
            "name": param.name,
            "type": param.type,
            "required": param.required,
            "doc": param.doc,
        }
        if not param.required:
            entry["default"] = param.default
        if param.choices:
            entry["choices"] = list(param.choices)
        if param.minimum is not None:
            entry["minimum"] = param.minimum
        if param.maximum is not None:
            entry["maximum"] = param.maximum
        params.append(entry)
    entry = {
        "name": method.name,
        "doc": method.doc,
        "params": params,
        "returns": method.returns,
        "writes": not method.reads,
    }
    if method.items:
        entry["items"] = method.items
    return entry


async def _methods(call: Call) -> list[dict[str, Any]]:
    return [describe(method) for method in call.services.methods.values()]


async def _ping(call: Call) -> dict[str, Any]:
    return {"pong": True, **call.services.identity}


async def _authenticate(call: Call) -> dict[str, Any]:
    return who_is(call.services.caller)


def who_is(caller: Caller) -> dict[str, Any]:
    user = caller.user
    return {"user": user.name, "groups": list(user.groups), "read_only": user.read_only}


async def _cancel(call: Call) -> dict[str, Any]:
    return {"cancelled": call.services.cancel_stream(call["stream"])}


BUILT_IN: tuple[Method, ...] = (
    Method(
        "rpc.methods",
        _methods,
        reads=True,
        doc="Every method of this daemon, for programs that write clients or complete names.",
        returns="An array of maps `{name, doc, params: [{name, type, required, doc, default?, choices?, minimum?, "
        "maximum?}], returns, writes, items?}`: writes is what read-only users are refused.",
    ),
    Method(
        "rpc.ping",
        _ping,
        reads=True,
        doc="Answers at once: shows that the daemon lives and which one it is.",
        returns="`{pong, server?, version?, pid?, epoch?, max_request_body_bytes?}`: pong is true, the rest what the "
        "daemon says of itself.",
    ),
    Method(
        AUTHENTICATE,
        _authenticate,
        (Param("token", "string", False, doc="one of the daemon's token file"),),
        reads=True,
        doc="Says who one is. On TCP it has to be the first message, with a token, unless a client certificate tells; "
        "later, and on the Unix socket, where whoever may open it is let in, it only tells.",
        returns="`{user, groups, read_only}`.",
    ),
    Method(
        "stream.cancel",
        _cancel,
        (Param("stream", "integer", doc="the id that the opening call returned", minimum=0),),
        reads=True,
        doc="Ends a stream of this connection. Its `stream.end` follows with code `cancelled`; items "
        "that were on their way may come before it. May be sent as a notification.",
        returns="A map with `cancelled`: false if there is no such stream (any more).",
    ),
)
