"""The journal: what the store answered for survives the process, on SQLite.

Two tables. `objects` is the cluster as of the version in `meta`; `events` is every write after that, in order. A
batch is one transaction, on disk when `append` returns (WAL with synchronous=FULL), so that one fsync serves all the
writes that came in together. `compact` moves the events into `objects`, in one transaction as well: whenever the
process dies, the file holds one state or the next, never something between.

Each event carries the CRC of itself and of the one before it: a damaged, missing or foreign event breaks the chain, and
loading says where instead of going on with half a truth.

Not thread-safe: one owner, which may call it from a worker thread, one call at a time. Closed by `close`.
Raises: JournalError, and nothing of sqlite3's.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import attrs
import msgpack

from kschedd.api.kinds import kind_of
from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.errors import KscheddError
from kschedd.store.admission import Admission
from kschedd.store.intake import sharing
from kschedd.store.log import ADDED, DELETED, MODIFIED, EventType, WatchEvent
from kschedd.store.store import Store

FORMAT: Final = 1
_CODES: Final[dict[EventType, int]] = {ADDED: 0, MODIFIED: 1, DELETED: 2}
_TYPES: Final[dict[int, EventType]] = {code: name for name, code in _CODES.items()}
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS objects (
    kind TEXT, namespace TEXT, name TEXT, raw BLOB, PRIMARY KEY (kind, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
    version INTEGER PRIMARY KEY, type INTEGER, kind TEXT, namespace TEXT, name TEXT, raw BLOB, crc INTEGER
);
"""
_pack = msgpack.Packer(autoreset=True).pack


@attrs.define(eq=False)
class JournalError(KscheddError):
    """A journal that cannot be used, or not all of it."""

    file: str
    why: str

    rpc_code = "journal"

    def __str__(self) -> str:
        return f"{self.file}: {self.why}"


@attrs.define(eq=False)
class JournalDamaged(JournalError):
    """What was written does not come back as it was. Up to `good_version` everything is whole."""

    good_version: int

    def __str__(self) -> str:
        return (
            f"{self.file}: {self.why}. Everything up to version {self.good_version} is whole: "
            "open the journal with drop_damaged to go on from there without the rest, or put a copy of it back"
        )


@attrs.frozen
class Row:
    version: int
    type: EventType
    kind: str
    namespace: str
    name: str
    raw: bytes


def _crc(before: int, row: Row) -> int:
    head = f"{row.version}\0{row.type}\0{row.kind}\0{row.namespace}\0{row.name}\0"
    return crc32(row.raw, crc32(head.encode(), before))


