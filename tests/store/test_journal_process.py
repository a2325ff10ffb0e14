"""Tests of the commands and answers of the process that writes the journal; a thread runs it here."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

from kschedd.store.journal import process
from kschedd.store.journal.journal import Journal, packed
from kschedd.store.journal.process import LENGTH, framed
from kschedd.store.store import Store
from tests.store.descriptors import open_files
from tests.store.manifests import Clock, config_map


class Running:
    """The daemon's end of the pipe."""

    def __init__(self) -> None:
        self.pipe, other = socket.socketpair()
        self.pipe.settimeout(10)
        self.thread = threading.Thread(target=process.main, args=(other.detach(),))
        self.thread.start()
        self.answers = self.pipe.makefile("rb")

    def sends(self, *order: Any) -> None:
        self.pipe.sendall(framed(order))

    def asks(self, *order: Any) -> Any:
        self.sends(*order)
        return msgpack.unpackb(self.answers.read(int.from_bytes(self.answers.read(LENGTH), "little")))

    def close(self) -> None:
        self.answers.close()
        self.pipe.close()
        self.thread.join(10)
        assert not self.thread.is_alive()


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    ignored: list[int] = []
    monkeypatch.setattr(process.signal, "signal", lambda number, how: ignored.append(number))
    made = Running()
    yield made
    made.close()
    assert sorted(ignored) == [1, 2, 15]


class Writes:
    """A new journal in which the store's first version is written, and the store's later writes."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "journal.db"
        self.store = Store(now=Clock(), seed=1)
        self.store.create(config_map("first"))
        journal = Journal(self.path)
        journal.append(self.store.written_after(0))
        self.epoch, self.version = journal.epoch, journal.version
        journal.close()

    def next(self, *names: str) -> list[Any]:
        """Create these objects; return their writes."""
        before = self.store.version
        for name in names:
            self.store.create(config_map(name))
        return [packed(event) for event in self.store.written_after(before)]

    def kept(self) -> list[str]:
        journal = Journal(self.path)
        store = journal.load(now=Clock())
        journal.close()
        assert store is not None
        return [each.name for each in store.list("ConfigMap")]


def test_batches_are_written_and_answered_whole(running: Running, tmp_path: Path) -> None:
    made = Writes(tmp_path)
    word, version, tail, _, result = running.asks("open", str(made.path), made.epoch)
    assert (word, version, result) == ("done", made.version, None)
    running.sends("write", made.next("a"), True)
    word, version, grown, _, result = running.asks("write", made.next("b", "c"), False)
    assert (word, version, grown - tail, result) == ("done", made.version + 3, 3, None)
    word, version, *_ = running.asks("write", made.next("d"), False)
    assert (word, version) == ("done", made.version + 4)
    running.close()
    assert made.kept() == ["a", "b", "c", "d", "first"]


def test_an_incomplete_batch_is_discarded_by_the_next_other_command(running: Running, tmp_path: Path) -> None:
    made = Writes(tmp_path)
    running.asks("open", str(made.path), made.epoch)
    writes = made.next("a")
    running.sends("write", writes, True)
    assert running.asks("repair", made.version)[:2] == ["done", made.version]
    assert running.asks("write", writes, False)[:2] == ["done", made.version + 1]
    running.close()
    assert made.kept() == ["a", "first"]


def test_the_answer_has_the_result_of_the_command(running: Running, tmp_path: Path) -> None:
    made = Writes(tmp_path)
    running.asks("open", str(made.path), made.epoch)
    *_, more = running.asks("compact_some", 1000)
    assert more is False
    assert running.asks("flush_head")[0] == "done"


@pytest.mark.parametrize(
    ("path", "epoch", "why"),
    [
        pytest.param("none.db", "", "was deleted while the daemon was using it", id="deleted"),
        pytest.param("journal.db", "another", "was replaced while the daemon was using it", id="replaced"),
    ],
)
def test_a_journal_that_is_not_the_daemons_is_not_opened(
    running: Running, tmp_path: Path, path: str, epoch: str, why: str
) -> None:
    Writes(tmp_path)
    assert running.asks("open", str(tmp_path / path), epoch) == ["failed", str(tmp_path / path), why]
    assert not (tmp_path / "none.db").exists()
    assert not open_files(tmp_path)


def test_the_end_of_the_process_empties_the_log_and_closes_the_files(running: Running, tmp_path: Path) -> None:
    made = Writes(tmp_path)
    running.asks("open", str(made.path), made.epoch)
    running.asks("write", made.next("a"), False)
    assert set(open_files(tmp_path)) >= {"journal.db", "journal.db-wal", "journal.db-head"}
    running.close()
    assert not open_files(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["journal.db", "journal.db-head"]


def test_writes_that_were_answered_and_are_missing_are_damage(running: Running, tmp_path: Path) -> None:
    made = Writes(tmp_path)
    running.asks("open", str(made.path), made.epoch)
    word, file, why, good = running.asks("repair", made.version + 7)
    assert (word, file) == ("damaged", str(made.path))
    assert why
    assert good is None


@pytest.mark.parametrize("cut", [0, 1, LENGTH, LENGTH + 3])
def test_the_process_ends_with_the_pipe_even_within_a_command(cut: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process.signal, "signal", lambda number, how: None)
        made = Running()
        made.pipe.sendall(framed(["open", "x", "y"])[:cut])
        made.close()
