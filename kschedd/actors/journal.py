"""JournalActor: writes what the store has written to disk, and only then answers those who asked for it.

Receives: `Commit`, the events of a batch and the answers that wait for them.  Sends: those answers.
Owns: the Journal, which only its worker thread (limiter of 1) touches. Whatever waits goes into one transaction, so the
slower the disk, the larger the batches.  Ends: when the store closes its channel; the file is closed then.
Fails: JournalError refuses the answers that wait and ends the daemon: what cannot be kept must not be promised.
"""

from collections.abc import Sequence
from typing import Any

import attrs
import trio

from kschedd.actors.mailbox import Reply, batch_from
from kschedd.store.journal import Journal, JournalError
from kschedd.store.log import WatchEvent

COMPACT_AFTER = 200_000  # events; then the present state becomes the snapshot
_MOST = 64  # batches in a transaction


@attrs.frozen(eq=False)
class Commit:
    events: Sequence[WatchEvent]
    answers: Sequence[Reply[Any]]  # noted, to be announced


@attrs.define(eq=False)
class JournalActor:
    _journal: Journal
    _inbox: trio.MemoryReceiveChannel[Commit]
    _compact_after: int = COMPACT_AFTER
    _limiter: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(1), init=False)

    async def run(self) -> None:
        async with self._inbox:
            try:
                while True:
                    await self._commit(await batch_from(self._inbox, _MOST))
            except trio.EndOfChannel:
                pass
            finally:
                self._journal.close()

    async def _commit(self, commits: Sequence[Commit]) -> None:
        try:
            await trio.to_thread.run_sync(self._write, commits, limiter=self._limiter)
        except JournalError as failure:
            for commit in commits:
                for reply in commit.answers:
                    reply.refuse(failure)
            raise
        for commit in commits:
            for reply in commit.answers:
                reply.announce()
        if self._journal.tail > self._compact_after:
            await trio.to_thread.run_sync(self._journal.compact, limiter=self._limiter)

    def _write(self, commits: Sequence[Commit]) -> None:
        self._journal.append([event for commit in commits for event in commit.events])
