"""The event log: all object changes in order, stored once and shared by all watchers.

Each write has the next version. Only the restart of a daemon skips versions: those that renewals of Leases had, which
are not persisted. A watcher is a position in the log, so an event costs nothing for a watcher until the watcher takes
it.

The log contains the last `history` events, or fewer if the estimated memory of the events exceeds `most_bytes`. Older
events that an open cursor has not taken are also kept, up to `patience` events in total. A cursor that is further
behind, or a watch from a version before the log, gets 410 Gone. If a journal persists the events, cursors get only the
persisted events, up to the version `shown`. A cursor ends when it is closed or garbage-collected.
"""

import weakref
from bisect import bisect_right
from collections.abc import Iterable
from operator import attrgetter
from typing import Final, Literal

from kschedd.api.objects import Object
from kschedd.store.errors import Gone, StillToCome
from kschedd.values import fast_frozen

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
MOST_BYTES: Final = 256 << 20
_TRIM_STEP: Final = 1000  # events
_TRIM_SHARE: Final = 16  # the log is trimmed again when it has grown by its limit in bytes divided by this number
_SMALL: Final = 2_048  # estimated bytes of the event of a pod, and minimum estimate for other events
_FEWEST: Final = 10  # minimum number of events to keep, regardless of their size
_VERSION: Final = attrgetter("version")
EventType = Literal["ADDED", "MODIFIED", "DELETED"]


@fast_frozen(eq=False)
class WatchEvent:
    """One change. `old` is None for ADDED; for DELETED, `new` is the last state with the version of the deletion.

    `loaded` is true if no request wrote the object: it is from a dump, or existed when the watch began. `renewal` is
    true if kschedd has renewed a Lease: the change is not persisted.
    """

    type: EventType
    old: Object | None
    new: Object
    version: int
    loaded: bool = False
    renewal: bool = False


class Cursor:
    """A watcher's position in the log. `take` returns the events since the last call, oldest first."""

    __slots__ = ("__weakref__", "_closed", "_kinds", "_log", "_next")

    def __init__(self, log: "EventLog", kinds: Iterable[str] | None, since_version: int) -> None:
        self._log = log
        self._kinds = None if kinds is None else frozenset(kinds)
        self._next = since_version + 1
        self._closed = False

    @property
    def kinds(self) -> frozenset[str] | None:
        """The watched kinds; None means all kinds."""
        return self._kinds

    @property
    def version(self) -> int:
        """The version up to which all watched events were taken."""
        return self._next - 1

    @property
    def behind(self) -> bool:
        """True if the log has events that the cursor has not visited, possibly of kinds that are not watched."""
        return self._next <= self._log.shown

    @property
    def lag(self) -> int:
        """Number of events in the log after this cursor."""
        return self._log.version - self.version

    def take(self, limit: int | None = None) -> list[WatchEvent]:
        """Return the events since the last call; visit at most `limit` log entries.

        Raises Gone if the cursor is too far behind.
        """
        assert not self._closed, "this watch was closed"
        events = self._log.after(self._next - 1, limit)
        if limit is None or len(events) < limit:
            self._next = max(self._next, self._log.shown + 1)
        elif events:
            self._next = events[-1].version + 1
        kinds = self._kinds
        return events if kinds is None else [event for event in events if event.new.kind in kinds]

    def close(self) -> None:
        self._closed = True
        self._log.forget(self)


