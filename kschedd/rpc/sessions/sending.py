"""The queue of messages to one client, limited in bytes, and the task that sends these messages.

A message is either bytes or `Pieces`. `Pieces` is a large message that is encoded in parts while it is sent, so that a
slow reader's queue only refers to values that the store contains anyway.

Senders wait in `room` while the client's queue is full. `Total` counts the queued bytes of all clients. If it exceeds
its limit, the messages in the longest queue are dropped.

Owns: the messages.  Ends: `pump` returns when the outbox is closed and all messages are sent.
Fails: TooSlowError if the peer reads nothing for `stall_s`, and BrokenResourceError if it has disconnected.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator

import attrs
import trio

from kschedd.service.turns import Turns

#: number of bytes joined into one send, which must end within the stall limit
GATHER = 256 * 1024
_AT_ONCE = 64 * 1024  # maximum number of bytes of a response written without the pump


@attrs.define(eq=False)
class Pieces:
    """A message in pieces. `held` is the number of bytes to count for the message while it is queued."""

    pieces: Iterator[bytes]
    held: int


@attrs.define(eq=False)
class Total:
    """The queued bytes of all clients."""

    most: int = 256 << 20
    held: int = 0
    most_held: int = 0  # highest value so far
    most_of_one: int = 0
    outboxes: "set[Outbox]" = attrs.field(factory=set)

    def add(self, size: int) -> None:
        self.held += size
        self.most_held = max(self.most_held, self.held)
        while self.held > self.most and self.outboxes:
            max(self.outboxes, key=lambda outbox: outbox.held).make_room()


class Outbox:
    """The queue of messages to one client.

    `on_overflow` is called if this client's messages are dropped because of the total limit.
    """

    def __init__(
        self,
        name: str,
        most: int,
        total: Total,
        turns: Turns,
        on_overflow: Callable[[], None],
        write: Callable[[bytes], int] | None = None,  # see `writer_to`
    ) -> None:
        self.held = 0
        self._write = write
        self._resting = False  # True while the pump waits and sends nothing
        self._rest = b""  # unsent part of a message
        self.closed = False
        self._name = name
        self._most = most
        self._total = total
        self._turns = turns
        self._on_overflow = on_overflow
        self._messages: deque[bytes | Pieces] = deque()
        self._work = trio.lowlevel.ParkingLot()
        self._room = trio.lowlevel.ParkingLot()
        total.outboxes.add(self)

    @property
    def full(self) -> bool:
        return self.held >= self._most

    async def room(self) -> None:
        """Wait until the queue is below this client's limit.

        If it is, there is no checkpoint.
        """
        while self.full and not self.closed:
            await self._room.park()

    def answer(self, message: bytes | Pieces) -> None:
        """Send as much of a response as the stream accepts immediately, so that the pump is rarely needed."""
        if not (self._resting and self._write is not None and isinstance(message, bytes) and len(message) <= _AT_ONCE):
            self.put(message)
            return
        taken = self._write(message)
        if taken == len(message):
            return
        self._resting = False
        self._rest = message[taken:]  # a part of this message is sent, so it must not be dropped
        self._count(len(self._rest))
        self._work.unpark()

    def put(self, message: bytes | Pieces) -> None:
        """Append a message to the queue; if the outbox is closed, discard the message."""
        if self.closed:
            return
        self._resting = False
        self._messages.append(message)
        self._count(len(message) if isinstance(message, bytes) else message.held)
        self._work.unpark()

    def close(self) -> None:
        """Accept no more messages; queued messages are still sent."""
        self.closed, self._resting = True, False
        self._work.unpark_all()
        self._room.unpark_all()

    def end(self) -> None:
        """Discard the queue and close the outbox."""
        self._messages.clear()
        self.close()
        self._leave_total()
        self._on_overflow = _nothing  # drop the callback, which is part of a reference cycle with the session

    def make_room(self) -> None:
        """Drop all messages that are not being sent yet."""
        self._messages.clear()
        self._leave_total()
        self._on_overflow()

    def _leave_total(self) -> None:
        if self in self._total.outboxes:
            self._total.outboxes.discard(self)
            self._total.held -= self.held

    def _count(self, size: int) -> None:
        self.held += size
        self._total.most_of_one = max(self._total.most_of_one, self.held)
        if self in self._total.outboxes:
            self._total.add(size)

    async def pump(self, stream: trio.abc.SendStream, stall_s: float) -> None:
        try:
            while True:
                while not self._messages and not self._rest:
                    if self.closed:
                        return
                    self._resting = True
                    await self._work.park()
                await self._send(stream, stall_s)
        finally:
            self.end()

    async def _send(self, stream: trio.abc.SendStream, stall_s: float) -> None:
        """Send one large message, or as many queued messages as fit into one send."""
        parts = [self._rest] if self._rest else []
        size = done = len(self._rest)
        self._rest = b""
        while self._messages and size < GATHER:
            message = self._messages.popleft()
            if isinstance(message, bytes):
                parts.append(message)
                size += len(message)
                done += len(message)
                continue
            done += message.held
            while True:
                async with self._turns.turn(self._name):
                    piece = next(message.pieces, None)
                if piece is None:
                    break
                parts.append(piece)
                size += len(piece)
                if size >= GATHER:
                    await _send_all(stream, parts, stall_s)
                    size = 0
        await _send_all(stream, parts, stall_s)
        self._count(-done)
        if not self.full:
            self._room.unpark_all()


def writer_to(stream: trio.abc.Stream) -> Callable[[bytes], int] | None:
    """Return a function that writes to a socket without waiting, or None for other streams.

    The function returns the number of written bytes. The number is also 0 if the connection is broken, which the next
    send detects.
    """
    if not isinstance(stream, trio.SocketStream):
        return None
    sock = stream.socket

    def write(data: bytes) -> int:
        try:
            return os.write(sock.fileno(), data)
        except OSError:
            return 0

    return write


def _nothing() -> None: ...


async def _send_all(stream: trio.abc.SendStream, parts: list[bytes], stall_s: float) -> None:
    whole = memoryview(b"".join(parts) if len(parts) != 1 else parts[0])
    parts.clear()
    for start in range(0, len(whole), GATHER):
        with trio.fail_after(stall_s):
            await stream.send_all(whole[start : start + GATHER])
