"""Recovery of a damaged journal (`--drop-damaged`), with a report of the lost content.

All intact rows of the snapshot are kept, and all events before the first damaged event, because later events may depend
on it. The damaged files are kept next to the new ones as `journal.db.damaged-N`.

The recovered history has a new epoch. Its versions begin at a round number above every version that a client may have
received. A client that resumes a watch from an old version therefore gets 410 Gone, never wrong events.
"""

import sqlite3
from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path
from typing import Final

import attrs

from kschedd.api.objects import Object
from kschedd.object_faults import ObjectRef
from kschedd.store.admission.chain import Admission
from kschedd.store.journal.disk import REAL_DISK, Database, Disk
from kschedd.store.journal.files import beside, connect, reject_remains
from kschedd.store.journal.format import (
    CODES,
    JournalDamaged,
    JournalError,
    State,
    link,
    ours,
    read_event,
    read_state,
    whole,
)
from kschedd.store.journal.head import FoundHead, head_path, read_head
from kschedd.store.journal.journal import Journal
from kschedd.store.journal.reading import Progress, UnreadableObject, describe, read_object
from kschedd.store.objects.log import DELETED
from kschedd.store.store import Store

EPOCH_STEP: Final = 1_000_000  # a new epoch's versions begin at a multiple of this number
_NAMED: Final = 20  # maximum number of lost objects that are listed by name

Key = tuple[str, str, str]


@attrs.define
class Salvaged:
    """The recovered objects, and messages about the lost content."""

    objects: dict[Key, Object] = attrs.field(factory=dict)
    version: int = attrs.field(init=False)  # version of the recovered objects, in the new epoch
    lost: list[str] = attrs.field(factory=list)


@attrs.frozen
class Opened:
    """An open journal and its store.

    `lost` contains messages about dropped content.
    """

    journal: Journal
    store: Store | None
    lost: tuple[str, ...] = ()


def open_journal(
    path: Path,
    *,
    now: Callable[[], float],
    seed: int,
    admission: Admission | None,
    drop_damaged: bool,
    leave_out: Collection[ObjectRef] = (),
    disk: Disk = REAL_DISK,
    progress: Progress | None = None,
    report: Callable[[str], None] = lambda what: None,
) -> Opened:
    """Open a journal and restore its store.

    With `drop_damaged`, a damaged journal is recovered instead of rejected. `report` is called with each message about
    lost content before any file is replaced. If the process is killed after the replacement, the next start finds no
    damage and reports nothing.

    Raises JournalError; with `drop_damaged`, only if nothing can be recovered.
    """
    try:
        journal = Journal(path, disk=disk)
        try:
            store = journal.load(now=now, seed=seed, admission=admission, leave_out=leave_out, progress=progress)
            return Opened(journal, store)
        except BaseException:
            journal.close()
            raise
    except JournalDamaged as damage:
        if not drop_damaged:
            raise
        why = damage.why
    found = salvage(path, disk)
    for what in (why, *found.lost):
        report(what)
    store = Store(now=now, seed=seed, admission=admission, objects=found.objects.values(), version=found.version)
    store.seed_defaults()
    aside = _put_in_place(path, store, disk)
    kept = f"the damaged files are saved as {aside.name}*"
    report(kept)
    return Opened(Journal(path, disk=disk), store, (why, *found.lost, kept))


def salvage(path: Path, disk: Disk = REAL_DISK) -> Salvaged:
    """Read everything that is intact. Raises JournalError if nothing can be read."""
    reject_remains(path, disk)
    head = read_head(head_path(path), disk)
    found = Salvaged()
    db = connect(path, disk)
    try:
        state = _state(db, str(path))
        _snapshot(db, state, found)
        of_this_history = head is None or state is None or head.head.epoch == state.epoch
        last = _events(db, state, found, head if of_this_history else None)
    finally:
        db.close()
    of_state = 0 if state is None else max(state.base, state.reserved)
    known = max(last, 0 if head is None else head.head.version, of_state)
    is_last = state is not None and head is not None and head.is_last
    steps = known // EPOCH_STEP + (1 if is_last else 2)
    found.version = steps * EPOCH_STEP
    return found


