"""Groups of equal watches: each event is filtered and encoded once, and the bytes are shared.

Watches with equal selectors, form and position form a group. A watch runs alone until it has reached the version of the
group, and then joins. The first watch of a group determines the group's position in the log. The group takes events
from the log and sends them to the members in order. Each event is written immediately, as far as the socket accepts the
bytes. The remaining bytes wait in the member's outbox until the member's own task sends them. A member with a full
outbox falls behind: it gets no more events, and its task leaves the group and continues alone from the member's
version. A client that does not read therefore keeps in memory its position in the log, and only those shared bytes that
it has begun to receive.

Owns: the groups and the outboxes of their members, each limited to `MOST_PENDING` unshared bytes. Ends: a group ends
with its last member, and all groups with the cancellation of `run`.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Final

import attrs
import trio

from kschedd.http.body_sender import BodySender
from kschedd.http.protocol import chunk
from kschedd.http.server import Send
from kschedd.store.cluster_api import ClusterWatch
from kschedd.store.errors import Gone
from kschedd.store.objects.log import WatchEvent

MOST_PENDING: Final = 64 << 10  # bytes
_EVENTS: Final = 200  # taken at once
_AT_ONCE: Final = 64  # number of members to which data is written before other tasks run

Lines = Callable[[WatchEvent], Iterable[bytes]]


@attrs.frozen(eq=False)
class _Batch:
    """The lines for all current members, and the version that the members have after these lines."""

    members: tuple["Member", ...]
    lines: bytes
    framed: bytes
    version: int


@attrs.define(eq=False)
class Member:
    """A client's watch in a group, with the data that wait to be sent to the client."""

    _send: Send
    version: int
    ended: bool = False  # the group has ended
    behind: bool = False  # true if the member does not read fast enough, and gets no event after its version
    expired: bool = False  # true if the log lacks the member's next events
    _rest: bytes | memoryview = b""  # remaining bytes of a shared chunk that was written partly
    _pending: deque[bytes] = attrs.field(factory=deque)
    _size: int = 0
    _sending: bool = False
    _bell: trio.Event = attrs.field(factory=trio.Event)

    def offer(self, lines: bytes, framed: bytes, version: int) -> None:
        """Write these bytes, or store them for `flush`."""
        if self.ended or self.behind:
            return
        if not (self._sending or self._rest or self._pending) and isinstance(self._send, BodySender):
            written = self._send.write_now(framed)
            if written:
                self.version = version
                if written < len(framed):
                    self._rest = memoryview(framed)[written:]
                    self._bell.set()
                return
        self._bell.set()
        if self._size + len(lines) > MOST_PENDING:
            self.behind = True
            return
        self.version = version
        self._pending.append(lines)
        self._size += len(lines)

    @property
    def pending(self) -> int:
        """The number of bytes that wait to be sent, without bytes shared with the group."""
        return self._size

    def end(self) -> None:
        self.ended = True
        self._bell.set()

    async def wait(self) -> None:
        """Wait until there is data to flush, or the member has ended."""
        await self._bell.wait()

    async def flush(self) -> None:
        """Send the stored data."""
        self._sending = True
        try:
            if self._rest:
                assert isinstance(self._send, BodySender), "only it writes in part"
                rest, self._rest = self._rest, b""
                await self._send.framed(rest)
            while self._pending:
                lines = b"".join(self._pending)
                self._pending.clear()
                self._size = 0
                await self._send(lines)
            self._size = 0
        finally:
            self._sending = False
        if not self.ended:
            self._bell = trio.Event()


class WatchGroup:
    """A group of equal watches."""

    def __init__(self, watch: ClusterWatch, lines: Lines) -> None:
        self._watch = watch
        self._lines = lines
        self._members: dict[Member, None] = {}
        self._batches: deque[_Batch] = deque()
        self._ready = trio.Event()
        self._scope = trio.CancelScope()
        self.ended = False

    @property
    def version(self) -> int:
        return self._watch.version

    @property
    def size(self) -> int:
        return len(self._members)

    def version_of(self, member: Member) -> int:
        """Return the version up to which this member has received everything."""
        return member.version if self._batches or member.behind else self._watch.version

    def join(self, send: Send) -> Member:
        member = Member(send, self._watch.version)
        self._members[member] = None
        return member

    def leave(self, member: Member) -> None:
        member.ended = True
        self._members.pop(member, None)
        if not self._members:
            self._scope.cancel()
            self.ended = True

    def collect(self) -> None:
        """Take the new events from the log, for the current members."""
        while self._watch.behind:
            try:
                taken = self._watch.take(_EVENTS)
            except Gone:
                for member in self._members:
                    member.expired = True
                self._end()
                return
            lines = b"".join(line for event in taken for line in self._lines(event))
            if lines:
                self._batches.append(_Batch(tuple(self._members), lines, chunk(lines), self._watch.version))
                self._ready.set()

    async def run(self) -> None:
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._distribute)
                    while await self._watch.wait():
                        self.collect()
        finally:
            self._watch.close()
            self._end()

    def _end(self) -> None:
        self.ended = True
        for member in self._members:
            member.end()
        self._scope.cancel()

    async def _distribute(self) -> None:
        while True:
            await self._ready.wait()
            self._ready = trio.Event()
            while self._batches:
                batch = self._batches[0]
                for number, member in enumerate(batch.members, 1):
                    member.offer(batch.lines, batch.framed, batch.version)
                    if number % _AT_ONCE == 0:
                        await trio.lowlevel.checkpoint()
                self._batches.popleft()
                await trio.lowlevel.checkpoint()


class WatchGroups:
    """All groups. Without a task in `run`, every watch runs alone."""

    def __init__(self) -> None:
        self._groups: dict[Hashable, WatchGroup] = {}
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        try:
            async with trio.open_nursery() as self._nursery:
                task_status.started()
                await trio.sleep_forever()
        finally:
            self._nursery = None

    def sizes(self) -> list[int]:
        """Return the number of members of each group."""
        return [group.size for group in self._groups.values()]

    def join(self, key: Hashable, watch: ClusterWatch, lines: Lines, send: Send) -> tuple[WatchGroup, Member] | None:
        """Join the group with this key if the group and the watch have the same position in the log.

        The watch then closes its separate position in the log. If there is no group, create one with this watch. Return
        None if the watch cannot join yet. The watch then continues alone, and tries again after its next events.
        """
        if self._nursery is None or watch.behind:
            return None
        group = self._groups.get(key)
        if group is None or group.ended:
            group = self._groups[key] = WatchGroup(watch, lines)
            member = group.join(send)
            self._nursery.start_soon(self._run, key, group)
            return group, member
        group.collect()
        if group.ended or group.version != watch.version:
            return None
        watch.close()
        return group, group.join(send)

    async def _run(self, key: Hashable, group: WatchGroup) -> None:
        try:
            await group.run()
        finally:
            if self._groups.get(key) is group:
                del self._groups[key]
