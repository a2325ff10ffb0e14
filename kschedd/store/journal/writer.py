"""Writer of the journal, which makes acknowledged writes durable in SQLite.

A batch is one transaction, which is on disk when `write` returns (WAL with synchronous=FULL). All writes of the batch
share one fsync. `compact_some` moves some of the oldest events into the snapshot, also in one transaction. If the
process ends during the move, the file contains the state before or after the whole move. `format` defines the tables
and their checksums; `head` defines the record of the last commit.

If `write` raises an error, the batch is not written. Further writes are rejected until `repair` has checked the disk
and removed the remains of the failed batch. A write also fails if the journal's files were deleted, replaced or
truncated while they were open.

The writer handles bytes instead of objects, because the process that writes a daemon's journal (`process`) receives
only bytes. It is not thread-safe. Calls may come from a worker thread, but only one at a time. Raises: JournalError,
never sqlite3's exceptions.
"""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Final

import attrs

from kschedd.store.journal.compaction import move_events, vacuum
from kschedd.store.journal.disk import REAL_DISK, Disk
from kschedd.store.journal.files import OpenFiles, connect, flush_log, reject_remains
from kschedd.store.journal.format import (
    FORMATS,
    SCHEMA,
    JournalDamaged,
    JournalError,
    State,
    link,
    ours,
    read_state,
    row_sum,
)
from kschedd.store.journal.head import Head, HeadFile, head_path, read_head

# maximum number of events per statement; SQLite caches one prepared statement for each number
_FEW_ROWS: Final = 100
_LOG: Final = 1000  # WAL pages after which SQLite makes a checkpoint; SQLite's default
_SHORT_LOG: Final = 200  # WAL pages after which SQLite makes a checkpoint during compaction
PackedWrite = tuple[int, int, str, str, str, bytes]  # version, type code, kind, namespace, name, object
_Row = tuple[int, int, str, str, str, bytes, int, int]  # a PackedWrite with its checksum and chain