class EventLog:
    def __init__(
        self,
        version: int = 0,
        *,
        history: int = 100_000,
        patience: int = 4_000_000,
        most_bytes: int = MOST_BYTES,
        events: Iterable[WatchEvent] = (),
    ) -> None:
        """Create a log of these events, which follow `version`."""
        self._events: list[WatchEvent] = list(events)
        self._oldest = version
        # version of the latest event; an attribute, because every write reads it
        self.version = self._events[-1].version if self._events else version
        self._history = history
        self._patience = max(patience, history)
        self._most_bytes = most_bytes
        self._large: dict[int, int] = {}  # estimated bytes above `_SMALL` of each large event, by version
        self._large_bytes = 0
        self._trim_at_bytes = most_bytes // _TRIM_SHARE
        self._most_held = 0  # largest estimated number of bytes so far
        self._step = max(1, min(history, _TRIM_STEP))
        self._trim_at = history + self._step
        self._cursors: weakref.WeakSet[Cursor] = weakref.WeakSet()
        self._shown: int | None = None
        self._most = 0  # largest number of events so far

    def keep(self, history: int, most_bytes: int = MOST_BYTES) -> None:
        """Keep at most the last `history` events, and at most this estimated number of bytes."""
        self._history, self._patience = history, max(self._patience, history)
        self._most_bytes, self._trim_at_bytes = most_bytes, most_bytes // _TRIM_SHARE
        self._step = max(1, min(history, _TRIM_STEP))
        self._trim_at = history + self._step

    @property
    def used(self) -> tuple[int, int]:
        """Number of events in the log, and the largest number so far."""
        return len(self._events), max(self._most, len(self._events))

    @property
    def bytes_used(self) -> tuple[int, int]:
        """Estimated number of bytes of the events in the log now, and the maximum so far."""
        held = self._bytes
        return held, max(self._most_held, held)

    @property
    def _bytes(self) -> int:
        return _SMALL * len(self._events) + self._large_bytes

    @property
    def shown(self) -> int:
        """The version up to which cursors get events."""
        return self.version if self._shown is None else self._shown

    def show(self, version: int) -> None:
        """Give cursors only events up to this version, until the next call."""
        assert version <= self.version, "only existing versions can be shown"
        self._shown = version

    def show_all(self) -> None:
        """Give cursors every event immediately after it was appended."""
        self._shown = None

    @property
    def oldest(self) -> int:
        """The oldest version at which a watch can start."""
        return self._oldest

    def is_watched(self, kind: str) -> bool:
        """Return whether a watch of only this kind is open; a controller watches several kinds and does not count."""
        return any(cursor.kinds == frozenset((kind,)) for cursor in self._cursors)

    def append(self, event: WatchEvent) -> None:
        assert event.version == self.version + 1, "each write has the next version"
        self.version = event.version
        self._events.append(event)
        if event.new.kind != "Pod" and (more := _bytes_of(event) - _SMALL) > 0:
            self._large[event.version] = more
            self._large_bytes += more
            if self._large_bytes >= self._trim_at_bytes:
                self._trim()
        if len(self._events) >= self._trim_at:
            self._trim()

    def skip_to(self, version: int) -> None:
        """Give the next event the version after `version`, or a later version."""
        self.version = max(self.version, version)

    def watch(self, kinds: Iterable[str] | None, since_version: int) -> Cursor:
        if since_version < self.oldest:
            raise Gone(since_version, self.oldest)
        if since_version > self.version:
            raise StillToCome(since_version, self.version)
        cursor = Cursor(self, kinds, since_version)
        self._cursors.add(cursor)
        return cursor

    def after(self, version: int, limit: int | None = None) -> list[WatchEvent]:
        if version < self._oldest:
            raise Gone(version, self._oldest)
        start = self._place_after(version)
        end = len(self._events) if self._shown is None else max(start, self._place_after(self._shown))
        return self._events[start : end if limit is None else min(end, start + limit)]

    def written_after(self, version: int) -> list[WatchEvent]:
        """Return all events after this version, including events that cursors do not get yet.

        Raises Gone if the events were dropped.
        """
        if version < self._oldest:
            raise Gone(version, self._oldest)
        return self._events[self._place_after(version) :]

    def written_between(self, after: int, up_to: int) -> list[WatchEvent]:
        """Return the events after one version and up to another."""
        return self._events[self._place_after(after) : self._place_after(up_to)]

    def _place_after(self, version: int) -> int:
        """Return the index of the first event after this version."""
        if version >= self.version:
            return len(self._events)
        place = len(self._events) - (self.version - version)
        if place > 0 and self._events[place - 1].version == version:  # no version was skipped since
            return place
        return bisect_right(self._events, version, key=_VERSION)

    def truncate(self, version: int) -> None:
        """Remove the events after this version; no cursor may have received any of them."""
        assert version >= self.shown, "events that cursors have seen must remain"
        del self._events[self._place_after(version) :]
        self.version = version
        while self._large and next(reversed(self._large)) > version:
            self._large_bytes -= self._large.popitem()[1]

    def forget(self, cursor: Cursor) -> None:
        self._cursors.discard(cursor)

    def _trim(self) -> None:
        """Drop old events that no cursor needs, in small steps, because freeing objects is slow."""
        self._most = max(self._most, len(self._events))
        self._most_held = max(self._most_held, self._bytes)
        keep = min(self._history, self._number_of_affordable())
        for cursor in self._cursors:
            keep = max(keep, self.version - cursor.version)
        keep = max(min(keep, self._patience), self.version - self.shown)
        drop = len(self._events) - keep
        if drop > 0:
            self._oldest = self._events[drop - 1].version
            del self._events[:drop]
            while self._large and (oldest := next(iter(self._large))) <= self._oldest:
                self._large_bytes -= self._large.pop(oldest)
        self._trim_at = len(self._events) + self._step
        self._trim_at_bytes = self._large_bytes + self._most_bytes // _TRIM_SHARE

    def _number_of_affordable(self) -> int:
        """Return the number of latest events whose estimated size is within the limit."""
        left, held = len(self._events), self._bytes
        while held > self._most_bytes and left > _FEWEST:
            held -= _SMALL + self._large.get(self._events[-left].version, 0)
            left -= 1
        return left


def _bytes_of(event: WatchEvent) -> int:
    """Return the approximate memory of the event's new object, without the parts shared with the old object."""
    raw, old = event.new.raw, {} if event.old is None else event.old.raw
    waiting = [value for key, value in raw.items() if old.get(key) is not value]
    size = 0
    while waiting:
        value = waiting.pop()
        if type(value) is str:
            size += len(value)
        elif isinstance(value, dict):
            size += 64 + 80 * len(value)
            waiting.extend(value.values())
        elif isinstance(value, list):
            size += 64 + 8 * len(value)
            waiting.extend(value)
    return size
