"""Tests of the journal in a separate process: its durability, and the result of a write when the process ends."""

import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from kschedd import daemon
from kschedd.actors.objects import durable_log
from kschedd.actors.objects.durable_log import BEGIN, DurableLog, JournalProcess, JournalThread
from kschedd.actors.threads import any_at_work
from kschedd.daemon import cluster_actors
from kschedd.startup.state import StateOptions
from kschedd.store.journal.journal import Journal, JournalDamaged, JournalError
from kschedd.store.journal.process import framed
from kschedd.store.journal.state_dir import StateDirInUse, lock_state_dir
from kschedd.store.store import Store
from kschedd.threads import use_threads
from tests.actors.clusters import node, placed, pod
from tests.full_run import every
from tests.killing_points import POINTS, STARTING


def config_map(name: str, size: int = 1) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "x" * size}}


def loaded(path: Path) -> Store:
    with closing(Journal(path)) as journal:
        store = journal.load()
    assert store is not None
    return store


def names(store: Store) -> list[str]:
    return [found.name for found in store.list("ConfigMap")]


@attrs.frozen(eq=False)
class Writing:
    """A store with a journal that is written by a separate process."""

    path: Path
    store: Store
    log: JournalProcess

    async def write(self, name: str) -> None:
        """Write an object; if it could not be persisted, roll back, as the store's actor does."""
        kept = self.store.version
        self.store.create(config_map(name))
        try:
            await self.log.append(self.store.written_after(kept))
        except JournalError:
            self.store.roll_back(kept)
            raise
        self.store.log.show(self.store.version)

    def kill(self) -> None:
        assert self.log.pid is not None
        os.kill(self.log.pid, signal.SIGKILL)

    async def kill_before_it_answers(self) -> None:
        """Leave the file as after a kill of the process between writing "unanswered" and answering."""
        self.kill()
        with pytest.raises(JournalError):
            await self.write("lost")
        kept = self.store.version
        self.store.create(config_map("unanswered"))
        with closing(Journal(self.path)) as as_if_by_it:
            as_if_by_it.append(self.store.written_after(kept))
        self.store.roll_back(kept)


@asynccontextmanager
async def writing(where: Path, **options: Any) -> AsyncIterator[Writing]:
    path = where / "journal.db"
    store = Store(now=lambda: 0.0)
    journal = Journal(path)
    journal.append(store.written_after(0))
    store.log.show(store.version)
    log = JournalProcess(journal, **options)
    try:
        yield Writing(path, store, log)
    finally:
        log.close()


@pytest.mark.parametrize("made", [JournalThread, JournalProcess], ids=["thread", "process"])
async def test_both_keep_the_same(tmp_path: Path, made: Callable[[Journal], DurableLog]) -> None:
    path, store = tmp_path / "journal.db", Store(now=lambda: 0.0)
    log = made(Journal(path))
    assert (log.version, log.tail) == (0, 0)
    for name in "abc":
        store.create(config_map(name))
        await log.append(store.written_after(log.version))
        assert (log.version, log.tail) == (store.version, store.version)
    assert not log.head_flushed
    await log.flush_head()
    assert log.head_flushed
    assert await log.compact_some(store.version - 1)
    assert not await log.compact_some(10)
    assert log.tail == 0
    while await log.shrink_some(10):
        pass
    log.close()
    assert loaded(path).version == store.version
    assert names(loaded(path)) == ["a", "b", "c"]


async def test_a_large_batch_is_sent_in_parts_while_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable_log, "_MOST_SENT", 0)
    beside = 0

    async def goes_on() -> None:
        nonlocal beside
        while True:
            await trio.lowlevel.checkpoint()
            beside += 1

    async with writing(tmp_path) as at_work:
        at_work.store.create_many([config_map(f"c{number:02}") for number in range(70)])
        await at_work.log.flush_head()  # so that it has begun
        async with trio.open_nursery() as nursery:
            nursery.start_soon(goes_on)
            await at_work.log.append(at_work.store.written_after(at_work.log.version))
            nursery.cancel_scope.cancel()
    assert beside >= 65  # other tasks run between any two parts
    assert len(names(loaded(at_work.path))) == 70


async def test_a_batch_of_large_objects_is_kept(tmp_path: Path) -> None:
    async with writing(tmp_path) as at_work:
        at_work.store.create_many([config_map(f"c{number}", 900_000) for number in range(9)])
        await at_work.log.append(at_work.store.written_after(at_work.log.version))
    assert [len(found.raw["data"]["a"]) for found in loaded(at_work.path).list("ConfigMap")] == [900_000] * 9


async def test_a_write_is_refused_when_the_process_was_killed_and_the_next_one_is_kept(tmp_path: Path) -> None:
    async with writing(tmp_path) as at_work:
        await at_work.write("a")
        at_work.kill()
        with pytest.raises(JournalError, match=r"journal\.db: .* has ended by signal 9; another one is started"):
            await at_work.write("b")
        await at_work.log.repair()
        await at_work.write("c")
    assert names(loaded(at_work.path)) == ["a", "c"]


