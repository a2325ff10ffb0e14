"""Tests of a journal with damaged files: flipped bits, truncation, zeroed, swapped and repeated blocks, removed files.

Opening must give the whole store, reject the journal with a message, or, with --drop-damaged, report what is missing.
It never loses data without a message, and raises no other exception. KSCHEDD_STEPS sets the number of steps; the
default is small.
"""

import errno
import os
import random
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest

from kschedd.store.journal.disk import REAL_DISK, Disk, RealDisk
from kschedd.store.journal.head import Head, HeadFile
from kschedd.store.journal.journal import Journal, JournalDamaged, JournalError
from kschedd.store.journal.salvage import Opened, open_journal
from kschedd.store.store import Store
from tests.faults.fake_disk import FakeDisk
from tests.store.manifests import Clock, config_map, node, pod

_PAGE = 4096
TRIALS = int(os.environ.get("KSCHEDD_STEPS") or 120)
Objects = dict[tuple[str, str, str], Any]


def everything(store: Store) -> Objects:
    return {(obj.kind, obj.namespace, obj.name): obj.raw for kind in store.kinds() for obj in store.list(kind)}


def build(folder: Path) -> Objects:
    """Build a journal as a killed daemon leaves it: a snapshot, events in the file, and events only in SQLite's log."""
    at_work = folder / "at-work"
    at_work.mkdir()
    store = Store(now=Clock(), seed=3)
    journal = Journal(at_work / "journal.db")
    journal.append(store.written_after(0))

    def write(numbers: range) -> None:
        for number in numbers:
            before = store.version
            store.create(config_map(f"c{number}", text="x" * 300 + str(number)))
            if number % 3 == 0:
                store.create(pod(f"p{number}"))
            if number % 5 == 0:
                store.delete("ConfigMap", "default", f"c{number}")
            journal.append(store.written_after(before))

    before = store.version
    store.create(node())
    journal.append(store.written_after(before))
    write(range(150))
    journal.compact()
    write(range(150, 250))
    journal.close()
    journal = Journal(at_work / "journal.db")
    write(range(250, 270))
    left = folder / "left"
    shutil.copytree(at_work, left)
    journal.close()
    return everything(store)


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Objects]:
    folder = tmp_path_factory.mktemp("corpus")
    objects = build(folder)
    return folder / "left", objects


