"""The journal's format: tables, checksums, and the errors of a journal that cannot be used.

`objects` is the snapshot: the cluster as of the base version. `events` is every write after that, in order. `meta` has
the format and one record, the State, which says what the snapshot must add up to.

Three checksums, so that nothing that was changed, lost or added passes for what was written:
- `sum`, of a row by itself: CRC-32 of kind, namespace, name and object. An event's goes along into the snapshot, so it
  is the one that was made when the write came in.
- `chain`, of an event: CRC-32 of its version, type and `sum`, and of the chain before it. A missing or foreign event
  breaks the chain, which starts at the State.
- `total` in the State: the sum of the snapshot's `sum`s, with their number. A missing or foreign row changes it.
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
from kschedd.store.log import ADDED, DELETED, MODIFIED, EventType

FORMAT: Final = 2
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
# What SQLite says of a file whose content is at fault, and not of the disk, or of others who have it open.
_DAMAGE: Final = frozenset((1, 11, 20, 24, 26))  # ERROR, CORRUPT, MISMATCH, FORMAT, NOTADB
_SHORT_READ: Final = 10 | 2 << 8


@attrs.define(eq=False)
class JournalError(KscheddError):
    """A journal that cannot be used, or not now."""

    file: str
    why: str

    rpc_code = "journal"

    def __str__(self) -> str:
        return f"{self.file}: {self.why}"


@attrs.define(eq=False)
class JournalDamaged(JournalError):
    """What was written does not come back as it was. Up to `good_version`, where known, everything is whole."""

    good_version: int | None = None

    def __str__(self) -> str:
        whole = "" if self.good_version is None else f" Everything up to version {self.good_version} is whole."
        return (
            f"{self.file}: {self.why}.{whole} Put a copy of the whole state directory back, or start with "
            "--drop-damaged: it sets the damaged files aside, goes on with what is whole, and says what is lost"
        )


@contextmanager
def ours(file: str, what: str, good_version: int | None = None) -> Iterator[None]:
    """SQLite's errors become ours here; `what` could not be done."""
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
    """What `meta` knows: the snapshot's version, the chain up to there, what its rows come to.

    `epoch` names this history: another one, in which a version may mean something else, has another epoch.
    """

    epoch: str
    base: int
    chain: int
    count: int
    total: int

    def packed(self) -> bytes:
        body: bytes = msgpack.packb([self.epoch, self.base, self.chain, self.count, self.total])
        return body + zlib.crc32(body).to_bytes(4, "big")


def row_sum(kind: str, namespace: str, name: str, raw: bytes) -> int:
    return zlib.crc32(raw, zlib.crc32(f"{kind}\0{namespace}\0{name}\0".encode()))


def link(before: int, version: int, code: int, checksum: int) -> int:
    """The chain up to an event, from the chain before it."""
    return zlib.crc32(_LINK.pack(version, code, checksum), before)


def read_state(packed: object) -> State | None:
    """None if it is not what was written."""
    if not isinstance(packed, bytes) or len(packed) < 5:
        return None
    body, checksum = packed[:-4], packed[-4:]
    if zlib.crc32(body).to_bytes(4, "big") != checksum:
        return None
    return State(*msgpack.unpackb(body))


def read_event(row: Any) -> Event | None:
    """A row of `events`, None if it is not what was written (of the row by itself; the chain is another question)."""
    version, code, kind, namespace, name, raw, checksum, chain = row
    if code not in TYPES or not isinstance(chain, int) or not whole(kind, namespace, name, raw, checksum):
        return None
    return Event(version, TYPES[code], kind, namespace, name, raw, checksum, chain)


def whole(kind: object, namespace: object, name: object, raw: object, checksum: object) -> bool:
    """Whether a row is what was written."""
    return (
        isinstance(raw, bytes)
        and isinstance(kind, str)
        and isinstance(namespace, str)
        and isinstance(name, str)
        and row_sum(kind, namespace, name, raw) == checksum
    )
