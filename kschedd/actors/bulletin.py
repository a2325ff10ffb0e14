"""Bulletin: notifies tasks of changes of the debugger; the tasks then read the debugger's state.

Publishing never waits. A slow task receives only the number of the latest change.
"""

from collections.abc import Awaitable, Callable

import trio


class Bulletin:
    __slots__ = ("_event", "number", "stopped")

    def __init__(self) -> None:
        self.number = 0  # of the latest change
        self.stopped = False  # true if the latest change stopped scheduling
        self._event = trio.Event()

    def publish(self, number: int, stopped: bool) -> None:
        """Wake the tasks that wait with an earlier number."""
        if number != self.number:
            self.number, self.stopped = number, stopped
            event, self._event = self._event, trio.Event()
            event.set()

    async def wait_past(self, number: int) -> int:
        """Wait until the current number differs from `number`; return the current number."""
        await trio.lowlevel.checkpoint()
        while self.number == number:
            await self._event.wait()
        return self.number

    async def wait_stopped(self, after: int) -> None:
        """Wait until a later change than `number` has stopped scheduling, and the effects before the stop were sent."""
        while not (self.stopped and self.number > after):
            await self.wait_past(self.number)

    async def wait_stopped_or_idle(self, after: int, until_idle: Callable[[], Awaitable[None]], limit_s: float) -> None:
        """Wait until scheduling stops, `until_idle` returns, or `limit_s` seconds have passed."""
        with trio.move_on_after(limit_s):
            async with trio.open_nursery() as either:

                async def idle() -> None:
                    await until_idle()
                    either.cancel_scope.cancel()

                either.start_soon(idle)
                await self.wait_stopped(after)
                either.cancel_scope.cancel()
