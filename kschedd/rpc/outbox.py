"""The sending half of a connection: a bounded channel of encoded messages, and the task that drains it.

A sender blocks while the channel is full, so a slow reader exerts backpressure. The pump joins all waiting
messages and sends them as one piece: a thousand small responses cost a few system calls.

Receives: bytes.  Sends: to the stream.  Ends: when the last sender closes and all messages are sent.
Fails: TooSlowError if the peer reads nothing for `stall_s`; BrokenResourceError if it has disconnected.
"""

from __future__ import annotations

import math

import trio

#: Bytes joined into one send, which must complete within one stall limit.
_GATHER = 256 * 1024


async def pump(
    outbox: trio.MemoryReceiveChannel[bytes], stream: trio.abc.SendStream, stall_s: float = math.inf
) -> None:
    async with outbox:
        async for first in outbox:
            pieces, size = [first], len(first)
            while size < _GATHER:
                try:
                    piece = outbox.receive_nowait()
                except (trio.WouldBlock, trio.EndOfChannel):
                    break
                pieces.append(piece)
                size += len(piece)
            whole = memoryview(b"".join(pieces) if len(pieces) > 1 else first)
            for start in range(0, size, _GATHER):
                with trio.fail_after(stall_s):
                    await stream.send_all(whole[start : start + _GATHER])