def _state(db: Database, file: str) -> State | None:
    with ours(file, "nothing can be read from it"):
        try:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.DatabaseError as error:
            why = f"nothing can be read from it ({error}): restore a copy of the whole state directory"
            raise JournalError(file, why) from error
    try:
        row = db.execute("SELECT value FROM meta WHERE name = 'state'").fetchone()
    except sqlite3.DatabaseError:
        return None
    return None if row is None else read_state(row[0])


def _snapshot(db: Database, state: State | None, found: Salvaged) -> None:
    named: list[str] = []
    try:
        for row in db.execute("SELECT kind, namespace, name, raw, sum FROM objects"):
            kind, namespace, name, raw, _ = row
            try:
                if not whole(*row):
                    raise UnreadableObject("damaged")
                found.objects[kind, namespace, name] = read_object(kind, raw)
            except UnreadableObject:
                named.append(describe(kind, namespace, name))
    except sqlite3.Error as error:
        found.lost.append(f"the snapshot cannot be read completely: {error}")
    missing = None if state is None else state.count - len(found.objects) - len(named)
    found.lost += [f"lost from the snapshot: {one}" for one in named[:_NAMED]]
    if len(named) > _NAMED:
        found.lost.append(f"lost from the snapshot: {len(named) - _NAMED} more damaged objects")
    if missing is None:
        found.lost.append("the number of objects in the snapshot is unknown")
    elif missing:
        found.lost.append(f"lost from the snapshot: {missing} missing objects")


def _events(db: Database, state: State | None, found: Salvaged, head: FoundHead | None) -> int:
    """Apply the events before the first damaged event. Return the highest version in the log of events."""
    version, chain = (None, None) if state is None else (state.base, state.chain)
    highest = 0
    try:
        highest = _highest(db)
        for row in db.execute("SELECT * FROM events WHERE version > 0 ORDER BY version"):
            event = read_event(row)
            if event is None:
                break
            if chain is not None and event.chain != link(chain, event.version, CODES[event.type], event.sum):
                break
            try:
                obj = read_object(event.kind, event.raw)
            except UnreadableObject:
                break
            version, chain = event.version, event.chain
            if event.type == DELETED:
                found.objects.pop(event.key, None)
            else:
                found.objects[event.key] = obj
    except sqlite3.Error as error:
        found.lost.append(f"the events cannot be read completely: {error}")
    known_end = 0 if head is None else head.head.version
    end = max(highest, known_end)
    if version is None:
        found.lost.append("lost: the writes after the snapshot; their number is unknown")
        return end
    if end > version:
        found.lost.append(f"lost: the writes from version {version + 1} to version {end}")
    # If only one slot of the head is intact, the other slot may have recorded one more batch.
    if head is None or (not head.is_last and highest <= known_end):
        found.lost.append(f"writes after version {max(end, version)} may be lost as well")
    return end


def _highest(db: Database) -> int:
    found = db.execute("SELECT max(version) FROM events").fetchone()[0]
    return found if isinstance(found, int) and 0 < found < 1 << 48 else 0


def _put_in_place(path: Path, store: Store, disk: Disk) -> Path:
    """Replace the damaged journal with a new journal that has the state of this store.

    Return the damaged journal's new path.

    At every moment, one of the two journals is in place. If the process is killed meanwhile, the directory contains
    either the damaged journal, or the new journal with a head of the old epoch. The same command recovers from both
    cases.
    """
    number = 1
    while disk.status(aside := beside(path, f".damaged-{number}")) is not None:
        number += 1
    fresh = beside(path, ".new")
    try:
        for suffix in ("", "-journal", "-wal", "-shm", "-head"):
            disk.unlink(beside(fresh, suffix))
        with closing(Journal(fresh, disk=disk)) as journal:
            journal.snapshot(store)
            journal.compact()
        for suffix in ("-wal", "-head"):
            if disk.status(beside(path, suffix)) is not None:
                disk.copy(beside(path, suffix), beside(aside, suffix))
        disk.link(path, aside)
        for suffix in ("-wal", "-shm"):
            disk.unlink(beside(path, suffix))
        disk.replace(fresh, path)
        disk.replace(head_path(fresh), head_path(path))
    except OSError as error:
        raise JournalError(str(path), f"the damaged files cannot be replaced: {error.strerror}") from error
    return aside
