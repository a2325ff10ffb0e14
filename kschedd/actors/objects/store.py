"""StoreActor: processes requests on the objects in batches, answers after each batch, and wakes watchers.

Receives: `OwnerQuery` over the Store (a request is a function that reads or writes the Store without interruption),
`Open`, `UntilWritable`, `Condition` and `EndWatches`; the durable version from the journal actor, if there is one.
Sends: answers; `Commit` to the journal actor. Owns: the Store, and the doorbells of its watchers. Ends: when its last
sender closes and the journal has ended. Fails: an exception of a request is raised in its caller.

Only durable state is visible. With a journal, watchers receive only durable events. An answer is sent only when the
journal contains the version on which it is based, even for reads and rejected requests. Writes that the journal could
not persist are rolled back. No client has received the rolled-back writes; their writers get JournalError, and reads
are answered again from the current state. Until the journal can be written again, the store answers reads and rejects
writes.

A watcher has a position in the store's log (a Cursor over immutable events), and is only notified of new events. An
event therefore costs nothing for a watcher until the watcher takes it, and a slow watcher delays no other task.
"""

import builtins
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence, Set
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

import attrs
import trio

from kschedd.actors.mailbox import ActorRef, Doorbell, OwnerQuery, Reply, batch_from, post
from kschedd.actors.objects.journal import Commit, Kept, NotKept, Outcome
from kschedd.actors.objects.webhooks import WebhookThreads
from kschedd.api.objects import Object, Raw
from kschedd.api.selecting.selector_text import FieldSelector
from kschedd.api.selecting.selectors import LabelSelector
from kschedd.store.awaited import LongEvaluation, WebhookAnswers, WebhookCall, WebhooksNeeded
from kschedd.store.cluster_api import Bell, ClusterWriter, listed, listing, perform, perform_each
from kschedd.store.creating.updates import Subresource
from kschedd.store.errors import ApiError
from kschedd.store.journal.format import JournalError
from kschedd.store.leases import LEASE
from kschedd.store.objects.log import Cursor, WatchEvent
from kschedd.store.store import Store
from kschedd.store.writes import Delete, Patch, Write
from kschedd.values import fast_frozen

T = TypeVar("T")

_SLICE_S = 0.005  # seconds for which requests are served before other tasks run
_LOOKED_AT = 250  # maximum number of events checked for each watch; if there are more, every watcher is notified
_STEPS_S = 0.002  # seconds for which a request in steps is served before other tasks run; only its caller waits for it
_MOST = 256  # requests per batch
_KIND = attrgetter("new.kind")
_LEASES = frozenset((LEASE,))
# number of unread events after which a watcher is notified although no event concerns it, because the log must store
# unread events
_FAR_BEHIND = 1_000


@attrs.define(eq=False)
class Watch:
    """A watcher's position in the log, and the doorbell that signals new events."""

    kinds: frozenset[str] | None
    cursor: Cursor
    bell: Bell
    first: list[WatchEvent]  # objects that existed when the watch began, as ADDED events
    concerns: Callable[[WatchEvent], bool] | None = None  # returns False for events that require no notification
    closed: bool = False  # by the watcher
    ended: bool = False  # by the store

    def take(self, limit: int | None = None) -> list[WatchEvent]:
        """Return the events since the last call. Raises Gone if the events are no longer retained."""
        if self.first:
            cut = len(self.first) if limit is None else limit
            events, self.first = self.first[:cut], self.first[cut:]
            return events
        return self.cursor.take(limit)

    @property
    def version(self) -> int:
        """The version up to which all watched events were taken."""
        return self.cursor.version

    @property
    def behind(self) -> bool:
        return bool(self.first) or self.cursor.behind

    @property
    def lag(self) -> int:
        """The number of events in the log after this position."""
        return self.cursor.lag

    def is_concerned(self, events: Sequence[WatchEvent], kinds: Set[str]) -> bool:
        """Return whether any of these events, which are of these kinds, requires a notification."""
        own, concerns = self.kinds, self.concerns
        if own is not None and own.isdisjoint(kinds):
            return False
        if concerns is None:
            return True
        return any(concerns(event) for event in events if own is None or event.new.kind in own)

    async def wait(self) -> bool:
        """Wait for a notification. Return False when the store is shutting down."""
        return await self.bell.wait()

    def close(self) -> None:
        self.closed = True
        self.cursor.close()
        self.bell.close()


