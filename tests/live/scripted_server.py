"""An HTTP server of an empty cluster, with scripted answers to some requests."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import attrs
import trio

Raw = dict[str, Any]
EMPTY: Raw = {"metadata": {"resourceVersion": "1"}, "items": []}


@attrs.frozen(eq=False)
class ServedRequest:
    """A request: `plural` is the last word of the path; a script may write more to `stream`."""

    method: str
    path: str
    body: Any  # None for none
    plural: str
    query: dict[str, str]
    token: str
    stream: trio.abc.Stream

    @property
    def watches(self) -> bool:
        return "watch" in self.query

    async def answer(self, body: object, status: int = 200) -> None:
        text = json.dumps(body).encode()
        head = f"HTTP/1.1 {status} Said\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
        await self.stream.send_all(head.encode() + text)

    async def refuse(self, status: int, why: str = "no") -> None:
        await self.answer({"kind": "Status", "message": why, "code": status}, status)

    async def tell(self, *events: object) -> None:
        """Send the beginning of a watch; its body ends when the connection closes."""
        text = "".join(json.dumps(event) + "\n" for event in events)
        await self.stream.send_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + text.encode())


async def nothing_happens(request: ServedRequest) -> None:
    """Serve an empty, unchanging cluster."""
    if request.watches:
        await request.tell()
        await trio.sleep_forever()
    await request.answer(EMPTY)


@asynccontextmanager
async def scripted(script: Callable[[ServedRequest], Awaitable[None]], port: int = 0) -> AsyncIterator[str]:
    """Run the server and yield its URL."""
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, partial(_serve, script), port, host="127.0.0.1"))
        yield f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


async def _serve(script: Callable[[ServedRequest], Awaitable[None]], stream: trio.SocketStream) -> None:
    async with stream:
        head = b""
        while b"\r\n\r\n" not in head:
            piece = await stream.receive_some()
            if not piece:
                return
            head += piece
        head, _, body = head.partition(b"\r\n\r\n")
        first, *fields = head.decode().split("\r\n")
        method, address, _ = first.split()
        target = urlsplit(address)
        headers = {name.lower(): value for name, _, value in (field.partition(": ") for field in fields)}
        while len(body) < int(headers.get("content-length", "0")):
            body += await stream.receive_some()
        token = headers.get("authorization", "").removeprefix("Bearer ")
        plural, query = target.path.rpartition("/")[2], dict(parse_qsl(target.query))
        try:
            await script(
                ServedRequest(method, target.path, json.loads(body) if body else None, plural, query, token, stream)
            )
        except trio.BrokenResourceError:
            return  # the client has gone