def harm(folder: Path, chance: random.Random) -> str:
    """Damage one file; return a description of the damage."""
    file = chance.choice(sorted(folder.iterdir()))
    data = bytearray(file.read_bytes())
    what = chance.choice(("flip", "flip", "flip", "cut", "zero", "zero-page", "swap", "repeat", "remove", "grow"))
    at = chance.randrange(len(data))
    if what == "flip":
        data[at] ^= 1 << chance.randrange(8)
    elif what == "cut":
        del data[at:]
    elif what == "zero":
        data[at : at + 600] = bytes(len(data[at : at + 600]))
    elif what == "zero-page":
        page = at // _PAGE * _PAGE
        data[page : page + _PAGE] = bytes(len(data[page : page + _PAGE]))
    elif what in ("swap", "repeat"):
        size = min(_PAGE, len(data))
        one, other = (chance.randrange(len(data) // size) * size for _ in range(2))
        first, second = data[one : one + size], data[other : other + size]
        data[other : other + size] = first
        if what == "swap":
            data[one : one + size] = second
    elif what == "grow":
        data += chance.randbytes(chance.randrange(1, 5000))
    if what == "remove":
        file.unlink()
    else:
        file.write_bytes(data)
    return f"{what} {file.name} at {at} of {len(data)}"


def try_open(file: Path, *, drop_damaged: bool, disk: Disk = REAL_DISK) -> Opened | JournalError:
    """Open the journal and return the result, or the error that rejected it."""
    try:
        opened = open_journal(file, now=Clock(), seed=3, admission=None, drop_damaged=drop_damaged, disk=disk)
    except JournalError as refusal:
        return refusal
    opened.journal.close()
    return opened


def check(folder: Path, objects: Objects, what: str) -> str:
    """Open the damaged journal, without and with --drop-damaged; return the outcome."""
    file = folder / "journal.db"
    opened = try_open(file, drop_damaged=False)
    if isinstance(opened, Opened):
        assert opened.store is not None, what
        assert everything(opened.store) == objects, what
        return "recovered"
    refusal, opened = opened, try_open(file, drop_damaged=True)
    if not isinstance(opened, Opened):
        return "refused"
    assert isinstance(refusal, JournalDamaged), what
    assert opened.lost, what
    assert opened.store is not None, what
    assert opened.store.version >= 1_000_000, what  # no version that a client has seen is used again
    again = try_open(file, drop_damaged=False)
    assert isinstance(again, Opened), what
    assert again.store is not None, what
    assert everything(again.store) == everything(opened.store), what
    assert opened.store.find("Namespace", "", "default") is not None, what
    return "dropped"


@pytest.mark.slow
def test_damage_is_recovered_from_refused_or_dropped_in_words(tmp_path: Path, left: tuple[Path, Objects]) -> None:
    whole, objects = left
    outcomes: Counter[str] = Counter()
    for seed in range(TRIALS):
        chance = random.Random(seed)
        folder = tmp_path / str(seed)
        shutil.copytree(whole, folder)
        what = "; ".join(harm(folder, chance) for _ in range(chance.choice((1, 1, 1, 2))))
        outcomes[check(folder, objects, f"seed {seed}: {what}")] += 1
        shutil.rmtree(folder)
    assert set(outcomes) == {"recovered", "refused", "dropped"}


def test_a_whole_journal_comes_back_as_it_was(tmp_path: Path, left: tuple[Path, Objects]) -> None:
    whole, objects = left
    shutil.copytree(whole, tmp_path / "copy")
    assert check(tmp_path / "copy", objects, "nothing") == "recovered"


@pytest.mark.parametrize("file", ["journal.db", "journal.db-wal", "journal.db-head"])
def test_a_journal_of_which_a_file_is_missing_is_no_new_cluster(
    tmp_path: Path, left: tuple[Path, Objects], file: str
) -> None:
    whole, _ = left
    folder = tmp_path / "copy"
    shutil.copytree(whole, folder)
    (folder / file).unlink()
    assert isinstance(try_open(folder / "journal.db", drop_damaged=False), JournalError)
    outcome = try_open(folder / "journal.db", drop_damaged=True)
    if isinstance(outcome, Opened):
        assert outcome.lost
    else:
        words = "journal.db: is missing, but journal.db-wal and journal.db-shm and journal.db-head exist"
        assert words in str(outcome)
    assert isinstance(outcome, Opened) == (file != "journal.db")


@attrs.frozen
class LastWrites:
    """A journal of single writes as a killed daemon leaves it, all in SQLite's write-ahead log."""

    folder: Path
    version: int  # the last one
    starts: dict[int, int]  # offset in the log of each version

    @classmethod
    def made(cls, folder: Path, after: int = 0) -> "LastWrites":
        (folder / "at-work").mkdir(parents=True)
        store, starts = Store(now=Clock(), seed=3, version=after), {}
        journal = Journal(folder / "at-work" / "journal.db")
        journal.append(store.written_after(after))
        for number in range(5):
            before = store.version
            starts[before + 1] = (folder / "at-work" / "journal.db-wal").stat().st_size
            store.create(config_map(f"c{number}"))
            journal.append(store.written_after(before))
        shutil.copytree(folder / "at-work", folder / "left")
        journal.close()
        return cls(folder / "left", store.version, starts)

    def harm_log(self, version: int) -> None:
        """Flip a bit of this write, which SQLite then treats as the end of the log."""
        _flip(self.folder / "journal.db-wal", self.starts[version] + 100)

    def harm_head(self, *, before_last: int, copies: int) -> None:
        """Flip a bit in this many copies of the head's record of the write that is `before_last` before the last."""
        for copy in range(copies):
            _flip(self.folder / "journal.db-head", self.slot(before_last) + 256 * copy + 20)

    def slot(self, before_last: int) -> int:
        records = len(self.starts) + 2  # the first records are those of the empty journal and of the first objects
        return 512 * ((records - before_last) % 2)

    def opened(self, *, drop_damaged: bool = False) -> tuple[list[str], str]:
        """Return the names of the ConfigMaps, and the reported losses. Raises JournalDamaged."""
        file = self.folder / "journal.db"
        opened = open_journal(file, now=Clock(), seed=3, admission=None, drop_damaged=drop_damaged)
        opened.journal.close()
        assert opened.store is not None
        return [obj.name for obj in opened.store.list("ConfigMap")], "; ".join(opened.lost)


def _flip(file: Path, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 4
    file.write_bytes(data)


@pytest.mark.parametrize("before_last", [0, 1], ids=["the-last-record", "the-one-before"])
def test_a_damaged_bit_of_the_head_harms_nothing(tmp_path: Path, before_last: int) -> None:
    last = LastWrites.made(tmp_path)
    last.harm_head(before_last=before_last, copies=1)
    assert last.opened() == (["c0", "c1", "c2", "c3", "c4"], "")


def test_a_last_write_that_is_damaged_is_missed_although_its_record_has_a_damaged_bit_as_well(tmp_path: Path) -> None:
    last = LastWrites.made(tmp_path)
    last.harm_log(last.version)
    last.harm_head(before_last=0, copies=1)
    ends = f"ends at version {last.version - 1}, but was written up to version {last.version}: the last writes are lost"
    with pytest.raises(JournalDamaged, match=ends):
        last.opened()
    there, lost = last.opened(drop_damaged=True)
    assert there == ["c0", "c1", "c2", "c3"]
    assert f"lost: the writes from version {last.version} to version {last.version};" in lost
    assert "may be lost as well" not in lost


def test_a_journal_that_goes_on_after_the_one_record_left_has_what_the_other_was_of(tmp_path: Path) -> None:
    last = LastWrites.made(tmp_path)
    last.harm_head(before_last=0, copies=2)
    assert last.opened() == (["c0", "c1", "c2", "c3", "c4"], "")


def test_where_a_last_write_and_all_of_its_record_are_damaged_words_say_that_there_may_have_been_one(
    tmp_path: Path,
) -> None:
    last = LastWrites.made(tmp_path)
    last.harm_log(last.version)
    last.harm_head(before_last=0, copies=2)
    with pytest.raises(JournalDamaged, match=f"writes after version {last.version - 1} may be missing"):
        last.opened()
    there, lost = last.opened(drop_damaged=True)
    assert there == ["c0", "c1", "c2", "c3"]
    assert f"writes after version {last.version - 1} may be lost as well" in lost


def test_where_more_writes_than_the_one_without_a_record_are_damaged_words_say_how_many_at_least(
    tmp_path: Path,
) -> None:
    last = LastWrites.made(tmp_path)
    last.harm_log(last.version - 1)
    last.harm_head(before_last=0, copies=2)
    known = last.version - 1
    with pytest.raises(JournalDamaged, match=f"ends at version {known - 1}, but was .* version {known} at least"):
        last.opened()
    there, lost = last.opened(drop_damaged=True)
    assert there == ["c0", "c1", "c2"]
    assert f"lost: the writes from version {known} to version {known};" in lost
    assert f"writes after version {known} may be lost as well" in lost


def test_where_nothing_but_the_record_before_the_last_is_damaged_it_might_have_been_the_last(tmp_path: Path) -> None:
    last = LastWrites.made(tmp_path)
    last.harm_head(before_last=1, copies=2)
    with pytest.raises(JournalDamaged, match=f"writes after version {last.version} may be missing"):
        last.opened()
    there, lost = last.opened(drop_damaged=True)
    assert there == ["c0", "c1", "c2", "c3", "c4"]
    assert f"writes after version {last.version} may be lost as well" in lost


@pytest.mark.parametrize("written", [0, 40], ids=["nothing-of-it-flushed", "torn"])
def test_a_slot_that_never_had_a_whole_record_is_not_damaged(tmp_path: Path, written: int) -> None:
    """Create a slot that a power loss left in a new journal, or a kill during the slot's first write."""
    last = LastWrites.made(tmp_path)
    head = last.folder / "journal.db-head"
    data = bytearray(head.read_bytes())
    start = last.slot(before_last=1)
    data[start + written : start + 512] = bytes(512 - written)
    head.write_bytes(data)
    assert last.opened() == (["c0", "c1", "c2", "c3", "c4"], "")


def test_what_is_lost_is_told_before_a_file_is_replaced_and_again_where_that_was_broken_off(tmp_path: Path) -> None:
    last = LastWrites.made(tmp_path)
    last.harm_log(last.version)
    reported: list[str] = []

    class Killed(Exception):
        pass

    def tell(what: str) -> None:
        reported.append(what)
        if len(reported) == 2:
            raise Killed

    journal = last.folder / "journal.db"
    with pytest.raises(Killed):
        open_journal(journal, now=Clock(), seed=3, admission=None, drop_damaged=True, report=tell)
    assert reported[1] == f"lost: the writes from version {last.version} to version {last.version}"
    assert not list(last.folder.glob("*damaged*"))
    _, lost = last.opened(drop_damaged=True)
    assert reported[1] in lost


def test_of_a_snapshot_alone_words_say_up_to_where_it_goes_and_that_a_name_cannot_be_read(tmp_path: Path) -> None:
    store = Store(now=Clock(), seed=3)
    for number in range(3):
        store.create(config_map(f"c{number}"))
    file = tmp_path / "journal.db"
    journal = Journal(file)
    journal.append(store.written_after(0))
    journal.compact()
    journal.close()
    (tmp_path / "journal.db-head").unlink()
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("UPDATE objects SET name = x'ff' WHERE name = 'c1'")
    opened = open_journal(file, now=Clock(), seed=3, admission=None, drop_damaged=True)
    opened.journal.close()
    assert opened.store is not None
    assert [obj.name for obj in opened.store.list("ConfigMap")] == ["c0", "c2"]
    assert "lost from the snapshot: an object whose name cannot be read" in opened.lost
    assert f"writes after version {store.version} may be lost as well" in opened.lost


def salvaged(file: Path) -> tuple[Store, str]:
    """Salvage a journal and return the store and the reported losses."""
    opened = open_journal(file, now=Clock(), seed=3, admission=None, drop_damaged=True)
    opened.journal.close()
    assert opened.store is not None
    return opened.store, "; ".join(opened.lost)


def test_new_versions_are_above_the_versions_of_another_history_in_the_head(tmp_path: Path) -> None:
    last = LastWrites.made(tmp_path)
    head = HeadFile(last.folder / "journal.db-head")
    for version in (3_499_999, 3_500_000):
        head.write(Head(version, 0, "e" * 32))
    head.close()
    store, lost = salvaged(last.folder / "journal.db")
    assert store.version == 4_000_000
    assert [obj.name for obj in store.list("ConfigMap")] == ["c0", "c1", "c2", "c3", "c4"]
    assert f"writes after version {last.version} may be lost as well" in lost


def test_new_versions_are_above_the_version_of_a_write_that_may_be_lost(tmp_path: Path) -> None:
    count = LastWrites.made(tmp_path / "counted").version
    last = LastWrites.made(tmp_path / "harmed", after=1_000_000 - count)
    last.harm_log(1_000_000)
    last.harm_head(before_last=0, copies=2)
    store, lost = salvaged(last.folder / "journal.db")
    assert "writes after version 999999 may be lost as well" in lost
    assert store.version == 2_000_000


def harm_table(file: Path, table: str) -> None:
    """Overwrite the first page of this table."""
    with closing(sqlite3.connect(file)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    data = bytearray(file.read_bytes())
    data[(page - 1) * _PAGE : page * _PAGE] = b"\xff" * _PAGE
    file.write_bytes(data)


def test_events_and_objects_in_damaged_pages_are_reported_as_lost(tmp_path: Path) -> None:
    store = Store(now=Clock(), seed=3)
    store.create(config_map("in-the-snapshot"))
    file = tmp_path / "journal.db"
    journal = Journal(file)
    journal.append(store.written_after(0))
    journal.compact()
    base, count = store.version, journal.state.count
    store.create(config_map("in-an-event"))
    journal.append(store.written_after(base))
    journal.close()
    shutil.copy(file, tmp_path / "copy")
    harm_table(file, "events")
    again, lost = salvaged(file)
    assert [obj.name for obj in again.list("ConfigMap")] == ["in-the-snapshot"]
    assert "the events cannot be read completely: database disk image is malformed" in lost
    assert f"lost: the writes from version {base + 1} to version {store.version};" in lost
    shutil.copy(tmp_path / "copy", file)
    harm_table(file, "objects")
    again, lost = salvaged(file)
    assert [obj.name for obj in again.list("ConfigMap")] == ["in-an-event"]
    assert "the snapshot cannot be read completely: database disk image is malformed" in lost
    assert f"lost from the snapshot: {count} missing objects" in lost


def test_an_unknown_number_of_lost_objects_is_reported(tmp_path: Path) -> None:
    last = LastWrites.made(tmp_path)
    with closing(sqlite3.connect(last.folder / "journal.db")) as db, db:
        db.execute("UPDATE meta SET value = x'00' WHERE name = 'state'")
    there, lost = last.opened(drop_damaged=True)
    assert there == ["c0", "c1", "c2", "c3", "c4"]
    assert "the number of objects in the snapshot is unknown" in lost


@pytest.mark.parametrize("events", [False, True], ids=["only-the-head", "the-head-and-the-events"])
def test_writes_are_not_reported_as_lost_if_there_may_have_been_none(tmp_path: Path, events: bool) -> None:
    file = tmp_path / "journal.db"
    Journal(file).close()
    (tmp_path / "journal.db-head").write_bytes(b"\xff" * 1024)
    if events:
        harm_table(file, "events")
    _, lost = salvaged(file)
    assert "writes after version 0 may be lost as well" in lost
    assert "lost: the writes" not in lost


def test_a_file_system_without_links_keeps_the_damaged_journal_in_place(tmp_path: Path) -> None:
    class NoLinks(RealDisk):
        def link(self, source: Path, target: Path) -> None:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    last = LastWrites.made(tmp_path)
    last.harm_log(last.version)
    refusal = try_open(last.folder / "journal.db", drop_damaged=True, disk=NoLinks())
    assert str(refusal).endswith("journal.db: the damaged files cannot be replaced: Operation not permitted")
    there, _ = last.opened(drop_damaged=True)
    assert there == ["c0", "c1", "c2", "c3"]


def test_writes_before_a_write_with_a_negative_version_are_kept(tmp_path: Path) -> None:
    last = LastWrites.made(tmp_path)
    file = last.folder / "journal.db"
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("UPDATE events SET version = -7 WHERE version = ?", (last.version - 1,))
    with pytest.raises(JournalDamaged, match=r"version 1 is missing \(the next version is -7\)"):
        last.opened()
    there, lost = last.opened(drop_damaged=True)
    assert there == ["c0", "c1", "c2"]
    assert f"lost: the writes from version {last.version - 1} to version {last.version}" in lost


def test_the_damaged_files_are_kept_and_their_log_does_not_reach_the_new_journal(tmp_path: Path) -> None:
    last = LastWrites.made(tmp_path)
    last.harm_log(last.version)
    file = last.folder / "journal.db"
    parts = [file.with_name(f"journal.db{suffix}") for suffix in ("", "-wal", "-head")]
    with closing(sqlite3.connect(file)) as reader:  # SQLite keeps the log while another process reads the journal
        events = reader.execute("SELECT * FROM events ORDER BY version").fetchall()
        before = [part.read_bytes() for part in parts]
        store, lost = salvaged(file)
    assert "the damaged files are saved as journal.db.damaged-1*" in lost
    again = try_open(file, drop_damaged=False)
    assert isinstance(again, Opened)
    assert again.store is not None
    assert everything(again.store) == everything(store)
    aside = [part.with_name(part.name.replace(".db", ".db.damaged-1")) for part in parts]
    assert [part.read_bytes() for part in aside] == before
    with closing(sqlite3.connect(aside[0])) as db:
        assert db.execute("SELECT * FROM events ORDER BY version").fetchall() == events


@pytest.mark.parametrize("free", range(8, 32, 4))
def test_a_disk_with_few_free_pages_loses_nothing_of_a_damaged_journal(free: int) -> None:
    file, disk = Path("/journal.db"), FakeDisk(random.Random(1))
    store = Store(now=Clock(), seed=3)
    for number in range(60):
        store.create(config_map(f"c{number}", text="x" * 300))
    with closing(Journal(file, disk=disk)) as journal:
        journal.append(store.written_after(0))
    disk.names[Path("/journal.db-head")].write(b"\xff" * 1024, 0)
    disk.capacity = disk.used + free * _PAGE
    first = try_open(file, drop_damaged=True, disk=disk)
    assert isinstance(first, Opened) or str(first).startswith("/journal.db.new: cannot be")
    disk.capacity = None
    second = try_open(file, drop_damaged=True, disk=disk)
    disk.close_all()
    assert isinstance(second, Opened)
    assert second.store is not None
    assert everything(second.store) == everything(store)
