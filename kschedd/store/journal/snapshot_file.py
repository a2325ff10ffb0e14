"""A snapshot of a cluster in one file: every object at one version, with its UID and resourceVersion.

The file is gzip. The file contains a MessagePack map (format, version, number of objects), each object packed, and the
CRC-32 of these parts. A truncated or changed file, or a file in a newer format, is rejected. The file is written under
a temporary name and then renamed, so that a file with its final name is always complete.

A restored cluster has a new epoch, and its versions begin at a round number above the versions in the snapshot. A
client that resumes from a version after the snapshot gets 410 Gone, never changes of another cluster.
"""

import gzip
import os
import time
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import attrs
import msgpack

from kschedd.api.objects import Object, Raw
from kschedd.errors import KscheddError
from kschedd.store.journal.disk import REAL_DISK
from kschedd.store.journal.files import beside, reject_remains
from kschedd.store.journal.format import JournalError
from kschedd.store.journal.head import head_path
from kschedd.store.journal.journal import Journal
from kschedd.store.journal.offline import JOURNAL, copied, found_journal
from kschedd.store.journal.reading import UnreadableObject, read_object
from kschedd.store.journal.salvage import EPOCH_STEP
from kschedd.store.journal.state_dir import lock_state_dir
from kschedd.store.store import Store

SNAPSHOT_FORMAT: Final = 1
_MAGIC: Final = "kschedd-snapshot"


@attrs.define(eq=False)
class SnapshotError(KscheddError):
    """A snapshot that cannot be written or read."""

    file: str
    why: str

    def __str__(self) -> str:
        return f"{self.file}: {self.why}"


@attrs.frozen
class Snapshot:
    version: int
    objects: list[Object]


def write_snapshot(file: Path, version: int, raws: Iterable[Raw]) -> int:
    """Write a snapshot and return the number of objects. Raises SnapshotError."""
    packed = [msgpack.packb(raw) for raw in raws]
    head = msgpack.packb({_MAGIC: SNAPSHOT_FORMAT, "version": version, "objects": len(packed)})
    part = file.with_name(f".{file.name}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as out:
                with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1, mtime=0, filename="") as zipped:
                    checksum = 0
                    for piece in (head, *packed):
                        zipped.write(piece)
                        checksum = zlib.crc32(piece, checksum)
                    zipped.write(msgpack.packb(checksum))
                out.flush()
                os.fsync(out.fileno())
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise SnapshotError(str(file), f"cannot be written: {error.strerror or error}") from error
    return len(packed)


def read_snapshot(file: Path) -> Snapshot:
    """Read a snapshot. Raises SnapshotError."""
    try:
        with gzip.open(file, "rb") as zipped:
            data = zipped.read()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SnapshotError(str(file), f"is not a snapshot, or is damaged: {error}") from error
    except OSError as error:
        raise SnapshotError(str(file), f"cannot be read: {error.strerror or error}") from error
    unpacker = msgpack.Unpacker(strict_map_key=False, max_buffer_size=len(data))
    unpacker.feed(data)
    try:
        head: Any = unpacker.unpack()
        if not isinstance(head, dict) or _MAGIC not in head:
            raise SnapshotError(str(file), "is not a kschedd snapshot")
        if head[_MAGIC] != SNAPSHOT_FORMAT:
            why = f"has format {head[_MAGIC]}, from a newer kschedd; this one reads format {SNAPSHOT_FORMAT}"
            raise SnapshotError(str(file), why)
        raws = [unpacker.unpack() for _ in range(head["objects"])]
        checked = unpacker.tell()
        if unpacker.unpack() != zlib.crc32(data[:checked]):
            raise SnapshotError(str(file), "is damaged: wrong checksum")
        return Snapshot(int(head["version"]), [read_object(raw["kind"], msgpack.packb(raw)) for raw in raws])
    except (ValueError, TypeError, KeyError, msgpack.UnpackException, UnreadableObject) as error:
        raise SnapshotError(str(file), f"is damaged: {error}") from error


def snapshot_of_journal(path: Path, now: Callable[[], float] = time.time) -> tuple[int, list[Raw]]:
    """Return the version and objects of a journal that no daemon is using. Raises JournalError."""
    with found_journal(path) as file, copied(file) as copy:
        journal = Journal(copy)
        try:
            store = journal.load(now=now)
        finally:
            journal.close()
    if store is None:
        return 0, []
    if store.set_aside:
        raise JournalError(
            str(file), f"{store.set_aside[0].ref} cannot be read, so it would be missing from the snapshot"
        )
    return store.version, [obj.raw for kind in store.kinds() for obj in store.list(kind)]


def restore_snapshot(file: Path, state_dir: Path) -> Store:
    """Create a state directory from a snapshot. Return the store that a daemon would load from the directory.

    Raises SnapshotError, StateDirError, JournalError. If a journal exists, raise an error and leave it unchanged.
    """
    snapshot = read_snapshot(file)
    version = (snapshot.version // EPOCH_STEP + 1) * EPOCH_STEP
    with lock_state_dir(state_dir) as state:
        path = state.path / JOURNAL
        reject_remains(path)
        if path.exists():
            raise JournalError(str(path), "already exists: give another directory, or move this journal away")
        fresh = beside(path, ".new")
        for suffix in ("", "-wal", "-shm", "-head"):
            REAL_DISK.unlink(beside(fresh, suffix))
        store = Store(objects=snapshot.objects, version=version)
        store.seed_defaults()
        journal = Journal(fresh)
        try:
            journal.snapshot(store)
            journal.compact()
        finally:
            journal.close()
        REAL_DISK.replace(head_path(fresh), head_path(path))
        REAL_DISK.replace(fresh, path)
        return store
