"""The event log: everything that happened to the objects, in order, once, for all watchers.

Each write has the next version, so an event's place in the log is its version minus that of the oldest one kept. A
watcher is a place in that one list: an event costs nothing per watcher until the watcher takes it.

History is kept for `history` events at least, and for as long as an open cursor has not taken them, up to `patience`
events behind; a cursor further behind, and a watch from an older version, is told that the events are gone (410).
Owned by the Store; a cursor ends when it is closed or dropped.
"""

import weakref
from collections.abc import Iterable
from typing import Final, Literal

from kschedd.api.objects import Object
from kschedd.store.errors import Gone
from kschedd.values import value

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
EventType = Literal["ADDED", "MODIFIED", "DELETED"]


@value(eq=False)
class WatchEvent:
    """One change. `old` is None for ADDED; for DELETED `new` is the last state, at the version of its deletion."""

    type: EventType
    old: Object | None
    new: Object
    version: int


class Cursor:
    """A watcher's place in the log. `take` gives what happened since the last time, oldest first."""

    __slots__ = ("__weakref__", "_closed", "_kinds", "_log", "_next")

    def __init__(self, log: "EventLog", kinds: Iterable[str] | None, since_version: int) -> None:
        self._log = log
        self._kinds = None if kinds is None else frozenset(kinds)
        self._next = since_version + 1
        self._closed = False

    @property
    def version(self) -> int:
        """Every event up to this version has been taken or was of no interest."""
        return self._next - 1

    @property
    def behind(self) -> bool:
        """Whether the log has gone on since the last take (perhaps with kinds this cursor does not watch)."""
        return self._next <= self._log.version

    def take(self, limit: int | None = None) -> list[WatchEvent]:
        """What happened since; at most `limit` log entries are looked at. Raises Gone when too far behind."""
        assert not self._closed, "this watch was closed"
        events = self._log.after(self._next - 1, limit)
        self._next += len(events)
        kinds = self._kinds
        return events if kinds is None else [event for event in events if event.new.kind in kinds]

    def close(self) -> None:
        self._closed = True
        self._log.forget(self)


class EventLog:
    def __init__(self, version: int = 0, *, history: int = 100_000, patience: int = 4_000_000) -> None:
        """A log whose next event has the version after `version`."""
        self._events: list[WatchEvent] = []
        self._first = version + 1  # version of _events[0], or of the next event
        self._history = history
        self._patience = max(patience, history)
        self._trim_at = 2 * history
        self._cursors: weakref.WeakSet[Cursor] = weakref.WeakSet()

    @property
    def version(self) -> int:
        """The version of the latest event."""
        return self._first + len(self._events) - 1

    @property
    def oldest(self) -> int:
        """The oldest version one can watch from."""
        return self._first - 1

    def append(self, event: WatchEvent) -> None:
        assert event.version == self._first + len(self._events), "each write has the next version"
        self._events.append(event)
        if len(self._events) >= self._trim_at:
            self._trim()

    def watch(self, kinds: Iterable[str] | None, since_version: int) -> Cursor:
        if since_version < self.oldest:
            raise Gone(since_version, self.oldest)
        cursor = Cursor(self, kinds, since_version)
        self._cursors.add(cursor)
        return cursor

    def after(self, version: int, limit: int | None = None) -> list[WatchEvent]:
        start = version + 1 - self._first
        if start < 0:
            raise Gone(version, self.oldest)
        return self._events[start:] if limit is None else self._events[start : start + limit]

    def forget(self, cursor: Cursor) -> None:
        self._cursors.discard(cursor)

    def _trim(self) -> None:
        """Drop what is past history and no cursor waits for. Runs once per `history` events: O(1) each."""
        keep = self._history
        for cursor in self._cursors:
            keep = max(keep, self.version - cursor.version)
        keep = min(keep, self._patience)
        drop = len(self._events) - keep
        if drop > 0:
            del self._events[:drop]
            self._first += drop
        self._trim_at = len(self._events) + self._history
