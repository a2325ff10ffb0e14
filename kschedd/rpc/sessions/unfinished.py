"""Incomplete requests: the number of received bytes, for all clients together.

A client may send a request slowly, and its received part must be stored until the rest arrives. If the total is too
large, the client with the largest part is disconnected.

Owns: the count.  Ends: never.
"""

from typing import Protocol

import attrs


class Sender(Protocol):
    def end_unfinished(self) -> None:
        """Abandon this sender's incomplete request, and stop reading from it."""


@attrs.define(eq=False)
class Unfinished:
    most: int = 128 << 20
    held: int = 0
    most_held: int = 0  # highest value so far
    _of: dict[Sender, int] = attrs.field(factory=dict)

    def note(self, sender: Sender, size: int) -> None:
        """Record how many bytes of this sender's request have been received; 0 if no request has begun."""
        self.held += size - self._of.pop(sender, 0)
        if size:
            self._of[sender] = size
            self.most_held = max(self.most_held, self.held)
        while self.held > self.most:
            largest = max(self._of, key=self._of.__getitem__)
            self.held -= self._of.pop(largest)
            largest.end_unfinished()
