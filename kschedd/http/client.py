"""HttpClient: requests to one HTTP/1.1 server over a pool of connections, which stay open between requests.

A request uses the connection that was used last, or a new connection if none is idle. The number of connections is
therefore the maximum number of concurrent requests. A connection returns to the pool when its response has been read to
the end. A connection is closed if its response is not read to the end. Redirects are not followed.

Owns: the idle connections, until `aclose`. Ends: an idle connection is closed after `_IDLE_S` without a request.
Bounds: the size of a response's head (protocol.py), and the size of each piece of a body. The caller must limit the
size of whole bodies. Raises: ConnectFailed if no request was sent; ConnectionLost if the connection ends before the
response is complete; HttpFault if the response is not valid HTTP/1.1.
"""

import select
import zlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Self

import attrs
import trio

from kschedd.errors import KscheddError
from kschedd.http.direct_stream import DirectStream
from kschedd.http.endpoint import Endpoint
from kschedd.http.protocol import (
    BodyPart,
    HttpFault,
    ResponseEnd,
    ResponseHead,
    ResponseReader,
    encode_fields,
    encode_request,
    plain_response,
)

_READ: Final = 64 << 10
_IDLE_S: Final = 60.0  # in seconds; less than the 90 s after which kube-apiserver closes an idle connection
_MOST_IDLE: Final = 256
_PIECE: Final = 1 << 20  # maximum size of a decompressed piece in bytes
_GZIP: Final = 31  # zlib's window bits for a gzip header


_Receive = Callable[[int], Awaitable[bytes | bytearray]]


@attrs.define(eq=False)
class ConnectionLost(KscheddError):
    """The connection ended before the response was complete; the server may have executed the request."""

    why: str

    def __str__(self) -> str:
        return self.why


