"""Unauthenticated connections, on which no request has been admitted yet.

Unauthenticated connections have a separate small limit, so that they cannot block clients with credentials. Above this
limit, the oldest connection of the address with the most connections is closed.

Owns only references. Ends with its server.
"""

from collections import Counter
from typing import Any, Generic, TypeVar

import attrs
import trio

from kschedd.http.protocol import HttpRequest

C = TypeVar("C")


@attrs.define(eq=False)
class Unauthenticated(Generic[C]):
    most: int
    most_so_far: int = attrs.field(default=0, init=False)
    _addresses: dict[C, str] = attrs.field(factory=dict, init=False)  # oldest first

    def __len__(self) -> int:
        return len(self._addresses)

    def __contains__(self, connection: object) -> bool:
        return connection in self._addresses

    def add(self, connection: C, address: str) -> C | None:
        """Add a new connection; return the connection that must be closed if there are too many."""
        self._addresses[connection] = address
        if len(self._addresses) <= self.most:
            self.most_so_far = max(self.most_so_far, len(self._addresses))
            return None
        counts = Counter(self._addresses.values())
        most_of_one = max(counts.values())
        oldest = next(each for each, where in self._addresses.items() if counts[where] == most_of_one)
        del self._addresses[oldest]
        return oldest

    def discard(self, connection: C) -> None:
        """Remove a connection that was admitted or has ended."""
        self._addresses.pop(connection, None)


class NotAdmitted(Exception):
    """A request is rejected because of its head."""

    def __init__(self, head: HttpRequest) -> None:
        self.head = head


def address_of(stream: Any) -> str:
    """Return the client's address; "" if it has none or the client has disconnected."""
    if isinstance(stream, trio.SSLStream):
        stream = stream.transport_stream
    if not isinstance(stream, trio.SocketStream):
        return ""
    try:
        return str(stream.socket.getpeername()[0])
    except (OSError, IndexError):
        return ""
