"""Slots for reading large request bodies, which the clients share fairly.

If all slots are in use, a client gets the oldest slot of another client that has more slots. A client
that sends many unfinished bodies therefore cannot block other clients.

Owns: only references. Ends with its server.
"""

from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

import attrs
import trio


@attrs.define(eq=False)
class LargeBodies:
    most: int
    _owners: dict[trio.CancelScope, Hashable] = attrs.field(factory=dict, init=False)  # oldest first

    @contextmanager
    def place(self, owner: Hashable) -> Iterator[trio.CancelScope | None]:
        """Yield a scope that is cancelled if another client gets the slot; None if no slot is available."""
        if len(self._owners) >= self.most and not self._make_room(owner):
            yield None
            return
        with trio.CancelScope() as scope:
            self._owners[scope] = owner
            try:
                yield scope
            finally:
                self._owners.pop(scope, None)

    def _make_room(self, owner: Hashable) -> bool:
        counts = Counter(self._owners.values())
        greedy, held = counts.most_common(1)[0]
        if held <= counts[owner] + 1:
            return False
        oldest = next(scope for scope, whose in self._owners.items() if whose == greedy)
        del self._owners[oldest]
        oldest.cancel()
        return True
