"""Requests that have begun and not ended: their bytes, of all clients together.

A client may take its time to send a request, and meanwhile what has come of it is kept. When there is too much of that,
the client with most of it is dropped.

Owns: the count.  Ends: never.
"""

from typing import Protocol

import attrs


class Sender(Protocol):
    def end_unfinished(self) -> None:
        """Its request is given up, and it is not read from any more."""


@attrs.define(eq=False)
class Unfinished:
    most: int = 128 << 20
    held: int = 0
    most_held: int = 0  # at once so far
    _of: dict[Sender, int] = attrs.field(factory=dict)

    def note(self, sender: Sender, size: int) -> None:
        """So many bytes of this one's request have come by now; 0: none has begun."""
        self.held += size - self._of.pop(sender, 0)
        if size:
            self._of[sender] = size
            self.most_held = max(self.most_held, self.held)
        while self.held > self.most:
            largest = max(self._of, key=self._of.__getitem__)
            self.held -= self._of.pop(largest)
            largest.end_unfinished()
