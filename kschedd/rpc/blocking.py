"""The synchronous client of the daemon's socket, for programs without Trio: scripts, command-line verbs, threads.

    with BlockingClient() as daemon:
        print(daemon.call("get", kind="Pod", name="web-0"))
        for change in daemon.subscribe("watch", kind="Pod"):
            ...

The client makes one call at a time on a blocking socket. The client is not thread-safe: each thread needs a client of
its own. This module does not import Trio, so that programs start quickly.
"""

from __future__ import annotations

import errno
import os
import select
import time
from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

from kschedd.answers import read
from kschedd.rpc.client_common import ended_by, no_stream, request_bytes, stream_id, wire_params
from kschedd.rpc.encoding import encode_notification
from kschedd.rpc.endpoints import TcpEndpoint, connect, endpoint_of, lost_before_admission
from kschedd.rpc.errors import ConnectionLostError, read_wire_error
from kschedd.rpc.message_checks import FROM_DAEMON
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

A = TypeVar("A")
_CHUNK = 256 * 1024


class BlockingSubscription:
    """A stream of the daemon, for iteration; `close` cancels the stream.

    `result` is the result of the call that opened the stream.

    Iteration waits for the next item without a time limit, and stops when the daemon ends the stream. Iteration raises
    RpcError if the stream ended with a code other than `done` or `cancelled`.
    """

    def __init__(self, client: BlockingClient, stream: int, result: Any, buffer: int) -> None:
        self.id = stream
        self.result = result
        self._client = client
        self._buffer = buffer
        self._items: deque[Any] = deque()
        self._ended = False
        self._iterating = False
        self._failure: RpcError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while not self._items:
            if self._ended:
                if self._failure is not None:
                    raise self._failure
                raise StopIteration
            self._iterating = True
            try:
                self._client._await_readable()
                self._client._read_more(None)
            finally:
                self._iterating = False
        return self._items.popleft()

    def close(self) -> None:
        """Cancel the stream and discard unread items."""
        self._items.clear()
        if not self._ended:
            self._end(None)
            self._client._forget_stream(self.id)

    def _take(self, item: Any, *, early: bool) -> None:
        """Buffer an item.

        `early` is true if the item arrived together with the response that opened the stream.
        """
        self._items.append(item)
        if len(self._items) > self._buffer and not self._iterating and not early:
            self._end(RpcError("too_slow", "items came faster than they were read; resume after the last one read"))
            self._client._forget_stream(self.id)

    def _end(self, failure: RpcError | None) -> None:
        self._ended = True
        self._failure = failure


