"""JournalActor: persists the store's commits to disk, and reports to the store which version is durable.

Receives: `Commit`, the events of a batch of writes. Sends: `Kept`, `NotKept`, `Writable`, all to the store, which
always receives these messages without delay.

Owns: the journal (a DurableLog); the actor awaits its calls one after the other. All waiting commits are written in one
transaction, so a slower disk gets larger batches. When the journal exceeds its limit, it is compacted in slices between
transactions, in a quarter of the actor's time. A write waits for at most one slice. The size of a slice is adapted to
the disk, so that a slice takes a few milliseconds. If the journal exceeds twice its limit, there are no pauses between
slices.

Ends: when the store closes its channel; the actor then closes the file.

Fails: a write failure is reported as `NotKept` and applies to all pending commits. Commits from before the failure
(with an older `term`) are dropped, because the store rolls them back. Writing is retried with increasing delays until
it succeeds: `Writable`. If the retries fail for a different reason than before, the new reason is reported, too. After
damage to the file, nothing is written to it, because only a start checks the whole file.
"""

import math
from collections.abc import Callable, Sequence

import attrs
import structlog
import trio

from kschedd.actors.mailbox import batch_from
from kschedd.actors.objects.durable_log import DurableLog
from kschedd.store.journal.format import JournalDamaged, JournalError
from kschedd.store.objects.log import WatchEvent

log = structlog.get_logger("kschedd.journal")

COMPACT_AFTER = 200_000  # minimum number of events for a compaction
MOST_COMMITS = 64  # per transaction
_SLICE_S = 0.005  # target duration of a compaction slice in seconds
_MOST_OF_SLICE = 100  # maximum number of moved events or freed pages in a slice: 0.1 ms of CPU time each
_LEAST = 5  # minimum number of moved events in a slice
_REST = 3  # pause between two slices, as a multiple of the slice's duration
_HEAD_S = 1.0  # seconds without a write after which the head is flushed
_FIRST_RETRY_S = 0.25
_LONGEST_RETRY_S = 10.0


@attrs.define(eq=False)
class SliceSize:
    """The amount of work in a slice, adapted to the duration of the latest slices."""

    size: int = _MOST_OF_SLICE // 4

    def took(self, duration_s: float) -> None:
        if duration_s > _SLICE_S:
            self.size = max(_LEAST, self.size // 2)
        elif duration_s < _SLICE_S / 2:
            self.size = min(_MOST_OF_SLICE, self.size + _LEAST)


@attrs.frozen(eq=False)
class Commit:
    events: Sequence[WatchEvent]
    term: int  # number of rollbacks before these events


@attrs.frozen
class Kept:
    """The report that all events up to this version are on disk."""

    version: int


@attrs.frozen(eq=False)
class NotKept:
    """The report that no event after the latest `Kept` is on disk, or will be.

    `term` is the term of the commits that are accepted next. If the reason changes, the report is sent again with the
    same term.
    """

    failure: JournalError
    term: int


@attrs.frozen
class Writable:
    """The report, after a `NotKept`, that the journal can be written again."""


Outcome = Kept | NotKept | Writable


def _log_read_only(failure: JournalError) -> None:
    if isinstance(failure, JournalDamaged):
        hint = "it stays read-only until a restart; `kschedd snapshot save FILE` saves all objects"
        log.error("read_only", why=str(failure), hint=hint)
    else:
        log.error("read_only", why=str(failure))


@attrs.define(eq=False)
class JournalActor:
    _journal: DurableLog
    _inbox: trio.MemoryReceiveChannel[Commit]
    _outbox: "trio.MemorySendChannel[Outcome]"
    _compact_after: int = COMPACT_AFTER
    _before_append: Callable[[], None] = lambda: None
    _term: int = attrs.field(default=0, init=False)
    _compacting: bool = attrs.field(default=False, init=False)
    _shrinking: bool = attrs.field(default=False, init=False)
    _events: SliceSize = attrs.field(factory=SliceSize, init=False)
    _pages: SliceSize = attrs.field(factory=SliceSize, init=False)
    _slice_at: float = attrs.field(default=-math.inf, init=False)  # time of the next slice, on Trio's clock

    async def run(self) -> None:
        with self._inbox, self._outbox:
            try:
                while True:
                    await self._turn(await self._next())
            except trio.EndOfChannel:
                pass
            finally:
                self._journal.close()

    async def _next(self) -> Sequence[Commit]:
        """Return the waiting commits. Return none if a compaction slice or the flush of the head is due.

        Raises trio.EndOfChannel.
        """
        due_at = math.inf if self._journal.head_flushed else trio.current_time() + _HEAD_S
        if self._compacting or self._shrinking:
            due_at = min(due_at, self._slice_at)
        with trio.move_on_at(due_at):
            return await batch_from(self._inbox, MOST_COMMITS)
        return ()

    async def _turn(self, commits: Sequence[Commit]) -> None:
        events = [event for commit in commits if commit.term == self._term for event in commit.events]
        try:
            if events:
                self._before_append()
                await self._journal.append(events)
                await self._outbox.send(Kept(events[-1].version))
            if self._journal.tail > self._compact_after:
                self._compacting = True
            if (self._compacting or self._shrinking) and trio.current_time() >= self._slice_at:
                await self._compact()
            elif not events and not self._journal.head_flushed:
                await self._journal.flush_head()
        except JournalError as failure:
            await self._recover(failure)

    async def _compact(self) -> None:
        """Run one compaction slice.

        The next slice is due after three times the duration of this slice, or immediately if the journal exceeds twice
        its limit.
        """
        before = trio.current_time()
        behind = self._journal.tail > 2 * self._compact_after
        slice_size = self._events if self._compacting else self._pages
        amount = _MOST_OF_SLICE if behind else slice_size.size
        if self._compacting:
            self._compacting = await self._journal.compact_some(amount)
            self._shrinking = not self._compacting
        else:
            self._shrinking = await self._journal.shrink_some(amount)
        took = trio.current_time() - before
        slice_size.took(took)
        self._slice_at = before + took + (0 if behind else _REST * took)

    async def _recover(self, failure: JournalError) -> None:
        self._term += 1
        _log_read_only(failure)
        await self._outbox.send(NotKept(failure, self._term))
        pause = _FIRST_RETRY_S
        while True:
            with trio.move_on_after(math.inf if isinstance(failure, JournalDamaged) else pause):
                async for _ in self._inbox:
                    pass  # drop commits of an older term; the store rejects writes at this time
                raise trio.EndOfChannel
            try:
                await self._journal.repair()
                break
            except JournalError as still:
                pause = min(2 * pause, _LONGEST_RETRY_S)
                if str(still) != str(failure):
                    failure = still
                    _log_read_only(failure)
                    await self._outbox.send(NotKept(failure, self._term))
        log.warning("writable_again")
        await self._outbox.send(Writable())
