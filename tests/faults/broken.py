"""Daemons that are broken on purpose: each breaks one promise, and the checker has to find it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest import mock

import attrs

from kschedd.actors.objects.store import StoreActor
from kschedd.api.objects import Object, Raw
from kschedd.store.journal import compaction as journal_compaction
from kschedd.store.journal.format import JournalError
from kschedd.store.journal.head import FoundHead, read_head
from kschedd.store.journal.journal import Journal
from kschedd.store.objects.log import Cursor, EventLog, WatchEvent
from kschedd.store.store import Store

Broken = Callable[[], AbstractContextManager[Any]]


def _in_place_of(owner: type, name: str, make: Callable[[Any], Callable[..., Any]]) -> Broken:
    return lambda: mock.patch.object(owner, name, make(getattr(owner, name)))


def _answers_before_it_is_kept(tell: Any) -> Any:
    async def hasty(self: Any) -> None:
        for answer in self._answers:
            answer.reply.publish()
        await tell(self)

    return hasty


def _does_not_flush(append: Any) -> Any:
    def unsafe(self: Any, events: Sequence[WatchEvent]) -> None:
        self._db.execute("PRAGMA synchronous=OFF")
        append(self, events)

    return unsafe


def _uses_the_last_version_again(load: Any) -> Any:
    def forgetful(self: Any, **options: Any) -> Any:
        store = load(self, **options)
        if store is not None and self.tail > 1:
            last = store.version - 1
            store.log.show(last)
            store.roll_back(last)
            store.log._shown = None
            self._db.execute("DELETE FROM events WHERE version > ?", (last,))
            self._version, self._chain, self._tail = self._end()
        return store

    return forgetful


def _does_what_it_has_refused(take_back: Any) -> Any:
    def take_back_as_before(self: Any, failure: JournalError) -> None:
        self._failure = failure
        self._sent_version = self._store.log.shown
        self._store.roll_back(self._sent_version)
        for answer in self._held:
            if answer.again is None:
                answer.reply.refuse(failure)
            else:
                answer.again()
                answer.reply.publish()
        self._held.clear()

    return take_back_as_before


def _loses_an_event(take: Any) -> Any:
    def lossy(self: Any, limit: int | None = None) -> list[WatchEvent]:
        events: list[WatchEvent] = take(self, limit)
        return [event for event in events if event.version % 29]

    return lossy


def _tells_an_event_twice(take: Any) -> Any:
    def again(self: Any, limit: int | None = None) -> list[WatchEvent]:
        events: list[WatchEvent] = take(self, limit)
        return [*events, *(event for event in events[-1:] if event.version % 29 == 0)]

    return again


def _resumes_too_late(watch: Any) -> Any:
    def late(self: Any, kinds: Any, since_version: int) -> Cursor:
        cursor: Cursor = watch(self, kinds, min(since_version + 1, self.version))
        return cursor

    return late


def _reads_what_was_before(get: Any) -> Any:
    def stale(self: Any, kind: str, namespace: str, name: str) -> Object:
        obj: Object = get(self, kind, namespace, name)
        cache: dict[tuple[str, str, str], Object] = self.__dict__.setdefault("_cache", {})
        known = cache.setdefault((kind, namespace, name), obj)
        if known is not obj and self.version % 2:
            return known
        cache[kind, namespace, name] = obj
        return obj

    return stale


def _lists_too_few(present: Any) -> Any:
    def short(self: Any, kind: str, *more: Any) -> Any:
        found = present(self, kind, *more)
        return list(found)[:-1] if kind == "ConfigMap" and self.version % 3 == 0 else found

    return short


def _replaces_any_version(update: Any) -> Any:
    def careless(self: Any, raw: Raw, **options: Any) -> Any:
        meta = {name: value for name, value in raw["metadata"].items() if name != "resourceVersion"}
        return update(self, {**raw, "metadata": meta}, **options)

    return careless


@contextmanager
def _compacts_to_the_oldest_state() -> Iterator[None]:
    move = journal_compaction.move_events

    class Oldest:
        def __init__(self, db: Any) -> None:
            self._db = db

        def execute(self, sql: str, *parameters: Any) -> Any:
            return self._db.execute(sql.replace("SELECT max(version)", "SELECT min(version)"), *parameters)

    with mock.patch("kschedd.store.journal.writer.move_events", lambda db, *more: move(Oldest(db), *more)):
        yield


@contextmanager
def _tells_of_less_than_is_lost() -> Iterator[None]:
    def earlier(*where: Any) -> FoundHead | None:
        found = read_head(*where)
        return found and attrs.evolve(found, head=attrs.evolve(found.head, version=found.head.version - 1))

    with mock.patch("kschedd.store.journal.salvage.read_head", earlier):
        yield


BROKEN: dict[str, Broken] = {
    "answers-before-it-is-kept": _in_place_of(StoreActor, "_send_commits", _answers_before_it_is_kept),
    "does-not-flush": _in_place_of(Journal, "append", _does_not_flush),
    "uses-the-last-version-again": _in_place_of(Journal, "load", _uses_the_last_version_again),
    "does-what-it-has-refused": _in_place_of(StoreActor, "_take_back", _does_what_it_has_refused),
    "loses-an-event": _in_place_of(Cursor, "take", _loses_an_event),
    "tells-an-event-twice": _in_place_of(Cursor, "take", _tells_an_event_twice),
    "resumes-too-late": _in_place_of(EventLog, "watch", _resumes_too_late),
    "reads-what-was-before": _in_place_of(Store, "get", _reads_what_was_before),
    "lists-too-few": _in_place_of(Store, "present", _lists_too_few),
    "replaces-any-version": _in_place_of(Store, "update", _replaces_any_version),
    "compacts-to-the-oldest-state": _compacts_to_the_oldest_state,
    "tells-of-less-than-is-lost": _tells_of_less_than_is_lost,
}