async def test_what_was_written_and_never_answered_is_taken_back(tmp_path: Path) -> None:
    async with writing(tmp_path) as at_work:
        await at_work.write("a")
        await at_work.kill_before_it_answers()
        await at_work.log.repair()
        assert at_work.log.version == at_work.store.version
        await at_work.write("b")
    assert names(loaded(at_work.path)) == ["a", "b"]


async def test_what_was_never_answered_is_taken_back_by_the_third_process_where_the_second_was_killed_as_well(
    tmp_path: Path,
) -> None:
    async with writing(tmp_path, begin=BEGIN.replace("from kschedd", f"{_DIES_AT_REPAIR}; from kschedd")) as at_work:
        await at_work.write("a")
        await at_work.kill_before_it_answers()
        dies = tmp_path / "dies"
        dies.touch()
        with pytest.raises(JournalError, match="has ended by signal 9"):
            await at_work.log.repair()
        dies.unlink()
        await at_work.log.repair()
        await at_work.write("b")
    assert names(loaded(at_work.path)) == ["a", "b"]


_DIES_AT_REPAIR = (
    "import os; from pathlib import Path; from kschedd.store.journal.writer import JournalWriter; "
    "repair = JournalWriter.repair; JournalWriter.repair = lambda self, version: "
    "os.kill(os.getpid(), 9) if self._path.with_name('dies').exists() else repair(self, version)"
)


async def test_a_file_that_lacks_what_was_answered_is_damaged(tmp_path: Path) -> None:
    async with writing(tmp_path) as at_work:
        at_work.log.version += 5
        with pytest.raises(JournalDamaged, match="was the last"):
            await at_work.log.repair()


@pytest.mark.parametrize("point", every(3, [point for point in POINTS if point not in STARTING.values()]))
async def test_a_process_that_ends_at_any_point_of_its_work_costs_no_more_than_that_write(
    tmp_path: Path, point: str
) -> None:
    note = tmp_path / "reached"
    once = f"from pathlib import Path; note = Path({str(note)!r}); from tests.killing_points import install; "
    begin = BEGIN.replace("from kschedd", f"{once}note.exists() or install({point!r}, 3, note); from kschedd")
    answered = []
    async with writing(tmp_path, begin=begin) as at_work:
        for number in range(12):
            try:
                await at_work.write(f"c{number:02}")
                answered.append(f"c{number:02}")
                await at_work.log.compact_some(2)
                await at_work.log.shrink_some(2)
            except JournalError:
                await at_work.log.repair()
    assert note.read_text() == f"{point}\n"
    assert len(answered) >= 11
    assert names(loaded(at_work.path)) == answered


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_signals_that_end_a_daemon_do_not_end_it(tmp_path: Path, number: signal.Signals) -> None:
    async with writing(tmp_path) as at_work:
        await at_work.write("a")
        assert at_work.log.pid is not None
        os.kill(at_work.log.pid, number)
        await at_work.write("b")
    assert names(loaded(at_work.path)) == ["a", "b"]


async def test_a_process_that_cannot_be_started_refuses_the_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(11, "Resource temporarily unavailable")

    async with writing(tmp_path) as at_work:
        with monkeypatch.context() as patched:
            patched.setattr(subprocess, "Popen", refuse)
            with pytest.raises(JournalError, match="no journal process can be started: Resource temporarily"):
                await at_work.write("a")
        await at_work.log.repair()
        await at_work.write("b")
    assert names(loaded(at_work.path)) == ["b"]


async def test_a_process_that_no_pipe_can_be_had_for_refuses_the_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> Any:
        raise OSError(24, "Too many open files")

    async with writing(tmp_path) as at_work:
        with monkeypatch.context() as patched:
            patched.setattr(socket, "socketpair", refuse)
            with pytest.raises(JournalError, match="no journal process can be started: Too many open files"):
                await at_work.write("a")
        await at_work.log.repair()
        await at_work.write("b")
    assert names(loaded(at_work.path)) == ["b"]


class _NoThreads:
    async def run(self, work: Callable[[], Any], **_: Any) -> Any:
        raise RuntimeError("can't start new thread")


async def test_a_process_that_ends_before_it_has_opened_the_file_refuses_the_write(tmp_path: Path) -> None:
    note = tmp_path / "note"
    note.touch()
    begin = f"from pathlib import Path; assert not Path({str(note)!r}).exists(); {BEGIN}"
    async with writing(tmp_path, begin=begin) as at_work:
        with pytest.raises(JournalError, match="has ended with exit status 1"):
            await at_work.write("a")
        with pytest.raises(JournalError, match="has ended with exit status 1"):
            await at_work.log.repair()
        note.unlink()
        await at_work.log.repair()
        await at_work.write("b")
    assert names(loaded(at_work.path)) == ["b"]