@attrs.frozen(eq=False)
class Open:
    """A request to begin a watch of these kinds after this version (None means from now on).

    With `with_present`, the watch begins with the existing objects.
    """

    kinds: frozenset[str] | None
    since_version: int | None
    with_present: bool
    bell: Bell
    reply: Reply[Watch]
    concerns: Callable[[WatchEvent], bool] | None = None


@attrs.frozen(eq=False)
class UntilWritable:
    """A request that is answered as soon as the store accepts writes."""

    reply: Reply[None]


@attrs.frozen(eq=False)
class Condition:
    """A request for the failure that currently prevents writes, or None."""

    reply: Reply[JournalError | None]


@attrs.frozen(eq=False)
class EndWatches:
    """A request to close the doorbells of all watchers, because the daemon is shutting down."""


@attrs.frozen(eq=False)
class Steps:
    """A long write in steps: other requests wait until it is done, but the event loop continues."""

    work: Callable[[Store], Generator[WebhooksNeeded | None, None, Any]]
    reply: Reply[Any]


Message = OwnerQuery[Store, Any] | Steps | Open | UntilWritable | Condition | EndWatches


@fast_frozen(eq=False)
class _Answer:
    """An answer that will be sent when the journal contains the version on which it is based."""

    version: int
    reply: Reply[Any]
    again: Callable[[], None] | None  # computes the answer again; None if forbidden


