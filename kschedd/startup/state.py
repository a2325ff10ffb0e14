"""The store with which a daemon starts: restored from its journal, filled from a dump, or new.

Objects that are lost or set aside are logged, and so are assumptions. Raises JournalError if the journal cannot be
used.
"""

import time
from collections.abc import Callable, Collection
from pathlib import Path

import attrs
import structlog

from kschedd.actors.clock import Clock
from kschedd.actors.objects.journal import COMPACT_AFTER
from kschedd.api.simulation.pod_behavior import PodBehavior
from kschedd.api.simulation.standard_class import STANDARD_CLASS
from kschedd.config.versions.rules import Rules
from kschedd.dumps.loading import Prepared, kind_counts, take_dump
from kschedd.errors import KscheddError
from kschedd.garbage_collection import collection_paused
from kschedd.object_faults import ObjectRef
from kschedd.store.admission.chain import Admission
from kschedd.store.creating.service_addresses import SERVICE_RANGE
from kschedd.store.journal.disk import REAL_DISK, Disk
from kschedd.store.journal.journal import Journal
from kschedd.store.journal.salvage import open_journal
from kschedd.store.journal.state_dir import note_dump
from kschedd.store.store import MAX_OBJECT_BYTES, Store
from kschedd.store.webhooks.modes import WebhookMode
from kschedd.values import run_steps

log = structlog.get_logger("kschedd")


def nowhere(now_s: float) -> None:
    """Ignore the time, because nothing is stored without a state directory."""


@attrs.frozen(kw_only=True)
class StateOptions:
    """Options of the store. Without a `journal` file, no objects are stored on disk.

    `begin` fills a new store if the journal contains no cluster yet. `mark_time` is called with the clock's time after
    the clock was moved and before each write. The journal is compacted after `compact_after` writes. With `apart`, a
    separate process writes the journal; this process also holds the lock of the state directory, whose descriptor is
    `lock`.
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
    webhooks: WebhookMode = "skip"
    pod_behavior: PodBehavior | None = None
    bootstrap_policy: bool = False  # create the default roles and bindings that do not exist
    default_class: bool = False  # whether to create the default StorageClass in a new cluster


def open_store(options: StateOptions, clock: Clock, seed: int, rules: Rules) -> tuple[Journal | None, Store]:
    """Return the journal and the store that is restored from it, or a new store. Raises JournalError."""
    kept, store = _open(options, clock, seed, rules)
    store.max_object_bytes = options.max_object_bytes
    store.service_range = options.service_range
    store.set_webhook_mode(options.webhooks)
    store.simulate_pods(options.pod_behavior)
    return kept, store


def _open(options: StateOptions, clock: Clock, seed: int, rules: Rules) -> tuple[Journal | None, Store]:
    begin, admission = options.begin, options.admission
    if options.journal is None:
        store = Store(now=clock.now, seed=seed, admission=admission, rules=rules)
        _fill(store, options)
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
        report=lambda what: log.warning("journal_damaged", what=what),
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
        before = opened.store.version
        if opened.journal.state.reserved:  # clients may have received renewals of Leases, which are not persisted
            opened.store.renew_all_leases()
        if options.bootstrap_policy:
            opened.store.seed_bootstrap_policy()
        opened.journal.append(opened.store.written_after(before))
        return opened.journal, opened.store
    store = Store(now=clock.now, seed=seed, admission=admission, rules=rules)
    try:
        _fill(store, options)
        opened.journal.append(store.written_after(0))
    except BaseException:
        opened.journal.close()
        raise
    return opened.journal, store


def _fill(store: Store, options: StateOptions) -> None:
    """Create the initial objects of a new cluster."""
    if options.begin is not None:
        options.begin(store)
        if options.journal is not None:
            note_dump(options.journal.parent)
    if options.bootstrap_policy:
        store.seed_bootstrap_policy()
    if options.default_class:
        store.create(STANDARD_CLASS)


def _log_progress() -> Callable[[int, int], None]:
    """Return a function that logs the progress of reading the journal once a second."""
    shown_at = time.monotonic()

    def show_progress(done: int, total: int) -> None:
        nonlocal shown_at
        if time.monotonic() - shown_at > 1:
            shown_at = time.monotonic()
            log.info("journal", read=f"{done:,} of {total:,} objects and writes")

    return show_progress


@attrs.define(eq=False)
class EmptyDump(KscheddError):
    """A dump without objects.

    The journal would contain an empty cluster, and a later start would use this cluster instead of the dump.
    """

    why: str


def load_origin(read: Callable[[float], Prepared], origin: Collection[str], clock: Clock, store: Store) -> None:
    """Fill a new store with the dump that `read` returns, and log the assumptions. Raises EmptyDump.

    The cluster's time starts no earlier than the latest time in the dump.
    """
    cursor = store.watch(None, 0)  # no event is deleted from the store's log before the journal contains it
    with collection_paused():
        prepared = read(store.now)
        clock.move_to(prepared.taken_at or store.now)
        log.info("dump", read=f"{prepared.count:,} objects, now being loaded")
        taken = run_steps(take_dump(store, prepared))
    for error in taken.errors:
        log.error("dump", what=error)
    for text in prepared.assumptions.texts():
        log.warning("dump", assumed=text)
    if not prepared.count:
        raise EmptyDump(f"--from {', '.join(origin)}: no Kubernetes objects found")
    log.info("dump", loaded=kind_counts(prepared.objects) or "nothing", applied=taken.applied)
    cursor.close()
