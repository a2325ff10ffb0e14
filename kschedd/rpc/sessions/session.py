"""The session of one client: reads its requests, runs them concurrently, and sends the responses.

Tasks: a reader; a writer (Outbox.pump); one per running request; one per open stream. The reader acquires a slot for
each request, and stops reading while no slot is free. If a client sends requests faster than they are executed, its
socket therefore blocks. The same happens to a client that does not read its responses: while its outbox is full, no
response is encoded and its streams pause, so its slots stay occupied.

A session ends in five cases: the client disconnects (its requests are cancelled); the client closes its sending side
and all its requests are answered; a fatal protocol fault; the client reads nothing for too long; shutdown. Fails: a
fault of a client affects only its own session; a handler's bug is logged, and the error `internal` is sent.
"""

from __future__ import annotations

import select
import socket
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import attrs
import structlog
import trio

from kschedd.access.audit_log import AuditLog
from kschedd.access.users import Caller
from kschedd.actors.courtesy import Courtesy
from kschedd.errors import KscheddError
from kschedd.rpc.encoding import encode_error, encode_response
from kschedd.rpc.message_checks import FROM_CLIENTS, Limits
from kschedd.rpc.protocol import (
    NO_MSGID,
    Connection,
    Event,
    Frame,
    Notification,
    ProtocolFault,
    RpcRequest,
    unpack_in_slices,
)
from kschedd.rpc.sessions.large_results import encode_large_at_once
from kschedd.rpc.sessions.open_stream import STOPPING, OpenStream
from kschedd.rpc.sessions.sending import Outbox, Pieces, Total, writer_to
from kschedd.rpc.sessions.unfinished import Unfinished
from kschedd.service.daemon.answers import ClientAnswer
from kschedd.service.errors import RpcError
from kschedd.service.params import bind
from kschedd.service.performing import Authorize, MethodCalls
from kschedd.service.table import Call, Large, Method, StreamProducer, find_method
from kschedd.service.wire_errors import only_of_group, outcome_of, wire_error
from kschedd.service.workers import FairShares

# number of bytes read in one step; this many bytes of small requests are unpacked in a few milliseconds
_CHUNK = 16 * 1024
#: seconds between checks whether a client is connected while nothing is read from it
_HANG_UP_CHECK_S = 0.25
#: number of sessions of disconnected clients that end in one iteration, in a tenth of a millisecond each
ENDS_AT_ONCE = 32
# depth of values that may contain objects: in a List passed by name, they are at level three
_DEPTH = 3
_LAST_WORDS_S = 1.0  # time limit in seconds for the last actions of a session


@attrs.frozen
class SessionLimits:
    """The limits of one client: concurrent requests and streams, queued bytes, and time to read."""

    requests: int = 64
    streams: int = 64
    # number of bytes that may be queued for the client; below it, one more response of any size is queued
    held: int = 8 << 20
    stall_s: float = 30.0
    wire: Limits = FROM_CLIENTS


@attrs.define(eq=False)
class Shared:
    """The state that all clients of the socket share; HTTP clients also share `shares`."""

    shares: FairShares = attrs.field(factory=FairShares)
    total: Total = attrs.field(factory=Total)
    audit: AuditLog | None = None
    authorize: Authorize | None = None
    unfinished: Unfinished = attrs.field(factory=Unfinished)
    courtesy: Courtesy = attrs.field(factory=Courtesy)
    most_requests: int = 0  # highest number of concurrent requests of a client
    most_streams: int = 0
    _ends: trio.Semaphore = attrs.field(factory=lambda: trio.Semaphore(ENDS_AT_ONCE), init=False)

    async def turn_to_end(self) -> None:
        """Wait until only a few other sessions are ending.

        If a thousand clients disconnected together, all other work would have to wait until their sessions end.
        """
        async with self._ends:
            pass


