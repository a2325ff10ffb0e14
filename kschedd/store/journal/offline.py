"""Operations on a journal that no daemon is using: verify, repair, compact, export, and remove objects.

Each operation requires a state directory or the file of a journal, and fails while a daemon uses the state directory.
`verified` works on a copy, because opening a journal changes its files.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import msgpack

from kschedd.object_faults import ObjectRef
from kschedd.store.journal.files import beside, reject_remains
from kschedd.store.journal.format import CODES, JournalDamaged, JournalError
from kschedd.store.journal.journal import Journal
from kschedd.store.journal.reading import json_fault
from kschedd.store.journal.salvage import open_journal
from kschedd.store.journal.state_dir import StateDirInUse, lock_state_dir
from kschedd.store.objects.log import DELETED
from kschedd.store.set_aside import FOLDER, keep_copy

JOURNAL: Final = "journal.db"
_FILES: Final = ("", "-wal", "-head")
_SLICE: Final = 1000  # events, pages

Progress = Callable[[int, int], None]  # done, total


@attrs.frozen
class Verified:
    """The content of a journal.

    `damage` describes the damage; `unreadable` lists the objects that cannot be parsed.
    """

    file: str
    bytes: int
    damage: str = ""
    epoch: str = ""
    format: int = 0
    snapshot_version: int = 0
    snapshot_objects: int = 0
    version: int = 0
    writes: int = 0  # since the snapshot
    objects: int = 0
    unreadable: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        return not self.damage and not self.unreadable

    def lines(self) -> Iterator[str]:
        yield f"{self.file}: {f'format {self.format}, ' if self.format else ''}{self.bytes:,} bytes"
        if self.damage:
            yield f"damaged: {self.damage}"
            return
        yield f"epoch {self.epoch}"
        yield f"snapshot: {self.snapshot_objects:,} objects at version {self.snapshot_version:,}"
        yield f"writes since: {self.writes:,}, up to version {self.version:,}"
        yield f"objects: {self.objects:,}"
        yield from (f"unreadable: {each}" for each in self.unreadable)
        if self.is_whole:
            yield "intact: every row has the checksum it was written with"


@contextmanager
def found_journal(path: Path) -> Iterator[Path]:
    """Find the journal's file, and lock it against other processes while the context is open. Raises JournalError."""
    file = path / JOURNAL if path.is_dir() else path
    with ExitStack() as opened:
        if (file.parent / "lock").exists():
            try:
                opened.enter_context(lock_state_dir(file.parent))
            except StateDirInUse as used:
                why = "in use by a daemon: stop it (kschedd stop), or run kschedd snapshot save, which works meanwhile"
                raise JournalError(str(file), why) from used
        reject_remains(file)
        if not file.exists():
            raise JournalError(str(file), "no journal found")
        if not file.is_file():
            raise JournalError(str(file), "is not a regular file")
        yield file


def verified(path: Path, progress: Progress | None = None) -> Verified:
    """Verify a journal. Raises JournalError if the journal cannot be read at all, or if its format is not supported."""
    with found_journal(path) as file, copied(file) as copy:
        size = sum(part.stat().st_size for suffix in _FILES if (part := beside(file, suffix)).exists())
        try:
            journal = Journal(copy)
            try:
                store = journal.load(progress=progress)
                state = journal.state
                return Verified(
                    str(file),
                    size,
                    epoch=state.epoch,
                    format=state.format,
                    writes=journal.tail,
                    snapshot_version=state.base,
                    snapshot_objects=state.count,
                    version=journal.version,
                    objects=0 if store is None else sum(len(store.list(kind)) for kind in store.kinds()),
                    unreadable=() if store is None else tuple(f"{each.ref}: {each.why}" for each in store.set_aside),
                )
            finally:
                journal.close()
        except JournalDamaged as damage:
            whole = "" if damage.good_version is None else f"; everything up to version {damage.good_version} is intact"
            return Verified(str(file), size, damage=f"{damage.why}{whole}")


def repaired(path: Path, report: Callable[[str], None] = lambda what: None) -> tuple[str, ...]:
    """Move a damaged journal aside, and write its intact part to a new journal in its place.

    Return messages about the lost content; empty if the journal is intact.

    `report` is called with each message before a file is replaced.
    """
    with found_journal(path) as file:
        opened = open_journal(file, now=time.time, seed=0, admission=None, drop_damaged=True, report=report)
        opened.journal.close()
        return opened.lost