class BlockingClient:
    """A connection to the daemon at `path` (see `endpoints`; default: `default_socket_path()`), open until `close`.

    `timeout` is the time limit of a call in seconds, or None. `output` is the file descriptor of the pipe to which the
    caller writes the items of a stream. When the reader of this pipe has exited, the wait for the next item raises
    BrokenPipeError. Raises
    NoDaemonError if no daemon answers, and SocketPathError if the path cannot be used.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, timeout: float | None = None, output: int | None = None
    ) -> None:
        endpoint = endpoint_of(path)
        self.path = str(endpoint)
        self.timeout = timeout
        self._output = output
        self._connection = Connection(FROM_DAEMON)
        self._msgids = msgids()
        self._responses: dict[int, RpcResponse] = {}
        self._subscriptions: dict[int, BlockingSubscription] = {}
        # first items of a stream, which may arrive together with the response that opens it
        self._early: deque[Event] = deque()
        self._opening = False
        self._lost: Exception | None = None
        self._socket = connect(endpoint)
        if isinstance(endpoint, TcpEndpoint):
            self._authenticate(endpoint)

    def _authenticate(self, endpoint: TcpEndpoint) -> None:
        if not endpoint.token:
            return  # the certificate authenticates the client
        try:
            self.call(AUTHENTICATE, token=endpoint.token)
        except ConnectionLostError:
            raise lost_before_admission(endpoint) from None
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the daemon then cancels its running calls and streams."""
        if self._lost is None:
            self._lost = ConnectionLostError(self.path, "this client is closed")
        self._socket.close()

    def call(self, method: str, /, *args: Any, **named: Any) -> Any:
        """Call a method with parameters by position or by name, and return its result.

        If the only parameter is a map, pass it by name (see `service.params`). Raises RpcError with the
        daemon's error. With `timeout`, also raises RpcError if no response arrived in time; the daemon may still
        complete the call. Raises ConnectionLostError if the connection ends before the response.
        """
        return self._request(method, wire_params(args, named))

    def ask(self, answer: type[A], method: str, /, **named: Any) -> A:
        """Call a method and return its result as an instance of the answer's class. Raises also AnswerError."""
        result: A = read(answer, self.call(method, **named))
        return result

    def notify(self, method: str, /, *args: Any, **named: Any) -> None:
        """Send a notification, which calls the method without a response; errors are not reported."""
        self._transmit(encode_notification(method, wire_params(args, named)), self._deadline())

    def subscribe(self, method: str, /, *args: Any, buffer: int = 100_000, **named: Any) -> BlockingSubscription:
        """Call a method that opens a stream, and return the stream, which can be iterated over.

        `buffer` is the number of items that may be buffered during other calls; above it, the stream ends with
        `too_slow`.
        """
        self._opening = True
        try:
            result = self._request(method, wire_params(args, named))
            stream = stream_id(result)
            if stream is None:
                raise no_stream()
            subscription = self._subscriptions[stream] = BlockingSubscription(self, stream, result, buffer)
        finally:
            self._opening = False
            early, self._early = self._early, deque()
            for event in early:
                self._take(event, early=True)
        return subscription

    def _request(self, method: str, params: list[Any]) -> Any:
        deadline = self._deadline()
        msgid = next(self._msgids)
        # nothing waits for responses to calls that timed out
        self._responses.clear()
        try:
            self._transmit(request_bytes(msgid, method, params), deadline)
            while msgid not in self._responses:
                self._read_more(deadline)
        except TimeoutError:
            raise self._too_late(method) from None
        except ConnectionLostError:
            if msgid not in self._responses:  # the daemon may have responded before it closed the connection
                raise
        response = self._responses.pop(msgid)
        if response.error is not None:
            raise read_wire_error(response.error)
        return response.result

    def _transmit(self, message: bytes, deadline: float | None) -> None:
        if self._lost is not None:
            raise self._lost
        try:
            self._socket.settimeout(_left(deadline))
            self._socket.sendall(message)
        except TimeoutError:
            # a part of the message may have been sent, so the connection is unusable
            self._lose(ConnectionLostError(self.path, "it does not read its input"))
        except OSError as error:
            # The daemon may have sent the reason before it closed the connection.
            while self._lost is None:
                try:
                    self._read_more(time.monotonic() + 1)
                except TimeoutError:
                    self._lose(ConnectionLostError(self.path, error.strerror or str(error)))
            raise self._lost from None

    def _await_readable(self) -> None:
        """Wait until the socket is readable. Raises BrokenPipeError if the output pipe has no reader."""
        if self._output is None or self._lost is not None:
            return
        if self._decrypted() > 0:
            return
        poll = select.poll()
        poll.register(self._socket.fileno(), select.POLLIN)
        poll.register(self._output, 0)  # poll reports POLLERR even if it is not requested
        if any(descriptor == self._output for descriptor, _ in poll.poll()):
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    def _decrypted(self) -> int:
        """Return the number of bytes that TLS has decrypted already, which polling does not report."""
        pending = getattr(self._socket, "pending", None)
        return 0 if pending is None else int(pending())

    def _read_more(self, deadline: float | None) -> None:
        """Wait for the next bytes and process their messages. Raises TimeoutError after the deadline."""
        if self._lost is not None:
            raise self._lost
        self._socket.settimeout(_left(deadline))
        try:
            data = self._socket.recv(_CHUNK)
        except TimeoutError:
            raise
        except OSError:
            data = b""
        for event in self._connection.receive(data) if data else self._connection.receive_eof():
            self._take(event)
        if not data:
            self._lose(ConnectionLostError(self.path, "it closed the connection"))

    def _take(self, event: Event, *, early: bool = False) -> None:
        match event:
            case RpcResponse(msgid=msgid, error=error) if msgid == NO_MSGID and error is not None:
                self._lose(read_wire_error(error))
            case RpcResponse(msgid=msgid):
                self._responses[msgid] = event
            case Notification("stream.item", [int(stream), int(), item]):
                if (subscription := self._subscriptions.get(stream)) is not None:
                    subscription._take(item, early=early)
                elif self._opening:
                    self._early.append(event)
            case Notification("stream.end", [int(stream), reason]):
                if (subscription := self._subscriptions.pop(stream, None)) is not None:
                    subscription._end(ended_by(reason))
                elif self._opening:
                    self._early.append(event)
            case ProtocolFault(why=why, fatal=True):
                self._lose(ConnectionLostError(self.path, f"it sent invalid MessagePack-RPC: {why}"))
            case _:
                pass  # unknown notification of a newer daemon

    def _forget_stream(self, stream: int) -> None:
        self._subscriptions.pop(stream, None)
        if self._lost is None:
            self._transmit(encode_notification("stream.cancel", [stream]), self._deadline())

    def _lose(self, failure: Exception) -> NoReturn:
        self._lost = self._lost or failure
        self._socket.close()
        raise self._lost

    def _deadline(self) -> float | None:
        return None if self.timeout is None else time.monotonic() + self.timeout

    def _too_late(self, method: str) -> RpcError:
        return RpcError("timeout", f"{method}: no answer within {self.timeout:g} s")


def _left(deadline: float | None) -> float | None:
    # With a timeout of zero, the socket would be non-blocking.
    return None if deadline is None else max(deadline - time.monotonic(), 0.001)