class JournalWriter:
    """One journal file, which is created if it does not exist."""

    def __init__(self, path: str | Path, *, disk: Disk = REAL_DISK) -> None:
        self._path = Path(path)
        self._file = str(path)
        self._disk = disk
        reject_remains(self._path, disk)
        self._db = connect(self._path, disk)
        try:
            new = self._open()
            self._head = HeadFile(head_path(self._path), disk)
            if new:  # no commit yet; every journal with a write has a head
                self._head.write(Head(self._version, self._chain, self._state.epoch))
                self._head.sync()
        except BaseException:
            self._db.close()
            raise
        self._files = OpenFiles(self._path, disk)
        self._failure: JournalError | None = None  # the error of the last write; None after a repair

    def _open(self) -> bool:
        """Open or create the tables.

        Return whether the head must still be written.
        """
        written = self._disk.status(head_path(self._path)) is not None
        with ours(self._file, "cannot be opened"):
            if not written:
                # only effective before the first table is created
                self._db.execute("PRAGMA auto_vacuum=INCREMENTAL")
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            if not written:
                self._db.executescript(SCHEMA)
        known = self._meta("format")
        if known is None and self._meta("state") is None and not written:
            with self._transaction():
                self._set_state(State(uuid.uuid4().hex, 0, 0, 0, 0))
            with ours(self._file, "cannot be written"):
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        elif known not in FORMATS:
            newer = " and was written by a newer one" if isinstance(known, int) and known > FORMATS[-1] else ""
            supported = " and ".join(map(str, FORMATS))
            why = f"has format {known}{newer}; this kschedd reads and writes formats {supported}"
            raise JournalError(self._file, why)
        state = read_state(self._meta("state"))
        if state is None:
            raise JournalDamaged(self._file, "has no version of its snapshot")
        self._state = state
        self._version, self._chain, self._tail = self._end()
        flush_log(self._path, self._disk)
        return self._check_head(written)

    def _check_head(self, written: bool) -> bool:
        """Return whether the head must still be written.

        Raises JournalDamaged in three cases. The journal ends before the version in its head; its chain at that version
        differs; or later writes may be lost, because the head's damaged slot may have recorded a later version.
        """
        found = read_head(head_path(self._path), self._disk)
        if found is None:
            # The process may have been killed between creating the files and writing the first head.
            there = self._disk.status(head_path(self._path))
            begun = there is not None and there.size == 0
            if self._version or (written and not begun):
                name = head_path(self._path).name
                what = "is damaged" if written else "is missing"
                raise JournalDamaged(self._file, f"{name} {what}: the last writes may be missing")
            return True
        head = found.head
        if head.epoch != self._state.epoch:
            raise JournalDamaged(self._file, f"does not belong to {head_path(self._path).name}")
        if head.version > self._version:
            up_to = f"version {head.version}" + ("" if found.is_last else " at least")
            why = f"ends at version {self._version}, but was written up to {up_to}"
            raise JournalDamaged(self._file, f"{why}: the last writes are lost", self._version)
        if not found.is_last and head.version == self._version:
            why = f"{head_path(self._path).name} is damaged: writes after version {head.version} may be missing"
            raise JournalDamaged(self._file, why, self._version)
        if head.version >= self._state.base and self._chain_at(head.version) != head.chain:
            raise JournalDamaged(self._file, f"version {head.version} differs from the version that was written", None)
        return False

    @property
    def file(self) -> str:
        """Path of the journal's file."""
        return self._file

    @property
    def version(self) -> int:
        """The version of the last write in the journal."""
        return self._version

    @property
    def tail(self) -> int:
        """The number of events since the snapshot."""
        return self._tail

    @property
    def state(self) -> State:
        """The snapshot's State record."""
        return self._state

    @property
    def epoch(self) -> str:
        """Id of the history; the same version in another epoch may be a different write."""
        return self._state.epoch

    def write(self, writes: Sequence[PackedWrite]) -> None:
        """Write a batch; the batch is on disk when this method returns.

        Each version must be later than the version before; only versions of renewals are missing.
        """
        rows: list[_Row] = []
        version, linked = self._version, self._chain
        for follows, code, kind, namespace, name, raw in writes:
            assert follows > version, f"a version after {version} is next, not {follows}"
            version, checksum = follows, row_sum(kind, namespace, name, raw)
            linked = link(linked, version, code, checksum)
            rows.append((version, code, kind, namespace, name, raw, checksum, linked))
        if not rows:
            return
        if self._failure is not None:
            raise self._failure
        try:
            with self._checked():
                self._insert(rows)
                self._head.write(Head(version, linked, self._state.epoch))
        except JournalError as failure:
            self._failure = failure
            raise
        self._version, self._chain, self._tail = version, linked, self._tail + len(rows)

    def reserve(self, version: int) -> None:
        """Reserve the versions up to `version` for renewals; they are reserved on disk when this method returns."""
        if version <= self._state.reserved:
            return
        if self._failure is not None:
            raise self._failure
        state = attrs.evolve(self._state, reserved=version)
        try:
            with self._checked(), self._transaction():
                self._set_state(state)
        except JournalError as failure:
            self._failure = failure
            raise
        self._state = state

    @property
    def head_flushed(self) -> bool:
        """True if the record of the last write would survive a power failure."""
        return self._head.flushed

    def flush_head(self) -> None:
        with self._checked():
            self._head.sync()

    def repair(self, version: int | None = None) -> None:
        """Repair the journal after a failed write: check that its files exist and are writable; remove later events.

        Events after `version` are removed; the default is the writer's own last version. The caller passes an earlier
        version if the last events were written by a process but not acknowledged.
        """
        if version is not None and version != self._version:
            self._go_back(version)
        with self._checked():
            self._head.probe()
            # The head is written first, because the failed write may have advanced it, and it must never be ahead of
            # the journal.
            self._head.write(Head(self._version, self._chain, self._state.epoch))
            self._head.sync()
            with self._transaction():
                self._db.execute("DELETE FROM events WHERE version > ?", (self._version,))
                self._set_state(self._state)
        self._failure = None

    def _go_back(self, version: int) -> None:
        chain = self._chain_at(version)
        if not isinstance(chain, int) or not self._state.base <= version < self._version:
            raise JournalDamaged(self._file, f"ends at version {self._version}, and version {version} was the last")
        with ours(self._file, "cannot be read"):
            count = self._db.execute("SELECT count(*) FROM events WHERE version > ?", (version,)).fetchone()[0]
        self._tail -= count
        self._version, self._chain = version, chain

    def compact_some(self, events: int) -> bool:
        """Move up to `events` of the oldest events into the snapshot, without an fsync.

        Return whether there are more free pages to release.
        """
        with self._checked(), self._unsynced(), self._transaction():
            state, moved = move_events(self._db, self._state, events)
            self._set_state(state)
        self._state, self._tail = state, self._tail - moved
        return self._tail > 0

    def shrink_some(self, pages: int) -> bool:
        """Release up to `pages` free pages to the file system. Return whether there are more free pages to release."""
        with self._checked(), self._unsynced(), ours(self._file, "cannot be written"):
            return vacuum(self._db, pages)

    def compact(self) -> None:
        """Compact and shrink the journal completely, in one blocking call."""
        while self.compact_some(1000):
            pass
        while self.shrink_some(1000):
            pass
        with self._checked(), ours(self._file, "cannot be written"):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        self._head.close()
        self._db.close()

    # --- internals ----------------------------------------------------------------------------------------------------

    def _end(self) -> tuple[int, int, int]:
        """Return the stored last version, its chain and the number of events; `load` verifies them."""
        with ours(self._file, "cannot be read"):
            count, last = self._db.execute("SELECT count(*), max(version) FROM events").fetchone()
        if last is None:
            return self._state.base, self._state.chain, 0
        chain = self._chain_at(last)
        if not isinstance(last, int) or not isinstance(chain, int) or last < self._state.base:
            raise JournalDamaged(self._file, "its last version is damaged")
        return last, chain, count

    def _chain_at(self, version: int) -> object:
        if version == self._state.base:
            return self._state.chain
        with ours(self._file, "cannot be read"):
            row = self._db.execute("SELECT chain FROM events WHERE version = ?", (version,)).fetchone()
        return None if row is None else row[0]

    def _insert(self, rows: Sequence[_Row]) -> None:
        """Insert events in one transaction; a small number of events is inserted by one statement.

        Each statement releases the interpreter lock. After each statement, the thread must wait for the event loop to
        release the lock, at most for the switch interval.
        """
        whole = ours(self._file, "cannot be written") if len(rows) <= _FEW_ROWS else self._transaction()
        with whole:
            for first in range(0, len(rows), _FEW_ROWS):
                some = rows[first : first + _FEW_ROWS]
                values = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?)"] * len(some))
                self._db.execute(f"INSERT INTO events VALUES {values}", [*chain(*some)])

    def _meta(self, name: str) -> object:
        with ours(self._file, "cannot be read"):
            row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def _set_state(self, state: State) -> None:
        values = (("format", state.format), ("state", state.packed()))
        self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values)

    @contextmanager
    def _checked(self) -> Iterator[None]:
        """Check before a write that the files are complete, and after the write that no file was replaced."""
        if (fault := self._files.fault()) is not None:
            raise fault
        try:
            yield
        except BaseException:
            self._files.note_sizes()
            raise
        if (fault := self._files.note_sizes()) is not None:
            raise fault

    @contextmanager
    def _unsynced(self) -> Iterator[None]:
        """Relax durability for compaction transactions; losing one of them loses no data.

        Compaction writes many scattered pages, so checkpoints are smaller and more frequent.
        """
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute(f"PRAGMA wal_autocheckpoint={_SHORT_LOG}")
        try:
            yield
        finally:
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.execute(f"PRAGMA wal_autocheckpoint={_LOG}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with ours(self._file, "cannot be written"):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
