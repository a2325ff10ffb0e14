"""Tests of writing and reading a journal: its format, its transactions, its head, its snapshots."""

import errno
import os
import sqlite3
from pathlib import Path
from typing import Any

import attrs
import pytest

from kschedd.store.journal.disk import RealDisk
from kschedd.store.journal.format import (
    CODES,
    FORMATS,
    JournalDamaged,
    JournalError,
    State,
    link,
    ours,
    read_event,
    read_state,
    row_sum,
)
from kschedd.store.journal.head import head_path
from kschedd.store.journal.journal import Journal
from kschedd.store.objects.log import ADDED, DELETED, MODIFIED
from kschedd.store.store import Store
from tests.store.descriptors import open_files
from tests.store.manifests import Clock, config_map

STATE = State("e" * 32, 7, 8, 9, 10)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def filled(path: Path, *names: str) -> tuple[Journal, Store]:
    """Return a journal with a ConfigMap of each name, and its store."""
    store = Store(now=Clock())
    watch = store.watch(None, 0)
    for name in names:
        store.create(config_map(name))
    journal = Journal(path)
    journal.append(watch.take())
    return journal, store


def everything(store: Store) -> list[Any]:
    return [obj.raw for kind in store.kinds() for obj in store.list(kind)]


def loaded(path: Path) -> Store:
    """Open the journal again and return its store."""
    journal = Journal(path)
    store = journal.load(now=Clock())
    journal.close()
    assert store is not None
    return store


# -- the format ------------------------------------------------------------------------------------------------------


def test_the_format_is_that_of_journals_that_were_written_earlier() -> None:
    """Read a journal of an earlier kschedd as it was written; other numbers need another format."""
    assert FORMATS == (2, 3)
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
    for damaged in (None, 7, "a text", packed.hex(), b"", b"1234", bytes(4), packed[:-1]):
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
        0: (-1,),
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


@pytest.mark.parametrize("place", [2, 3, 4], ids=["kind", "namespace", "name"])
def test_a_missing_name_does_not_match_the_checksum_of_an_object_named_none(place: int) -> None:
    row = ("None", "None", "None", b"raw", row_sum("None", "None", "None", b"raw"))
    assert read_event((3, 1, *row, 5)) is not None
    event = [3, 1, *row, 5]
    event[place] = None
    assert read_event(event) is None


def test_what_is_damaged_says_up_to_where_all_is_whole_if_that_is_known() -> None:
    assert str(JournalError("f", "why")) == "f: why"
    assert str(JournalDamaged("f", "why")).startswith("f: why. Restore a copy of the whole state directory, or ")
    assert str(JournalDamaged("f", "why", 0)).startswith(
        "f: why. Everything up to version 0 is intact. Restore a copy "
    )


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


# -- opening ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "newer"), [(1, ""), (99, " and was written by a newer one")])
def test_a_journal_of_another_format_is_refused(path: Path, number: int, newer: str) -> None:
    journal, _ = filled(path, "a")
    journal._db.execute("UPDATE meta SET value = ? WHERE name = 'format'", (number,))
    journal.close()
    with pytest.raises(JournalError, match=f"has format {number}{newer}; this kschedd reads and writes formats"):
        Journal(path)


@pytest.mark.parametrize("left", [None, b""], ids=["no-head", "empty-head"])
def test_a_journal_whose_process_was_killed_before_its_first_commit_opens_again(path: Path, left: bytes | None) -> None:
    Journal(path).close()
    Journal(path).close()  # with the head that the first opening wrote
    head = head_path(path)
    head.unlink()
    if left is not None:
        head.write_bytes(left)
    again = Journal(path)
    assert again.load() is None
    again.close()
    assert head.stat().st_size > 0


def test_a_head_that_is_damaged_is_said_although_nothing_was_written(path: Path) -> None:
    Journal(path).close()
    head_path(path).write_bytes(b"x" * 1024)
    with pytest.raises(JournalDamaged, match="head is damaged"):
        Journal(path)


def test_a_new_journal_is_in_its_own_file_and_not_in_the_log_of_the_database(path: Path) -> None:
    journal = Journal(path)
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    head_path(copy).write_bytes(head_path(path).read_bytes())
    journal.close()
    again = Journal(copy)
    assert (again.load(), again.epoch) == (None, journal.epoch)
    again.close()


def test_a_journal_that_lacks_its_last_writes_is_damaged_from_there(path: Path) -> None:
    journal, store = filled(path, "a", "b")
    journal._db.execute("DELETE FROM events WHERE version = ?", (store.version,))
    journal.close()
    why = (
        f"ends at version {store.version - 1}, but was written up to version {store.version}: the last writes are lost"
    )
    with pytest.raises(JournalDamaged, match=why) as damaged:
        Journal(path)
    assert damaged.value.good_version == store.version - 1


