"""An HTTP/1.1 server on Trio: one task for each connection, which reads a request, has it answered, and reads on.

The answer is a handler's: `HttpResponse`, with a body at hand or a function that sends one in pieces for as long as it
likes. Requests that a client sends without waiting are answered in their order, one after the other. While a body is
sent in pieces the connection is listened to, so that a client that goes away ends what it asked for.

Bounds: a connection holds one request, its limits (protocol.py) and one piece of what is sent. Who begins a request has
`request_s` to finish it, who reads nothing is dropped after `stall_s`, who asks nothing after `idle_s`. Bodies over
64 KiB are read `LARGE_BODIES` at a time (large_bodies.py), each for at most `large_body_s`. When all places are taken
the connection that was idle longest has to go.

Where there are credentials (`admits`), a request is judged by its head: one that is refused is answered before its body
is read. The places for large bodies are shared out between users, or between addresses without credentials. Until a
client has been admitted its connection is one of few unauthenticated ones, for a short time (unauthenticated.py).

Owns: its connections.  Ends: after `shut_down`, when all connections have ended, or by cancellation.
Fails: a fault of a client ends its connection; a bug of the handler is logged and answered with 500.
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
ENDS_AT_ONCE: Final = 32  # connections whose clients have gone and that end in one iteration of the event loop

Send = Callable[[bytes], Awaitable[None]]


@attrs.frozen(eq=False)
class HttpResponse:
    """`stream` is called with a function that sends a piece; the body ends when it returns. It excludes `body`."""

    status: int
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    stream: Callable[[Send], Awaitable[None]] | None = None


@attrs.frozen(eq=False)
class Peer:
    """Who asks: a number for each connection, the address, and the name on the client's certificate, if it has one."""

    number: int
    address: str
    certificate: Any = None  # as `ssl.SSLSocket.getpeercert` gives it


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
    """See the module. `explain` makes the answer to a request that could not be read.

    `admits` returns the user who sends a request, by its head; None if the handler would refuse it. Without it nobody
    is unauthenticated.
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
        """How many connections there are, and were at most."""
        return len(self._connections), self._most

    def unauthenticated(self) -> tuple[int, int]:
        """Return how many connections have not been admitted, and were at most."""
        return len(self._unauthenticated), self._unauthenticated.most_so_far

    @property
    def connections(self) -> int:
        return len(self._connections)

    async def serve(
        self, listeners: Sequence[Any], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve until `shut_down`; closes the listeners. Reports started once it accepts."""
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
        """Accept nothing more. Requests that run have `grace_s` to end; bodies sent in pieces end at once."""
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
        """Return whether there is room for one more connection, or for a client that is admitted.

        Ends an idle connection for it if need be. Unauthenticated clients do not count: their budget is another.
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
        """Have requests judged by their heads; until one is admitted, and has room, the client is unauthenticated."""
        self._admits, self._has_room = admits, has_room
        self._everything.deadline = trio.current_time() + self._limits.unauthenticated_s

    def _admitted(self, request: HttpRequest, peer: Peer) -> bool:
        """Return whether the request is not refused by its head. Raises HttpFault if its client has no room."""
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
        """Raise NotAdmitted if the request that is being read has a whole head, and is refused by it."""
        head = self._reader.head
        if head is self._judged:
            return
        self._judged = head
        if head is not None and not self._admitted(head, peer):
            raise NotAdmitted(head)

    @property
    def descriptor(self) -> int:
        """Of the connection's socket, where bytes may be written to it as they are; else -1."""
        return self._stream.socket.fileno() if isinstance(self._stream, trio.SocketStream) else -1

    async def run(self) -> None:
        try:
            with self._everything:
                await self._serve()
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            pass  # the client is gone, or takes nothing
        finally:
            self._reader.close()
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
                await trio.aclose_forcefully(self._stream)

    def end(self) -> None:
        """Take no further request."""
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
                    self._admitted(request, peer)  # if not, the handler answers why
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
            return None  # it has gone
        return Peer(self._number, address, certificate)

    async def _next_request(self, peer: Peer) -> HttpRequest | None:
        """Return the next request; None when the client has closed, or has been idle for too long.

        Raises HttpFault, and NotAdmitted by the head of a request that is not whole.
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
                    raise HttpFault(503, "too many large requests at once; try again")
        finally:
            self.idle_since = None

    def _owner(self, peer: Peer) -> tuple[str, Hashable]:
        """Return by what clients share the places for large bodies: the user, or else the address."""
        return ("address", peer.address) if self._user is None else ("user", self._user)

    async def _receive(self) -> bytes | bytearray:
        """What the client has sent, nothing where it has gone."""
        data: bytes | bytearray = b""
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            data = await self._stream.receive_some(_READ)
        if not data:
            await self._turn_to_end()
        return data

    async def _turn_to_end(self) -> None:
        """Wait until few others end: thousands of clients may go at once, and all else would wait for them."""
        async with self._ends:
            pass

    async def _rest(self, deadline: float) -> HttpRequest | None:
        """The rest of a large request."""
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
        """Have the request answered; whether the connection goes on."""
        try:
            response = await self._handler(request, peer)
        except Exception as bug:  # a handler's bug must not end the server
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
        else:  # not copied once more
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
                    pass  # who does not read is not told
                except Exception as bug:
                    self._log.error("http.handler_bug", target=_shown(request.target), exc_info=bug)
            nursery.cancel_scope.cancel()
        self._streaming = None
        told_to_end = streaming.cancelled_caught
        # Not in the nursery: a client that is gone by now raises what `run` expects, and no group of it.
        if whole or (told_to_end and not sender.midway):
            await sender.end()
        return keep and whole and not told_to_end

    async def _listen(self, scope: trio.CancelScope) -> None:
        """While a body is sent: a client that closes is gone. What it sends ahead is kept, up to one large request."""
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
        """Let the client read the last answer: what it still sends is thrown away, for a moment and up to a limit."""
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
