import shutil
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from kschedd.actors.clock import Clock
from kschedd.actors.controllers import ControllerActor
from kschedd.actors.objects.durable_log import Execute, JournalThread, in_thread
from kschedd.actors.objects.journal import Commit, JournalActor, NotKept, Outcome
from kschedd.actors.objects.journal import Kept as KeptUpTo
from kschedd.actors.objects.store import Message, StoreActor, StoreClient, Watch
from kschedd.daemon import cluster_actors
from kschedd.object_faults import FaultLedger
from kschedd.startup.state import StateOptions
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.errors import ApiError
from kschedd.store.journal.journal import Journal, JournalDamaged, JournalError
from kschedd.store.objects.log import WatchEvent
from kschedd.store.store import Store
from kschedd.store.writes import Create, Write
from tests.actors.clusters import node, placed, pod


def kept(file: Path, copy: Path) -> Store:
    """Return the store that a daemon would load if it started now, without pending writes of the running daemon."""
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
    async with cluster_actors(state=StateOptions(journal=file)) as cluster:
        created = await cluster.store.create(node())
        assert kept(file, copy).get("Node", "", "n1").raw == created.raw


async def test_a_cluster_goes_on_where_the_last_one_was(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    async with cluster_actors(state=StateOptions(journal=file)) as cluster:
        await cluster.store.create_many([node(), pod("a")])
        await placed(cluster, "a")
        version = await cluster.store.do(lambda store: store.version)
    async with cluster_actors(state=StateOptions(journal=file)) as cluster:
        assert await placed(cluster, "a") == {"a": "n1"}
        assert await cluster.store.do(lambda store: store.version) == version
        await cluster.store.create(pod("b"))
        assert await placed(cluster, "b") == {"b": "n1"}
        assert await cluster.scheduler.query(lambda owner: owner.machine.cluster.pod_count) == 2


@attrs.define(eq=False)
class FakeLog:
    """A log on a disk that fails or stalls on command; it contains completely written batches."""

    version: int = 0
    tail: int = 0
    failing: str = ""  # error message; empty while the log works
    damaged: str = ""  # error message of compaction only
    room_up_to: int = 1_000_000  # versions
    may_go_on: threading.Event = attrs.field(factory=threading.Event)
    repairs: int = 0
    head_flushed: bool = True
    closed: bool = False

    def __attrs_post_init__(self) -> None:
        self.may_go_on.set()

    def append(self, events: Sequence[WatchEvent]) -> None:
        self.may_go_on.wait()
        if events[-1].version > self.room_up_to:
            self.failing = "database or disk is full"
        self._work()
        assert events[0].version == self.version + 1
        self.version = events[-1].version
        self.tail += len(events)
        self.head_flushed = False

    def flush_head(self) -> None:
        self._work()
        self.head_flushed = True

    def repair(self) -> None:
        self.repairs += 1
        self._work()

    def compact_some(self, events: int) -> bool:
        self._work()
        if self.damaged:
            raise JournalDamaged("journal.db", self.damaged)
        self.tail = max(0, self.tail - events)
        return self.tail > 0

    def shrink_some(self, pages: int) -> bool:
        self._work()
        return False

    def close(self) -> None:
        self.closed = True

    def _work(self) -> None:
        if self.failing:
            raise JournalError("journal.db", self.failing)


@attrs.frozen(eq=False)
class Kept:
    """A store whose journal is a FakeLog."""

    log: FakeLog
    owned: Store
    store: StoreClient
    nursery: trio.Nursery

    def begin(self, work: Callable[[], Awaitable[Any]]) -> list[Any]:
        """Start the work in the background; return a list that receives its result."""
        outcome: list[Any] = []

        async def run() -> None:
            try:
                outcome.append(await work())
            except JournalError as failure:
                outcome.append(failure)

        self.nursery.start_soon(run)
        return outcome


async def at_once(work: Callable[[], Any]) -> Any:
    """Run the function without a thread, because the test's clock does not wait for threads."""
    return work()


@asynccontextmanager
async def actors_over(
    log: FakeLog, owned: Store, run: Execute = in_thread, **options: Any
) -> AsyncIterator[tuple[StoreClient, trio.Nursery]]:
    """Run the actors of a store and its journal, with these options; close the client at the end."""
    to_journal, journal_in = trio.open_memory_channel[Commit](1)
    to_kept, kept_in = trio.open_memory_channel[Outcome](0)
    to_store, store_in = trio.open_memory_channel[Message](4)
    client = StoreClient.of(to_store)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(JournalActor(JournalThread(log, run), journal_in, to_kept, **options).run)
        nursery.start_soon(StoreActor(owned, store_in, to_journal, kept_in).run)
        try:
            yield client, nursery
        finally:
            log.may_go_on.set()
            client.close()


@asynccontextmanager
async def a_store() -> AsyncIterator[Kept]:
    owned = Store(now=lambda: 0.0)
    log = FakeLog(version=owned.version)
    async with actors_over(log, owned) as (client, nursery):
        with trio.fail_after(90):
            yield Kept(log, owned, client, nursery)
    assert log.closed


async def test_nothing_is_shown_before_it_is_kept() -> None:
    async with a_store() as kept:
        await kept.store.create(node("n1"))
        watch = await kept.store.watch(["Node"])
        kept.log.may_go_on.clear()
        write = kept.begin(lambda: kept.store.create(node("n2")))
        await wait_all_tasks_blocked()
        unchanged = kept.begin(lambda: kept.store.do(lambda store: store.merge_patch("Node", "", "n2", {})))
        read = kept.begin(lambda: kept.store.find("Node", "", "n2"))
        refused = kept.begin(lambda: kept.store.create_many([node("n2")]))
        present = kept.begin(lambda: kept.store.watch(["Node"], with_present=True))
        await wait_all_tasks_blocked()
        assert [write, unchanged, read, refused, present] == [[], [], [], [], []]
        assert not watch.behind
        assert watch.take() == []
        since_now = await kept.store.watch(["Node"], kept.owned.log.shown)
        assert since_now.take() == []
        kept.log.may_go_on.set()
        assert await watch.wait()
        assert [event.new.name for event in watch.take()] == ["n2"]
        await wait_all_tasks_blocked()
        assert unchanged == read == write
        assert write[0].name == "n2"
        assert [str(answer) for answer in refused[0]] == ['nodes "n2" already exists']
        assert [event.new.name for event in present[0].take()] == ["n1", "n2"]
        assert [event.new.name for event in since_now.take()] == ["n2"]


async def test_what_was_not_kept_is_taken_back_and_refused_and_reads_are_answered_without_it() -> None:
    async with a_store() as kept:
        await kept.store.create(node("n1"))
        version = kept.owned.version
        watch = await kept.store.watch(["Node"])
        kept.log.may_go_on.clear()
        kept.log.failing = "cannot be written: database or disk is full"
        written = [kept.begin(lambda: kept.store.create(node("n2")))]
        await wait_all_tasks_blocked()
        written.append(kept.begin(lambda: kept.store.do(lambda store: store.delete("Node", "", "n1"))))
        await wait_all_tasks_blocked()
        reads = [kept.begin(lambda name=name: kept.store.find("Node", "", name)) for name in ("n1", "n2")]
        once = kept.begin(lambda: kept.store.do(lambda store: store.version, once=True))
        await wait_all_tasks_blocked()
        kept.log.may_go_on.set()
        await kept.store.do(lambda store: None)
        while not (all(written) and all(reads) and once):
            await trio.lowlevel.checkpoint()
        assert [str(failure) for [failure] in (*written, once)] == [
            "journal.db: cannot be written: database or disk is full"
        ] * 3
        assert [found and found.name for [found] in reads] == ["n1", None]
        assert kept.owned.version == version
        # In read-only mode, reads are answered, and writes are rejected with the reason.
        with pytest.raises(JournalError, match="disk is full"):
            await kept.store.create(node("n3"))
        assert await kept.store.find("Node", "", "n3") is None
        assert (await kept.store.create_many([node("n1")]))[0].rpc_code == "already_exists"
        assert "disk is full" in str(await kept.store.condition())
        fork = await kept.store.do_in_steps(lambda store: store.forking())
        assert fork.create(node("n3")).name == "n3"
        with pytest.raises(JournalError, match="disk is full"):
            await kept.store.do_in_steps(_created_in_steps)
        assert kept.owned.version == version
        assert not watch.behind
        # There is room again.
        kept.log.failing = ""
        await kept.store.until_writable()
        assert await kept.store.condition() is None
        assert (await kept.store.create(node("n2"))).resource_version == version + 1
        assert [(event.version, event.new.name) for event in watch.take()] == [(version + 1, "n2")]
        assert kept.log.version == version + 1


def _created_in_steps(store: ClusterWriter) -> Generator[None, None, None]:
    yield
    store.create(node("n3"))
    yield
    raise AssertionError("not reached after a write that was not persisted")


async def test_a_store_that_is_read_only_ends_in_order() -> None:
    async with a_store() as kept:
        kept.log.failing = "disk I/O error"
        with pytest.raises(JournalError):
            await kept.store.create(node("n1"))
        waiting = kept.begin(kept.store.until_writable)
        await wait_all_tasks_blocked()
        assert waiting == []
        await kept.store.end_watches()
        late = await kept.store.watch(["Node"], with_present=True)
        assert late.ended
        await wait_all_tasks_blocked()
        assert waiting == [None]


async def test_it_tries_again_ever_less_often(autojump_clock: MockClock) -> None:
    times: list[float] = []
    log = FakeLog(failing="disk I/O error")

    async def at_once(work: Callable[[], Any]) -> Any:
        """Run the function without a thread, because the test's clock does not wait for threads."""
        times.append(trio.current_time())
        return work()

    to_journal, journal_in = trio.open_memory_channel[Commit](1)
    to_kept, kept_in = trio.open_memory_channel[Outcome](0)
    store = Store(now=lambda: 0.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(JournalActor(JournalThread(log, at_once), journal_in, to_kept).run)
        await to_journal.send(Commit(store.written_after(0), 0))
        assert isinstance(await kept_in.receive(), NotKept)
        with trio.move_on_after(60):
            await to_journal.send(Commit(store.written_after(0), 0))  # commits are still received, and dropped
            await trio.sleep_forever()
        to_journal.close()
    gaps = [round(after - before, 2) for before, after in pairwise(times)]
    assert gaps[:7] == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0]
    assert set(gaps[7:]) == {10.0}
    assert log.version == 0


async def test_a_reason_that_changes_while_nothing_can_be_written_is_told(autojump_clock: MockClock) -> None:
    owned = Store(now=lambda: 0.0)
    log = FakeLog(version=owned.version, failing="database or disk is full")
    async with actors_over(log, owned, run=at_once) as (client, _):
        with pytest.raises(JournalError, match="disk is full"):
            await client.create(node("n1"))
        log.failing = "disk I/O error"
        await trio.sleep(60)
        assert str(await client.condition()) == "journal.db: disk I/O error"
        with pytest.raises(JournalError, match="disk I/O error"):
            await client.create(node("n1"))
        assert [found.name for found in await client.list("Node")] == []
        log.failing = ""
        await client.until_writable()
        assert await client.condition() is None
        assert (await client.create(node("n1"))).name == "n1"


async def test_a_damaged_file_is_written_no_more_and_every_answer_says_why(autojump_clock: MockClock) -> None:
    owned = Store(now=lambda: 0.0)
    log = FakeLog(version=owned.version, damaged="cannot be written: database disk image is malformed")
    async with actors_over(log, owned, compact_after=1, run=at_once) as (client, _):
        assert (await client.create(node("n1"))).name == "n1"
        assert (await client.create(node("n2"))).name == "n2"
        for _ in range(100):
            await trio.sleep(1)
            assert isinstance(await client.condition(), JournalDamaged)
            with pytest.raises(JournalDamaged, match=r"malformed\. Restore a copy of the whole state directory, or"):
                await client.create(node("n3"))
        assert [found.name for found in await client.list("Node")] == ["n1", "n2"]
        assert log.repairs == 0
    assert log.closed


async def test_the_record_of_the_last_write_is_flushed_when_no_further_one_comes(autojump_clock: MockClock) -> None:
    log = FakeLog()

    async def at_once(work: Callable[[], Any]) -> Any:
        return work()

    to_journal, journal_in = trio.open_memory_channel[Commit](1)
    to_kept, kept_in = trio.open_memory_channel[Outcome](0)
    store = Store(now=lambda: 0.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(JournalActor(JournalThread(log, at_once), journal_in, to_kept).run)
        await to_journal.send(Commit(store.written_after(0), 0))
        assert await kept_in.receive() == KeptUpTo(store.version)
        assert not log.head_flushed
        await trio.sleep(2)
        assert log.head_flushed
        to_journal.close()


async def test_what_was_refused_because_of_a_write_that_was_not_kept_is_not_done_then() -> None:
    async with a_store() as kept:
        version = kept.owned.version
        kept.log.may_go_on.clear()
        kept.log.failing = "cannot be written: database or disk is full"
        first = kept.begin(lambda: kept.store.create(node("n1")))
        await wait_all_tasks_blocked()
        second = kept.begin(lambda: kept.store.create(node("n1")))  # the object seems to exist already
        await wait_all_tasks_blocked()
        kept.log.may_go_on.set()
        with trio.fail_after(60):
            while not (first and second):
                await trio.lowlevel.checkpoint()
        assert [str(failure) for failure in (*first, *second)] == [
            "journal.db: cannot be written: database or disk is full"
        ] * 2
        assert kept.owned.version == version


async def test_a_controller_starts_over_when_what_it_did_was_not_kept() -> None:
    @attrs.define
    class Namer:
        """A controller that creates a ConfigMap for each node, and remembers that it has."""

        kinds: frozenset[str] = frozenset({"Node"})
        next_deadline: float | None = None
        named: set[str] = attrs.field(factory=set)
        faults: FaultLedger[list[Write]] = attrs.field(factory=lambda: FaultLedger("namer"))

        def reconcile(self, events: Sequence[WatchEvent], store: Store, now: float) -> list[Write]:
            new = [event.new.name for event in events if event.new.name not in self.named]
            self.named |= set(new)
            return [Create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}) for name in new]

        def on_refused(self, write: Write, error: ApiError, store: Store, now: float) -> list[Write]:
            return []

    async with a_store() as kept:
        actor = ControllerActor(Namer(), kept.store.clone(), Clock.started())
        kept.nursery.start_soon(actor.run)
        kept.log.room_up_to = kept.owned.version + 3  # room for the second node, but not for the controller's write
        maps = await kept.store.watch(["ConfigMap"])
        await kept.store.create(node("n1"))
        assert await next_names(maps) == ["n1"]
        await kept.store.create(node("n2"))
        while await kept.store.condition() is None:
            await trio.lowlevel.checkpoint()
        assert await kept.store.find("ConfigMap", "default", "n2") is None
        kept.log.room_up_to, kept.log.failing = 1_000_000, ""
        assert await next_names(maps) == ["n2"]
        await kept.store.end_watches()


