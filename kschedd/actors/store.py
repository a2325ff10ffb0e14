"""StoreActor: the one task that touches the objects. Takes requests in batches, answers after the batch, wakes
watchers.

Receives: `Question` over the Store (a request is a function that reads or writes it; nothing comes in between),
`Open` and `EndWatches`.  Sends: answers; `Commit` to the journal actor if there is one, which then answers instead.
Owns: the Store, and the bells of those who watch it.  Ends: when its last sender closes.
Fails: what a request raises is its asker's; a journal that cannot be written is answered with JournalError.

A watcher has a place in the store's log (a Cursor, whose events are values) and is only told that there is more: so
an event costs nothing per watcher until the watcher takes it, and a slow watcher holds nobody up.
"""

import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import attrs
import trio

from kschedd.actors.journal import Commit
from kschedd.actors.mailbox import Asking, Doorbell, Question, Reply, batch_from, post
from kschedd.api.objects import Object, Raw
from kschedd.controllers.settle import listed
from kschedd.store.errors import ApiError
from kschedd.store.journal import JournalError
from kschedd.store.log import Cursor, WatchEvent
from kschedd.store.store import Store
from kschedd.store.writes import Write, perform

T = TypeVar("T")

_SLICE_S = 0.005  # for how long requests are served before others get their turn
_MOST = 256  # requests in a batch
_FAR_BEHIND = 10_000  # events after which a watcher is rung though none was of its kinds: the log is kept for it


@attrs.define(eq=False)
class Watch:
    """One watcher's place in the log and the bell that rings when there is more."""

    kinds: frozenset[str] | None
    cursor: Cursor
    bell: Doorbell
    first: list[WatchEvent]  # what was there when the watch began, as if it had just been added
    closed: bool = False  # by the watcher
    ended: bool = False  # by the store

    def take(self, limit: int | None = None) -> list[WatchEvent]:
        """What happened since the last time. Raises Gone if that is no longer kept."""
        if self.first:
            cut = len(self.first) if limit is None else limit
            events, self.first = self.first[:cut], self.first[cut:]
            return events
        return self.cursor.take(limit)

    @property
    def behind(self) -> bool:
        return bool(self.first) or self.cursor.behind

    async def wait(self) -> bool:
        """Wait for a ring; False when the store is ending."""
        return await self.bell.wait()

    def close(self) -> None:
        self.closed = True
        self.cursor.close()
        self.bell.close()


@attrs.frozen(eq=False)
class Open:
    """Begin a watch: of these kinds, after this version (None: from now on), with what is there at first or without."""

    kinds: frozenset[str] | None
    since_version: int | None
    with_present: bool
    bell: Doorbell
    reply: Reply[Watch]


@attrs.frozen(eq=False)
class EndWatches:
    """The daemon is ending: close every watcher's bell."""


Message = Question[Store, Any] | Open | EndWatches


