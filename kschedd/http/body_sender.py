"""The body of a response that is sent in pieces, as chunks of HTTP/1.1.

Owns nothing: the connection sends.  Raises what that raises.
"""

import os
from collections.abc import Sequence
from typing import Protocol

from kschedd.http.protocol import LAST_CHUNK, chunk


class ChunkedConnection(Protocol):
    """The part of a connection that sends."""

    @property
    def descriptor(self) -> int:
        """Return its socket's file descriptor, -1 where bytes may not be written to it as they are."""

    async def send(self, data: bytes | memoryview) -> None: ...


class BodySender:
    """Sends the pieces of a body. The first takes the head with it.

    `midway`: part of a chunk may have been sent and the rest has not, so that no other chunk can follow.
    """

    def __init__(self, connection: ChunkedConnection, head: bytes) -> None:
        self._connection = connection
        self._head = head
        self._descriptor = connection.descriptor
        self.midway = False

    async def __call__(self, piece: bytes) -> None:
        """Send a piece. Raises trio.TooSlowError where the client takes nothing for too long."""
        if piece or self._head:
            head, self._head = self._head, b""
            await self.framed(head + chunk(piece) if piece else head)

    async def framed(self, data: bytes | memoryview) -> None:
        """The same for bytes that are chunks already, or what is left of one."""
        self.midway = True
        await self._connection.send(data)
        self.midway = False

    async def parts(self, parts: Sequence[bytes]) -> None:
        """Send a piece that consists of these parts, without a copy of them."""
        head, self._head = self._head, b""
        self.midway = True
        await self._connection.send(head + b"%x\r\n" % sum(map(len, parts)))
        for part in (*parts, b"\r\n"):
            await self._connection.send(part)
        self.midway = False

    def write_now(self, framed: bytes) -> int:
        """Write as much of a chunk as the connection takes without waiting; how many bytes that was.

        Not while a piece is being sent. What was begun has to be ended by `framed`.
        """
        if self._head or self._descriptor < 0:
            return 0
        try:
            written = os.write(self._descriptor, framed)
            self.midway = 0 < written < len(framed)
            return written
        except OSError:  # it takes nothing now; or the client is gone, which sending finds out
            return 0

    async def end(self) -> None:
        await self._connection.send(self._head + LAST_CHUNK)