class _Connection:
    """A connection with at most one request at a time."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._receive_first: _Receive = stream.receive_some
        self._arrivals: select.poll | None = None  # None: TLS within TLS
        if isinstance(stream, DirectStream):
            self._receive_first = stream.receive_record
            self._arrivals = select.poll()
            self._arrivals.register(stream.descriptor, select.POLLIN)
        self._reader = ResponseReader()
        self._parts: list[bytes] = []
        self._head: ResponseHead | None = None
        self._is_complete = True
        self.used_at = 0.0

    @classmethod
    async def opened(cls, endpoint: Endpoint) -> "_Connection":
        return cls(await endpoint.connect())

    async def exchange(self, request: bytes) -> ResponseHead:
        """Send the request and return the head of the response."""
        self._head, self._is_complete = None, False
        try:
            await self._stream.send_all(request)
        except trio.BrokenResourceError:
            raise ConnectionLost("connection reset while the request was sent") from None
        data = await self._data(self._receive_first)
        plain = plain_response(data)
        if plain is not None:
            self._head, body = plain
            if body:
                self._parts.append(body)
            self._is_complete = True
            return self._head
        if data:
            self._parse(data)
        while self._head is None:
            if not await self._receive():
                raise ConnectionLost("the connection was closed before the response")
        return self._head

    async def piece(self) -> bytes | None:
        """Return the next bytes of the response body, or None at its end."""
        while not self._parts:
            if self._is_complete:
                return None
            if not await self._receive():
                if self._head is None or _has_end(self._head):
                    raise ConnectionLost("the connection was closed before the end of the response")
                self._is_complete = True  # the server ends the body by closing the connection
        return self._taken()

    def whole_body(self) -> bytes | None:
        """Return the rest of the body without waiting, or None if it has not arrived."""
        return self._taken() if self._is_complete else None

    def _taken(self) -> bytes:
        piece = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        return piece

    async def _receive(self) -> bool:
        """Parse more bytes; return False if the server has closed the connection."""
        data = await self._data(self._stream.receive_some)
        if data:
            self._parse(data)
        return bool(data)

    async def _data(self, receive: "_Receive") -> bytes:
        """Return more bytes; b"" if the server has closed the connection."""
        try:
            return bytes(await receive(_READ))
        except trio.BrokenResourceError:
            raise ConnectionLost("connection reset by the server") from None

    def _parse(self, data: bytes) -> None:
        for event in self._reader.feed(data):
            match event:
                case BodyPart(part):
                    self._parts.append(part)
                case ResponseHead():
                    if self._is_complete or self._head is not None:
                        raise HttpFault(502, "a response without a request")
                    self._head = event
                case ResponseEnd():
                    self._is_complete = True

    @property
    def is_reusable(self) -> bool:
        """Return whether the response was read to its end and the connection stays open."""
        return self._is_complete and not self._parts and self._head is not None and self._head.keep_alive

    def is_open(self) -> bool:
        """Return whether the connection is open: no data and no end of stream since the last response."""
        return self._arrivals is None or not self._arrivals.poll(0)

    async def aclose(self) -> None:
        self._reader.close()
        await trio.aclose_forcefully(self._stream)


class HttpAnswer:
    """A response; iteration yields the body in pieces, decompressed. The caller must call `aclose` in any case."""

    def __init__(self, client: "HttpClient", connection: _Connection, head: ResponseHead) -> None:
        self.status = head.status
        self.headers: Mapping[str, str] = head.headers
        self._client = client
        self._connection = connection
        self._unzip = zlib.decompressobj(_GZIP) if head.headers.get("content-encoding", "") == "gzip" else None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._unzip is None:
            piece = await self._connection.piece()
        else:
            piece = await self._unzipped(self._unzip)
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def read(self, most: int) -> bytes | bytearray:
        """Return the whole body. Raises HttpFault if the body is longer than `most` bytes."""
        body: bytes | bytearray = b""
        if self._unzip is None and (arrived := self._connection.whole_body()) is not None:
            body = arrived
        else:
            async for piece in self:
                body = bytearray(body) + piece if body else piece
                if len(body) > most:
                    break
        if len(body) > most:
            raise HttpFault(502, f"the response is longer than {most} bytes")
        return body

    async def _unzipped(self, unzip: "zlib._Decompress") -> bytes | None:
        while True:
            packed = unzip.unconsumed_tail or await self._connection.piece()
            if packed is None:
                return None
            try:
                piece = unzip.decompress(packed, _PIECE)
            except zlib.error as fault:
                raise HttpFault(502, f"the response is not valid gzip: {fault}") from None
            if piece:
                return piece

    async def aclose(self) -> None:
        """Return the connection to the pool, or close it if the response was not read to its end."""
        for connection in self._client.release(self._connection):
            await connection.aclose()


@attrs.define(eq=False)
class HttpClient:
    """A client of one server; `headers` are sent with each request."""

    endpoint: Endpoint
    headers: Sequence[tuple[str, str]] = ()
    opened: int = attrs.field(default=0, init=False)  # total number of opened connections
    _idle: deque[_Connection] = attrs.field(factory=deque, init=False)  # the last one was used last
    _is_closed: bool = attrs.field(default=False, init=False)
    _base: str = attrs.field(init=False)
    _fields: dict[str, bytes] = attrs.field(factory=dict, init=False)  # header fields by the media type of the body

    def __attrs_post_init__(self) -> None:
        self._base = self.endpoint.base

    async def send(self, method: str, target: str, media_type: str = "", body: bytes = b"") -> HttpAnswer:
        """Send a request and return the response; `target` is the path with its query."""
        fields = self._fields.get(media_type)
        if fields is None:
            typed = [("Content-Type", media_type)] if media_type else []
            fields = self._fields[media_type] = encode_fields([*self.endpoint.headers, *self.headers, *typed])
        encoded = encode_request(method, self._base + target, fields, body)
        connection = await self._connection()
        try:
            return HttpAnswer(self, connection, await connection.exchange(encoded))
        except BaseException:
            await connection.aclose()
            raise

    def release(self, connection: _Connection) -> Sequence[_Connection]:
        """Return the connection to the pool if it is reusable. Return the connections that the caller must close."""
        if self._is_closed or not connection.is_reusable:
            return (connection,)
        now = connection.used_at = trio.current_time()
        self._idle.append(connection)
        if len(self._idle) <= _MOST_IDLE and self._idle[0].used_at >= now - _IDLE_S:
            return ()
        surplus = []
        while len(self._idle) > _MOST_IDLE or self._idle[0].used_at < now - _IDLE_S:
            surplus.append(self._idle.popleft())
        return surplus

    async def aclose(self) -> None:
        """Close all idle connections; close each other connection when its response ends."""
        self._is_closed = True
        with trio.CancelScope(shield=True):  # closing does not wait, and a cancellation would leave sockets open
            while self._idle:
                await self._idle.pop().aclose()

    async def _connection(self) -> _Connection:
        while self._idle:
            connection = self._idle.pop()
            if trio.current_time() < connection.used_at + _IDLE_S and connection.is_open():
                return connection
            await connection.aclose()
        connection = await _Connection.opened(self.endpoint)
        self.opened += 1
        return connection


def _has_end(head: ResponseHead) -> bool:
    """Return whether the head determines the length of the body; otherwise the body ends with the connection."""
    return "content-length" in head.headers or "chunked" in head.headers.get("transfer-encoding", "").lower()
