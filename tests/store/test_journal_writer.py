"""What a journal writes and reads back, piece by piece: its format, its transactions, its head, its snapshots."""

import errno
import os
import sqlite3
import stat
from pathlib import Path

import attrs
import pytest

from kschedd.store.journal.disk import RealDisk
from kschedd.store.journal.format import (
    CODES,
    FORMAT,
    JournalDamaged,
    JournalError,
    State,
    link,
    ours,
    read_event,
    read_state,
    row_sum,
)
from kschedd.store.journal.head import Head, HeadFile, head_path
from kschedd.store.journal.journal import Journal
from kschedd.store.objects.log import ADDED, DELETED, MODIFIED
from kschedd.store.store import Store
from tests.store.manifests import Clock, config_map, node, pod

STATE = State("e" * 32, 7, 8, 9, 10)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def filled(path: Path, *names: str) -> tuple[Journal, Store]:
    """A journal with a ConfigMap of each name, and its store."""
    store = Store(now=Clock())
    watch = store.watch(None, 0)
    for name in names:
        store.create(config_map(name))
    journal = Journal(path)
    journal.append(watch.take())
    return journal, store


# -- the format ------------------------------------------------------------------------------------------------------


def test_the_format_is_that_of_journals_that_were_written_earlier() -> None:
    """A journal of an earlier kschedd must be read as it was written: other numbers need another format."""
    assert FORMAT == 2
    assert {ADDED: 0, MODIFIED: 1, DELETED: 2} == CODES
    assert row_sum("Pod", "default", "a", b"raw") == 1612301312
    assert link(0, 1, 0, 7) == 1514930308
    assert link(1514930308, 2, 1, 8) == 1672516643
    assert (
        STATE.packed().hex() == "95d92065656565656565656565656565656565656565656565656565656565656565650708090aa2d5d65a"
    )


def test_a_state_is_read_as_it_was_packed_and_a_damaged_one_is_none() -> None:
    packed = STATE.packed()
    assert read_state(packed) == STATE
    for at in range(len(packed)):
        assert read_state(packed[:at] + bytes((packed[at] ^ 1,)) + packed[at + 1 :]) is None
    for damaged in (None, 7, "a text", packed.hex(), b"", b"1234", packed[:-1]):
        assert read_state(damaged) is None


def test_a_row_of_events_is_read_whole_or_not_at_all() -> None:
    checksum = row_sum("Pod", "default", "a", b"raw")
    row = (3, 1, "Pod", "default", "a", b"raw", checksum, 5)
    read = read_event(row)
    assert read is not None
    assert (read.version, read.type, read.key, read.raw, read.chain) == (
        3,
        MODIFIED,
        ("Pod", "default", "a"),
        b"raw",
        5,
    )
    wrong: dict[int, tuple[object, ...]] = {
        1: (3, None, "1"),
        2: ("Node", None, b"Pod"),
        3: ("other", None),
        4: ("b", 1),
        5: (b"raW", "raw", None),
        6: (checksum + 1, None),
        7: (None, "5"),
    }
    for place, values in wrong.items():
        for value in values:
            assert read_event((*row[:place], value, *row[place + 1 :])) is None, (place, value)


def test_what_is_damaged_says_up_to_where_all_is_whole_if_that_is_known() -> None:
    assert str(JournalError("f", "why")) == "f: why"
    assert str(JournalDamaged("f", "why")).startswith("f: why. Put a copy of the whole state directory back, or ")
    assert str(JournalDamaged("f", "why", 0)).startswith("f: why. Everything up to version 0 is whole. Put a copy ")


@pytest.mark.parametrize(
    ("code", "damaged"),
    [
        pytest.param(None, True, id="of-no-code"),
        pytest.param(sqlite3.SQLITE_CORRUPT, True, id="corrupt"),
        pytest.param(sqlite3.SQLITE_CORRUPT_INDEX, True, id="corrupt-index"),
        pytest.param(sqlite3.SQLITE_NOTADB, True, id="no-database"),
        pytest.param(sqlite3.SQLITE_IOERR_SHORT_READ, True, id="cut-short"),
        pytest.param(sqlite3.SQLITE_IOERR_WRITE, False, id="disk"),
        pytest.param(sqlite3.SQLITE_FULL, False, id="full"),
        pytest.param(sqlite3.SQLITE_BUSY, False, id="locked"),
    ],
)
def test_a_fault_of_the_database_is_damage_or_the_disks(code: int | None, damaged: bool) -> None:
    fault = sqlite3.OperationalError("no")
    if code is not None:
        fault.sqlite_errorcode = code
    with pytest.raises(JournalError, match=r"^f: cannot be read: no") as raised, ours("f", "cannot be read", 3):
        raise fault
    assert isinstance(raised.value, JournalDamaged) is damaged
    assert not damaged or getattr(raised.value, "good_version", None) == 3