def test_a_journal_that_ends_where_a_damaged_head_does_may_lack_writes(path: Path) -> None:
    journal, store = filled(path, "a")
    watch = store.watch()
    store.create(config_map("b"))
    journal.append(watch.take())
    journal.close()
    head, slot = bytearray(head_path(path).read_bytes()), 512
    last = max((0, slot), key=lambda at: bytes(head[at + 8 : at + 16]))  # the number of its record
    head[last : last + slot] = b"x" * slot
    head_path(path).write_bytes(head)
    Journal(path).close()  # it continues after the remaining record, so that it has all later ones
    journal = Journal(path)
    journal._db.execute("DELETE FROM events WHERE version = ?", (store.version,))
    journal.close()
    why = f"writes after version {store.version - 1} may be missing"
    with pytest.raises(JournalDamaged, match=why) as damaged:
        Journal(path)
    assert damaged.value.good_version == store.version - 1


def test_a_closed_journal_leaves_no_descriptor_open(path: Path) -> None:
    journal, _ = filled(path, "a")
    assert "journal.db" in open_files(path.parent)
    journal.close()
    assert not open_files(path.parent)


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


@pytest.mark.parametrize("events", [1, 3, 50])
def test_compaction_can_be_left_off_after_any_step_and_the_file_shrinks(path: Path, events: int) -> None:
    journal, store = filled(path, "a", "b")
    before = store.version
    for number in range(60):
        name = f"c{number % 7}"
        if store.find("ConfigMap", "default", name) is None:
            store.create(config_map(name, text="x" * 3000, number=str(number)))
        elif number % 5:
            store.merge_patch("ConfigMap", "default", name, {"data": {"number": str(number)}})
        else:
            store.delete("ConfigMap", "default", name)
    journal.append(store.written_after(before))
    more, steps = True, 0
    while more:
        more = journal.compact_some(events)
        steps += 1
        journal.close()
        again = loaded(path)
        assert everything(again) == everything(store)
        assert again.version == store.version
        journal = Journal(path)
    assert steps == -(-store.version // events)
    large = path.stat().st_size
    while journal.shrink_some(2):
        pass
    journal.close()
    assert path.stat().st_size < large / 2
    assert everything(loaded(path)) == everything(store)


# -- the head --------------------------------------------------------------------------------------------------------


def test_the_head_of_another_journal_is_refused(path: Path, tmp_path: Path) -> None:
    for each in (path, tmp_path / "other.db"):
        filled(each, "a")[0].close()
    head_path(path).write_bytes(head_path(tmp_path / "other.db").read_bytes())
    with pytest.raises(JournalDamaged, match=r"does not belong to journal\.db-head"):
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


def test_writes_follow_one_another(path: Path) -> None:
    journal, store = filled(path, "a")
    journal.append([])
    assert (journal.version, journal.tail) == (store.version, store.version)
    with pytest.raises(AssertionError, match=f"a version after {store.version} is next, not {store.version}"):
        journal.append(store.watch(None, store.version - 1).take())
    journal.close()


@attrs.define(eq=False)
class Full(RealDisk):
    full: bool = False

    def pwrite(self, descriptor: int, data: bytes, offset: int, /) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().pwrite(descriptor, data, offset)


def test_after_a_failed_write_each_one_is_refused_until_a_repair_has_taken_it_back(path: Path) -> None:
    disk = Full()
    journal, store = Journal(path, disk=disk), Store(now=Clock())
    journal.append(store.written_after(0))
    before = journal.version, journal.tail
    store.create(config_map("a"))
    events = store.written_after(journal.version)
    disk.full = True
    for _ in range(2):
        with pytest.raises(JournalError, match="cannot be written: No space left on device"):
            journal.append(events)
        disk.full = False  # there is space again, but the content of the file is unknown
    assert (journal.version, journal.tail) == before
    journal.repair()
    journal.append(events)
    assert journal.version == store.version
    journal.close()
    assert everything(loaded(path)) == everything(store)


def test_a_repair_goes_back_to_an_earlier_version_from_which_the_journal_goes_on(path: Path) -> None:
    journal, store = filled(path, "a", "b", "c")
    events = store.written_after(0)
    tail, last = journal.tail, journal.version
    journal.repair(last - 2)
    assert (journal.version, journal.tail, journal.head_flushed) == (last - 2, tail - 2, True)
    assert journal.state.epoch == journal.epoch
    journal.append(events[-2:])
    journal.close()
    assert everything(loaded(path)) == everything(store)


@pytest.mark.parametrize("version", [-1, 10_000])
def test_a_repair_to_a_version_that_the_journal_does_not_have_is_refused(path: Path, version: int) -> None:
    journal, _ = filled(path, "a")
    last = journal.version
    with pytest.raises(JournalDamaged, match=f"ends at version {last}, and version {version} was the last"):
        journal.repair(version)
    assert journal.version == last
    journal.close()


def test_a_write_into_a_file_that_is_taken_away_meanwhile_has_failed(path: Path) -> None:
    """Fail the write although it succeeds: the file is deleted, its descriptor open."""

    class Moving(RealDisk):
        def pwrite(self, descriptor: int, data: bytes, offset: int, /) -> int:
            if path.exists() and self.moves:
                path.rename(path.with_name("away"))
            return super().pwrite(descriptor, data, offset)

        moves = False

    disk = Moving()
    journal, store = Journal(path, disk=disk), Store(now=Clock())
    disk.moves = True
    with pytest.raises(JournalError, match=r"journal\.db was deleted or replaced"):
        journal.append(store.written_after(0))
    assert journal.version == 0
    journal.close()