@attrs.define(eq=False)
class StoreActor:
    """The actor that owns the objects.

    At the start, the journal must contain the whole content of the store. A separate task receives from `_kept`, so
    that the journal's actor never waits for the store.
    """

    _store: Store
    _inbox: trio.MemoryReceiveChannel[Message]
    _journal: "trio.MemorySendChannel[Commit] | None" = None
    _kept: "trio.MemoryReceiveChannel[Outcome] | None" = None
    # open watches in order of creation; a watch ends when its user deletes the last reference
    _watches: list[weakref.ref[Watch]] = attrs.field(factory=list, init=False)
    _ending: bool = attrs.field(default=False, init=False)
    _log: Cursor = attrs.field(init=False)  # without a journal: log position up to which watchers were notified
    _sent_version: int = attrs.field(init=False)  # with a journal: version up to which commits were sent to it
    _answers: list[_Answer] = attrs.field(factory=list, init=False)  # of this batch
    # answers that wait until the journal contains their version
    _held: deque[_Answer] = attrs.field(factory=deque, init=False)
    _failure: JournalError | None = attrs.field(default=None, init=False)
    _term: int = attrs.field(default=0, init=False)
    _until_writable: list[Reply[None]] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._log = self._store.watch()
        self._sent_version = self._store.version
        if self._journal is not None:
            self._log.close()
            self._store.log.show(self._sent_version)

    async def run(self) -> None:
        with self._inbox:
            async with trio.open_nursery() as nursery:
                if self._kept is not None:
                    nursery.start_soon(self._heed, self._kept)
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
            if isinstance(message, OwnerQuery):
                self._do(message)
            elif isinstance(message, Steps):
                await self._do_in_steps(message)
            elif isinstance(message, Open):
                await self._open_in_steps(message)
                # Without existing objects, the watch begins at the durable version.
                version = self._store.version if message.with_present else self._store.log.shown
                self._answers.append(_Answer(version, message.reply, partial(self._open, message)))
            elif isinstance(message, UntilWritable):
                self._until_writable.append(message.reply)
                self._let_write()
            elif isinstance(message, Condition):
                message.reply.give(self._failure)
            else:
                self._end_watches()
            if number < len(batch) and time.perf_counter() > pause:
                await self._send_commits()
                await trio.lowlevel.checkpoint()
                pause = time.perf_counter() + _SLICE_S
        await self._send_commits()

    def _do(self, request: OwnerQuery[Store, Any]) -> None:
        store = self._store
        before = store.version
        request.evaluate(store)
        wrote = store.version != before
        if wrote and self._failure is not None:
            store.roll_back(before)
            request.reply.note_failure(self._failure)
        once = wrote or request.once
        self._answers.append(_Answer(store.version, request.reply, None if once else partial(request.evaluate, store)))

    async def _do_in_steps(self, request: Steps) -> None:
        await self._send_commits()  # answers to earlier requests must not wait for this request
        if self._journal is None:  # with a journal, events are delivered only when they are durable
            self._store.log.show(self._store.version)
        try:
            request.reply.note(await self._in_steps(request.work(self._store)))
        except Exception as failure:  # raised again in the caller
            request.reply.note_failure(failure)
        finally:
            if self._journal is None:
                self._store.log.show_all()
        self._answers.append(_Answer(self._store.version, request.reply, None))

    async def _in_steps(self, work: Generator[WebhooksNeeded | None, None, T]) -> T:
        """Run work in steps and return its result.

        If the work yields WebhooksNeeded, the expensive expressions that it names are evaluated in a thread, and the
        store waits for their results before it continues the work. Raises JournalError if the writes cannot be
        persisted, or if earlier writes are rolled back between the steps.
        """
        before, term, pause = self._store.version, self._term, time.perf_counter() + _STEPS_S
        answers = WebhookAnswers(evaluations_only=True)
        while True:
            try:
                with self._store.calling_webhooks(answers):
                    needed = next(work)
                if needed is not None:
                    await _WEBHOOKS.answer(needed.calls, answers)
                    pause = 0.0
            except StopIteration as done:
                value: T = done.value
                return value
            finally:
                if self._failure is not None and self._store.version != before:
                    self._store.roll_back(before)
                    raise self._failure
            if time.perf_counter() > pause:
                await trio.lowlevel.checkpoint()
                if self._term != term:  # True if the journal failed meanwhile
                    raise self._failure or JournalError("journal", "could not be written; try again")
                pause = time.perf_counter() + _STEPS_S

    async def _send_commits(self) -> None:
        """Notify watchers of new events; with a journal, send the events to the journal first.

        Send all answers that are due.
        """
        if self._journal is None:
            events = self._log.take()
            if events:
                self._ring(events)
        else:
            events = self._store.written_after(self._sent_version)
            self._sent_version = self._store.version
        shown = self._store.log.shown
        answers, self._answers = self._answers, []
        for answer in answers:
            if answer.version <= shown:
                answer.reply.publish()
            else:
                self._held.append(answer)
        if events and self._journal is not None:
            try:
                await self._journal.send(Commit(events, self._term))
            except trio.BrokenResourceError:
                # The journal's actor has failed; its exception also ends both actors' nursery.
                self._take_back(JournalError("journal", "cannot be written any more; the daemon is shutting down"))

    async def _heed(self, kept: "trio.MemoryReceiveChannel[Outcome]") -> None:
        """Receive the reports of the journal.

        The task waits for no other messages, so the journal's actor never waits for the store.
        """
        async with kept:
            async for outcome in kept:
                if isinstance(outcome, Kept):
                    self._show(outcome.version)
                elif isinstance(outcome, NotKept):
                    self._term = outcome.term
                    self._take_back(outcome.failure)
                else:
                    self._failure = None
                    self._let_write()

    def _show(self, version: int) -> None:
        events = self._store.log.written_between(self._store.log.shown, version)
        self._store.log.show(version)
        self._ring(events)
        while self._held and self._held[0].version <= version:
            self._held.popleft().reply.publish()

    def _take_back(self, failure: JournalError) -> None:
        self._failure = failure
        self._sent_version = self._store.log.shown
        self._store.roll_back(self._sent_version)
        held, self._held = self._held, deque()
        for answer in held:
            if answer.again is not None:
                answer.again()
            if answer.again is None or self._store.version != self._sent_version:
                # The answer depends on a write that was rolled back.
                self._store.roll_back(self._sent_version)
                answer.reply.refuse(failure)
            else:
                answer.reply.publish()

    def _let_write(self) -> None:
        if self._failure is None or self._ending:
            waiting, self._until_writable = self._until_writable, []
            for reply in waiting:
                reply.give(None)

    def _ring(self, events: Sequence[WatchEvent]) -> None:
        many = len(events) > _LOOKED_AT
        kinds = set() if many else set(map(_KIND, events))
        watches = self._open_watches()
        self._watches = (
            [weakref.ref(watch) for watch in watches] if len(watches) < len(self._watches) else self._watches
        )
        far_behind = self._store.version - _FAR_BEHIND
        for watch in watches:
            if many or watch.is_concerned(events, kinds) or watch.cursor.version < far_behind:
                watch.bell.ring()

    async def _open_in_steps(self, wanted: Open) -> None:
        first: list[WatchEvent] | None = None
        if wanted.kinds == _LEASES and not self._store.is_watched(LEASE):
            await self._send_commits()
            with suppress(JournalError):  # the heartbeat controller writes the renewals later
                await self._in_steps(self._store.renewing_leases())
        if wanted.with_present:
            await self._send_commits()  # answers to earlier requests must not wait for these steps
            with suppress(JournalError):  # an object was rolled back, so all objects must be listed again
                first = await self._in_steps(listing(self._store, wanted.kinds))
        self._open(wanted, first)

    def _open(self, wanted: Open, first: list[WatchEvent] | None = None) -> None:
        try:
            if first is None:
                first = listed(self._store, wanted.kinds) if wanted.with_present else []
            since = self._store.version if wanted.with_present else wanted.since_version
            cursor = self._store.watch(wanted.kinds, since)
            watch = Watch(wanted.kinds, cursor, wanted.bell, first, wanted.concerns)
        except ApiError as refusal:
            wanted.reply.note_failure(refusal)
            return
        if self._ending:
            watch.ended = True
            watch.bell.close()
        else:
            self._watches.append(weakref.ref(watch))
            if watch.behind:
                watch.bell.ring()
        wanted.reply.note(watch)

    def _open_watches(self) -> list[Watch]:
        watches = (ref() for ref in self._watches)
        return [watch for watch in watches if watch is not None and not watch.closed]

    def _end_watches(self) -> None:
        self._ending = True
        self._let_write()
        for watch in self._open_watches():
            watch.ended = True
            watch.bell.close()
        self._watches = []


