"""The journal's format: tables, checksums, and the errors of an unusable journal.

The table `objects` is the snapshot: the objects of the cluster at the snapshot's version. The table `events` contains
every later write, in order, except renewals of Leases. The table `meta` contains the format number and one record, the
State, with the snapshot's version, row count and checksum. Format 3 differs from format 2 in that versions of renewals
are reserved in the State and missing in `events`; a journal has format 2 until its first reservation.

Three checksums detect changed, lost and added rows:
- `sum` of a row: CRC-32 of the kind, namespace, name and object. Compaction copies an event's `sum` into the snapshot,
  so `sum` is always computed when the object is written.
- `chain` of an event: CRC-32 of the event's version, type and `sum`, and of the previous event's chain. A lost or added
  event breaks the chain; the State contains the chain's first value.
- `total` in the State: the sum of all `sum` values in the snapshot, with their number. A lost or added row changes the
  total.
"""

import sqlite3
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import attrs
import msgpack

from kschedd.errors import KscheddError
from kschedd.store.objects.log import ADDED, DELETED, MODIFIED, EventType

FORMATS: Final = (2, 3)  # the formats that can be read and written
RESERVED: Final = 10_000  # number of versions per reservation
CODES: Final[dict[EventType, int]] = {ADDED: 0, MODIFIED: 1, DELETED: 2}
TYPES: Final[dict[int, EventType]] = {code: name for name, code in CODES.items()}
SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS objects (
    kind TEXT, namespace TEXT, name TEXT, raw BLOB, sum INTEGER, PRIMARY KEY (kind, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
    version INTEGER PRIMARY KEY, type INTEGER, kind TEXT, namespace TEXT, name TEXT, raw BLOB, sum INTEGER,
    chain INTEGER
);
"""
_LINK: Final = struct.Struct(">QBI")
# SQLite's result codes for damaged file content, as opposed to disk errors or locks.
_DAMAGE: Final = frozenset((1, 11, 20, 24, 26))  # ERROR, CORRUPT, MISMATCH, FORMAT, NOTADB
_SHORT_READ: Final = 10 | 2 << 8


@attrs.define(eq=False)
class JournalError(KscheddError, rpc_code="journal"):
    """A journal that cannot be used, either permanently or temporarily."""

    file: str
    why: str

    def __str__(self) -> str:
        return f"{self.file}: {self.why}"


@attrs.define(eq=False)
class JournalDamaged(JournalError):
    """A journal whose content differs from the written content.

    If `good_version` is set, the journal is intact up to that version.
    """

    good_version: int | None = None

    def __str__(self) -> str:
        whole = "" if self.good_version is None else f" Everything up to version {self.good_version} is intact."
        return (
            f"{self.file}: {self.why}.{whole} Restore a copy of the whole state directory, or start with "
            "--drop-damaged: it saves the damaged files, starts with the intact data, and reports the lost data"
        )


@contextmanager
def ours(file: str, what: str, good_version: int | None = None) -> Iterator[None]:
    """Convert sqlite3's errors to JournalError or JournalDamaged; each message begins with `what`: "cannot be read"."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 1)
        if code & 0xFF in _DAMAGE or code == _SHORT_READ:
            raise JournalDamaged(file, f"{what}: {error}", good_version) from error
        raise JournalError(file, f"{what}: {error}") from error


@attrs.frozen
class Event:
    """One write, as a row of `events`."""

    version: int
    type: EventType
    kind: str
    namespace: str
    name: str
    raw: bytes
    sum: int
    chain: int

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind, self.namespace, self.name


@attrs.frozen
class State:
    """The State record in `meta`: the snapshot's version, its row count and checksum total, and the chain up to it.

    `epoch` identifies the history; the same version in another epoch may be a different write. Clients may have
    received renewals of Leases with versions up to `reserved`.
    """

    epoch: str
    base: int
    chain: int
    count: int
    total: int
    reserved: int = 0

    @property
    def format(self) -> int:
        """The format of a journal with this State."""
        return FORMATS[1] if self.reserved else FORMATS[0]

    def packed(self) -> bytes:
        fields = [self.epoch, self.base, self.chain, self.count, self.total]
        body: bytes = msgpack.packb([*fields, self.reserved] if self.reserved else fields)
        return body + zlib.crc32(body).to_bytes(4, "big")


def row_sum(kind: str, namespace: str, name: str, raw: bytes) -> int:
    return zlib.crc32(raw, zlib.crc32(f"{kind}\0{namespace}\0{name}\0".encode()))


def link(before: int, version: int, code: int, checksum: int) -> int:
    """Return the chain of an event, computed from the previous chain."""
    return zlib.crc32(_LINK.pack(version, code, checksum), before)


def read_state(packed: object) -> State | None:
    """Parse the State record, or return None if it is damaged."""
    if not isinstance(packed, bytes) or len(packed) < 5:
        return None
    body, checksum = packed[:-4], packed[-4:]
    if zlib.crc32(body).to_bytes(4, "big") != checksum:
        return None
    return State(*msgpack.unpackb(body))


def read_event(row: Any) -> Event | None:
    """Parse a row of `events`, or return None if it is damaged. The caller must check the chain."""
    version, code, kind, namespace, name, raw, checksum, chain = row
    if version < 0 or code not in TYPES or not isinstance(chain, int):
        return None
    if not whole(kind, namespace, name, raw, checksum):
        return None
    return Event(version, TYPES[code], kind, namespace, name, raw, checksum, chain)


def whole(kind: object, namespace: object, name: object, raw: object, checksum: object) -> bool:
    """Return whether a row matches its checksum."""
    return (
        isinstance(raw, bytes)
        and isinstance(kind, str)
        and isinstance(namespace, str)
        and isinstance(name, str)
        and row_sum(kind, namespace, name, raw) == checksum
    )
