"""A server on a real Unix socket, and a client that sends bytes written by hand."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import attrs
import msgpack
import pytest
import structlog
import trio
from structlog.typing import FilteringBoundLogger

from kschedd.rpc.sessions.built_in import method_table
from kschedd.rpc.sessions.listener import unix_listener
from kschedd.rpc.sessions.server import Server
from kschedd.rpc.sessions.session import SessionLimits
from kschedd.service.table import Method


@attrs.define(eq=False)
class Raw:
    """A socket and an unpacker, without kschedd's code between the test and the server."""

    stream: trio.SocketStream
    unpacker: msgpack.Unpacker = attrs.field(factory=lambda: msgpack.Unpacker(raw=False))

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def message(self) -> Any:
        """Return the next message, or None if the server has closed the connection."""
        with trio.fail_after(90):
            while True:
                for message in self.unpacker:
                    return message
                try:
                    data = await self.stream.receive_some(65536)
                except trio.BrokenResourceError:
                    data = b""
                if not data:
                    return None
                self.unpacker.feed(data)


@attrs.define(eq=False)
class Departures:
    """A server log that also wakes tests that wait for a client to disconnect."""

    log: Any
    _lot: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False)

    def __getattr__(self, level: str) -> Any:
        return getattr(self.log, level)

    def debug(self, event: str, **fields: Any) -> None:
        self.log.debug(event, **fields)
        if event == "rpc.client_ended":
            self._lot.unpark_all()

    async def wait(self) -> None:
        await self._lot.park()


@attrs.define(eq=False)
class Served:
    server: Server
    path: Path
    _opened: AsyncExitStack
    _departures: Departures

    async def raw(self) -> Raw:
        return Raw(await self._opened.enter_async_context(await trio.open_unix_socket(self.path)))

    async def ended(self, clients: int = 0) -> None:
        """Wait until at most this many clients are connected."""
        with trio.fail_after(90):
            while self.server.clients > clients:
                await self._departures.wait()


Serve = Callable[..., Awaitable[Served]]


@pytest.fixture
async def serve(nursery: trio.Nursery, tmp_path: Path) -> AsyncIterator[Serve]:
    opened = AsyncExitStack()

    async def start(*methods: Method, **options: Any) -> Served:
        terms = SessionLimits(**options.pop("terms", {}))
        departures = Departures(options.pop("log", None) or structlog.get_logger("kschedd.rpc"))
        server = Server(method_table(methods), terms=terms, log=cast(FilteringBoundLogger, departures), **options)
        path = tmp_path / "kschedd.sock"

        async def run(task_status: trio.TaskStatus[None]) -> None:
            async with unix_listener(path) as listener:
                await server.serve([listener], task_status=task_status)

        await nursery.start(run)
        return Served(server, path, opened, departures)

    async with opened:
        yield start
