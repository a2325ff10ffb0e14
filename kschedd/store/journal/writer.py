"""Writing the journal: makes acknowledged writes durable, on SQLite.

A batch is one transaction, on disk when `write` returns (WAL with synchronous=FULL), so that one fsync serves all the
writes of the batch. `compact_some` moves some of the oldest events into the snapshot, each time in one transaction as
well: if the process dies, the file holds the state before or after, never one in between. The tables and their
checksums are in `journal_format`, the record of the last commit in `journal_head`.

A failed `write` counts as not written, and further ones are refused until `repair` has checked that the disk works and
removed what the file may contain of the failed batch; then the journal is as of its `version` again. A write also fails
if the journal's files were deleted, replaced or cut short while open.

Knows bytes only, and nothing of what they are: the process that writes a daemon's journal (`journal_process`) has no
more than this. Not thread-safe: one owner, which may call it from a worker thread, one call at a time. Closed by
`close`.
Raises: JournalError, never sqlite3's exceptions.
"""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Final

from kschedd.store.journal.compaction import move_events, vacuum
from kschedd.store.journal.disk import REAL_DISK, Disk
from kschedd.store.journal.files import OpenFiles, connect, flush_log, refuse_remains
from kschedd.store.journal.format import (
    FORMAT,
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

_FEW_ROWS: Final = 100  # events in one statement: of each number SQLite keeps one prepared
_LOG: Final = 1000  # WAL pages after which SQLite checkpoints; its default
_SHORT_LOG: Final = 200  # the same while compacting
PackedWrite = tuple[int, int, str, str, str, bytes]  # version, code of its type, kind, namespace, name, object
_Row = tuple[int, int, str, str, str, bytes, int, int]  # and its checksum, and the chain up to it


class JournalWriter:
    """One journal file, created if it does not exist."""

    def __init__(self, path: str | Path, *, disk: Disk = REAL_DISK) -> None:
        self._path = Path(path)
        self._file = str(path)
        self._disk = disk
        refuse_remains(self._path, disk)
        self._db = connect(self._path, disk)
        try:
            new = self._open()
            self._head = HeadFile(head_path(self._path), disk)
            if new:  # before the first commit: a journal that has any write has a head
                self._head.write(Head(self._version, self._chain, self._state.epoch))
                self._head.sync()
        except BaseException:
            self._db.close()
            raise
        self._files = OpenFiles(self._path, disk)
        self._failure: JournalError | None = None  # of the last append, until it is repaired

    def _open(self) -> bool:
        """Open or create the tables. Returns whether the head is yet to be written: nothing ever was."""
        written = self._disk.status(head_path(self._path)) is not None
        with ours(self._file, "cannot be opened"):
            if not written:
                self._db.execute("PRAGMA auto_vacuum=INCREMENTAL")  # takes effect only before any table exists
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            if not written:
                self._db.executescript(SCHEMA)
        known = self._meta("format")
        if known is None and self._meta("state") is None and not written:
            with self._transaction():
                self._set_meta(format=FORMAT, state=State(uuid.uuid4().hex, 0, 0, 0, 0).packed())
            with ours(self._file, "cannot be written"):
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        elif known != FORMAT:
            newer = " and was written by a newer one" if isinstance(known, int) and known > FORMAT else ""
            raise JournalError(self._file, f"has format {known}{newer}; this kschedd reads and writes format {FORMAT}")
        state = read_state(self._meta("state"))
        if state is None:
            raise JournalDamaged(self._file, "does not say which version its snapshot has")
        self._state = state
        self._version, self._chain, self._tail = self._end()
        flush_log(self._path, self._disk)
        return self._check_head(written)

    def _check_head(self, written: bool) -> bool:
        """Whether the head is yet to be written.

        Raises JournalDamaged if the journal ends before the version in its head, or has another chain there, or if it
        may have ended after that version, since a later record may have been in the slot that is damaged.
        """
        found = read_head(head_path(self._path), self._disk)
        if found is None:
            # The process may have been killed between the creation of the files and the first record of the head.
            there = self._disk.status(head_path(self._path))
            begun = there is not None and there.size == 0
            if self._version or (written and not begun):
                name = head_path(self._path).name
                what = "is damaged" if written else "is missing"
                raise JournalDamaged(self._file, f"{name} {what}: nothing says whether the last writes are all there")
            return True
        head = found.head
        if head.epoch != self._state.epoch:
            raise JournalDamaged(self._file, f"is not the file that {head_path(self._path).name} was written with")
        if head.version > self._version:
            up_to = f"version {head.version}" + ("" if found.is_last else " at least")
            why = f"ends at version {self._version}, but was written up to {up_to}"
            raise JournalDamaged(self._file, f"{why}: its last writes are lost", self._version)
        if not found.is_last and head.version == self._version:
            why = f"{head_path(self._path).name} is damaged: nothing says whether version {head.version} was the last"
            raise JournalDamaged(self._file, why, self._version)
        if head.version >= self._state.base and self._chain_at(head.version) != head.chain:
            raise JournalDamaged(self._file, f"version {head.version} is not the one that was written", None)
        return False

    @property
    def file(self) -> str:
        """Its path."""
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
        """What the snapshot in it is."""
        return self._state

    @property
    def epoch(self) -> str:
        """The id of this history; the same version in another epoch may be a different write."""
        return self._state.epoch

    def write(self, writes: Sequence[PackedWrite]) -> None:
        """Write a batch, which is on disk when this returns. Its versions must follow `version` without a gap."""
        rows: list[_Row] = []
        version, linked = self._version, self._chain
        for follows, code, kind, namespace, name, raw in writes:
            assert follows == version + 1, f"version {version + 1} is next, not {follows}"
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

    @property
    def head_flushed(self) -> bool:
        """Whether a loss of power would leave the record of the last write."""
        return self._head.flushed

    def flush_head(self) -> None:
        with self._checked():
            self._head.sync()

    def repair(self, version: int | None = None) -> None:
        """After a failed write: check that the files exist and are writable, and remove events after `version`.

        By default that is the one it has; an earlier one where the process that wrote the last ones has not said so.
        """
        if version is not None and version != self._version:
            self._go_back(version)
        with self._checked():
            self._head.probe()
            # First, so that the head is never ahead of the journal: the failed append may have written it.
            self._head.write(Head(self._version, self._chain, self._state.epoch))
            self._head.sync()
            with self._transaction():
                self._db.execute("DELETE FROM events WHERE version > ?", (self._version,))
                self._set_meta(format=FORMAT)
        self._failure = None

    def _go_back(self, version: int) -> None:
        chain = self._chain_at(version)
        if not isinstance(chain, int) or not self._state.base <= version < self._version:
            raise JournalDamaged(self._file, f"ends at version {self._version}, and version {version} was the last")
        self._tail -= self._version - version
        self._version, self._chain = version, chain

    def compact_some(self, events: int) -> bool:
        """Move at most so many of the oldest events into the snapshot, without an fsync; whether any are left."""
        with self._checked(), self._unsynced(), self._transaction():
            state, moved = move_events(self._db, self._state, min(self._state.base + events, self._version))
            self._set_meta(state=state.packed())
        self._state, self._tail = state, self._tail - moved
        return self._tail > 0

    def shrink_some(self, pages: int) -> bool:
        """Return at most so many free pages to the file system; whether any are left."""
        with self._checked(), self._unsynced(), ours(self._file, "cannot be written"):
            return vacuum(self._db, pages)

    def compact(self) -> None:
        """Compact and shrink completely, in one blocking call; for callers that serve no requests meanwhile."""
        while self.compact_some(1000):
            pass
        while self.shrink_some(1000):
            pass
        with self._checked(), ours(self._file, "cannot be written"):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        self._head.close()
        self._db.close()

    # --- internals -----------------------------------------------------------------------------------------------

    def _end(self) -> tuple[int, int, int]:
        """(last version, its chain, number of events) as stored; `load` verifies them."""
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
        """Insert events in one transaction, which is one statement where they are few: each statement lets go of the
        interpreter lock, and a thread that has to get it back waits for the event loop, up to the switch interval each
        time."""
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

    def _set_meta(self, **values: object) -> None:
        self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())

    @contextmanager
    def _checked(self) -> Iterator[None]:
        """For every operation that writes: the files are there and whole before it, and there after it."""
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
        """For transactions that change only the representation (compaction), so that losing one does no harm.

        They write many scattered pages, so checkpoints are more frequent and smaller.
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
