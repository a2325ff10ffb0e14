"""An HTTP/1.1 server on Trio, with one task per connection.

The handler returns an `HttpResponse` with a complete body, or with a function that sends the body in pieces for an
unlimited time. Pipelined requests are answered in order, one after the other. While a body is sent in pieces, the
server also reads from the connection, so that the response ends when the client disconnects.

Bounds: a connection contains at most one request (see the limits in protocol.py) and one piece of a response. A client
must complete a request within `request_s`. The client is disconnected if it reads nothing for `stall_s` or sends no
request for `idle_s`. At most `LARGE_BODIES` bodies over 64 KiB are read at a time (large_bodies.py), each for at most
`large_body_s`. If the maximum number of connections is reached, the connection that has been idle longest is closed.

With credentials (`admits`), a request is authenticated from its head, and a rejected request is answered before its
body is read. The slots for large bodies are shared between users; without credentials they are shared between
addresses. Until a client has been admitted, its connection counts as unauthenticated: the number of these connections
and their time are limited (unauthenticated.py).

Owns: its connections.
Ends: after `shut_down`, when all connections have ended, or by cancellation.
Fails: a client's fault ends only its connection; a bug of the handler is logged and answered with status 500.
"""

import itertools
import ssl
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import attrs
import structlog
import trio

from kschedd.http.body_sender import BodySender
from kschedd.http.large_bodies import LargeBodies
from kschedd.http.protocol import CONTINUE, HttpFault, HttpRequest, RequestReader, encode_head, http_date
from kschedd.http.unauthenticated import NotAdmitted, Unauthenticated, address_of

_READ: Final = 64 << 10
_SENT_AT_ONCE: Final = 256 << 10
_LARGE: Final = 64 << 10
LARGE_BODIES: Final = 64
# maximum number of connections of disconnected clients that end in one iteration of the event loop
ENDS_AT_ONCE: Final = 32

Send = Callable[[bytes], Awaitable[None]]


@attrs.frozen(eq=False)
class HttpResponse:
    """A response of a handler. Either `body` or `stream` is set.

    `stream` is called with a function that sends a piece; the body ends when `stream` returns.
    """

    status: int
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    stream: Callable[[Send], Awaitable[None]] | None = None


@attrs.frozen(eq=False)
class Peer:
    """The client of a request: number of the connection, address, and the client certificate if there is one."""

    number: int
    address: str
    certificate: Any = None  # in the format of `ssl.SSLSocket.getpeercert`


Handler = Callable[[HttpRequest, Peer], Awaitable[HttpResponse]]
Admits = Callable[[HttpRequest, Peer], Hashable | None]


@attrs.frozen
class HttpLimits:
    connections: int = 2048
    most_body: int = 3 << 20
    request_s: float = 60.0
    large_body_s: float = 30.0
    stall_s: float = 30.0
    idle_s: float = 180.0
    unauthenticated: int = 256
    unauthenticated_s: float = 10.0


