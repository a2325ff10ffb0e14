"""RequestBody: the body of an httpx request that leaves no open generator when the request fails."""

from collections.abc import Iterator, Sequence

import attrs
import httpx


@attrs.frozen(eq=False)
class RequestBody(httpx.AsyncByteStream):
    """A body that is sent part by part, and again for each redirect that requires it.

    httpx's own bodies are asynchronous generators. httpcore does not close them when a request fails while its body is
    sent. Trio then warns of a generator that was left to the garbage collector.
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
