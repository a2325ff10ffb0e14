"""The store that a daemon starts with: restored from its journal, filled with a dump, or new.

What is lost, set aside or assumed on the way is logged. Raises JournalError for a journal that cannot be used.
"""

import time
from collections.abc import Callable, Collection
from pathlib import Path

import attrs
import structlog

from kschedd.actors.clock import Clock
from kschedd.actors.objects.journal import COMPACT_AFTER
from kschedd.config.versions.rules import Rules
from kschedd.dumps.loading import Prepared, take_dump, told
from kschedd.errors import KscheddError
from kschedd.garbage_collection import collection_paused
from kschedd.object_faults import ObjectRef
from kschedd.store.admission.chain import Admission
from kschedd.store.creating.service_addresses import SERVICE_RANGE
from kschedd.store.journal.disk import REAL_DISK, Disk
from kschedd.store.journal.journal import Journal
from kschedd.store.journal.salvage import open_journal
from kschedd.store.store import MAX_OBJECT_BYTES, Store
from kschedd.values import run_steps

log = structlog.get_logger("kschedd")


def nowhere(now_s: float) -> None:
    """Without a state directory there is nothing to go on from."""


@attrs.frozen(kw_only=True)
class StateOptions:
    """Where a cluster's objects come from and are kept, and what they may be. Without a `journal` (a file) they are not
    kept.

    `begin` fills a new store, if the journal has no cluster yet. `mark_time` is told of the clock's time when it
    was moved and before each write. The journal is compacted after `compact_after` writes. `apart`: a process of its
    own writes it, and holds the state directory's lock as well, of which `lock` is the descriptor.
    """

    journal: Path | None = None
    drop_damaged: bool = False
    leave_out: Collection[ObjectRef] = ()
    compact_after: int = COMPACT_AFTER
    disk: Disk = REAL_DISK
    apart: bool = False
    lock: int | None = None
    mark_time: Callable[[float], None] = nowhere
    begin: Callable[[Store], None] | None = None
    admission: Admission | None = None
    max_object_bytes: int = MAX_OBJECT_BYTES
    service_range: str = SERVICE_RANGE


def open_store(options: StateOptions, clock: Clock, seed: int, rules: Rules) -> tuple[Journal | None, Store]:
    """The journal, and the store restored from it, or a new store. Raises JournalError."""
    kept, store = _open(options, clock, seed, rules)
    store.max_object_bytes = options.max_object_bytes
    store.service_range = options.service_range
    return kept, store


def _open(options: StateOptions, clock: Clock, seed: int, rules: Rules) -> tuple[Journal | None, Store]:
    begin, admission = options.begin, options.admission
    if options.journal is None:
        store = Store(now=clock.now, seed=seed, admission=admission, rules=rules)
        if begin is not None:
            begin(store)
        return None, store
    opened = open_journal(
        options.journal,
        now=clock.now,
        seed=seed,
        admission=admission,
        drop_damaged=options.drop_damaged,
        leave_out=options.leave_out,
        disk=options.disk,
        progress=_log_progress(),
        tell=lambda what: log.warning("journal_damaged", what=what),
    )
    aside = () if opened.store is None else opened.store.set_aside
    for each in aside:
        log.error("object_set_aside", object=str(each.ref), why=each.why, copy=str(each.file))
    for ref in sorted(frozenset(options.leave_out) - {each.ref for each in aside}, key=str):
        log.warning("nothing_to_leave_out", object=str(ref), why="the journal has no such object")
    if opened.store is not None:
        if begin is not None:
            log.warning("dump_not_read", why="the journal has a cluster already, which goes on")
        opened.store.stand_for(rules)
        return opened.journal, opened.store
    store = Store(now=clock.now, seed=seed, admission=admission, rules=rules)
    try:
        if begin is not None:
            begin(store)
        opened.journal.append(store.written_after(0))
    except BaseException:
        opened.journal.close()
        raise
    return opened.journal, store


def _log_progress() -> Callable[[int, int], None]:
    """Say how far the journal has been read, once a second."""
    said = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal said
        if time.monotonic() - said > 1:
            said = time.monotonic()
            log.info("journal", read=f"{done:,} of {total:,} objects and writes")

    return tell


@attrs.define(eq=False)
class EmptyDump(KscheddError):
    """A dump with nothing in it: an empty cluster in its place would be kept by the journal and stand in its way."""

    why: str


def load_origin(read: Callable[[float], Prepared], origin: Collection[str], store: Store) -> None:
    """Fill a new store with the dump that `read` returns for a time; log what was assumed. Raises EmptyDump."""
    cursor = store.watch(None, 0)  # nothing of the log is dropped before the journal has it
    with collection_paused():
        prepared = read(store.now)
        log.info("dump", read=f"{prepared.count:,} objects, which are taken in now")
        taken = run_steps(take_dump(store, prepared))
    for error in taken.errors:
        log.error("dump", what=error)
    for text in prepared.assumptions.texts():
        log.warning("dump", assumed=text)
    if not prepared.count:
        raise EmptyDump(f"--from {', '.join(origin)}: no Kubernetes objects found")
    log.info("dump", loaded=told(prepared.objects) or "nothing", applied=taken.applied)
    cursor.close()
