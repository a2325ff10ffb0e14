"""The order of writes: writes to one object are sent in order; all others run concurrently."""

from collections.abc import Iterable
from types import TracebackType
from typing import Self

import attrs
import trio

from kschedd.store.trial import Key


@attrs.define(eq=False)
class WriteOrder:
    """Queues of writes, one for each object.

    A turn that needs several queues enters all of them together, which prevents deadlocks.
    """

    _last: dict[Key, trio.Event] = attrs.field(factory=dict, init=False)

    def take(self, keys: Iterable[Key]) -> "WriteTurn":
        """Return a turn after all earlier turns for any of these objects."""
        keys, over = frozenset(keys), trio.Event()
        before = {self._last[key] for key in keys if key in self._last}
        self._last |= dict.fromkeys(keys, over)
        return WriteTurn(self, keys, before, over)

    def give_up(self, turn: "WriteTurn") -> None:
        turn.over.set()
        for key in turn.keys:
            if self._last[key] is turn.over:
                del self._last[key]


@attrs.frozen(eq=False)
class WriteTurn:
    """A turn in the queues, which ends with the context."""

    _order: WriteOrder
    keys: frozenset[Key]
    _before: set[trio.Event]
    over: trio.Event

    async def come(self) -> None:
        """Wait until all earlier turns have ended."""
        for event in self._before:
            await event.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, sort: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._order.give_up(self)
