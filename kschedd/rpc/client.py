"""The Python clients of the daemon's socket: `Client` for Trio programs, `BlockingClient` for all other programs.

    async with Client.connect() as daemon:
        pods = await daemon.call("get", kind="Pod", namespace="default")
        async with daemon.subscribe("watch", kind="Pod") as changes:
            async for change in changes:
                ...

A program without Trio imports `kschedd.rpc.blocking` and starts faster.

`Client` consists of a `Connection` and two tasks: one sends messages from a bounded channel, and one reads. When the
buffer of a subscription is full, the reader blocks, and so does the daemon. The reader blocks only for a limited time,
because the unread data may contain a response for which the subscriber waits. After this time the subscription ends
with `too_slow`.
"""

from __future__ import annotations

import math
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

import attrs
import trio

from kschedd.answers import read
from kschedd.rpc.blocking import BlockingClient
from kschedd.rpc.client_common import ended_by, no_stream, request_bytes, stream_id, wire_params
from kschedd.rpc.encoding import encode_notification
from kschedd.rpc.endpoints import (
    CONNECT_S,
    TcpEndpoint,
    connection_error,
    endpoint_of,
    lost_before_admission,
    tls_context,
)
from kschedd.rpc.errors import ConnectionLostError, SocketPathError, read_wire_error
from kschedd.rpc.message_checks import FROM_DAEMON
from kschedd.rpc.paths import default_socket_path
from kschedd.rpc.protocol import (
    AUTHENTICATE,
    NO_MSGID,
    Connection,
    Event,
    Notification,
    ProtocolFault,
    RpcResponse,
    msgids,
)
from kschedd.service.errors import RpcError

__all__ = ["BlockingClient", "Client", "Subscription", "default_socket_path"]

A = TypeVar("A")
_CHUNK = 256 * 1024
_OUTBOX = 256
_RETRY_S = 0.02


class Subscription:
    """A stream of the daemon, which can be iterated over. `result` is the result of the call that opened the stream.

    Iteration stops when the daemon ends the stream. Iteration raises RpcError if the stream ended with a code other
    than `done` or `cancelled` (`too_slow`: this client read too slowly), and ConnectionLostError if the connection was
    lost.
    """

    def __init__(self, stream: int, result: Any, buffer: int, patience_s: float) -> None:
        self.id = stream
        self.result = result
        self._patience_s = patience_s
        self._send, self._receive = trio.open_memory_channel[Any](buffer)
        self._failure: Exception | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._receive.receive()
        except trio.EndOfChannel:
            if self._failure is not None:
                raise self._failure from None
            raise StopAsyncIteration from None

    async def _take(self, item: Any) -> bool:
        """Pass an item to the subscriber; return False if the subscription is closed."""
        try:
            self._send.send_nowait(item)
            return True
        except trio.BrokenResourceError:
            return False
        except trio.WouldBlock:
            pass
        try:
            with trio.move_on_after(self._patience_s):
                await self._send.send(item)
                return True
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return False  # the subscription or the client was closed meanwhile
        self._end(RpcError("too_slow", "items came faster than they were read; resume after the last one read"))
        return False

    def _end(self, failure: Exception | None) -> None:
        self._failure = failure
        self._send.close()


@attrs.define(eq=False)
class _Waiting:
    """A call whose response has not arrived yet."""

    # buffer and `patience_s` of the subscription that the call opens, or None
    subscribes: tuple[int, float] | None
    done: trio.Event = attrs.field(factory=trio.Event)
    result: Any = None
    failure: Exception | None = None


