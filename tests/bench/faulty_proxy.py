"""A proxy in front of an API server whose faults begin and end on command; it terminates TLS for HTTPS servers.

Each fault affects all connections. The proxy recognizes a request by its first bytes, because an HTTP client sends the
head and the body of a small request together.
"""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

import attrs
import trio

GONE: Final = (trio.BrokenResourceError, trio.ClosedResourceError, OSError, ssl.SSLError)
REJECTIONS: Final = {
    "500": (500, ""),
    "429": (429, "Retry-After: 1\r\n"),
    "503": (503, "Retry-After: 1\r\n"),
}
_METHODS: Final = (b"GET ", b"POST", b"PUT ", b"PATC", b"DELE")
_SLOW_S: Final = 1.0
_HANG_S: Final = 15.0


@attrs.define(eq=False)
class FaultyProxy:
    """`fault` is the present fault, or ""; `target` is the port of the server."""

    target: int
    tls: ssl.SSLContext | None = None
    port: int = attrs.field(default=0, init=False)
    fault: str = attrs.field(default="", init=False)
    affected: int = attrs.field(default=0, init=False)  # number of requests, answers and connections that failed
    _open: set[trio.CancelScope] = attrs.field(factory=set, init=False)

    def drop_connections(self) -> None:
        for scope in self._open:
            scope.cancel()
        self.affected += len(self._open)

    async def serve(self, client: trio.SocketStream) -> None:
        with suppress(*GONE):
            async with client, await self._connect() as server:
                await self._forward(client, server)

    async def _connect(self) -> trio.abc.Stream:
        stream = await trio.open_tcp_stream("127.0.0.1", self.target)
        return stream if self.tls is None else trio.SSLStream(stream, self.tls, https_compatible=True)

    async def _forward(self, client: trio.SocketStream, server: trio.abc.Stream) -> None:
        async def requests() -> None:
            with suppress(*GONE):
                while data := bytes(await client.receive_some()):
                    if self.fault == "requests lost":
                        self.affected += 1
                        break
                    if self.fault in REJECTIONS and data.startswith(_METHODS):
                        self.affected += 1
                        code, head = REJECTIONS[self.fault]
                        await client.send_all(
                            b"HTTP/1.1 %d Fault\r\n%sContent-Length: 0\r\n\r\n" % (code, head.encode())
                        )
                        continue
                    await server.send_all(data)
            nursery.cancel_scope.cancel()

        async def answers() -> None:
            with suppress(*GONE):
                while data := bytes(await server.receive_some()):
                    if self.fault == "answers lost":
                        self.affected += 1
                        break
                    if self.fault in ("slow", "hanging"):
                        self.affected += 1
                        await trio.sleep(_SLOW_S if self.fault == "slow" else _HANG_S)
                    await client.send_all(data)
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            self._open.add(nursery.cancel_scope)
            nursery.start_soon(requests)
            nursery.start_soon(answers)
        self._open.discard(nursery.cancel_scope)


@asynccontextmanager
async def faulty_proxy(target: int, tls: ssl.SSLContext | None = None) -> AsyncIterator[FaultyProxy]:
    proxy = FaultyProxy(target, tls)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, proxy.serve, 0, host="127.0.0.1"))
        proxy.port = listeners[0].socket.getsockname()[1]
        yield proxy
        nursery.cancel_scope.cancel()
