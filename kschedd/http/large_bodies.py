"""Places for large bodies that are being read, shared out fairly between clients.

When all are taken, a client that has fewer than another gets the place of the other's oldest. So whoever sends many
half bodies keeps out no other client.

Owns: nothing but references. Ends with its server.
"""

from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

import attrs
import trio


@attrs.define(eq=False)
class LargeBodies:
    most: int
    _owners: dict[trio.CancelScope, Hashable] = attrs.field(factory=dict, init=False)  # the oldest first

    @contextmanager
    def place(self, owner: Hashable) -> Iterator[trio.CancelScope | None]:
        """Give a scope that is cancelled when the place is taken away; None if there is none."""
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
