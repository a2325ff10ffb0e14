"""Bulletin: tells any number of tasks that the debugger has changed; each then asks its owner what it is now.

Nobody is waited for, and what a slow reader misses is merged: it sees the latest number only.
"""

from collections.abc import Awaitable, Callable

import trio


class Bulletin:
    __slots__ = ("_event", "number", "stopped")

    def __init__(self) -> None:
        self.number = 0  # of the latest change
        self.stopped = False  # whether scheduling was stopped then
        self._event = trio.Event()

    def publish(self, number: int, stopped: bool) -> None:
        """Wake those that know an earlier number."""
        if number != self.number:
            self.number, self.stopped = number, stopped
            event, self._event = self._event, trio.Event()
            event.set()

    async def wait_past(self, number: int) -> int:
        """Wait until the number is not that one any more; returns it."""
        await trio.lowlevel.checkpoint()
        while self.number == number:
            await self._event.wait()
        return self.number

    async def wait_stopped(self, after: int) -> None:
        """Wait until scheduling was stopped by a change after that number, and what came before has been sent on."""
        while not (self.stopped and self.number > after):
            await self.wait_past(self.number)

    async def wait_stopped_or_idle(self, after: int, until_idle: Callable[[], Awaitable[None]], limit_s: float) -> None:
        """Wait as `wait_stopped` does, until `until_idle` returns, or for `limit_s` seconds, whichever ends first."""
        with trio.move_on_after(limit_s):
            async with trio.open_nursery() as either:

                async def idle() -> None:
                    await until_idle()
                    either.cancel_scope.cancel()

                either.start_soon(idle)
                await self.wait_stopped(after)
                either.cancel_scope.cancel()
