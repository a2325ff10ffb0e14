"""One client's session: reads its requests, runs them concurrently, sends what comes of them.

Tasks: a reader; a writer (outbox.pump); one task a running request; one an open stream. The reader takes a
slot for each request and stops reading when none is free, so a client that asks faster than it is served is
slowed by its own socket.

Ends: when the client is gone (whatever it had asked for is cancelled), when it has half-closed its side and
all it asked for is answered, at a fatal protocol fault, when it takes nothing for too long, or at shutdown.
Fails: what a client sends or does never gets out of here; a handler's bug is logged and answered
`internal`.
"""

from __future__ import annotations

import select
import socket
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import structlog
import trio

from kschedd.errors import KscheddError
from kschedd.rpc.errors import RpcError, wire_error
from kschedd.rpc.outbox import pump
from kschedd.rpc.params import bind
from kschedd.rpc.protocol import (
    FROM_CLIENTS,
    NO_MSGID,
    Connection,
    Event,
    Limits,
    Notification,
    ProtocolFault,
    Request,
    encode_error,
    encode_notification,
    encode_response,
)
from kschedd.rpc.table import Call, Feed, Method, find_method

_CHUNK = 256 * 1024
#: How often a client that we are not reading from is looked at, to see whether it is still there.
_HANG_UP_CHECK_S = 0.25
_STOPPING = ("shutting_down", "the daemon is ending")


@attrs.frozen
class Terms:
    """What one client may have at once, and how long it may take."""

    requests: int = 64
    streams: int = 64
    # Messages not yet sent: as many as there can be responses, so that those ready together go together.
    outbox: int = 64
    stall_s: float = 30.0
    wire: Limits = FROM_CLIENTS


