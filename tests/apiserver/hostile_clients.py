"""The REST API and its server with clients that send arbitrary bytes (`tests/http/hostile.py`), in virtual time.

Whatever a client sends, its connection receives well-formed responses and ends; no handler fails, and no state remains.
"""

import random
from typing import Any

import attrs
import trio

from kschedd.http.protocol import HttpFault, ResponseHead, ResponseReader
from kschedd.http.server import HttpLimits, HttpServer
from kschedd.threads import use_threads
from tests.apiserver.asking import Asker, asking
from tests.faults.virtual import VirtualThreads
from tests.http.hostile import Conversation, conversation
from tests.http.test_server import ClientStream, MemoryListener

LIMITS = HttpLimits(connections=256, most_body=1 << 20, request_s=5, stall_s=5, idle_s=10)


@attrs.define(eq=False)
class Bugs:
    """A log that must stay empty."""

    found: list[str] = attrs.field(factory=list)

    def error(self, event: str, *, exc_info: BaseException, **more: Any) -> None:
        self.found.append(f"{event} {more}: {exc_info!r}")


@attrs.define(eq=False)
class Tally:
    conversations: int = 0
    messages: int = 0
    answers: int = 0
    by_status: dict[int, int] = attrs.field(factory=dict)

    def take(self, status: int) -> None:
        self.answers += 1
        self.by_status[status] = self.by_status.get(status, 0) + 1


async def converse(client: ClientStream, what: Conversation, tally: Tally) -> None:
    """Send everything, and read the responses until either side closes the connection.

    Raises HttpFault for bytes that are not a response.
    """
    async with trio.open_nursery() as nursery:
        if what.reads:
            nursery.start_soon(_read, client, tally)
        try:
            for piece in what.pieces:
                await client.send_all(piece)
                await trio.lowlevel.checkpoint()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the client was answered and disconnected before it had sent everything
        if not what.hangs_up:
            await trio.sleep(60)  # longer than any timeout of the server
        nursery.cancel_scope.cancel()
    await client.aclose()


async def _read(client: ClientStream, tally: Tally) -> None:
    reader, rest = ResponseReader(), b""
    while True:
        try:
            data = await client.receive_some()
        except trio.ClosedResourceError:
            return
        if not data:
            return
        rest = (rest + data)[-200:]
        try:
            events = reader.feed(bytes(data))
        except HttpFault as fault:
            raise AssertionError(f"what came is no answer: {fault}; it ends with {rest!r}") from fault
        for event in events:
            if isinstance(event, ResponseHead):
                tally.take(event.status)


async def attack(seed: int, conversations: int, at_once: int = 200) -> Tally:
    """Run this number of connections. Raises AssertionError for a bug of the server, or if connections remain open."""
    tally, bugs, chance = Tally(), Bugs(), random.Random(seed)
    use_threads(VirtualThreads(random.Random(f"threads {seed}")))
    async with asking() as api, trio.open_nursery() as nursery:
        listener = MemoryListener()
        server = HttpServer(api.face, explain=api.face.explain, limits=LIMITS, log=bugs)
        await nursery.start(server.serve, [listener])
        left = conversations
        while left:
            async with trio.open_nursery() as clients:
                for _ in range(min(at_once, left)):
                    what = conversation(chance)
                    tally.conversations += 1
                    tally.messages += what.messages
                    clients.start_soon(converse, await _connect(listener), what, tally)
                    left -= 1
            await _emptied(api)
            assert not bugs.found, bugs.found[0]
        await trio.sleep(60)
        assert server.connections == 0, "every connection has ended"
        nursery.cancel_scope.cancel()
    return tally


async def _connect(listener: MemoryListener) -> ClientStream:
    return await listener.connect()


async def _emptied(api: Asker) -> None:
    """Delete the objects that clients created, so that lists stay short."""
    for path in ("/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/configmaps", "/api/v1/nodes"):
        await api.ask("DELETE", path + "?gracePeriodSeconds=0")