@attrs.define(eq=False)
class StoreActor:
    _store: Store
    _inbox: trio.MemoryReceiveChannel[Message]
    _journal: "trio.MemorySendChannel[Commit] | None" = None
    # Who forgets its watch has ended it; in the order in which they came.
    _watches: list[weakref.ref[Watch]] = attrs.field(factory=list, init=False)
    _log: Cursor = attrs.field(init=False)
    _answers: list[Reply[Any]] = attrs.field(factory=list, init=False)  # due now
    _durable: list[Reply[Any]] = attrs.field(factory=list, init=False)  # due when the journal has them

    def __attrs_post_init__(self) -> None:
        self._log = self._store.watch()

    async def run(self) -> None:
        async with self._inbox:
            try:
                while True:
                    await self._serve(await batch_from(self._inbox, _MOST))
            except trio.EndOfChannel:
                pass
            finally:
                self._end_watches()
                if self._journal is not None:
                    self._journal.close()

    async def _serve(self, batch: Sequence[Message]) -> None:
        pause = time.perf_counter() + _SLICE_S
        for number, message in enumerate(batch, 1):
            if isinstance(message, Question):
                self._do(message)
            elif isinstance(message, Open):
                self._open(message)
            else:
                self._end_watches()
            if number < len(batch) and time.perf_counter() > pause:
                await self._tell()
                await trio.lowlevel.checkpoint()
                pause = time.perf_counter() + _SLICE_S
        await self._tell()

    def _do(self, request: Question[Store, Any]) -> None:
        before = self._store.version
        request.work_out(self._store)
        wrote = self._journal is not None and self._store.version != before
        (self._durable if wrote else self._answers).append(request.reply)

    async def _tell(self) -> None:
        """Ring for what was written, then answer: those who wrote something once the journal has it."""
        events = self._log.take()
        if events:
            self._ring(events)
        answers, self._answers = self._answers, []
        durable, self._durable = self._durable, []
        for reply in answers:
            reply.announce()
        if self._journal is not None and events:
            try:
                await self._journal.send(Commit(events, durable))
            except trio.BrokenResourceError:
                # It has failed, and whoever runs us both hears of that.
                failure = JournalError("journal", "cannot be written any more; the daemon is ending")
                for reply in durable:
                    reply.refuse(failure)

    def _ring(self, events: Sequence[WatchEvent]) -> None:
        kinds = {event.new.kind for event in events}
        watches = self._open_watches()
        self._watches = (
            [weakref.ref(watch) for watch in watches] if len(watches) < len(self._watches) else self._watches
        )
        for watch in watches:
            if (
                watch.kinds is None
                or not kinds.isdisjoint(watch.kinds)
                or self._store.version - watch.cursor.version > _FAR_BEHIND
            ):
                watch.bell.ring()

    def _open(self, wanted: Open) -> None:
        try:
            first = listed(self._store, wanted.kinds) if wanted.with_present else []
            since = self._store.version if wanted.with_present else wanted.since_version
            watch = Watch(wanted.kinds, self._store.watch(wanted.kinds, since), wanted.bell, first)
        except ApiError as refusal:
            wanted.reply.refuse(refusal)
            return
        self._watches.append(weakref.ref(watch))
        if watch.behind:
            watch.bell.ring()
        wanted.reply.give(watch)

    def _open_watches(self) -> list[Watch]:
        watches = (ref() for ref in self._watches)
        return [watch for watch in watches if watch is not None and not watch.closed]

    def _end_watches(self) -> None:
        for watch in self._open_watches():
            watch.ended = True
            watch.bell.close()
        self._watches = []


@attrs.frozen(eq=False)
class StoreClient:
    """The store, for everybody but its actor. One client for each user of it: closing the last one ends the store."""

    _asking: Asking[Store]
    _send: "trio.MemorySendChannel[Message]"

    @classmethod
    def of(cls, send: "trio.MemorySendChannel[Message]") -> "StoreClient":
        return cls(Asking("store", send), send)

    def clone(self) -> "StoreClient":
        return self.of(self._send.clone())

    async def do(self, request: Callable[[Store], T]) -> T:
        """Run a function over the store and return what it does, once its writes are durable; raises what it raises."""
        return await self._asking.ask(request)

    async def perform(self, write: Write) -> Object:
        return await self.do(lambda store: perform(store, write))

    async def create(self, raw: Raw) -> Object:
        return await self.do(lambda store: store.create(raw))

    async def create_many(self, raws: Sequence[Raw], *, restore: bool = False) -> list[Object | ApiError]:
        """Each on its own; the answers in the same order. `restore` keeps status and uid as the manifest has them."""

        def create_all(store: Store) -> list[Object | ApiError]:
            made: list[Object | ApiError] = []
            for raw in raws:
                try:
                    made.append(store.create(raw, restore=restore))
                except ApiError as refusal:
                    made.append(refusal)
            return made

        return await self.do(create_all)

    async def bind(self, namespace: str, name: str, node_name: str) -> Object:
        return await self.do(lambda store: store.bind(namespace, name, node_name))

    async def find(self, kind: str, namespace: str, name: str) -> Object | None:
        return await self.do(lambda store: store.find(kind, namespace, name))

    async def watch(
        self,
        kinds: Iterable[str] | None = None,
        since_version: int | None = None,
        *,
        with_present: bool = False,
        bell: Doorbell | None = None,
    ) -> Watch:
        """A place in the log. Raises Gone where the events since then are no longer kept."""
        reply: Reply[Watch] = Reply()
        wanted = None if kinds is None else frozenset(kinds)
        await post(self._send, Open(wanted, since_version, with_present, bell or Doorbell(), reply), "store")
        return await reply.value()

    async def end_watches(self) -> None:
        await post(self._send, EndWatches(), "store")

    def close(self) -> None:
        self._send.close()
