"""The body of a response that is sent in pieces, in the form of HTTP/1.1 chunks.

A sender has no resources of its own: the connection sends the data. A sender raises the exceptions of the connection.
"""

import os
from collections.abc import Sequence
from typing import Protocol

from kschedd.http.protocol import LAST_CHUNK, chunk


class ChunkedConnection(Protocol):
    """The part of a connection that sends data."""

    @property
    def descriptor(self) -> int:
        """The file descriptor of the socket; -1 if raw bytes must not be written to it."""

    async def send(self, data: bytes | memoryview) -> None: ...


class BodySender:
    """A sender of body pieces. The first piece is sent together with the head.

    `midway` is true while a chunk is sent only in part, so that no other chunk can follow.
    """

    def __init__(self, connection: ChunkedConnection, head: bytes) -> None:
        self._connection = connection
        self._head = head
        self._descriptor = connection.descriptor
        self.midway = False

    async def __call__(self, piece: bytes) -> None:
        """Send a piece. Raises trio.TooSlowError if the client reads nothing for too long."""
        if piece or self._head:
            head, self._head = self._head, b""
            await self.framed(head + chunk(piece) if piece else head)

    async def framed(self, data: bytes | memoryview) -> None:
        """Send bytes that are already encoded as chunks, or the remaining bytes of a chunk."""
        self.midway = True
        await self._connection.send(data)
        self.midway = False

    async def parts(self, parts: Sequence[bytes]) -> None:
        """Send a piece that consists of these parts, without copying the parts."""
        head, self._head = self._head, b""
        self.midway = True
        await self._connection.send(head + b"%x\r\n" % sum(map(len, parts)))
        for part in (*parts, b"\r\n"):
            await self._connection.send(part)
        self.midway = False

    def write_now(self, framed: bytes) -> int:
        """Write as much of a chunk as possible without waiting; return the number of bytes written.

        This method must not be called while a piece is being sent. `framed` must complete a chunk that was written
        partly.
        """
        if self._head or self._descriptor < 0:
            return 0
        try:
            written = os.write(self._descriptor, framed)
            self.midway = 0 < written < len(framed)
            return written
        except OSError:  # the buffer is full, or the client has disconnected; the next send detects the latter
            return 0

    async def end(self) -> None:
        await self._connection.send(self._head + LAST_CHUNK)