class Client:
    """A connection to the daemon, created by `Client.connect`; many tasks may use it concurrently."""

    def __init__(self, stream: trio.abc.Stream, path: str) -> None:
        self.path = path
        self._stream = stream
        self._connection = Connection(FROM_DAEMON)
        self._msgids = msgids()
        self._waiting: dict[int, _Waiting] = {}
        self._abandoned: set[int] = set()
        self._subscriptions: dict[int, Subscription] = {}
        self._send, self._outbox = trio.open_memory_channel[bytes](_OUTBOX)
        self._lost: Exception | None = None

    @classmethod
    @asynccontextmanager
    async def connect(cls, path: str | os.PathLike[str] | None = None) -> AsyncIterator[Self]:
        """Connect to the daemon at `path` (see `endpoints`; default: `default_socket_path()`) until the block ends.

        Raises NoDaemonError if no daemon answers, and SocketPathError if the path cannot be used.
        """
        endpoint = endpoint_of(path)
        stream = await _open(endpoint)
        async with cls.over(stream, str(endpoint)) as client:
            if isinstance(endpoint, TcpEndpoint) and endpoint.token:
                try:
                    await client.call(AUTHENTICATE, token=endpoint.token)
                except ConnectionLostError:
                    raise lost_before_admission(endpoint) from None
            yield client

    @classmethod
    @asynccontextmanager
    async def over(cls, stream: trio.abc.Stream, path: str) -> AsyncIterator[Self]:
        """Create a client on an open stream; `path` is its name in errors."""
        failure: BaseException | None = None
        async with stream:
            async with trio.open_nursery() as nursery:
                client = cls(stream, path)
                nursery.start_soon(client._write)
                nursery.start_soon(client._read)
                try:
                    yield client
                except (Exception, KeyboardInterrupt) as error:
                    failure = error  # raised again outside the nursery, which would wrap it in a group
                finally:
                    client._lose(ConnectionLostError(path, "this client is closed"))
                    nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def call(self, method: str, /, *args: Any, **named: Any) -> Any:
        """Call a method with parameters by position or by name, and return its result.

        A single parameter that is a map must be passed by name (see `service.params`). Raises RpcError with the
        daemon's error, and ConnectionLostError if the connection ends before the response. Cancelling discards the
        response; the daemon still completes the call.
        """
        return await self._request(method, wire_params(args, named), None)

    async def ask(self, answer: type[A], method: str, /, **named: Any) -> A:
        """Call a method and return its result as an instance of the class `answer`. Raises also AnswerError."""
        result: A = read(answer, await self.call(method, **named))
        return result

    async def notify(self, method: str, /, *args: Any, **named: Any) -> None:
        """Send a notification, which calls the method without a response; errors are not reported."""
        self._check()
        await self._put(encode_notification(method, wire_params(args, named)))

    @asynccontextmanager
    async def subscribe(
        self, method: str, /, *args: Any, buffer: int = 10_000, patience_s: float = 1.0, **named: Any
    ) -> AsyncIterator[Subscription]:
        """Call a method that opens a stream; the stream is open inside the context and cancelled at its end.

        `buffer` is the maximum number of unread items. If the buffer is full, all other data on this connection waits
        up to `patience_s` for a free place; then the subscription ends with `too_slow`.
        """
        subscription: Subscription = await self._request(method, wire_params(args, named), (buffer, patience_s))
        try:
            yield subscription
        finally:
            subscription._receive.close()
            if self._subscriptions.pop(subscription.id, None) is not None and self._lost is None:
                with trio.move_on_after(1, shield=True):
                    await self._put(encode_notification("stream.cancel", [subscription.id]))

    async def _request(self, method: str, params: list[Any], subscribes: tuple[int, float] | None) -> Any:
        self._check()
        msgid = next(self._msgids)
        message = request_bytes(msgid, method, params)
        waiting = self._waiting[msgid] = _Waiting(subscribes)
        try:
            await self._put(message)
            await waiting.done.wait()
        except trio.Cancelled:  # no task would read a stream opened by the call
            if subscribes is not None and not waiting.done.is_set():
                self._abandoned.add(msgid)
            elif isinstance(waiting.result, Subscription):  # the response arrived after the call was cancelled
                self._subscriptions.pop(waiting.result.id, None)
                self._forget_stream(waiting.result.id)
            raise
        finally:
            self._waiting.pop(msgid, None)
        if waiting.failure is not None:
            raise waiting.failure
        return waiting.result

    async def _put(self, message: bytes) -> None:
        try:
            await self._send.send(message)
        except trio.BrokenResourceError:
            # The writer has ended. the reader may still receive the reason, and then ends all waiting calls
            pass

    def _check(self) -> None:
        if self._lost is not None:
            raise self._lost

    async def _write(self) -> None:
        try:
            await pump(self._outbox, self._stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the reader also gets the error, after the daemon's last messages

    async def _read(self) -> None:
        while self._lost is None:
            try:
                data = await self._stream.receive_some(_CHUNK)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                data = b""
            for event in self._connection.receive(data) if data else self._connection.receive_eof():
                await self._take(event)
            if not data:
                self._lose(ConnectionLostError(self.path, "it closed the connection"))

    async def _take(self, event: Event) -> None:
        match event:
            case RpcResponse(msgid=msgid, error=error) if msgid == NO_MSGID and error is not None:
                self._lose(read_wire_error(error))
            case RpcResponse(msgid, error, result):
                self._take_response(msgid, error, result)
            case Notification("stream.item", [int(stream), int(), item]):
                subscription = self._subscriptions.get(stream)
                if subscription is not None and not await subscription._take(item):
                    # if the subscription's block ended meanwhile, it has cancelled the stream
                    if self._subscriptions.pop(stream, None) is not None:
                        self._forget_stream(stream)
            case Notification("stream.end", [int(stream), reason]):
                subscription = self._subscriptions.pop(stream, None)
                if subscription is not None:
                    subscription._end(ended_by(reason))
            case ProtocolFault(why=why, fatal=True):
                self._lose(ConnectionLostError(self.path, f"it sent invalid MessagePack-RPC: {why}"))
            case _:
                pass  # unknown notification of a newer daemon

    def _take_response(self, msgid: int, error: Any, result: Any) -> None:
        waiting = self._waiting.get(msgid)
        if waiting is None:
            if msgid in self._abandoned:
                self._abandoned.discard(msgid)
                if error is None and (unread := stream_id(result)) is not None:
                    self._forget_stream(unread)
            return
        if error is not None:
            waiting.failure = read_wire_error(error)
        elif waiting.subscribes is None:
            waiting.result = result
        else:
            # The subscription is opened here, because the first items of the stream may arrive together with the
            # response.
            stream = stream_id(result)
            if stream is None:
                waiting.failure = no_stream()
            else:
                subscription = Subscription(stream, result, *waiting.subscribes)
                self._subscriptions[stream] = waiting.result = subscription
        waiting.done.set()

    def _forget_stream(self, stream: int) -> None:
        try:
            self._send.send_nowait(encode_notification("stream.cancel", [stream]))
        except (trio.WouldBlock, trio.BrokenResourceError):
            pass  # items of the stream are still discarded

    def _lose(self, failure: Exception) -> None:
        if self._lost is not None:
            return
        self._lost = failure
        for waiting in self._waiting.values():
            waiting.failure = failure
            waiting.done.set()
        for subscription in self._subscriptions.values():
            subscription._end(failure)
        self._subscriptions.clear()


async def _open_unix(path: Path) -> trio.SocketStream:
    """Open a connection; while the daemon's backlog is full, which the kernel reports immediately, retry.

    Trio does not retry.
    """
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        opened.setblocking(False)
        with trio.fail_after(CONNECT_S):
            while True:
                try:
                    opened.connect(os.fspath(path))
                    break
                except BlockingIOError:
                    await trio.sleep(_RETRY_S)
        return trio.SocketStream(trio.socket.from_stdlib_socket(opened))
    except BaseException:
        opened.close()
        raise


async def _open(endpoint: Path | TcpEndpoint) -> trio.abc.Stream:
    """Open a connection. Raises NoDaemonError and SocketPathError."""
    try:
        if isinstance(endpoint, Path):
            return await _open_unix(endpoint)
        host, port = endpoint.address.host, endpoint.address.port
        with trio.fail_after(CONNECT_S):
            if not endpoint.tls:
                return await trio.open_tcp_stream(host, port)
            plain, name = await trio.open_tcp_stream(host, port), endpoint.server_name or host
            secured = trio.SSLStream(plain, tls_context(endpoint), server_hostname=name, https_compatible=True)
            try:
                await secured.do_handshake()
            except BaseException:
                await trio.aclose_forcefully(plain)
                raise
            return secured
    except trio.TooSlowError:
        raise SocketPathError(str(endpoint), f"cannot connect: no answer within {CONNECT_S:g} s") from None
    except trio.BrokenResourceError as broken:
        raise SocketPathError(str(endpoint), f"cannot connect: {broken.__cause__ or broken}") from broken
    except OSError as error:
        raise connection_error(endpoint, error) from error


#: number of bytes joined into one send, which must end within the stall limit
_GATHER = 256 * 1024


async def pump(
    outbox: trio.MemoryReceiveChannel[bytes], stream: trio.abc.SendStream, stall_s: float = math.inf
) -> None:
    """Send all messages in the outbox until its last sender closes.

    A sender blocks while the channel is full. All waiting messages are sent
    together, so a thousand small messages need only a few system calls. Raises TooSlowError if the peer reads nothing
    for `stall_s`, and BrokenResourceError if it has disconnected.
    """
    async with outbox:
        async for first in outbox:
            pieces, size = [first], len(first)
            while size < _GATHER:
                try:
                    piece = outbox.receive_nowait()
                except (trio.WouldBlock, trio.EndOfChannel):
                    break
                pieces.append(piece)
                size += len(piece)
            whole = memoryview(b"".join(pieces) if len(pieces) > 1 else first)
            for start in range(0, size, _GATHER):
                with trio.fail_after(stall_s):
                    await stream.send_all(whole[start : start + _GATHER])