class HttpServer:
    """An HTTP/1.1 server. `explain` returns the response to a request that could not be read.

    `admits` returns the user of a request from the request's head; None if the handler would reject the request.
    Without `admits`, every client counts as authenticated.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        explain: Callable[[HttpFault], HttpResponse] | None = None,
        admits: Admits | None = None,
        limits: HttpLimits | None = None,
        log: Any = None,
    ) -> None:
        self._handler = handler
        self._admits = admits
        self._explain = explain or _explained
        self._limits = limits or HttpLimits()
        self._log = log or structlog.get_logger("kschedd.http")
        self._connections: set[_Connection] = set()
        self._unauthenticated: Unauthenticated[_Connection] = Unauthenticated(self._limits.unauthenticated)
        self._numbers = itertools.count(1)
        self._most = 0
        self._large = LargeBodies(LARGE_BODIES)
        self._ends = trio.Semaphore(ENDS_AT_ONCE)
        self._stop = trio.Event()
        self.ended = trio.Event()
        self._grace_s = 0.0

    def used(self) -> tuple[int, int]:
        """Return the current and the highest number of connections."""
        return len(self._connections), self._most

    def unauthenticated(self) -> tuple[int, int]:
        """Return the current and the highest number of unauthenticated connections."""
        return len(self._unauthenticated), self._unauthenticated.most_so_far

    @property
    def connections(self) -> int:
        return len(self._connections)

    async def serve(
        self, listeners: Sequence[Any], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve until `shut_down`, and then close the listeners. Reports `started` once it accepts connections."""
        async with trio.open_nursery() as clients:
            async with trio.open_nursery() as accepting:
                for listener in listeners:
                    accepting.start_soon(self._accept, listener, clients)
                task_status.started()
                await self._stop.wait()
                accepting.cancel_scope.cancel()
            for connection in list(self._connections):
                connection.end()
            clients.cancel_scope.deadline = trio.current_time() + self._grace_s
        self.ended.set()

    def shut_down(self, grace_s: float = 2.0) -> None:
        """Stop accepting connections.

        Running requests may end within `grace_s`; bodies that are sent in pieces end immediately.
        """
        self._grace_s = grace_s
        self._stop.set()

    async def _accept(self, listener: Any, clients: trio.Nursery) -> None:
        await trio.serve_listeners(self._serve_client, [listener], handler_nursery=clients)

    async def _serve_client(self, stream: trio.abc.Stream) -> None:
        if self._admits is None and not self._has_room():
            with trio.move_on_after(1):
                await _turn_away(stream, self._explain(_too_many()))
            return
        number, unauthenticated = next(self._numbers), self._unauthenticated
        connection = _Connection(
            stream, number, self._handler, self._explain, self._limits, self._large, self._ends, self._log
        )
        self._connections.add(connection)
        self._most = max(self._most, len(self._connections))
        if self._admits is not None:
            connection.judge(self._admits, partial(self._has_room, connection))
            if (one_too_many := unauthenticated.add(connection, address_of(stream))) is not None:
                self._connections.discard(one_too_many)
                one_too_many.drop()
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)
            unauthenticated.discard(connection)

    def _has_room(self, newcomer: "_Connection | None" = None) -> bool:
        """Return whether the limit allows one more connection, or one more admitted client.

        An idle connection is closed if necessary. Unauthenticated clients do not count, because they have a limit of
        their own.
        """
        if newcomer is not None and newcomer not in self._unauthenticated:
            return True
        if len(self._connections) - len(self._unauthenticated) >= self._limits.connections and not self._end_idle():
            return False
        if newcomer is not None:
            self._unauthenticated.discard(newcomer)
        return True

    def _end_idle(self) -> bool:
        idle = [each for each in self._connections if each.idle_since is not None and each not in self._unauthenticated]
        longest = min(idle, key=lambda each: each.idle_since or 0.0, default=None)
        if longest is None:
            return False
        self._connections.discard(longest)
        longest.drop()
        return True