# -- transactions and pragmas ----------------------------------------------------------------------------------------


def test_what_fails_within_a_transaction_is_raised_and_undone(path: Path) -> None:
    journal, store = filled(path, "a")
    for fault in (KeyError("no"), sqlite3.OperationalError("no")):
        with pytest.raises((KeyError, JournalError)), journal._transaction():  # noqa: PT012 - the fault is within it
            journal._db.execute("DELETE FROM events")
            raise fault
        assert not journal._db.in_transaction
        assert journal._db.execute("SELECT count(*) FROM events").fetchone() == (store.version,)
    journal.close()


@pytest.mark.parametrize("fails", [False, True])
def test_after_a_compaction_each_commit_is_on_disk_again(path: Path, fails: bool) -> None:
    journal, _ = filled(path, "a", "b", "c")

    def pragma(name: str) -> int:
        return int(journal._db.execute(f"PRAGMA {name}").fetchone()[0])

    before = pragma("synchronous"), pragma("wal_autocheckpoint")
    if fails:
        with pytest.raises(KeyError), journal._unsynced():  # noqa: PT012 - the fault is within it
            assert (pragma("synchronous"), pragma("wal_autocheckpoint") < before[1]) == (1, True)
            raise KeyError("no")
    else:
        assert journal.compact_some(1)
        assert not journal.compact_some(100)
    assert (pragma("synchronous"), pragma("wal_autocheckpoint")) == before == (2, 1000)
    journal.close()


def test_a_compaction_leaves_no_log_of_the_database(path: Path) -> None:
    journal, store = filled(path, *(f"c{number}" for number in range(250)))
    log = path.with_name(path.name + "-wal")
    assert log.stat().st_size > 0
    journal.compact()
    assert log.stat().st_size == 0
    assert (journal.tail, journal.state.base, journal.state.count) == (0, store.version, store.version)
    journal.close()


# -- the head --------------------------------------------------------------------------------------------------------


def test_the_head_of_another_journal_is_refused(path: Path, tmp_path: Path) -> None:
    for each in (path, tmp_path / "other.db"):
        filled(each, "a")[0].close()
    head_path(path).write_bytes(head_path(tmp_path / "other.db").read_bytes())
    with pytest.raises(JournalDamaged, match=r"is not the file that journal\.db-head was written with"):
        Journal(path)


def test_the_record_of_a_write_is_flushed_when_that_is_asked_for(path: Path) -> None:
    journal, store = filled(path)
    watch = store.watch()
    store.create(config_map("a"))
    journal.append(watch.take())
    assert not journal.head_flushed
    journal.flush_head()
    assert journal.head_flushed
    journal.close()


def test_a_head_is_for_its_owner_alone_and_its_file_is_closed_with_it(path: Path) -> None:
    before = os.umask(0)
    try:
        file = HeadFile(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    file.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(file._file)


@attrs.define(eq=False)
class Unflushed(RealDisk):
    def fdatasync(self, descriptor: int, /) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_head_that_cannot_be_flushed_is_an_error(path: Path) -> None:
    file = HeadFile(path, Unflushed())
    file.write(Head(1, 2, "e" * 32))
    with pytest.raises(JournalError, match="cannot be written: Input/output error"):
        file.sync()
    assert not file.flushed
    file.close()


def test_a_probe_writes_nothing_into_a_file_that_its_name_leads_to(path: Path, tmp_path: Path) -> None:
    kept, scratch = tmp_path / "kept", path.with_name(path.name + "-probe")
    kept.write_text("kept")
    scratch.symlink_to(kept)
    file = HeadFile(path)
    file.probe()
    file.close()
    assert kept.read_text() == "kept"
    assert not scratch.is_symlink()


# -- snapshots -------------------------------------------------------------------------------------------------------


def test_a_snapshot_replaces_the_one_before_and_begins_another_history(path: Path) -> None:
    journal, _ = filled(path, "a", "b")
    journal.compact()
    epoch = journal.epoch
    other = Store(now=Clock())
    for raw in (node(), pod("p"), config_map("c")):
        other.create(raw)
    journal.snapshot(other)
    there = sum(other.count(kind) for kind in other.kinds())
    assert (journal.state.count, journal.version, journal.tail) == (there, other.version, 0)
    assert journal.epoch != epoch
    assert journal.head_flushed
    journal.close()
    again = Journal(path)
    loaded = again.load(now=Clock())
    again.close()
    assert loaded is not None
    assert [found.name for found in loaded.list("ConfigMap")] == ["c"]
    assert loaded.version == other.version


def test_writes_follow_one_another(path: Path) -> None:
    journal, store = filled(path, "a")
    journal.append([])
    assert (journal.version, journal.tail) == (store.version, store.version)
    with pytest.raises(AssertionError, match=f"version {store.version + 1} is next, not {store.version}"):
        journal.append(store.watch(None, store.version - 1).take())
    journal.close()