class Session:
    """See the module. `run` once; `shut_down` at any time."""

    def __init__(
        self,
        stream: trio.abc.Stream,
        name: str,
        methods: Mapping[str, Method],
        identity: Mapping[str, Any],
        terms: Terms,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self.methods = methods
        self.identity = identity
        self._stream = stream
        self._name = name
        self._terms = terms
        self._log = log.bind(client=name)
        self._connection = Connection(terms.wire)
        self._unstarted: deque[Event] = deque()
        self._slots = trio.Semaphore(terms.requests)
        self._send, self._outbox = trio.open_memory_channel[bytes](terms.outbox)
        self._streams: dict[int, _OpenStream] = {}
        self._next_stream = 1
        self._stopping = False
        self._reading = trio.CancelScope()
        self._everything: trio.Nursery
        self._work: trio.Nursery

    async def run(self) -> None:
        watching = trio.CancelScope()
        async with trio.open_nursery() as self._everything:
            self._everything.start_soon(self._write)
            async with self._send:
                async with trio.open_nursery() as self._work:
                    try:
                        with self._reading:
                            await self._read()
                    finally:
                        self._refuse_unstarted()
                    # The requests that still run, and a watch over whom they run for.
                    self._everything.start_soon(self._watch_hang_up, watching)
                watching.cancel()

    def shut_down(self, grace_s: float) -> None:
        """Reads no more; gives running requests `grace_s` to end, then answers them `shutting_down`."""
        self._stopping = True
        self._reading.cancel()
        for stream in self._streams.values():
            stream.end(*_STOPPING)
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
            try:
                data = await self._stream.receive_some(_CHUNK)
            except trio.BrokenResourceError:
                data = b""
            self._unstarted.extend(self._connection.receive(data) if data else self._connection.receive_eof())
            while self._unstarted:
                if not await self._start(self._unstarted[0]):
                    return
                self._unstarted.popleft()
            if not data:
                if hung_up(self._stream) is not False:
                    self._leave("the client is gone")
                return

    async def _start(self, event: Event) -> bool:
        """Starts what the message asks for; false if nothing more is to be read."""
        match event:
            case Request() | Notification():
                if not await self._take_slot():
                    return False
                self._work.start_soon(self._answer, event)
            case ProtocolFault(why, msgid, fatal):
                self._log.warning("rpc.protocol_fault", why=why, closing=fatal)
                if fatal or msgid is not None:
                    await self._put(encode_error(NO_MSGID if msgid is None else msgid, "protocol_error", why))
                if fatal:
                    self._work.cancel_scope.cancel()
                    return False
            case _:
                self._log.warning("rpc.unexpected_response", msgid=event.msgid)
        return True

    async def _take_slot(self) -> bool:
        """Waits until the client may have one more request; false if it has gone meanwhile."""
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
        # A socket has no event for "closed on both sides" that Trio could wait for.
        with scope:
            while not hung_up(self._stream):  # noqa: ASYNC110
                await trio.sleep(_HANG_UP_CHECK_S)
            self._leave("the client is gone")

    def _refuse_unstarted(self) -> None:
        if self._stopping:
            for event in self._unstarted:
                if isinstance(event, Request):
                    self._put_if_room(encode_error(event.msgid, *_STOPPING))

    # Requests

    async def _answer(self, message: Request | Notification) -> None:
        answered = False
        try:
            opened: list[_OpenStream] = []
            reply = await self._outcome(message, opened)
            if reply is not None:
                await self._put(reply)
            answered = True
            for stream in opened:
                self._work.start_soon(self._feed, stream)
        finally:
            self._slots.release()
            if self._stopping and not answered and isinstance(message, Request):
                self._put_if_room(encode_error(message.msgid, *_STOPPING))

    async def _outcome(self, message: Request | Notification, opened: list[_OpenStream]) -> bytes | None:
        """Runs the handler. The response, if one is due; the streams it opened, if it succeeded."""
        msgid = message.msgid if isinstance(message, Request) else None

        def open_stream(feed: Feed) -> int:
            if msgid is None:
                raise RpcError(
                    "bad_params", f"{message.method} opens a stream: call it as a request, not a notification"
                )
            if len(self._streams) >= self._terms.streams:
                raise RpcError("too_many", f"this client has {len(self._streams)} streams open, the most it may")
            stream = _OpenStream(self._next_stream, message.method, feed, self._send)
            self._next_stream += 1
            self._streams[stream.id] = stream
            opened.append(stream)
            return stream.id

        try:
            method = find_method(self.methods, message.method)
            args = bind(method.name, method.params, message.params)
            result = await method.handler(Call(method.name, args, self._name, self, open_stream))
            if msgid is None:
                return None
            if opened:
                assert isinstance(result, Mapping), f"{method.name} opens a stream and must return a map with it"
                assert result.get("stream") == opened[0].id, f"{method.name} does not say which stream it opened"
            return encode_response(msgid, result)
        except Exception as raised:  # the one place: a handler's bug ends here
            for stream in opened:
                del self._streams[stream.id]
            opened.clear()
            code, text, data = self._error_of(raised, message.method)
            if msgid is None:
                self._log.info("rpc.notification_failed", method=message.method[:100], code=code, why=text)
                return None
            return encode_error(msgid, code, text, data)

    def _error_of(self, raised: Exception, method: str) -> tuple[str, str, Any]:
        error: BaseException = raised
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]  # a handler's nursery wraps the one thing it failed of
        if isinstance(error, KscheddError):
            return wire_error(error)
        self._log.error("rpc.handler_bug", method=method, exc_info=raised)
        return (
            "internal",
            f"{method}: a bug in the daemon ({type(error).__name__}); its log has the traceback",
            None,
        )

    # Streams

    async def _feed(self, stream: _OpenStream) -> None:
        ended = False
        try:
            with stream.scope:
                try:
                    await stream.feed(stream)
                    stream.reason = ("done", "")
                except Exception as raised:  # as in _outcome
                    stream.reason = self._error_of(raised, stream.method)
            await self._put(stream.farewell())
            ended = True
        finally:
            del self._streams[stream.id]
            if self._stopping and not ended:
                self._put_if_room(stream.farewell())

    # Writing

    async def _put(self, message: bytes) -> None:
        try:
            self._send.send_nowait(message)  # without the checkpoint, which costs more than the send
        except trio.WouldBlock:
            await self._send.send(message)
        except trio.BrokenResourceError:
            await trio.lowlevel.checkpoint()  # the writer has ended, and cancels us presently

    def _put_if_room(self, message: bytes) -> None:
        try:
            self._send.send_nowait(message)
        except (trio.WouldBlock, trio.BrokenResourceError):
            pass

    async def _write(self) -> None:
        try:
            await pump(self._outbox, self._stream, self._terms.stall_s)
        except trio.TooSlowError:
            self._leave(f"dropped: it has read nothing for {self._terms.stall_s:g} s", warn=True)
        except trio.BrokenResourceError:
            self._leave("the client is gone")

    def _leave(self, why: str, warn: bool = False) -> None:
        """Ends the session now: cancels whatever this client has asked for."""
        if self._everything.cancel_scope.cancel_called:
            return
        running, streams = self._terms.requests - self._slots.value, len(self._streams)
        (self._log.warning if warn else self._log.debug)("rpc.client_left", why=why, running=running, streams=streams)
        self._everything.cancel_scope.cancel()


@attrs.define(eq=False)
class _OpenStream:
    id: int
    method: str
    feed: Feed
    _send: trio.MemorySendChannel[bytes]
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    reason: tuple[Any, ...] = _STOPPING
    _sent: int = 0

    async def send(self, item: Any) -> None:
        await self._send.send(self._encoded(item))

    async def send_many(self, items: Sequence[Any]) -> None:
        if items:
            await self._send.send(b"".join([self._encoded(item) for item in items]))

    def end(self, code: str, message: str) -> None:
        self.reason = (code, message)
        self.scope.cancel()

    def farewell(self) -> bytes:
        code, message, *data = self.reason
        reason = {"code": code, "message": message}
        if data and data[0] is not None:
            reason["data"] = data[0]
        return encode_notification("stream.end", (self.id, reason))

    def _encoded(self, item: Any) -> bytes:
        encoded = encode_notification("stream.item", (self.id, self._sent, item))
        self._sent += 1
        return encoded


def hung_up(stream: trio.abc.Stream) -> bool | None:
    """Whether the other side has closed for good; None where that cannot be told from a half-close."""
    if not isinstance(stream, trio.SocketStream) or stream.socket.family != socket.AF_UNIX:
        return None
    if stream.socket.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(stream.socket.fileno(), 0)
    return bool(poll.poll(0))