_WEBHOOKS: Final = WebhookThreads()


class _AnswersMissing(Exception):
    """A request was undone, because it needs the answers of these calls."""

    def __init__(self, calls: Sequence[WebhookCall | LongEvaluation]) -> None:
        super().__init__(calls)
        self.calls = calls


def _with_webhooks(request: Callable[[ClusterWriter], T], answers: WebhookAnswers | None, store: Store) -> T:
    """Run a request that may call webhooks. If answers are missing, undo its writes and raise _AnswersMissing."""
    before = store.version
    try:
        with store.calling_webhooks(answers or WebhookAnswers()):
            return request(store)
    except WebhooksNeeded as needed:
        store.roll_back(before)
        raise _AnswersMissing(needed.calls) from None


@attrs.frozen(eq=False)
class _Pending(Generic[T]):
    """The result of a request that was sent; a request that needs answers of webhooks is then repeated."""

    _client: "StoreClient"
    _request: Callable[[ClusterWriter], T]
    _reply: Reply[T]

    async def value(self) -> T:
        try:
            return await self._reply.value()
        except _AnswersMissing as missing:
            calls = missing.calls
        return await self._client.repeated(self._request, calls)


@attrs.frozen(eq=False)
class StoreClient:
    """A user's client of the store. When the last client closes, the store ends."""

    _asking: ActorRef[Store]
    _send: "trio.MemorySendChannel[Message]"
    _on_write: Callable[[int, int], None] | None = None  # called with the first and last version of the client's writes

    @classmethod
    def of(
        cls, send: "trio.MemorySendChannel[Message]", on_write: Callable[[int, int], None] | None = None
    ) -> "StoreClient":
        return cls(ActorRef("store", send), send, on_write)

    def clone(self, on_write: Callable[[int, int], None] | None = None) -> "StoreClient":
        return self.of(self._send.clone(), on_write)

    async def do(self, request: Callable[[ClusterWriter], T], *, once: bool = False) -> T:
        """Run a function on the store; return its result when everything that it has read or written is durable.

        Raises the exceptions of the function, and JournalError if its writes could not be persisted. A function that
        has only read the state runs again if the state was rolled back. With `once`, JournalError is raised instead, as
        for a write.
        """
        try:
            return await (await self._sent(partial(_with_webhooks, request, None), once)).value()
        except _AnswersMissing as missing:
            calls = missing.calls
        return await self.repeated(request, calls, once=once)

    async def repeated(
        self,
        request: Callable[[ClusterWriter], T],
        calls: Sequence[WebhookCall | LongEvaluation],
        *,
        once: bool = False,
    ) -> T:
        """Make the calls that a request needs, and send the request again, until it has all answers."""
        answers = WebhookAnswers()
        while True:
            await _WEBHOOKS.answer(calls, answers)
            try:
                return await (await self._sent(partial(_with_webhooks, request, answers), once)).value()
            except _AnswersMissing as missing:
                calls = missing.calls

    async def ask(self, request: Callable[[ClusterWriter], T], *, once: bool = False) -> _Pending[T]:
        """Send a request without waiting for the result.

        Requests are processed in the order in which they are sent. A request that needs the answers of webhooks is
        repeated when its result is awaited.
        """
        return _Pending(self, request, await self._sent(partial(_with_webhooks, request, None), once))

    async def _sent(self, request: Callable[[Store], T], once: bool) -> Reply[T]:
        on_write = self._on_write
        if on_write is None:
            return await self._asking.ask(request, once=once)

        def noted(store: Store) -> T:
            before = store.version
            try:
                return request(store)
            finally:
                if store.version > before:
                    on_write(before + 1, store.version)

        return await self._asking.ask(noted, once=once)

    async def until_writable(self) -> None:
        """Wait until the store accepts writes, or is shutting down."""
        reply: Reply[None] = Reply()
        await post(self._send, UntilWritable(reply), "store")
        await reply.value()

    async def condition(self) -> JournalError | None:
        """Return the failure that currently prevents writes, or None."""
        reply: Reply[JournalError | None] = Reply()
        await post(self._send, Condition(reply), "store")
        return await reply.value()

    async def do_in_steps(self, work: Callable[[ClusterWriter], Generator[WebhooksNeeded | None, None, T]]) -> T:
        """Run a generator on the store, a few milliseconds at a time, and return its result.

        The generator is one write: no other request runs in between, and the journal contains all of it or nothing.
        """
        on_write = self._on_write

        def noted(store: Store) -> Generator[WebhooksNeeded | None, None, T]:
            before = store.version
            try:
                return (yield from work(store))
            finally:
                if on_write is not None and store.version > before:
                    on_write(before + 1, store.version)

        reply: Reply[T] = Reply()
        await post(self._send, Steps(work if on_write is None else noted, reply), "store")
        return await reply.value()

    async def perform(self, write: Write) -> Object:
        return await self.do(lambda store: perform(store, write))

    async def perform_each(self, writes: Sequence[Write]) -> builtins.list[Object | ApiError]:
        """Execute a batch of writes in one request, each independently, with the answers in the same order."""
        return await self.do(lambda store: perform_each(store, writes))

    async def create(self, raw: Raw) -> Object:
        return await self.do(lambda store: store.create(raw))

    async def create_many(self, raws: Sequence[Raw], *, restore: bool = False) -> builtins.list[Object | ApiError]:
        """Create objects independently; return the answers in the same order.

        `restore` preserves status and uid from the manifest.
        """
        return await self.do(lambda store: store.create_many(raws, restore=restore))

    async def update(self, raw: Raw, *, subresource: Subresource = "") -> Object:
        return await self.do(lambda store: store.update(raw, subresource=subresource))

    async def patch(self, kind: str, namespace: str, name: str, patch: Raw, *, subresource: Subresource = "") -> Object:
        return await self.perform(Patch(kind, namespace, name, patch, subresource))

    async def delete(
        self, kind: str, namespace: str, name: str, *, uid: str = "", grace_period_s: int | None = None
    ) -> Object:
        return await self.perform(Delete(kind, namespace, name, uid, grace_period_s))

    async def bind(self, namespace: str, name: str, node_name: str, *, uid: str = "") -> Object:
        return await self.do(lambda store: store.bind(namespace, name, node_name, uid=uid))

    async def evict(self, namespace: str, name: str, *, uid: str = "", grace_period_s: int | None = None) -> Object:
        return await self.do(lambda store: store.evict(namespace, name, uid=uid or None, grace_period_s=grace_period_s))

    async def get(self, kind: str, namespace: str, name: str) -> Object:
        return await self.do(lambda store: store.get(kind, namespace, name))

    async def list(
        self,
        kind: str,
        namespace: str | None = None,
        label_selector: LabelSelector | None = None,
        field_selector: FieldSelector | None = None,
    ) -> Sequence[Object]:
        return await self.do(lambda store: store.list(kind, namespace, label_selector, field_selector))

    async def find(self, kind: str, namespace: str, name: str) -> Object | None:
        return await self.do(lambda store: store.find(kind, namespace, name))

    async def watch(
        self,
        kinds: Iterable[str] | None = None,
        since_version: int | None = None,
        *,
        with_present: bool = False,
        bell: Bell | None = None,
        concerns: Callable[[WatchEvent], bool] | None = None,
    ) -> Watch:
        """Begin a watch. Raises Gone if the events since that version are no longer retained."""
        reply: Reply[Watch] = Reply()
        wanted = None if kinds is None else frozenset(kinds)
        await post(self._send, Open(wanted, since_version, with_present, bell or Doorbell(), reply, concerns), "store")
        return await reply.value()

    async def end_watches(self) -> None:
        await post(self._send, EndWatches(), "store")

    def close(self) -> None:
        self._send.close()