async def test_a_killed_process_is_waited_for_without_a_thread(tmp_path: Path) -> None:
    use_threads(_NoThreads())
    async with writing(tmp_path) as at_work:
        await at_work.write("a")
        at_work.kill()
        with pytest.raises(JournalError, match="signal 9"):
            await at_work.write("b")
        await at_work.log.repair()
    assert names(loaded(at_work.path)) == ["a"]


async def test_modules_in_the_working_directory_are_not_taken_for_pythons_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("json", "socket", "types"):
        (tmp_path / f"{module}.py").write_text("raise SystemExit(7)")
    monkeypatch.chdir(tmp_path)
    async with writing(tmp_path) as at_work:
        await at_work.write("a")
    assert names(loaded(at_work.path)) == ["a"]


async def test_a_process_that_was_stopped_goes_on_and_its_daemon_is_at_work_until_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable_log, "_STOPPED_S", 0.1)
    async with writing(tmp_path) as at_work:
        await at_work.write("a")
        assert at_work.log.pid is not None
        os.kill(at_work.log.pid, signal.SIGSTOP)
        async with trio.open_nursery() as nursery:
            at_work.store.create(config_map("b", 1_000_000))  # more than the pipe takes
            nursery.start_soon(at_work.log.append, at_work.store.written_after(at_work.log.version))
            await trio.testing.wait_all_tasks_blocked()
            assert any_at_work()
        assert not any_at_work()
        os.kill(at_work.log.pid, signal.SIGSTOP)  # the process can still be ended
    assert names(loaded(at_work.path)) == ["a", "b"]


async def test_a_large_object_is_packed_and_sent_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable_log, "_MOST_SENT", 0)
    sent: list[Any] = []

    def noted(order: Any) -> bytes:
        sent.append(order)
        return framed(order)

    async with writing(tmp_path) as at_work:
        await at_work.log.flush_head()
        at_work.store.create_many([config_map(f"c{number}", 100_000) for number in range(5)])
        monkeypatch.setattr(durable_log, "framed", noted)
        await at_work.log.append(at_work.store.written_after(at_work.log.version))
    assert [len(writes) for _, writes, _ in sent] == [1, 1, 1, 1, 1, 0]


@pytest.mark.parametrize("replaced", [False, True])
async def test_a_file_that_is_gone_when_a_process_is_started_is_not_begun_anew(tmp_path: Path, replaced: bool) -> None:
    home = tmp_path / "home"
    home.mkdir()
    async with writing(home) as at_work:
        await at_work.write("a")
        at_work.kill()
        with pytest.raises(JournalError, match="signal 9"):
            await at_work.write("b")
        home.rename(tmp_path / "away")
        home.mkdir()
        if replaced:
            Journal(at_work.path).close()
        what = "replaced" if replaced else "deleted"
        with pytest.raises(JournalError, match=f"was {what} while the daemon was using it"):
            await at_work.log.repair()
        assert bool(list(home.iterdir())) == replaced
        home.rename(tmp_path / "other")
        (tmp_path / "away").rename(home)
        await at_work.log.repair()
        await at_work.write("c")
    assert names(loaded(at_work.path)) == ["a", "c"]


async def test_a_file_that_cannot_be_opened_refuses_the_write_and_says_so(tmp_path: Path) -> None:
    async with writing(tmp_path) as at_work:
        head = tmp_path / "journal.db-head"
        head.rename(tmp_path / "away")
        with pytest.raises(JournalDamaged, match=r"journal\.db-head is missing"):
            await at_work.write("a")
        assert at_work.log.pid is None
        (tmp_path / "away").rename(head)
        await at_work.log.repair()
        await at_work.write("b")
    assert names(loaded(at_work.path)) == ["b"]


async def test_the_process_holds_the_lock_until_it_has_ended(tmp_path: Path) -> None:
    with lock_state_dir(tmp_path) as state:
        journal = Journal(tmp_path / "journal.db")
        log = JournalProcess(journal, state.lock)
        await log.flush_head()
    with pytest.raises(StateDirInUse), lock_state_dir(tmp_path):
        pass
    log.close()
    with lock_state_dir(tmp_path):
        pass


async def test_a_cluster_goes_on_when_the_process_that_writes_its_journal_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, made = tmp_path / "journal.db", []

    def noted(journal: Journal, lock: int | None) -> JournalProcess:
        made.append(JournalProcess(journal, lock))
        return made[-1]

    monkeypatch.setattr(daemon, "JournalProcess", noted)
    async with cluster_actors(state=StateOptions(journal=path, apart=True)) as cluster:
        await cluster.store.create(node())
        first = made[0].pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        with pytest.raises(JournalError, match="has ended by signal 9"):
            await cluster.store.create(pod("p0"))
        await cluster.store.until_writable()
        await cluster.store.create_many([pod("p1"), pod("p2")])
        assert await placed(cluster, "p1", "p2") == {"p1": "n1", "p2": "n1"}
        assert made[0].pid not in (None, first)
    assert made[0].pid is None
    assert [found.name for found in loaded(path).list("Pod")] == ["p1", "p2"]
