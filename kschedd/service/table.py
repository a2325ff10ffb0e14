"""The method table: the methods with their documentation, and the interface of their handlers.

A handler is `async (Call) -> result`. Its return value is sent as the result. A KscheddError is sent as
an error with its `rpc_code`. Any other exception is a bug; it is logged, and the error `internal` is sent.

A handler that sends more than one result opens a stream:

    async def watch(call: Call) -> Any:
        async def feed(stream: Stream) -> None:
            async for change in store.watch(call["since"]):
                await stream.send({"type": change.type, "resourceVersion": change.version})
        return StreamAnswer(call.open_stream(feed))

`feed` starts after the response is queued, blocks in `send` while the client reads slowly, and is cancelled when the
client cancels the stream or disconnects. `feed` ends the stream by returning (code `done`) or by raising a KscheddError
(with its code). To let clients resume, put a token (such as a resourceVersion) into the items, and accept it as a
parameter.

This module depends on the session (session.py) only through `ClientServices`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Final, Protocol, Self, TypeVar

import attrs

from kschedd.access.users import Caller
from kschedd.answers import returned
from kschedd.api.text.similar import similar_names
from kschedd.service.errors import ReadOnlyError, UnknownMethodError
from kschedd.service.params import Param
from kschedd.service.turns import Turns
from kschedd.service.workers import Workers


class Stream(Protocol):
    """An open stream, through which a function sends items."""

    @property
    def id(self) -> int: ...

    async def send(self, item: Any) -> None:
        """Send one item; block while the client reads slowly."""

    async def send_many(self, items: Sequence[Any]) -> None:
        """Send several items together, which is faster than sending them one by one."""


@attrs.frozen
class StreamAnswer:
    """The answer of a method that opens a stream; subclasses may have more fields."""

    stream: int


H = TypeVar("H", bound=Callable[..., Awaitable[Any]])
# handler -> fields of its Method, and the name of its `small` handler
_DECLARED: Final[dict[Any, tuple[dict[str, Any], str]]] = {}
StreamProducer = Callable[[Stream], Awaitable[None]]


@attrs.frozen(eq=False)
class Large:
    """A result that is encoded while it is sent: the map `head`, with the immutable `values` under the key `name`."""

    head: Mapping[str, Any]
    name: str
    values: Sequence[Any]
    # converts a value to its encoded form; None: no conversion is needed
    shown: Callable[[Any], Any] | None = None
    # number of bytes to count for each queued value
    each: int = 8

    @property
    def encoded(self) -> Iterable[Any]:
        """The values in encoded form; each is encoded when it is needed."""
        return self.values if self.shown is None else map(self.shown, self.values)

    @property
    def held(self) -> int:
        """The number of bytes that the value occupies in the client's queue limit."""
        return 64 + self.each * len(self.values)


class ClientServices(Protocol):
    """The services of a client's session that calls may use."""

    @property
    def turns(self) -> Turns: ...

    @property
    def workers(self) -> Workers: ...

    @property
    def methods(self) -> Mapping[str, Method]: ...

    @property
    def identity(self) -> Mapping[str, Any]: ...

    @property
    def caller(self) -> Caller: ...

    def cancel_stream(self, stream_id: int) -> bool: ...

    def at_end(self, name: str, do: Callable[[], Awaitable[None]]) -> None:
        """Register a function that runs when the session ends for any reason.

        A function with the same name is replaced.
        """


@attrs.define(eq=False)
class Call:
    """A call of a method: its client and its parameters, validated and with defaults."""

    method: str
    args: dict[str, Any]
    client: str  # for logs: "3 (pid 4711, uid 1000)", "4 (ann from 10.0.0.1)"
    services: ClientServices
    _open: Callable[[StreamProducer], int]
    size: int = 0  # size of a large request in bytes, else 0
    annotations: dict[str, str] = attrs.field(factory=dict, init=False)  # annotations of the audit event

    def __getitem__(self, param: str) -> Any:
        return self.args[param]

    def open_stream(self, feed: StreamProducer) -> int:
        """Return the id of a new stream that `feed` fills. The answer must contain this id in the field `stream`.

        Raises RpcError: `too_many` if the client has reached its limit of streams, `bad_params` in a notification.
        """
        return self._open(feed)


