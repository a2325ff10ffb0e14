"""The journal: a cluster's writes on disk, from which the store is restored.

`JournalWriter` persists the writes. This module converts objects to bytes, and verified bytes (from `journal.reading`)
to objects. `journal.salvage` recovers a damaged journal.
"""

import time
import uuid
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final

import msgpack
import structlog

from kschedd.object_faults import ObjectRef
from kschedd.store.admission.chain import Admission
from kschedd.store.journal.format import CODES, RESERVED, JournalDamaged, JournalError, State, row_sum
from kschedd.store.journal.head import Head
from kschedd.store.journal.reading import Progress, Reading, read_object
from kschedd.store.journal.writer import JournalWriter, PackedWrite
from kschedd.store.objects.log import WatchEvent
from kschedd.store.set_aside import FOLDER, take_over
from kschedd.store.store import Store

__all__ = ("Journal", "JournalDamaged", "JournalError", "packed")

log = structlog.get_logger("kschedd.journal")

_pack: Final = msgpack.Packer(autoreset=True).pack


def packed(event: WatchEvent) -> PackedWrite:
    """Convert an event to the journal's format."""
    obj = event.new
    return event.version, CODES[event.type], obj.kind, obj.namespace, obj.name, _pack(obj.raw)


def persistent(events: Sequence[WatchEvent]) -> Sequence[WatchEvent]:
    """Return the events to write to the journal: all except renewals of Leases."""
    return [event for event in events if not event.renewal]


def reservation(events: Sequence[WatchEvent], reserved: int) -> int:
    """Return the version to reserve before clients receive these events; 0 if no reservation is necessary."""
    last = max((event.version for event in events if event.renewal), default=0)
    return last + RESERVED if last > reserved else 0


class Journal(JournalWriter):
    """A journal file, with the conversion of objects to rows and of rows to objects. See JournalWriter."""

    def append(self, events: Sequence[WatchEvent]) -> None:
        """Write a batch of events; the batch is on disk when this method returns."""
        self.reserve(reservation(events, self._state.reserved))
        self.write([packed(event) for event in persistent(events)])

    def snapshot(self, store: Store) -> None:
        """Replace the journal's content by this store's objects, in a new epoch."""
        count = total = 0
        with self._checked(), self._transaction():
            self._db.execute("DELETE FROM objects")
            self._db.execute("DELETE FROM events")
            for obj in (obj for kind in store.kinds() for obj in store.list(kind)):
                raw = _pack(obj.raw)
                checksum = row_sum(obj.kind, obj.namespace, obj.name, raw)
                row = (obj.kind, obj.namespace, obj.name, raw, checksum)
                self._db.execute("INSERT INTO objects VALUES (?, ?, ?, ?, ?)", row)
                count, total = count + 1, total + checksum
            self._state = State(uuid.uuid4().hex, store.version, 0, count, total)
            self._set_state(self._state)
        self._version, self._chain, self._tail = store.version, 0, 0
        self._head.write(Head(self._version, self._chain, self._state.epoch))
        self._head.sync()

    def load(
        self,
        *,
        now: Callable[[], float] = time.time,
        seed: int = 0,
        admission: Admission | None = None,
        history: int = 100_000,
        leave_out: Collection[ObjectRef] = (),
        progress: Progress | None = None,
    ) -> Store | None:
        """Return the restored store, or None if the journal is empty.

        Watches can resume from the snapshot's version, or from the version `history` writes ago if that version is
        later. `Store.set_aside` lists the unreadable objects and the objects in `leave_out`. With such objects, watches
        can resume only from the last version. `progress` is called repeatedly with the number of rows read and the
        total number of rows. Raises JournalDamaged; `journal.salvage` can then recover the intact part.
        """
        reading = self.reading(progress)
        reading.check()
        if self._version == 0 and self._state.count == 0:
            return None
        new_store = partial(Store, now=now, seed=seed, admission=admission, history=history)
        if not leave_out:
            try:
                base = max(self._state.base, self._version - history)
                objects, events = reading.since(base)
                store = new_store(objects=objects, version=base)
                store.replay(events)
                store.skip_to(self._state.reserved)
            except JournalError:
                raise
            except Exception as fault:  # Each object is then added separately, to find the invalid one
                log.warning("object_unreadable", why=str(fault))
            else:
                return store
        store = new_store(objects=(), version=max(self._version, self._state.reserved))
        folder = self._path.with_name(FOLDER)
        store.set_aside = take_over(reading.latest(), leave_out, read_object, store.take_over, folder)
        return store

    def reading(self, progress: Progress | None = None) -> Reading:
        """Return a reader of the journal's rows, which verifies their checksums."""
        return Reading(self._db, self._file, self._state, progress, self._state.count + self._tail)
