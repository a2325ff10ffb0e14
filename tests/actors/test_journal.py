import shutil
from pathlib import Path

import pytest
import trio

from kschedd.actors.journal import Commit, JournalActor
from kschedd.actors.mailbox import Reply
from kschedd.actors.store import Message, StoreActor, StoreClient
from kschedd.daemon import cluster_actors
from kschedd.store.journal import Journal, JournalError
from kschedd.store.log import WatchEvent
from kschedd.store.store import Store
from tests.actors.clusters import node, placed, pod


def kept(file: Path, copy: Path) -> Store:
    """What a daemon would find that starts now, whatever the one that runs still has in hand."""
    for part in file.parent.glob(f"{file.name}*"):
        shutil.copy(part, copy / part.name)
    journal = Journal(copy / file.name)
    store = journal.load()
    journal.close()
    assert store is not None
    return store


async def test_an_answered_write_is_on_disk(tmp_path: Path) -> None:
    file, copy = tmp_path / "journal.db", tmp_path / "copy"
    copy.mkdir()
    async with cluster_actors(journal=file) as cluster:
        created = await cluster.store.create(node())
        assert kept(file, copy).get("Node", "", "n1").raw == created.raw


async def test_a_cluster_goes_on_where_the_last_one_was(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    async with cluster_actors(journal=file) as cluster:
        await cluster.store.create_many([node(), pod("a")])
        await placed(cluster, "a")
        version = await cluster.store.do(lambda store: store.version)
    async with cluster_actors(journal=file) as cluster:
        assert await placed(cluster, "a") == {"a": "n1"}
        assert await cluster.store.do(lambda store: store.version) == version
        await cluster.store.create(pod("b"))
        assert await placed(cluster, "b") == {"b": "n1"}
        assert await cluster.scheduler.ask(lambda owner: owner.machine.cluster.pod_count) == 2


class Full(Journal):
    """A disk without room from some version on."""

    full_from = 1_000_000

    def append(self, events: list[WatchEvent]) -> None:  # type: ignore[override]
        if events[-1].version >= self.full_from:
            raise JournalError("journal.db", "cannot be written: database or disk is full")
        super().append(events)


async def test_what_cannot_be_kept_is_refused_and_ends_the_daemon(tmp_path: Path) -> None:
    journal = Full(tmp_path / "journal.db")
    store = Store(now=lambda: 0.0)
    to_journal, journal_in = trio.open_memory_channel[Commit](1)
    to_store, store_in = trio.open_memory_channel[Message](4)
    client = StoreClient.of(to_store)
    journal.append(list(store.watch(None, 0).take()))
    journal.full_from = store.version + 2

    async def write_until_full() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(JournalActor(journal, journal_in).run)
            nursery.start_soon(StoreActor(store, store_in, to_journal).run)
            await client.create(node("n1"))
            with trio.CancelScope(shield=True), pytest.raises(JournalError, match="disk is full"):
                await client.create(node("n2"))

    with pytest.raises(ExceptionGroup) as stopped:
        await write_until_full()
    assert stopped.group_contains(JournalError)


async def test_batches_that_wait_are_written_together_and_answered_after(tmp_path: Path) -> None:
    store = Store(now=lambda: 0.0)
    journal = Journal(tmp_path / "journal.db")
    cursor = store.watch(None, 0)
    to_journal, journal_in = trio.open_memory_channel[Commit](8)
    replies: list[Reply[int]] = []
    for number in range(3):
        store.create(node(f"n{number}"))
        reply: Reply[int] = Reply()
        reply.note(number)
        replies.append(reply)
        to_journal.send_nowait(Commit(cursor.take(), (reply,)))
    to_journal.close()
    await JournalActor(journal, journal_in, compact_after=3).run()
    assert [await reply.value() for reply in replies] == [0, 1, 2]
    again = Journal(tmp_path / "journal.db")
    assert again.tail == 0  # compacted
    loaded = again.load()
    again.close()
    assert loaded is not None
    assert loaded.version == store.version
