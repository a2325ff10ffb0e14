"""What is done to one object is done in the order in which it was wanted, what is done to others goes on beside it."""

from collections.abc import Iterable
from types import TracebackType
from typing import Self

import attrs
import trio

from kschedd.store.trial import Key


@attrs.define(eq=False)
class WriteOrder:
    """Places in line, one line for each object. A place in several lines is taken in all of them at once, so that no
    two ever wait for each other."""

    _last: dict[Key, trio.Event] = attrs.field(factory=dict, init=False)

    def take(self, keys: Iterable[Key]) -> "WriteTurn":
        """A place behind all that were taken before for any of these objects."""
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
    """A place; it is given up at the end of the context."""

    _order: WriteOrder
    keys: frozenset[Key]
    _before: set[trio.Event]
    over: trio.Event

    async def come(self) -> None:
        """Wait until all before it are over."""
        for event in self._before:
            await event.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, sort: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._order.give_up(self)
