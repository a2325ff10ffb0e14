"""A journal whose files were damaged: flipped bits, cut ends, zeroed, swapped and repeated blocks, removed files.

Whatever was done to it, one of three things follows: the store is what it was; the journal is refused in words; or,
with --drop-damaged, there is less, and words say so. Never less in silence, never another exception.
KSCHEDD_STEPS=10000 has it try more than the few that run with the other tests.
"""

import os
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kschedd.store.journal import Journal, JournalDamaged, JournalError
from kschedd.store.journal_salvage import Opened, open_journal
from kschedd.store.store import Store
from tests.store.manifests import Clock, config_map, node, pod

_PAGE = 4096
TRIALS = int(os.environ.get("KSCHEDD_STEPS") or 120)
Objects = dict[tuple[str, str, str], Any]


def everything(store: Store) -> Objects:
    return {(obj.kind, obj.namespace, obj.name): obj.raw for kind in store.kinds() for obj in store.list(kind)}


def build(folder: Path) -> Objects:
    """A journal with a snapshot, events in the file, and events in the log only; as a killed daemon leaves it."""
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
    """Damage one file; what was done, in words."""
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
    """What was found, or the refusal."""
    try:
        opened = open_journal(file, now=Clock(), seed=3, admission=None, drop_damaged=drop_damaged)
    except JournalError as refusal:
        return refusal
    opened.journal.close()
    return opened


def check(folder: Path, objects: Objects, what: str) -> str:
    """Open the damaged journal, without and with --drop-damaged; how that came out."""
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
    assert opened.store.version >= 1_000_000, what  # no version that was shown means something else now
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
        words = "journal.db: is missing, though journal.db-wal and journal.db-shm and journal.db-head are there"
        assert words in str(outcome)
    assert isinstance(outcome, Opened) == (file != "journal.db")
