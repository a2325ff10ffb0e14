"""A stream to a client of the socket: items in order, and a message at its end.

If the client does not read, the stream stores values instead of encoded bytes, and the producer waits. While many items
are sent, other tasks run in between.
"""

from collections.abc import Sequence
from typing import Any, Final

import attrs
import trio

from kschedd.rpc.encoding import encode_notification
from kschedd.rpc.sessions.sending import Outbox
from kschedd.service.table import StreamProducer
from kschedd.service.turns import Turns

#: number of bytes of items encoded before other tasks run
_STREAMED: Final = 64 * 1024
STOPPING: Final = ("shutting_down", "the daemon is shutting down")


@attrs.define(eq=False)
class OpenStream:
    """A client's subscription: the numbered items of its producer, and the reason for its end."""

    id: int
    method: str
    feed: StreamProducer
    _outbox: Outbox
    _turns: Turns
    _client: str
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    reason: tuple[Any, ...] = STOPPING
    _sent: int = 0
    _since_turn: int = 0

    async def send(self, item: Any) -> None:
        await trio.lowlevel.checkpoint()
        await self._put(item)

    async def send_many(self, items: Sequence[Any]) -> None:
        await trio.lowlevel.checkpoint()
        for item in items:
            await self._put(item)

    async def _put(self, item: Any) -> None:
        """Wait until the outbox has room, then encode the item and queue it."""
        await self._outbox.room()
        encoded = self._encoded(item)
        self._outbox.put(encoded)
        self._since_turn += len(encoded)
        if self._since_turn > _STREAMED:
            self._since_turn = 0
            async with self._turns.turn(self._client):
                pass

    def end(self, code: str, message: str) -> None:
        self.reason = (code, message)
        self.scope.cancel()

    def farewell(self) -> bytes:
        code, message, *data = self.reason
        reason = {"code": code, "message": message}
        if data and data[0] is not None:
            reason["data"] = data[0]
        return encode_notification("stream.end", (self.id, reason))

    def _encoded(self, item: Any) -> bytes:
        encoded = encode_notification("stream.item", (self.id, self._sent, item))
        self._sent += 1
        return encoded
