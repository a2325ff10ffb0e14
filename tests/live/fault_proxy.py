"""A proxy between a scheduler and an API server that loses requests, answers and connections, by a seed.

Each connection ends after a random number of bytes in either direction, so requests are lost, or executed without an
answer. Some connections are closed at once; on some, the first request is rejected with 429 or 503 and Retry-After.
"""

import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

import attrs
import trio

_GONE = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)
_BUSY = (429, 503)
MOST_FAULTS = 50


@attrs.define(eq=False)
class FaultProxy:
    """`calm` ends the faults, which also end after `MOST_FAULTS`. `faults` counts them by kind."""

    target: int
    seed: int
    port: int = attrs.field(default=0, init=False)
    calm: bool = attrs.field(default=False, init=False)
    faults: Counter[str] = attrs.field(factory=Counter, init=False)
    _draws: random.Random = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._draws = random.Random(self.seed)

    @property
    def is_calm(self) -> bool:
        return self.calm or self.faults.total() >= MOST_FAULTS

    async def serve(self, client: trio.SocketStream) -> None:
        fault = "none" if self.is_calm else self._draws.choices(("none", "closed", "busy"), (8, 1, 2))[0]
        with suppress(*_GONE):
            async with client:
                if fault == "closed":
                    self.faults[fault] += 1
                    return
                if fault == "busy":
                    await self._reject(client)
                    return
                async with await trio.open_tcp_stream("127.0.0.1", self.target) as server:
                    await self._forward(client, server)

    async def _reject(self, client: trio.SocketStream) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            piece = await client.receive_some()
            if not piece:
                return
            head += piece
        self.faults["busy"] += 1
        code = self._draws.choice(_BUSY)
        await client.send_all(b"HTTP/1.1 %d Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n" % code)
        await client.send_eof()

    async def _forward(self, client: trio.SocketStream, server: trio.SocketStream) -> None:
        async def copy(source: trio.SocketStream, sink: trio.SocketStream, name: str, mean: int) -> None:
            left = self._draws.expovariate(1 / mean)
            with suppress(*_GONE):
                while data := bytes(await source.receive_some()):
                    left -= len(data)
                    if left < 0 and not self.is_calm:
                        self.faults[name] += 1
                        break
                    await sink.send_all(data)
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(copy, client, server, "request lost", 6_000)
            nursery.start_soon(copy, server, client, "answer lost", 100_000)


@asynccontextmanager
async def fault_proxy(target: int, seed: int) -> AsyncIterator[FaultProxy]:
    proxy = FaultProxy(target, seed)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, proxy.serve, 0, host="127.0.0.1"))
        proxy.port = listeners[0].socket.getsockname()[1]
        proxy.calm = True
        yield proxy
        nursery.cancel_scope.cancel()
