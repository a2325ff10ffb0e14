"""Connections in memory: bounded, late, in pieces of any size; and they can break.

A `Network` is what clients dial and the daemon's server accepts from, as kschedd.rpc uses Trio's listeners and streams.
"""

import math
import random
from collections.abc import Callable

import attrs
import trio

_CAPACITY = 4096  # bytes on their way; a sender waits for room


@attrs.define(eq=False)
class _Pipe:
    """One direction of a connection."""

    chance: random.Random
    data: bytearray = attrs.field(factory=bytearray)
    finished: bool = False  # its sender has closed it
    broken: bool = False
    changed: trio.Event = attrs.field(factory=trio.Event)

    def note(self) -> None:
        self.changed.set()
        self.changed = trio.Event()

    def break_off(self) -> None:
        self.broken = True
        self.data.clear()
        self.note()


@attrs.define(eq=False)
class FakeStream(trio.abc.Stream):
    _inbound: _Pipe
    _outbound: _Pipe
    _closed: bool = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        pipe, rest = self._outbound, memoryview(data)
        while True:
            if self._closed:
                raise trio.ClosedResourceError
            if pipe.broken:
                raise trio.BrokenResourceError
            room = _CAPACITY - len(pipe.data)
            pipe.data += rest[:room]
            rest = rest[room:]
            pipe.note()
            if not rest:
                return
            await pipe.changed.wait()

    async def wait_send_all_might_not_block(self) -> None:
        while len(self._outbound.data) >= _CAPACITY and not (self._outbound.broken or self._closed):
            await self._outbound.changed.wait()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        pipe = self._inbound
        await trio.sleep(pipe.chance.choice((0.0, 0.0, 0.0005, 0.02)) * pipe.chance.random())
        while not pipe.data:
            if self._closed:
                raise trio.ClosedResourceError
            if pipe.broken:
                raise trio.BrokenResourceError
            if pipe.finished:
                return b""
            await pipe.changed.wait()
        most = min(len(pipe.data), max_bytes or _CAPACITY)
        size = most if pipe.chance.random() < 0.7 else pipe.chance.randint(1, most)
        piece = bytes(pipe.data[:size])
        del pipe.data[:size]
        pipe.note()
        return piece

    async def aclose(self) -> None:
        self.close()
        await trio.lowlevel.checkpoint()

    def close(self) -> None:
        self._closed = True
        self._outbound.finished = True
        self._outbound.note()
        self._inbound.break_off()

    def break_off(self) -> None:
        self._outbound.break_off()
        self._inbound.break_off()


@attrs.define(eq=False)
class FakeListener(trio.abc.Listener[FakeStream]):
    _incoming: "trio.MemoryReceiveChannel[FakeStream]"
    _on_close: Callable[[], None]

    async def accept(self) -> FakeStream:
        try:
            return await self._incoming.receive()
        except trio.ClosedResourceError:
            raise trio.ClosedResourceError("this listener was closed") from None

    async def aclose(self) -> None:
        self._on_close()
        self._incoming.close()
        await trio.lowlevel.checkpoint()


@attrs.define(eq=False)
class Network:
    _chance: random.Random
    _dialled: "trio.MemorySendChannel[FakeStream] | None" = None
    _streams: list[FakeStream] = attrs.field(factory=list)
    _listening: trio.Event = attrs.field(factory=trio.Event)

    def listen(self) -> FakeListener:
        dialled, incoming = trio.open_memory_channel[FakeStream](math.inf)
        self._dialled = dialled
        self._listening.set()
        return FakeListener(incoming, lambda: self._stop_listening(dialled))

    async def dial(self) -> FakeStream:
        """Return a connection to the daemon, once the daemon listens."""
        while self._dialled is None:
            await self._listening.wait()
        there, back = _Pipe(self._chance), _Pipe(self._chance)
        ours, theirs = FakeStream(back, there), FakeStream(there, back)
        self._streams.append(theirs)
        self._dialled.send_nowait(theirs)
        return ours

    def cut(self) -> None:
        """Drop the listener, all connections and the data in transit, as when the daemon's process ends."""
        if self._dialled is not None:
            self._stop_listening(self._dialled)
        for stream in self._streams:
            stream.break_off()
        self._streams.clear()

    def _stop_listening(self, dialled: "trio.MemorySendChannel[FakeStream]") -> None:
        if self._dialled is dialled:
            self._dialled = None
            self._listening = trio.Event()