def _documented(_instance: Any, _attribute: Any, value: str) -> None:
    assert value, "a method without a word of documentation"


@attrs.frozen
class Method:
    """A method of the table. `doc`, `returns` and `items` (a stream's items) are Markdown.

    `reads`: the method changes nothing, so users with read-only access may call it. All other methods are writes, which
    are rejected for these users and recorded in the audit log for all others. `own_forks`: the method is a write that
    these users may call for their own forks; the handler checks this. `outside`: the method reads files on the daemon's
    host, so these users may not call it. `judged`: with RBAC, permissions are checked for the objects that a call reads
    or writes, or every user may call the method; all other methods require the permission for the path `/rpc/METHOD`,
    with the verb get if the method `reads`, otherwise post.
    """

    name: str
    handler: Callable[[Call], Awaitable[Any]] = attrs.field(repr=False)
    params: tuple[Param, ...] = ()
    doc: str = attrs.field(default="", validator=_documented)
    returns: str = ""  # text added to the generated description of the answer
    answer: Any = None  # the class of the answer, from which `returns` is derived
    items: str = ""
    item: Any = None  # the class of a stream's items, from which `items` is derived
    large: bool = False  # True if the result grows with the size of the cluster
    # For a `large` method: handler that returns the result if it is small, without waiting for a slot.
    small: Callable[[Call], Awaitable[Any | None]] | None = attrs.field(default=None, repr=False)
    reads: bool = False
    own_forks: bool = False
    outside: bool = False
    judged: bool = False

    def __attrs_post_init__(self) -> None:
        for name, answer in (("returns", self.answer), ("items", self.item)):
            if answer is not None:
                more = getattr(self, name)
                object.__setattr__(self, name, f"{returned(answer)}{f': {more}' if more else '.'}")
        names = [param.name for param in self.params]
        assert len(names) == len(set(names)), f"{self.name}: two parameters of one name in {names}"

    def checked(self, check: Callable[[], None]) -> Self:
        """Return the method with `check` called before each call; `check` rejects a call by raising an error."""

        def checking(handler: Callable[[Call], Awaitable[Any]]) -> Callable[[Call], Awaitable[Any]]:
            async def checked_handler(call: Call) -> Any:
                check()
                return await handler(call)

            return checked_handler

        found = copy(self)
        object.__setattr__(found, "handler", checking(self.handler))
        if self.small is not None:
            object.__setattr__(found, "small", checking(self.small))
        return found


def method(name: str, params: tuple[Param, ...] = (), *, small: str = "", **declared: Any) -> Callable[[H], H]:
    """Return a decorator for a handler in a subclass of `Methods`.

    `declared` are fields of `Method`; `small` is another handler's name.
    """

    def declare(handler: H) -> H:
        _DECLARED[handler] = {"name": name, "params": params, **declared}, small
        return handler

    return declare


class Methods:
    """A class whose methods are handlers of the socket protocol."""

    __slots__ = ()

    def table(self) -> list[Method]:
        """Return the methods, in the order of their handlers."""
        found = []
        for handler in vars(type(self)).values():
            if inspect.iscoroutinefunction(handler) and handler in _DECLARED:
                declared, small = _DECLARED[handler]
                more = {"small": getattr(self, small)} if small else {}
                found.append(Method(handler=handler.__get__(self), **declared, **more))
        return found


def find_method(table: Mapping[str, Method], name: str) -> Method:
    """Return the method with this name. Raises UnknownMethodError, which contains similar names."""
    method = table.get(name)
    if method is None:
        raise UnknownMethodError(name[:100], similar_names(name, table))
    return method


def check_may_call(caller: Caller, method: Method) -> None:
    """Raise ReadOnlyError if the method is a write and the caller has read-only access."""
    if caller.user.read_only and not method.reads and not method.own_forks:
        raise ReadOnlyError(method.name, caller.user.name)