class _Connection:
    def __init__(
        self,
        stream: trio.abc.Stream,
        number: int,
        handler: Handler,
        explain: Callable[[HttpFault], HttpResponse],
        limits: HttpLimits,
        large: LargeBodies,
        ends: trio.Semaphore,
        log: Any,
    ) -> None:
        self._stream = stream
        self._number = number
        self._handler = handler
        self._explain = explain
        self._limits = limits
        self._large = large
        self._ends = ends
        self._log = log
        self._reader = RequestReader(limits.most_body)
        self._everything = trio.CancelScope()
        self._streaming: trio.CancelScope | None = None
        self._ending = False
        self._admits: Admits | None = None
        self._has_room: Callable[[], bool] = bool
        self._judged: HttpRequest | None = None
        self._user: Hashable | None = None
        self.idle_since: float | None = None

    def judge(self, admits: Admits, has_room: Callable[[], bool]) -> None:
        """Authenticate requests from their heads.

        The client is unauthenticated until one of its requests is admitted and the limit allows another client.
        """
        self._admits, self._has_room = admits, has_room
        self._everything.deadline = trio.current_time() + self._limits.unauthenticated_s

    def _admitted(self, request: HttpRequest, peer: Peer) -> bool:
        """Return whether the head of the request causes its admission.

        Raises HttpFault if the limit allows no further client.
        """
        if self._admits is None:
            return True
        self._user = self._admits(request, peer)
        if self._user is None:
            return False
        if not self._has_room():
            raise _too_many()
        self._everything.deadline = float("inf")
        return True

    def _judge_head(self, peer: Peer) -> None:
        """Raise NotAdmitted if the head of the request that is being read is complete and is rejected."""
        head = self._reader.head
        if head is self._judged:
            return
        self._judged = head
        if head is not None and not self._admitted(head, peer):
            raise NotAdmitted(head)

    @property
    def descriptor(self) -> int:
        """The file descriptor of the socket; -1 if raw bytes must not be written to it."""
        return self._stream.socket.fileno() if isinstance(self._stream, trio.SocketStream) else -1

    async def run(self) -> None:
        try:
            with self._everything:
                await self._serve()
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            pass  # the client has disconnected or reads nothing
        finally:
            self._reader.close()
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
                await trio.aclose_forcefully(self._stream)

    def end(self) -> None:
        """Accept no further request."""
        self._ending = True
        if self._streaming is not None:
            self._streaming.cancel()
        elif self.idle_since is not None:
            self.drop()

    def drop(self) -> None:
        self._everything.cancel()

    async def _serve(self) -> None:
        peer = await self._peer()
        if peer is None:
            return
        while not self._ending:
            try:
                request = await self._next_request(peer)
                if request is not None:
                    self._admitted(request, peer)  # the handler's response contains the reason for a rejection
            except NotAdmitted as refused:
                await self._answer(refused.head, peer)
                await self._linger()
                return
            except HttpFault as fault:
                await self._send_whole(self._explain(fault), "GET", keep=False)
                await self._linger()
                return
            if request is None:
                return
            keep = await self._answer(request, peer)
            if not keep:
                await self._linger()
                return

    async def _peer(self) -> Peer | None:
        stream, certificate = self._stream, None
        if isinstance(stream, trio.SSLStream):
            with trio.move_on_after(self._limits.stall_s) as waiting:
                try:
                    await stream.do_handshake()
                except (trio.BrokenResourceError, ssl.SSLError):
                    return None
            if waiting.cancelled_caught:
                return None
            certificate = stream.getpeercert()
            stream = stream.transport_stream
        address = address_of(stream)
        if not address and isinstance(stream, trio.SocketStream):
            return None  # the client has disconnected
        return Peer(self._number, address, certificate)

    async def _next_request(self, peer: Peer) -> HttpRequest | None:
        """Return the next request; None if the client has closed the connection or has been idle for too long.

        Raises HttpFault, and NotAdmitted if the head of an unfinished request is rejected.
        """
        reader, limits = self._reader, self._limits
        request = reader.next_request()
        if request is not None:
            return request
        started = trio.current_time()
        deadline = started + (limits.request_s if reader.begun else limits.idle_s)
        held = 0
        self._judge_head(peer)
        try:
            while True:
                self.idle_since = None if reader.begun else started
                with trio.move_on_at(deadline) as waiting:
                    data = await self._receive()
                self.idle_since = None
                if waiting.cancelled_caught:
                    if reader.begun:
                        raise HttpFault(408, f"the request was not complete after {limits.request_s:g} s")
                    await self._turn_to_end()
                    return None
                if not data:
                    return None
                before = reader.begun
                reader.feed(bytes(data))
                request = reader.next_request()
                if request is not None:
                    return request
                if reader.begun and not before:
                    deadline = trio.current_time() + limits.request_s
                held += len(data)
                self._judge_head(peer)
                if reader.expects_continue:
                    reader.expects_continue = False
                    await self.send(CONTINUE)
                if held > _LARGE:
                    with self._large.place(self._owner(peer)) as place:
                        if place is not None:
                            return await self._rest(deadline)
                    raise HttpFault(503, "too many large requests at the same time; try again")
        finally:
            self.idle_since = None

    def _owner(self, peer: Peer) -> tuple[str, Hashable]:
        """Return the owner of this client's slots for large bodies: the user, or the address without credentials."""
        return ("address", peer.address) if self._user is None else ("user", self._user)

    async def _receive(self) -> bytes | bytearray:
        """Return the bytes that the client has sent; empty if the client has disconnected."""
        data: bytes | bytearray = b""
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            data = await self._stream.receive_some(_READ)
        if not data:
            await self._turn_to_end()
        return data

    async def _turn_to_end(self) -> None:
        """Wait until this connection may be closed.

        Thousands of clients may disconnect at the same time; closing all their connections together would delay all
        other tasks.
        """
        async with self._ends:
            pass

    async def _rest(self, deadline: float) -> HttpRequest | None:
        """Read the remaining bytes of a large request, and return the request."""
        last = trio.current_time() + self._limits.large_body_s
        while True:
            with trio.move_on_at(min(deadline, last)) as waiting:
                data = await self._receive()
            if waiting.cancelled_caught:
                limit = self._limits.request_s if deadline < last else self._limits.large_body_s
                raise HttpFault(408, f"the request was not complete after {limit:g} s")
            if not data:
                return None
            self._reader.feed(bytes(data))
            request = self._reader.next_request()
            if request is not None:
                return request

    async def _answer(self, request: HttpRequest, peer: Peer) -> bool:
        """Answer the request, and return whether the connection continues."""
        try:
            response = await self._handler(request, peer)
        except Exception as bug:  # a bug in a handler must not end the server
            self._log.error("http.handler_bug", method=request.method, target=_shown(request.target), exc_info=bug)
            response = self._explain(HttpFault(500, "a bug in the daemon; its log has the traceback"))
        keep = request.keep_alive and not self._ending and not request.upgrade
        if response.stream is None:
            await self._send_whole(response, request.method, keep)
            return keep
        return await self._send_stream(response, response.stream, request, keep)

    async def _send_whole(self, response: HttpResponse, method: str, keep: bool) -> None:
        headers = [*response.headers]
        if response.status != 204:
            headers.append(("Content-Length", str(len(response.body))))
        head = encode_head(response.status, [*headers, ("Date", http_date()), *_connection(keep)])
        body = b"" if method == "HEAD" else response.body
        if len(body) <= _SENT_AT_ONCE:
            await self.send(head + body)
        else:  # avoids another copy
            await self.send(head)
            await self.send(body)

    async def _send_stream(
        self, response: HttpResponse, stream: Callable[[Send], Awaitable[None]], request: HttpRequest, keep: bool
    ) -> bool:
        head = encode_head(
            response.status,
            [*response.headers, ("Transfer-Encoding", "chunked"), ("Date", http_date()), *_connection(keep)],
        )
        if request.method == "HEAD":
            await self.send(head)
            return keep
        sender = BodySender(self, head)
        whole = False
        self._streaming = streaming = trio.CancelScope()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._listen, nursery.cancel_scope)
            with streaming:
                try:
                    await stream(sender)
                    whole = True
                except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
                    pass  # a client that does not read receives no error
                except Exception as bug:
                    self._log.error("http.handler_bug", target=_shown(request.target), exc_info=bug)
            nursery.cancel_scope.cancel()
        self._streaming = None
        told_to_end = streaming.cancelled_caught
        # this code is outside the nursery, so that an exception for a disconnected client is raised by itself and not
        # in a group, as `run` expects
        if whole or (told_to_end and not sender.midway):
            await sender.end()
        return keep and whole and not told_to_end

    async def _listen(self, scope: trio.CancelScope) -> None:
        """Read while a body is sent, so that sending is cancelled when the client disconnects.

        Pipelined bytes are stored, up to the size of one large request.
        """
        ahead = 0
        while ahead <= self._limits.most_body + _LARGE:
            data = await self._receive()
            if not data:
                break
            ahead += len(data)
            self._reader.feed(bytes(data))
        scope.cancel()

    async def send(self, data: bytes | memoryview) -> None:
        if len(data) <= _SENT_AT_ONCE:
            with trio.fail_after(self._limits.stall_s):
                await self._stream.send_all(data)
            return
        view = memoryview(data)
        for start in range(0, len(view), _SENT_AT_ONCE):
            with trio.fail_after(self._limits.stall_s):
                await self._stream.send_all(view[start : start + _SENT_AT_ONCE])

    async def _linger(self) -> None:
        """Let the client read the last response: discard what the client still sends, for 1 s and up to a limit."""
        if isinstance(self._stream, trio.SocketStream):
            await self._stream.send_eof()
        with trio.move_on_after(1):
            for _ in range(256):
                if not await self._receive():
                    return


def _too_many() -> HttpFault:
    return HttpFault(503, "too many connections; try again later")


def _connection(keep: bool) -> Sequence[tuple[str, str]]:
    return () if keep else (("Connection", "close"),)


def _explained(fault: HttpFault) -> HttpResponse:
    return HttpResponse(fault.status, (("Content-Type", "text/plain; charset=utf-8"),), f"{fault.why}\n".encode())


async def _turn_away(stream: trio.abc.Stream, response: HttpResponse) -> None:
    headers = [*response.headers, ("Content-Length", str(len(response.body))), ("Connection", "close")]
    try:
        await stream.send_all(encode_head(response.status, headers) + response.body)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    finally:
        await trio.aclose_forcefully(stream)


def _shown(target: bytes) -> str:
    return target[:200].decode("latin-1")