class ClientSession:
    """The session of one client. Call `run` once; `shut_down` may be called at any time."""

    def __init__(
        self,
        stream: trio.abc.Stream,
        name: str,
        methods: Mapping[str, Method],
        identity: Mapping[str, Any],
        terms: SessionLimits,
        shared: Shared,
        log: structlog.typing.FilteringBoundLogger,
        caller: Caller | None = None,
        early: bytes = b"",
    ) -> None:
        self.caller = caller or Caller()
        self._early = early  # bytes received before the session began
        self.methods = methods
        self.identity = identity
        self.turns = shared.shares.turns
        self.workers = shared.shares.workers
        self._shared = shared
        self._large = shared.shares.large
        self._calls = MethodCalls(shared.audit, shared.authorize, self._large_slot, outcome_of)
        self._total_mib = shared.total.most >> 20
        self._stream = stream
        self._name = name
        self._terms = terms
        self._log = log.bind(client=name)
        self._connection = Connection(terms.wire)
        self._unstarted: deque[Event] = deque()
        self._slots = trio.Semaphore(terms.requests)
        self._outbox = Outbox(name, terms.held, shared.total, self.turns, self._too_slow, writer_to(stream))
        self._streams: dict[int, OpenStream] = {}
        self._next_stream = 1
        self._stopping = False
        self._ending = False  # True while the client is being disconnected for another client
        self._since = self._active_at = trio.current_time()
        self._reading = trio.CancelScope()
        self._at_end: dict[str, Callable[[], Awaitable[None]]] = {}
        self._everything: trio.Nursery
        self._work: trio.Nursery

    async def run(self) -> None:
        try:
            await self._run()
        finally:
            self._shared.unfinished.note(self, 0)
            with trio.CancelScope(shield=True, deadline=trio.current_time() + _LAST_WORDS_S):
                for do in self._at_end.values():
                    await do()

    def at_end(self, name: str, do: Callable[[], Awaitable[None]]) -> None:
        self._at_end[name] = do

    async def _run(self) -> None:
        watching = trio.CancelScope()
        async with trio.open_nursery() as self._everything:
            self._everything.start_soon(self._write)
            try:
                async with trio.open_nursery() as self._work:
                    try:
                        with self._reading:
                            await self._read()
                    finally:
                        self._refuse_unstarted()
                    if self.running or self._streams:
                        # While the last requests run, check that the client is still connected.
                        self._everything.start_soon(self._watch_hang_up, watching)
            finally:
                self._outbox.close()
            watching.cancel()

    @property
    def idle_s(self) -> float | None:
        """The seconds since the client was last active; None while it has requests, streams or queued messages."""
        if self._ending or self._streams or self._outbox.held or self._slots.value < self._terms.requests:
            return None
        return trio.current_time() - self._active_at

    def describe(self) -> ClientAnswer:
        user = self.caller.user
        return ClientAnswer(
            number=int(self._name.partition(" ")[0]),
            user=user.name,
            groups=user.groups,
            read_only=user.read_only,
            pid=self.caller.process or None,
            uid=self.caller.uid,
            address=self.caller.address or None,
            connected_s=trio.current_time() - self._since,
            idle_s=self.idle_s,
            requests=self.running,
            streams=self.streaming,
            waiting_bytes=self.unread,
        )

    @property
    def running(self) -> int:
        """The number of running requests."""
        return self._terms.requests - self._slots.value

    @property
    def streaming(self) -> int:
        """The number of open streams."""
        return len(self._streams)

    @property
    def unread(self) -> int:
        """The number of queued bytes."""
        return self._outbox.held

    @property
    def ending(self) -> bool:
        return self._ending

    def end_idle(self, why: str) -> None:
        """Send the client the reason, and end the session."""
        self._log.info("rpc.client_idle", why=why)
        self._ending = True
        self._outbox.put(encode_error(NO_MSGID, "idle", why))
        self._reading.cancel()

    def end_unfinished(self) -> None:
        """Disconnect the client with the most bytes of incomplete requests: send it an error, and read no more from it.

        Its earlier requests are completed.
        """
        why = f"dropped: more than {self._shared.unfinished.most >> 20} MiB have come of requests that are not complete"
        self._log.warning("rpc.client_left", why=why)
        self._ending = True
        self._connection = Connection(self._terms.wire)
        self._outbox.put(encode_error(NO_MSGID, "too_slow", f"{why}, and most of it from this client: send faster"))
        self._reading.cancel()

    def _too_slow(self) -> None:
        """Send an error to a client whose queued messages were dropped, and cancel its requests and streams."""
        why = f"dropped: more than {self._total_mib} MiB wait for all clients, and most of it for this one"
        self._log.warning("rpc.client_left", why=why)
        self._ending = True
        self._reading.cancel()
        self._work.cancel_scope.cancel()
        self._outbox.put(encode_error(NO_MSGID, "too_slow", f"{why}: read faster, or request less"))
        self._everything.cancel_scope.deadline = trio.current_time() + self._terms.stall_s

    def shut_down(self, grace_s: float) -> None:
        """Stop reading, give running requests `grace_s` to end, and end the others with the error `shutting_down`."""
        self._stopping = True
        self._reading.cancel()
        for stream in self._streams.values():
            stream.end(*STOPPING)
        self._work.cancel_scope.deadline = trio.current_time() + grace_s
        self._everything.cancel_scope.deadline = trio.current_time() + grace_s + 1

    def cancel_stream(self, stream_id: int) -> bool:
        stream = self._streams.get(stream_id)
        if stream is None:
            return False
        stream.end("cancelled", "the client cancelled it")
        return True

    # Reading

    async def _read(self) -> None:
        while True:
            data: bytes | bytearray
            if self._early:
                data, self._early = self._early, b""
            else:
                try:
                    data = await self._stream.receive_some(_CHUNK)
                except trio.BrokenResourceError:
                    data = b""
            self._active_at = trio.current_time()
            if not data:
                await self._shared.turn_to_end()
            await self._take(data)
            while self._unstarted:
                if not await self._start(self._unstarted[0]):
                    return
                self._unstarted.popleft()
            if not data:
                if hung_up(self._stream) is not False:
                    self._leave("the client is gone")
                return

    async def _take(self, data: bytes | bytearray) -> None:
        if not data:
            self._unstarted.extend(self._connection.receive_eof())
        for found in self._connection.receive_frames(data):
            if isinstance(found, Frame):
                event = await self.turns.drive(self._name, unpack_in_slices(found, self._terms.wire))
                self._connection.note(event)
                self._unstarted.append(event)
            else:
                self._unstarted.append(found)
        self._shared.unfinished.note(self, self._connection.unfinished)

    async def _start(self, event: Event) -> bool:
        """Start the request in a message; return False if the session must stop reading."""
        match event:
            case RpcRequest() | Notification():
                if not await self._take_slot():
                    return False
                self._shared.courtesy.request_began()
                self._shared.most_requests = max(self._shared.most_requests, self.running)
                self._work.start_soon(self._answer, event)
            case ProtocolFault(why, msgid, fatal, code):
                self._log.warning("rpc.protocol_fault", why=why, closing=fatal)
                if fatal or msgid is not None:
                    self._outbox.put(encode_error(NO_MSGID if msgid is None else msgid, code, why))
                if fatal:
                    self._work.cancel_scope.cancel()
                    return False
            case _:
                self._log.warning("rpc.unexpected_response", msgid=event.msgid)
        return True

    async def _take_slot(self) -> bool:
        """Wait for a free slot; return False if the client disconnects meanwhile."""
        try:
            self._slots.acquire_nowait()
            return True
        except trio.WouldBlock:
            pass
        while True:
            with trio.move_on_after(_HANG_UP_CHECK_S):
                await self._slots.acquire()
                return True
            if hung_up(self._stream):
                self._leave("the client is gone")
                return False

    async def _watch_hang_up(self, scope: trio.CancelScope) -> None:
        # Polling: Trio has no event for a socket that is closed on both sides.
        with scope:
            while not hung_up(self._stream):  # noqa: ASYNC110
                await trio.sleep(_HANG_UP_CHECK_S)
            self._leave("the client is gone")

    def _refuse_unstarted(self) -> None:
        if self._stopping:
            for event in self._unstarted:
                if isinstance(event, RpcRequest):
                    self._outbox.put(encode_error(event.msgid, *STOPPING))

    # Requests

    async def _answer(self, message: RpcRequest | Notification) -> None:
        answered = False
        try:
            opened: list[OpenStream] = []
            reply = await self._outcome(message, opened)
            if reply is not None:
                self._outbox.answer(reply)
            answered = True
            for stream in opened:
                self._work.start_soon(self._feed, stream)
            if message.size:
                await self.turns.drive(self._name, freed(message.params))
        finally:
            self._slots.release()
            self._active_at = trio.current_time()
            if self._stopping and not answered and isinstance(message, RpcRequest):
                self._outbox.put(encode_error(message.msgid, *STOPPING))

    async def _outcome(self, message: RpcRequest | Notification, opened: list[OpenStream]) -> bytes | Pieces | None:
        """Run the handler and return the response; None for a notification.

        `opened` receives the streams that a successful call has opened.
        """
        msgid = message.msgid if isinstance(message, RpcRequest) else None

        def open_stream(feed: StreamProducer) -> int:
            if msgid is None:
                raise RpcError(
                    "bad_params", f"{message.method} opens a stream: call it as a request, not a notification"
                )
            if len(self._streams) >= self._terms.streams:
                raise RpcError("too_many", f"this client has {len(self._streams)} open streams, the maximum")
            stream = OpenStream(self._next_stream, message.method, feed, self._outbox, self.turns, self._name)
            self._next_stream += 1
            self._streams[stream.id] = stream
            self._shared.most_streams = max(self._shared.most_streams, len(self._streams))
            opened.append(stream)
            return stream.id

        try:
            method = find_method(self.methods, message.method)
            args = bind(method.name, method.params, message.params)
            call = Call(method.name, args, self._name, self, open_stream, message.size)
            await self._outbox.room()
            result = await self._calls.perform(method, call)
            if msgid is None:
                return None
            if isinstance(result, Large):
                encoded = encode_large_at_once(msgid, result)
                return encoded if isinstance(encoded, bytes) else Pieces(encoded, result.held)
            await self._outbox.room()
            if opened:
                failure = result.get("stream") if isinstance(result, Mapping) else getattr(result, "stream", None)
                assert failure == opened[0].id, f"{method.name} does not name the stream it opened"
            return encode_response(msgid, result)
        except Exception as raised:  # a handler's bug must not end the session
            for stream in opened:
                del self._streams[stream.id]
            opened.clear()
            code, text, data = self._error_of(raised, message.method)
            if msgid is None:
                self._log.info("rpc.notification_failed", method=message.method[:100], code=code, why=text)
                return None
            return encode_error(msgid, code, text, data)

    @asynccontextmanager
    async def _large_slot(self) -> AsyncIterator[None]:
        """Occupy a slot for a large response, which is acquired only when the outbox has room."""
        while True:
            await self._outbox.room()
            await self._large.acquire(self._name)
            if not self._outbox.full:
                break
            self._large.release(self._name)
        try:
            yield
        finally:
            self._large.release(self._name)

    def _error_of(self, raised: Exception, method: str) -> tuple[str, str, Any]:
        error = only_of_group(raised)
        if isinstance(error, KscheddError):
            return wire_error(error)
        self._log.error("rpc.handler_bug", method=method, exc_info=raised)
        return (
            "internal",
            f"{method}: a bug in the daemon ({type(error).__name__}); its log has the traceback",
            None,
        )

    # Streams

    async def _feed(self, stream: OpenStream) -> None:
        ended = False
        try:
            with stream.scope:
                try:
                    await stream.feed(stream)
                    stream.reason = ("done", "")
                except Exception as raised:  # as in _outcome
                    stream.reason = self._error_of(raised, stream.method)
            self._outbox.put(stream.farewell())
            ended = True
        finally:
            del self._streams[stream.id]
            self._active_at = trio.current_time()
            if self._stopping and not ended:
                self._outbox.put(stream.farewell())

    # Writing

    async def _write(self) -> None:
        try:
            await self._outbox.pump(self._stream, self._terms.stall_s)
        except trio.TooSlowError:
            self._leave(f"dropped: it has read nothing for {self._terms.stall_s:g} s", warn=True)
        except trio.BrokenResourceError:
            self._leave("the client is gone")
        # the encoding of a large response failed after a part of it was sent
        except (ValueError, TypeError, OverflowError) as fault:
            self._log.error("rpc.handler_bug", what="a result with no MessagePack form", exc_info=fault)
            self._leave("an answer to it could not be completed")

    def _leave(self, why: str, warn: bool = False) -> None:
        """End the session immediately: cancel all requests and streams of the client."""
        if self._everything.cancel_scope.cancel_called:
            return
        running, streams = self._terms.requests - self._slots.value, len(self._streams)
        (self._log.warning if warn else self._log.debug)("rpc.client_left", why=why, running=running, streams=streams)
        self._everything.cancel_scope.cancel()


def freed(params: list[Any]) -> Generator[None, None, None]:
    """Empty the parameters of a large request in steps, because freeing them in one step takes tens of milliseconds.

    Only containers within the parameters are emptied, because an object may still be in use.
    """
    left = [(value, _DEPTH) for value in params]
    params.clear()
    value: Any = None
    while left:
        value, depth = left.pop()
        if depth and isinstance(value, dict):
            left += [(inner, depth - 1) for inner in value.values()]
        elif depth and isinstance(value, list):
            left += [(inner, depth - 1) for inner in value]
        yield


def hung_up(stream: trio.abc.Stream) -> bool | None:
    """Return whether the peer has closed the connection; None if it may have closed only its sending side."""
    if not isinstance(stream, trio.SocketStream) or stream.socket.family != socket.AF_UNIX:
        return None
    if stream.socket.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(stream.socket.fileno(), 0)
    return bool(poll.poll(0))
