"""Reading of a journal, with verification of every row's checksums.

The methods raise JournalDamaged at the first mismatch.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Final

import attrs
import msgspec

from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.api.schemas.kinds import kind_of
from kschedd.errors import KscheddError
from kschedd.object_faults import ObjectRef
from kschedd.store.journal.disk import Database
from kschedd.store.journal.format import CODES as _CODES
from kschedd.store.journal.format import Event, JournalDamaged, State, link, ours, read_event, whole
from kschedd.store.objects.log import DELETED, EventType
from kschedd.store.prototypes.pod_strategy import intern_pod
from kschedd.store.set_aside import Row

Progress = Callable[[int, int], None]
_Key = tuple[str, str, str]  # kind, namespace, name
_STEP: Final = 10_000  # rows between two progress reports
_unpacked: Final[Callable[[bytes], Any]] = msgspec.msgpack.Decoder().decode


@attrs.define(eq=False)
class Reading:
    _db: Database
    _file: str
    _state: State
    _progress: Progress | None = None
    _total: int = 0  # rows
    _done: int = attrs.field(default=0, init=False)

    def check(self) -> None:
        """Check SQLite's own structures, because later writes to a corrupt file could overwrite pages in use."""
        with ours(self._file, "cannot be read"):
            found = self._db.execute("PRAGMA quick_check(1)").fetchone()
        if found is None or found[0] != "ok":
            what = "" if found is None else " ".join(str(found[0]).split())
            raise JournalDamaged(self._file, f"the database is damaged: {what}")

    def since(self, version: int) -> tuple[Iterator[Object], Iterator[tuple[EventType, Object]]]:
        """Return the objects at this version, and the later writes.

        If the snapshot is later than this version, the snapshot's version is used instead. The writes up to the version
        are verified; only the last write of each object is parsed. The caller must consume all objects before reading
        the writes.

        The iterators of objects and of writes raise UnreadableObject for a row that is intact but cannot be parsed.
        """
        rows = self.rows()
        merged = _Merged()
        later: list[Event] = []  # the first event after the version
        for event in rows:
            if event.version > version:
                later.append(event)
                break
            merged.add(event)
        objects = (read_object(key[0], raw) for key, raw in merged.over(self._snapshot()))
        return objects, ((event.type, read_object(event.kind, event.raw)) for event in chain(later, rows))

    def latest(self) -> Iterator[Row]:
        """Yield the last state of every object, as unparsed rows."""
        found = {(kind, namespace, name): raw for kind, namespace, name, raw in self._snapshot()}
        for event in self.rows():
            key = event.kind, event.namespace, event.name
            if event.type == DELETED:
                found.pop(key, None)
            else:
                found[key] = event.raw
        return (Row(ObjectRef(*key), raw) for key, raw in found.items())

    def _snapshot(self) -> Iterator[tuple[str, str, str, bytes]]:
        count = total = 0
        with ours(self._file, "the snapshot cannot be read"):
            for row in self._db.execute("SELECT kind, namespace, name, raw, sum FROM objects"):
                if not whole(*row):
                    raise JournalDamaged(self._file, f"the snapshot is damaged at {describe(*row[:3])}")
                count, total = count + 1, total + row[4]
                self._note_row()
                yield row[:4]
        if (count, total) != (self._state.count, self._state.total):
            what = f"only {count} of {self._state.count} objects are present"
            raise JournalDamaged(self._file, f"the snapshot is damaged: {what}")

    def rows(self) -> Iterator[Event]:
        """Yield the writes after the snapshot, with unparsed objects."""
        version, linked = self._state.base, self._state.chain
        with ours(self._file, "the events cannot be read", version):
            for row in self._db.execute("SELECT * FROM events ORDER BY version"):
                event = read_event(row)
                if event is None or event.chain != link(linked, event.version, _CODES[event.type], event.sum):
                    why = f"version {version + 1} is damaged"
                    if isinstance(row[0], int) and row[0] != version + 1:
                        why = f"version {version + 1} is missing (the next version is {row[0]})"
                    raise JournalDamaged(self._file, why, version)
                version, linked = event.version, event.chain
                self._note_row()
                yield event

    def _note_row(self) -> None:
        self._done += 1
        if self._progress is not None and self._done % _STEP == 0:
            self._progress(self._done, self._total)


@attrs.define(eq=False)
class _Merged:
    """Writes to merge into the snapshot: the last write of each object, as an unparsed row."""

    _changed: dict[_Key, bytes] = attrs.field(factory=dict)  # in the order in which the rows were added
    _deleted: set[_Key] = attrs.field(factory=set)  # keys of objects that at least one of the writes deleted

    def add(self, event: Event) -> None:
        if event.type == DELETED:
            self._changed.pop(event.key, None)
            self._deleted.add(event.key)
        else:
            self._changed[event.key] = event.raw

    def over(self, snapshot: Iterable[tuple[str, str, str, bytes]]) -> Iterator[tuple[_Key, bytes]]:
        """Yield the snapshot with these writes applied, in the order in which the objects were created."""
        for kind, namespace, name, raw in snapshot:
            key = kind, namespace, name
            if key not in self._deleted:
                yield key, self._changed.pop(key, raw)
        yield from self._changed.items()


class UnreadableObject(KscheddError):
    """An intact row that this version of kschedd cannot parse as an object."""


_NOT_JSON: Final = re.compile(rb"[\xc4-\xcb\xd4-\xd8]")
"""First bytes of binary values, extensions and floating-point numbers; ASCII text has none of them."""


def json_fault(packed: bytes, raw: Any) -> str:
    """Return the reason why these bytes do not contain JSON data; "" if they do.

    Development versions of kschedd stored values that are not JSON. If an object contains a value that is not JSON,
    clients that list the kind get an error.
    """
    if _NOT_JSON.search(packed) is None:
        return ""
    waiting: list[tuple[str, Any]] = [("", raw)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(f"{path}.{key}" if path else str(key), each) for key, each in value.items()]
        elif isinstance(value, list):
            waiting += [(f"{path}[{place}]", each) for place, each in enumerate(value)]
        elif isinstance(value, float) and not math.isfinite(value):
            return f"{path}: {value} is not a JSON number"
        elif not isinstance(value, str | int | float | None):
            return f"{path}: a value of type {type(value).__name__} is not JSON"
    return ""


def read_object(kind: str, packed: bytes) -> Object:
    """Return the object of a row. Raises UnreadableObject."""
    try:
        raw = _unpacked(packed)
        if why := json_fault(packed, raw):
            raise UnreadableObject(f"an object of kind {kind} cannot be read: {why}")
        obj = parse(raw) if kind_of(raw).name == raw["kind"] else Object.from_raw(raw)
    except UnreadableObject:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, KscheddError) as error:
        raise UnreadableObject(f"an object of kind {kind} cannot be read: {error}") from error
    if isinstance(obj, Pod):
        return intern_pod(obj)
    return obj if obj.kind == kind else attrs.evolve(obj, kind=kind)


def describe(kind: object, namespace: object, name: object) -> str:
    if not isinstance(kind, str) or not isinstance(name, str):
        return "an object whose name cannot be read"
    where = f"{namespace}/{name}" if namespace else f"{name}"
    return f'{kind} "{where}"'
