"""RequestBody: the body of an httpx request; if the request fails, it leaves no open generator."""

from collections.abc import Iterator, Sequence

import attrs
import httpx


@attrs.frozen(eq=False)
class RequestBody(httpx.AsyncByteStream):
    """A body that is sent part by part, and again for each redirect that requires a body.

    The bodies of httpx itself are asynchronous generators, which httpcore does not close if a request fails while its
    body is sent. Trio then warns about a generator that was left to the garbage collector.
    """

    parts: Sequence[bytes]

    def __aiter__(self) -> "_Parts":
        return _Parts(iter(self.parts))


@attrs.frozen(eq=False)
class _Parts:
    left: Iterator[bytes]

    def __aiter__(self) -> "_Parts":
        return self

    async def __anext__(self) -> bytes:
        for part in self.left:
            return part
        raise StopAsyncIteration