class Journal:
    """One journal file, made if it is not there."""

    def __init__(self, path: str | Path) -> None:
        self._file = str(path)
        with self._ours("cannot be opened"):
            self._db = sqlite3.connect(self._file, isolation_level=None, check_same_thread=False)
        try:
            self._open()
        except BaseException:
            self._db.close()
            raise

    def _open(self) -> None:
        with self._ours("cannot be opened"):
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.executescript(_SCHEMA)
        known = self._meta("format")
        if known is None:
            with self._transaction():
                self._set_meta(format=FORMAT, version=0, crc=0)
        elif known != FORMAT:
            raise JournalError(self._file, f"has format {known}; this kschedd reads and writes format {FORMAT}")
        self._version, self._crc, self._tail = self._end()

    @property
    def version(self) -> int:
        """The version of the last write in the journal."""
        return self._version

    @property
    def tail(self) -> int:
        """How many events there are since the last compaction."""
        return self._tail

    def append(self, events: Sequence[WatchEvent]) -> None:
        """Write a batch; when this returns it is on disk. The versions follow on from what is there."""
        rows = []
        version, crc = self._version, self._crc
        for event in events:
            assert event.version == version + 1, f"version {version + 1} is next, not {event.version}"
            obj = event.new
            row = Row(event.version, event.type, obj.kind, obj.namespace, obj.name, _pack(obj.raw))
            version, crc = event.version, _crc(crc, row)
            rows.append((version, _CODES[row.type], row.kind, row.namespace, row.name, row.raw, crc))
        if not rows:
            return
        with self._transaction():
            self._db.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        self._version, self._crc, self._tail = version, crc, self._tail + len(rows)

    def compact(self) -> None:
        """Make the present state the snapshot and forget how it came about."""
        with self._transaction():
            self._db.execute(
                "DELETE FROM objects WHERE (kind, namespace, name) IN (SELECT kind, namespace, name FROM events)"
            )
            self._db.execute(
                "INSERT INTO objects SELECT kind, namespace, name, raw FROM events WHERE type != ? AND version IN"
                " (SELECT max(version) FROM events GROUP BY kind, namespace, name)",
                (_CODES[DELETED],),
            )
            self._db.execute("DELETE FROM events")
            self._set_meta(version=self._version, crc=self._crc)
        self._tail = 0

    def snapshot(self, store: Store) -> None:
        """Start over with the state of this store, whatever the journal held before."""
        with self._transaction():
            self._db.execute("DELETE FROM objects")
            self._db.execute("DELETE FROM events")
            self._db.executemany(
                "INSERT INTO objects VALUES (?, ?, ?, ?)",
                ((kind, obj.namespace, obj.name, _pack(obj.raw)) for kind in store.kinds() for obj in store.list(kind)),
            )
            self._set_meta(version=store.version, crc=0)
        self._version, self._crc, self._tail = store.version, 0, 0

    def load(
        self,
        *,
        now: Callable[[], float] = time.time,
        seed: int = 0,
        admission: Admission | None = None,
        history: int = 100_000,
        drop_damaged: bool = False,
    ) -> Store | None:
        """The store as it was, its watches able to resume from the snapshot on; None if nothing was ever written.

        Raises JournalDamaged; with `drop_damaged` what follows the damage is deleted from the journal instead.
        """
        base = self._meta("version")
        assert isinstance(base, int), "a journal knows the version of its snapshot"
        objects = list(self._objects())
        if not objects and self._tail == 0 and base == 0:
            return None
        store = Store(now=now, seed=seed, admission=admission, objects=objects, version=base, history=history)
        try:
            store.replay((row.type, self._object(row.kind, row.raw, row.version - 1)) for row in self._events())
        except JournalDamaged as damage:
            if not drop_damaged:
                raise
            self._drop_after(damage.good_version)
        return store

    def close(self) -> None:
        self._db.close()

    # --- inside --------------------------------------------------------------------------------------------------

    def _end(self) -> tuple[int, int, int]:
        """(last version, its CRC, number of events), as the file says; `load` is who believes it or not."""
        with self._ours("cannot be read"):
            count, last = self._db.execute("SELECT count(*), max(version) FROM events").fetchone()
            if last is not None:
                crc = self._db.execute("SELECT crc FROM events WHERE version = ?", (last,)).fetchone()[0]
                return last, crc, count
        version, crc = self._meta("version"), self._meta("crc")
        if not isinstance(version, int) or not isinstance(crc, int):
            raise JournalError(self._file, "does not say which version its snapshot has: it is no journal of kschedd")
        return version, crc, 0

    def _objects(self) -> Iterator[Object]:
        with self._ours("cannot be read"):
            for kind, _, name, raw in self._db.execute("SELECT kind, namespace, name, raw FROM objects"):
                try:
                    yield self._object(kind, raw, 0)
                except JournalDamaged:
                    why = f'the snapshot is damaged at {kind} "{name}"'
                    raise JournalError(self._file, f"{why}: put a copy of the journal back") from None

    def _events(self) -> Iterator[Row]:
        version, crc = self._meta("version"), self._meta("crc")
        assert isinstance(version, int)
        assert isinstance(crc, int)
        try:
            for found in self._db.execute("SELECT * FROM events ORDER BY version"):
                row = self._row(found, version)
                if row.version != version + 1:
                    why = f"version {version + 1} is missing (the next one there is {row.version})"
                    raise JournalDamaged(self._file, why, version)
                version, crc = row.version, _crc(crc, row)
                if crc != found[6]:
                    raise JournalDamaged(self._file, f"version {version} is damaged", version - 1)
                yield row
        except sqlite3.DatabaseError as error:
            raise JournalDamaged(self._file, f"cannot be read after version {version}: {error}", version) from error

    def _row(self, found: Sequence[Any], version: int) -> Row:
        number, code, kind, namespace, name, raw, _ = found
        whole = code in _TYPES and isinstance(raw, bytes) and all(isinstance(t, str) for t in (kind, namespace, name))
        if not whole:
            raise JournalDamaged(self._file, f"version {number} is damaged", version)
        return Row(number, _TYPES[code], kind, namespace, name, raw)

    def _object(self, kind: str, packed: bytes, good_version: int) -> Object:
        try:
            raw = msgpack.unpackb(packed, strict_map_key=False)
            obj = parse(raw) if kind_of(raw).name == raw["kind"] else Object.from_raw(raw)
        except (ValueError, TypeError, KeyError, AttributeError, msgpack.UnpackException, KscheddError) as error:
            raise JournalDamaged(
                self._file, f"an object of kind {kind} cannot be read: {error}", good_version
            ) from error
        if isinstance(obj, Pod):
            return sharing(obj)
        return obj if obj.kind == kind else attrs.evolve(obj, kind=kind)

    def _drop_after(self, version: int) -> None:
        with self._transaction():
            self._db.execute("DELETE FROM events WHERE version > ?", (version,))
        self._version, self._crc, self._tail = self._end()

    def _meta(self, name: str) -> object:
        with self._ours("cannot be read"):
            row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def _set_meta(self, **values: int) -> None:
        self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())

    @contextmanager
    def _ours(self, what: str) -> Iterator[None]:
        """Foreign errors become ours here."""
        try:
            yield
        except sqlite3.Error as error:
            raise JournalError(self._file, f"{what}: {error}") from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._ours("cannot be written"):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
