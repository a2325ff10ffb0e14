"""The connection to the daemon: reconnects if it is lost, and serves verbs that run in worker threads.

Talks to: the daemon.
Owns: the client. Calls `notice` when the connection is lost or restored. Ends: by cancellation.

Verbs are blocking functions; they run in a worker thread concurrently with this program's tasks. Their requests are
forwarded to the Trio thread, which returns the results. If the command is cancelled, its next blocking call raises
`trio.Cancelled` in its thread.
"""

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import attrs
import trio

from kschedd.errors import KscheddError
from kschedd.rpc.client import Client, Subscription
from kschedd.rpc.endpoints import endpoint_of
from kschedd.rpc.errors import ConnectionLostError, NoDaemonError
from kschedd.service.errors import RpcError

_RETRY_S = 0.3

Task = Callable[[Client], Awaitable[None]]


class DaemonConnection:
    """The connection. The tasks of open streams run in `nursery`."""

    def __init__(
        self, path: str | os.PathLike[str] | None, notice: Callable[[str], None], nursery: trio.Nursery
    ) -> None:
        self.path = path
        self.nursery = nursery
        self.client: Client | None = None
        self.stopping = False  # the user has stopped the daemon, so a disconnect is expected
        self._notice = notice
        self._up = trio.Event()

    async def run(self, while_up: Task, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Stay connected, with a reconnect after a loss, and run `while_up` during each connection.

        Reports started with the first connection; raises NoDaemonError or SocketPathError if that fails.
        """
        first = True
        while True:
            try:
                async with Client.connect(self.path) as client:
                    self.client = client
                    self._up.set()
                    if first:
                        task_status.started()
                        first = False
                    else:
                        self._notice(f"The daemon at {client.path} is back.")
                    self.stopping = False
                    await self._last(client, while_up)
            except (NoDaemonError, ConnectionLostError, RpcError) as lost:
                if first and isinstance(lost, NoDaemonError):
                    raise
                if self.client is not None and not self.stopping:
                    self._notice(f"The daemon has gone ({lost}). Waiting for it to come back; Ctrl-D leaves.")
                elif self.client is not None:
                    self._notice("The daemon has stopped. `kschedd run` starts one; Ctrl-D leaves.")
            finally:
                self.client = None
                self._up = trio.Event()
            await trio.sleep(_RETRY_S)

    async def _last(self, client: Client, while_up: Task) -> None:
        """Run the task until the connection ends, and raise the error that ended it."""
        while True:
            try:
                await while_up(client)
            except RpcError as error:
                if error.code not in ("too_slow", "internal", "unknown_method", "timeout"):
                    raise
            await trio.sleep(_RETRY_S)

    async def up(self) -> Client:
        """Return the client; if the connection was lost, wait briefly for a reconnect.

        Raises NoDaemonError if there is no connection.
        """
        if self.client is None:
            with trio.move_on_after(2 * _RETRY_S):
                await self._up.wait()
        if self.client is None:
            raise NoDaemonError(str(endpoint_of(self.path)))
        return self.client


async def together(*tasks: Callable[[], Awaitable[None]]) -> None:
    """Run these tasks until one of them ends.

    If a task raises a KscheddError, the error is not wrapped in an ExceptionGroup.
    """
    failure: KscheddError | None = None

    async def run(task: Callable[[], Awaitable[None]]) -> None:
        nonlocal failure
        try:
            await task()
        except KscheddError as error:
            failure = failure or error
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        for task in tasks:
            nursery.start_soon(run, task)
    if failure is not None:
        raise failure


class ThreadDaemon:
    """Blocking interface to the daemon for verbs, used in a thread started with `trio.to_thread.run_sync`."""

    def __init__(self, link: DaemonConnection) -> None:
        self._link = link

    def call(self, method: str, /, *args: Any, **named: Any) -> Any:
        if method == "daemon.stop":
            self._link.stopping = True

        async def ask() -> Any:
            return await (await self._link.up()).call(method, *args, **named)

        return trio.from_thread.run(ask)

    def subscribe(self, method: str, /, **named: Any) -> AbstractContextManager["ThreadStream"]:
        return self._stream(method, named)

    @contextmanager
    def _stream(self, method: str, named: dict[str, Any]) -> Iterator["ThreadStream"]:
        """Yield a subscription. A task in the Trio thread keeps the stream open while the `with` block runs."""
        opened = trio.from_thread.run_sync(partial(trio.open_memory_channel[Any], 1000))
        send, receive = opened
        result, token = trio.from_thread.run(self._open, method, named, send)
        try:
            yield ThreadStream(result, receive)
        finally:
            # Not `run`, which raises an error if the command is already cancelled: the stream must be closed in any
            # case.
            trio.from_thread.run_sync(token.cancel)

    async def _open(
        self, method: str, named: dict[str, Any], send: "trio.MemorySendChannel[Any]"
    ) -> tuple[Any, trio.CancelScope]:
        """Open a stream; return the result of the call, and a scope that closes the stream."""
        client = await self._link.up()
        scope = trio.CancelScope()
        ready = trio.Event()
        result: Any = None
        failure: list[Exception] = []

        async def pump() -> None:
            nonlocal result
            with scope:
                async with send:
                    try:
                        async with client.subscribe(method, **named) as stream:
                            result = stream.result
                            ready.set()
                            await _pass_on(stream, send)
                    except KscheddError as error:
                        failure.append(error)
                        if ready.is_set():
                            await send.send(error)
            ready.set()

        self._link.nursery.start_soon(pump)
        try:
            await ready.wait()
        except BaseException:
            scope.cancel()
            raise
        if failure:
            raise failure[0]
        return result, scope


async def _pass_on(stream: Subscription, send: "trio.MemorySendChannel[Any]") -> None:
    async for item in stream:
        await send.send(item)


@attrs.frozen(eq=False)
class ThreadStream:
    """A stream that is read in a thread. `result` is the result of the call that opened it."""

    result: Any
    _receive: "trio.MemoryReceiveChannel[Any]"

    def __iter__(self) -> Iterator[Any]:
        while True:
            try:
                item = trio.from_thread.run(self._receive.receive)
            except trio.EndOfChannel:
                return
            if isinstance(item, KscheddError):
                raise item
            yield item
