"""Tests of a journal with damaged files: flipped bits, truncation, zeroed, swapped and repeated blocks, removed files.

Opening must give the whole store, reject the journal with a message, or, with --drop-damaged, report what is missing.
It never loses data without a message, and raises no other exception. KSCHEDD_STEPS sets the number of steps; the
default is small.
"""

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

from kschedd.store.journal.journal import Journal, JournalDamaged, JournalError
from kschedd.store.journal.salvage import Opened, open_journal
from kschedd.store.store import Store
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


def try_open(file: Path, *, drop_damaged: bool) -> Opened | JournalError:
    """Open the journal and return the result, or the error that rejected it."""
    try:
        opened = open_journal(file, now=Clock(), seed=3, admission=None, drop_damaged=drop_damaged)
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
    def made(cls, folder: Path) -> "LastWrites":
        (folder / "at-work").mkdir()
        store, starts = Store(now=Clock(), seed=3), {}
        journal = Journal(folder / "at-work" / "journal.db")
        journal.append(store.written_after(0))
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