async def next_names(watch: Watch) -> list[str]:
    while True:
        assert await watch.wait()
        if events := watch.take():
            return [event.new.name for event in events]


async def test_batches_that_wait_are_written_together_and_compacted_after(tmp_path: Path) -> None:
    store = Store(now=lambda: 0.0)
    journal = Journal(tmp_path / "journal.db")
    cursor = store.watch(None, 0)
    to_journal, journal_in = trio.open_memory_channel[Commit](8)
    to_kept, kept_in = trio.open_memory_channel[Outcome](1)
    for number in range(3):
        store.create(node(f"n{number}"))
        to_journal.send_nowait(Commit(cursor.take(), 0))
    actor = JournalActor(JournalThread(journal), journal_in, to_kept, compact_after=3)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(actor.run)
        assert await kept_in.receive() == KeptUpTo(store.version)
        while journal.tail:
            await trio.lowlevel.checkpoint()
        to_journal.close()
    again = Journal(tmp_path / "journal.db")
    loaded = again.load()
    again.close()
    assert loaded is not None
    assert loaded.version == store.version


@pytest.mark.parametrize(
    ("event_s", "tail", "slices"),
    [
        pytest.param(0.0, 480, set(range(25, 101, 5)), id="grow-on-a-fast-disk"),
        pytest.param(0.0001, 300, {25, 30}, id="take-five-milliseconds"),
        pytest.param(0.01, 100, {25, 12, 6, 5}, id="are-small-on-a-slow-disk"),
        pytest.param(0.01, 1500, {100, 5}, id="are-full-where-the-journal-is-twice-its-limit"),
    ],
)
async def test_slices_of_compaction(
    autojump_clock: MockClock, event_s: float, tail: int, slices: set[int], tmp_path: Path
) -> None:
    moved: list[int] = []

    class SlowLog(FakeLog):
        def compact_some(self, events: int) -> bool:
            moved.append(events)
            return super().compact_some(events)

    async def run(work: Callable[[], Any]) -> Any:
        before = sum(moved)
        result = work()
        await trio.sleep(event_s * (sum(moved) - before))
        return result

    to_journal, journal_in = trio.open_memory_channel[Commit](0)
    to_store, outcomes = trio.open_memory_channel[Outcome](10)
    journal = SlowLog(tail=500 + tail)
    store = Store()
    store.create(node())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(JournalActor(JournalThread(journal, run), journal_in, to_store, compact_after=500).run)
        async with to_journal, outcomes:
            await to_journal.send(Commit(store.written_after(0), 0))
            while journal.tail:  # noqa: ASYNC110 - time is virtual
                await trio.sleep(1)
    assert set(moved) == slices


async def test_pages_are_given_back_in_slices_that_take_no_longer_than_those_of_a_compaction(
    autojump_clock: MockClock,
) -> None:
    given: list[int] = []

    class Shrinking(FakeLog):
        def shrink_some(self, pages: int) -> bool:
            given.append(pages)
            return sum(given) < 200

    async def run(work: Callable[[], Any]) -> Any:
        before = sum(given)
        result = work()
        await trio.sleep(0.0004 * (sum(given) - before))
        return result

    to_journal, journal_in = trio.open_memory_channel[Commit](0)
    to_store, outcomes = trio.open_memory_channel[Outcome](10)
    store = Store()
    store.create(node())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            JournalActor(JournalThread(Shrinking(tail=20), run), journal_in, to_store, compact_after=10).run
        )
        async with to_journal, outcomes:
            await to_journal.send(Commit(store.written_after(0), 0))
            while sum(given) < 200:  # noqa: ASYNC110 - time is virtual
                await trio.sleep(1)
    assert given[:2] == [25, 12]
    assert set(given[1:]) == {12}
