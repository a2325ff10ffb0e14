"""The connection to the daemon: kept up, made anew when it is lost, and lent to verbs that run in a thread.

Talks to: the daemon. Owns: the client. Tells `notice` when the daemon goes and comes. Ends: by cancellation.

Verbs are plain functions that wait; they run in a worker thread while this program's tasks go on. What they ask the
daemon is carried to the Trio thread and back. If the command is cancelled, the next thing it waits for raises
`trio.Cancelled` in its thread.
"""

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import trio

from kschedd.errors import KscheddError
from kschedd.rpc.client import Client, Subscription, default_socket_path
from kschedd.rpc.errors import ConnectionLostError, NoDaemonError, RpcError

_RETRY_S = 0.3

Task = Callable[[Client], Awaitable[None]]


class Link:
    """The connection. `nursery` is where the tasks of open streams run."""

    def __init__(
        self, path: str | os.PathLike[str] | None, notice: Callable[[str], None], nursery: trio.Nursery
    ) -> None:
        self.path = path
        self.nursery = nursery
        self.client: Client | None = None
        self.stopping = False  # the user has stopped the daemon: that it goes is no news
        self._notice = notice
        self._up = trio.Event()

    async def run(self, while_up: Task, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Stays connected for ever, and runs `while_up` with each connection as long as it lasts.

        Reports started with the first connection; raises NoDaemonError or SocketPathError if there is none to be had.
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
        """Runs the task until the connection ends, and raises what ended it."""
        while True:
            try:
                await while_up(client)
            except RpcError as error:
                if error.code not in ("too_slow", "internal", "unknown_method", "timeout"):
                    raise
            await trio.sleep(_RETRY_S)

    async def up(self) -> Client:
        """The client. Raises NoDaemonError if there is none now."""
        if self.client is None:
            with trio.move_on_after(2 * _RETRY_S):
                await self._up.wait()
        if self.client is None:
            raise NoDaemonError(str(self.path or default_socket_path()))
        return self.client


async def together(*tasks: Callable[[], Awaitable[None]]) -> None:
    """Run these tasks until one of them ends. What it raised as a KscheddError comes out in no group."""
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
    """The daemon as verbs know it, for use in a thread started with `trio.to_thread.run_sync`."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def call(self, method: str, /, *args: Any, **named: Any) -> Any:
        if method == "daemon.stop":
            self._link.stopping = True

        async def ask() -> Any:
            return await (await self._link.up()).call(method, *args, **named)

        return trio.from_thread.run(ask)

    def subscribe(self, method: str, /, **named: Any) -> AbstractContextManager[Iterable[Any]]:
        return self._stream(method, named)

    @contextmanager
    def _stream(self, method: str, named: dict[str, Any]) -> Iterator[Iterable[Any]]:
        """Items one by one. A task on the Trio side holds the subscription open while the block runs."""
        opened = trio.from_thread.run_sync(partial(trio.open_memory_channel[Any], 1000))
        send, receive = opened
        token = trio.from_thread.run(self._open, method, named, send)
        try:
            yield _items(receive)
        finally:
            # Not `run`: the command may be cancelled already, and this has to be said none the less.
            trio.from_thread.run_sync(token.cancel)

    async def _open(self, method: str, named: dict[str, Any], send: "trio.MemorySendChannel[Any]") -> trio.CancelScope:
        client = await self._link.up()
        scope = trio.CancelScope()
        ready = trio.Event()
        failure: list[Exception] = []

        async def pump() -> None:
            with scope:
                async with send:
                    try:
                        async with client.subscribe(method, **named) as stream:
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
        return scope


async def _pass_on(stream: Subscription, send: "trio.MemorySendChannel[Any]") -> None:
    async for item in stream:
        await send.send(item)


def _items(receive: "trio.MemoryReceiveChannel[Any]") -> Iterator[Any]:
    while True:
        try:
            item = trio.from_thread.run(receive.receive)
        except trio.EndOfChannel:
            return
        if isinstance(item, KscheddError):
            raise item
        yield item