def compacted(path: Path, progress: Progress | None = None) -> tuple[int, int]:
    """Merge all events into the snapshot and shrink the file.

    Return the size of the file before and after, in bytes.
    """
    with found_journal(path) as file:
        before = sum(part.stat().st_size for suffix in ("", "-wal") if (part := beside(file, suffix)).exists())
        journal = Journal(file)
        try:
            journal.reading().check()
            total = journal.tail
            while journal.compact_some(_SLICE):
                if progress is not None:
                    progress(total - journal.tail, total)
            journal.compact()
        finally:
            journal.close()
        return before, file.stat().st_size


def removed(path: Path, refs: Sequence[ObjectRef]) -> tuple[Path, ...]:
    """Remove these objects from a journal and compact it. Return the paths of the objects' copies beside the journal.

    Compaction also deletes the objects' earlier writes. Raises JournalError if an object does not exist.
    """
    with found_journal(path) as file:
        journal = Journal(file)
        try:
            reading = journal.reading()
            reading.check()
            rows = {row.ref: row for row in reading.latest() if row.ref in refs}
            for ref in refs:
                if ref not in rows:
                    raise JournalError(str(file), f"has no object {ref}; kschedd journal export lists the objects")
            copies = tuple(keep_copy(rows[ref], file.with_name(FOLDER)) for ref in refs)
            first = max(journal.version, journal.state.reserved) + 1
            journal.write(
                [
                    (version, CODES[DELETED], ref.kind, ref.namespace, ref.name, _tombstone(ref, version))
                    for version, ref in enumerate(dict.fromkeys(refs), first)
                ]
            )
            journal.compact()
        finally:
            journal.close()
        return copies


def _tombstone(ref: ObjectRef, version: int) -> bytes:
    meta = {"name": ref.name, "namespace": ref.namespace, "resourceVersion": str(version)}
    packed: bytes = msgpack.packb({"apiVersion": "v1", "kind": ref.kind, "metadata": meta})
    return packed


def exported_objects(path: Path, report: Callable[[str], None] = lambda what: None) -> Iterator[dict[str, Any]]:
    """Yield the last state of every object, by kind, namespace and name.

    An object that is not JSON is omitted, and `report` is called with its name and the error.
    """
    with _read(path) as journal:
        for row in sorted(journal.reading().latest(), key=lambda row: (row.ref.kind, row.ref.namespace, row.ref.name)):
            raw = msgpack.unpackb(row.packed, strict_map_key=False)
            if why := json_fault(row.packed, raw):
                report(f"{row.ref} is omitted: {why}")
                continue
            yield raw


def exported_events(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the writes since the snapshot, in order: version, type, object."""
    with _read(path) as journal:
        for event in journal.reading().rows():
            obj = msgpack.unpackb(event.raw, strict_map_key=False)
            yield {"version": event.version, "type": event.type, "object": obj}


@contextmanager
def _read(path: Path) -> Iterator[Journal]:
    with found_journal(path) as file, copied(file) as copy:
        journal = Journal(copy)
        try:
            journal.reading().check()
            yield journal
        finally:
            journal.close()


@contextmanager
def copied(file: Path) -> Iterator[Path]:
    """Yield a copy of the journal that exists only while the context is open.

    The copy is in the journal's directory, or in the directory for temporary files if the space there is not enough.
    Raises JournalError.
    """
    with ExitStack() as opened:
        try:
            copy = _copy_into(Path(opened.enter_context(tempfile.TemporaryDirectory(dir=file.parent))), file)
        except OSError:
            try:
                copy = _copy_into(Path(opened.enter_context(tempfile.TemporaryDirectory())), file)
            except OSError as error:
                raise JournalError(str(file), f"cannot be copied for reading: {error.strerror}") from error
        yield copy


def _copy_into(folder: Path, file: Path) -> Path:
    for suffix in _FILES:
        if (part := beside(file, suffix)).exists():
            shutil.copyfile(part, folder / part.name)
    return folder / file.name
