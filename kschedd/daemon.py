"""The daemon: its actors, the channels between them, their start-up and shutdown.

`cluster_actors` wires the actors, top to bottom: a whole cluster in this process, without a socket. `run_daemon`
adds the socket and runs until it is stopped.

Start-up: the store first, since all other actors watch it. Shutdown: the store closes the watches; the scheduling actor
finishes the placements it has decided and closes its channels; each other actor ends when its senders have closed; when
the last writer has ended, the store ends, then the journal. An exception in an actor is a bug: it cancels all other
actors, is logged with its traceback, and leaves the journal as of the last acknowledged write.
"""

import math
import os
import random
import signal
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from functools import partial
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import attrs
import structlog
import trio

from kschedd.access.audit_log import AuditFile, AuditLog
from kschedd.access.credentials import Credentials, ListenSettings
from kschedd.access.listening import open_listeners, raise_file_limit
from kschedd.actors.binding import Answered, BindingActor, BindingBatch
from kschedd.actors.bulletin import Bulletin
from kschedd.actors.clock import REAL, VIRTUAL, Clock
from kschedd.actors.cluster import LiveCluster
from kschedd.actors.controllers import ControllerActor
from kschedd.actors.courtesy import Courtesy
from kschedd.actors.decisions import DecisionRecord, DecisionsActor
from kschedd.actors.decisions import Message as DecisionsMessage
from kschedd.actors.events import EventRecord, EventsActor
from kschedd.actors.events import Message as EventsMessage
from kschedd.actors.extenders import ExtenderClients
from kschedd.actors.filter_workers import FilterWorker, FilterWorkers, Job
from kschedd.actors.journal import COMPACT_AFTER, Commit, JournalActor, Outcome
from kschedd.actors.mailbox import ActorRef, Doorbell, OwnerQuery
from kschedd.actors.permit import Expired
from kschedd.actors.plugin_calls import Called, PluginThreads, run_async
from kschedd.actors.queue import ANSWERS, Popped, QueueActor, QueueUpdate
from kschedd.actors.recording import RecordedActors, RunRecording
from kschedd.actors.scheduling import Inboxes, Outboxes, SchedulingActor
from kschedd.actors.store import Message as StoreMessage
from kschedd.actors.store import StoreActor, StoreClient
from kschedd.actors.time_control import TimeControl
from kschedd.apiserver.serving import http_face
from kschedd.apiserver.version import ServedVersion
from kschedd.config.feature_gates import without_effect
from kschedd.config.flags import with_flags, with_schedulers
from kschedd.config.in_tree import IN_TREE, Catalogue
from kschedd.config.kube_versions import DEFAULT, KubernetesVersion
from kschedd.config.load import default_config, load_config
from kschedd.config.model import Config
from kschedd.config.rules import Rules
from kschedd.controllers.controller import Controller
from kschedd.controllers.embedded import embedded_controllers
from kschedd.controllers.options import ControllerOptions
from kschedd.controllers.parts import Part, admission_without, without_parts
from kschedd.dumps.loading import LoadOptions, read_dump, take_dump, told
from kschedd.errors import KscheddError
from kschedd.framework.exclusion import SchedulerLock
from kschedd.framework.faults import PluginError
from kschedd.framework.guard import PLUGIN_LIMIT_S, START_LIMIT_S
from kschedd.framework.processes import WorkerProcesses
from kschedd.framework.registry import Registry
from kschedd.garbage_collection import collection_paused, freeze_gc, tune_gc
from kschedd.limits import DaemonLimits
from kschedd.object_faults import ObjectRef
from kschedd.printing.safe import safe
from kschedd.recording.driver import RecordedDriver
from kschedd.recording.plugins import RecordedRegistry
from kschedd.recording.recorder import RunRecorder
from kschedd.recording.wiring import RecordOptions, as_driver, header_of
from kschedd.rpc.listener import unix_listener
from kschedd.rpc.methods import daemon_methods
from kschedd.rpc.methods_daemon import DaemonState
from kschedd.rpc.paths import default_socket_path
from kschedd.rpc.protocol import MAX_REQUEST_BYTES, Limits
from kschedd.rpc.pushing import push_metrics
from kschedd.rpc.reloading import Reloading
from kschedd.rpc.remote import AdmissionLimits, RemoteDoor
from kschedd.rpc.sending import Total
from kschedd.rpc.server import Places, Server
from kschedd.rpc.session import SessionLimits, Shared
from kschedd.rpc.table import method_table
from kschedd.rpc.unfinished import Unfinished
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.metrics import SchedulingMetrics
from kschedd.scheduling.scheduler import Choose
from kschedd.shutdown import ORDERLY_S, end_within, heeded, lift_deadline
from kschedd.store.admission import Admission, configured_plugins
from kschedd.store.clock_mark import ClockMark
from kschedd.store.disk import REAL_DISK, Disk
from kschedd.store.journal import Journal
from kschedd.store.journal_salvage import open_journal
from kschedd.store.service_addresses import SERVICE_RANGE
from kschedd.store.state_dir import lock_state_dir
from kschedd.store.store import MAX_OBJECT_BYTES, Store
from kschedd.systemd import READY, STOPPING, ServiceManager
from kschedd.telemetry.exporter import TelemetryExporter
from kschedd.telemetry.otlp import exporting
from kschedd.values import run_steps

log = structlog.get_logger("kschedd")

_NOBODYS_SCHEDULER = "(none)"  # no name of a scheduler
MOVES_LOGGED, SCORES_LOGGED = 5, 10  # from these verbosities on
WAITING_BINDINGS = 1000  # limit on binding cycles that wait for other objects at the same time
PLUGIN_CALLS = 64  # limit on binding cycles whose out-of-tree plugins run at the same time, a thread each


@asynccontextmanager
async def cluster_actors(
    config: Config | None = None,
    *,
    controllers: Sequence[Controller] = (),
    journal: Path | None = None,
    registry: Registry | None = None,
    seed: int = 0,
    choose: Choose | None = None,
    clock: Clock | None = None,
    plugin_limit_s: float = PLUGIN_LIMIT_S,
    drop_damaged: bool = False,
    admission: Admission | None = None,
    store: Store | None = None,
    driver: SchedulingDriver | None = None,
    leave_out: Collection[ObjectRef] = (),
    max_object_bytes: int = MAX_OBJECT_BYTES,
    service_range: str = SERVICE_RANGE,
    begin: Callable[[Store], None] | None = None,
    mark_time: Callable[[float], None] = lambda now_s: None,
    verbosity: int = 0,
    disk: Disk = REAL_DISK,
    record: RecordOptions | None = None,
    compact_after: int = COMPACT_AFTER,
    limits: DaemonLimits | None = None,
    telemetry: TelemetryExporter | None = None,
) -> AsyncIterator[LiveCluster]:
    """Run a cluster while the context is open. With a journal (a file) it starts from the journal's state.

    `mark_time` is told of the clock's time, where it is not the machine's, when it was moved and before each write.
    `store` and `driver`, if given, are used instead of ones built from the other parameters. `begin` fills a new store,
    if the journal has no cluster yet. `verbosity` is kube-scheduler's: from MOVES_LOGGED and SCORES_LOGGED on these are
    logged. Raises JournalError (for a damaged journal only unless `drop_damaged`), PluginLoadError, RecordingError.
    """
    limits = limits or DaemonLimits()
    config = config or default_config()
    clock = clock or Clock.started()
    plain = registry or Registry()
    processes = WorkerProcesses(start_limit_s=plain.start_limit_s)
    record = record or RecordOptions()
    recorder = None if record.file is None else RunRecorder(record.file)
    registry = guarded = RecordedRegistry(
        plain.added,
        limit_s=plugin_limit_s,
        start_limit_s=plain.start_limit_s,
        sources=plain.sources,
        on_fault=_log_plugin_fault,
        run_async=run_async,
        processes=processes,
    )
    metrics = SchedulingMetrics(time.perf_counter, seed)
    started_s = clock.now()
    recording = RunRecording(record, recorder)
    if recorder is not None:
        guarded.recorder = recorder
        with as_driver():
            machine = SchedulingMachine(config, registry=registry, seed=seed, choose=choose, metrics=metrics)
        driver = RecordedDriver(machine, recorder)
        recorder.begin(header_of(record, config, registry, seed, started_s))
    driver = driver or SchedulingDriver(
        SchedulingMachine(config, registry=registry, seed=seed, choose=choose, metrics=metrics)
    )
    kept = None
    if store is None:
        kept, store = _open_store(journal, clock, seed, drop_damaged, admission, leave_out, begin, config.rules, disk)
        store.max_object_bytes = max_object_bytes
        store.service_range = service_range

    if limits.changed:
        store.keep_history(limits["watch-history"])
    driver.debugger.most_breakpoints = limits["breakpoints"]
    table = driver.machine.cluster.table
    table.most_labels, table.most_resources = limits["label-columns"], limits["resource-columns"]

    # To the journal: one batch waits while one is written; beyond that the disk slows down the store and its writers.
    to_journal, journal_in = trio.open_memory_channel[Commit](1)
    # From the journal to the store, which always receives without delay.
    to_kept, kept_in = trio.open_memory_channel[Outcome](0)
    # To the store: the number of requests it serves in one batch.
    to_store, store_in = trio.open_memory_channel[StoreMessage](256)
    # To the scheduling actor: four channels and one doorbell. Sized so that actors which also receive from the
    # scheduling actor never block on it:
    bell = Doorbell()
    # popped pods: the response to the single outstanding request, and unrequested pods of higher priority;
    to_popped, popped_in = trio.open_memory_channel[Popped](ANSWERS)
    # binding results: one for each batch that can exist (8 queued, one executing, one being sent), and spare ones;
    to_answered, answered_in = trio.open_memory_channel[Answered](64)
    # permit waiters, calls of plugins and senders of queries may block.
    to_expired, expired_in = trio.open_memory_channel[Expired](64)
    to_called, called_in = trio.open_memory_channel[Called](64)
    to_driver, driver_in = trio.open_memory_channel[OwnerQuery[SchedulingDriver, Any]](16)
    # To the queue: a few slices of updates, and queries.
    to_queue, queue_in = trio.open_memory_channel[QueueUpdate | OwnerQuery[QueueActor, Any]](8)
    # To the binding actor: a few slices of placements; when the store is slower than that, scheduling waits.
    to_binding, binding_in = trio.open_memory_channel[BindingBatch](8)
    # To the filter workers: each takes one shard; unbuffered, so no shard waits in the channel.
    to_workers, workers_in = trio.open_memory_channel[Job](0)
    # To the event and decision records, which only append.
    to_events, events_in = trio.open_memory_channel[EventsMessage](16)
    to_decisions, decisions_in = trio.open_memory_channel[DecisionsMessage](16)

    stops, courtesy = Bulletin(), Courtesy()

    def mark() -> None:
        if not clock.follows_machine:
            mark_time(clock.now())

    # Taken only where out-of-tree plugins are called.
    lock = SchedulerLock()

    # No limit on threads: each worker awaits its thread, so the number of workers bounds them; a hung thread must not
    # use up a slot.
    threads, at_once = trio.CapacityLimiter(math.inf), trio.CapacityLimiter(config.parallelism)
    actors: trio.Nursery

    def start_worker() -> None:
        worker = FilterWorker(workers_in.clone(), plugin_limit_s, threads, lock, at_once)
        actors.start_soon(worker.run, name=f"filter worker {workers.started}")

    workers = FilterWorkers(to_workers, at_once, start_worker)

    store_client = StoreClient.of(to_store)
    on_write = recording.own  # of the cluster's own controllers, and the scheduler
    store_actor = StoreActor(store, store_in) if kept is None else StoreActor(store, store_in, to_journal, kept_in)
    scheduling_actor = SchedulingActor(
        driver,
        store_client.clone(),
        bell,
        Inboxes(popped_in, answered_in, expired_in, to_expired, called_in, to_called, driver_in),
        Outboxes(
            to_queue,
            to_binding,
            to_events.clone(),
            to_decisions.clone(),
            workers,
            ExtenderClients(driver.machine.registry.costs),
        ),
        clock,
        PluginThreads(trio.CapacityLimiter(PLUGIN_CALLS), lock),
        stops,
        log_scores=verbosity >= SCORES_LOGGED,
        must_wait=lambda: recording.behind,
        telemetry=telemetry,
        courtesy=courtesy,
    )
    queue_actor = QueueActor(
        driver.queue_configuration(),
        queue_in,
        to_popped,
        bell,
        clock,
        lock,
        log_moves=verbosity >= MOVES_LOGGED,
        moves_kept=limits["queue-moves"],
        courtesy=courtesy,
    )
    driver.machine.handle.evicting = queue_actor.operations.evicting  # called by a plugin that the queue calls
    binding_actor = BindingActor(
        binding_in, store_client.clone(on_write), to_answered, bell, trio.CapacityLimiter(WAITING_BINDINGS)
    )
    controller_actors = [ControllerActor(controller, store_client.clone(on_write), clock) for controller in controllers]

    scheduler: ActorRef[SchedulingDriver] = ActorRef("scheduler", to_driver, bell)
    live = LiveCluster(
        store_client,
        scheduler,
        ActorRef("queue", to_queue.clone()),
        ActorRef("events", to_events),
        ActorRef("decisions", to_decisions),
        clock,
        seed,
        journal,
        uuid.uuid4().hex if kept is None else kept.epoch,
        started_s,
        TimeControl(
            clock,
            lambda: scheduler.query(lambda owner: owner.working),
            lambda: scheduler.query(lambda owner: owner.debugger.stops),
            mark,
        ),
        stops,
        recording,
        controller_actors,
        () if kept is None else tuple(store.set_aside),
        binding_actor.metrics,
        courtesy,
    )
    recording.actors = RecordedActors(live.scheduler, live.queue, store_client, guarded, seed, clock.now)
    failure: BaseException | None = None
    with closing(processes), closing(recording):
        async with trio.open_nursery() as actors:
            if kept is not None:
                journal_actor = JournalActor(kept, journal_in, to_kept, compact_after, mark)
                actors.start_soon(journal_actor.run, name="journal")
            actors.start_soon(store_actor.run, name="store")
            actors.start_soon(
                EventsActor(EventRecord(limits["event-series"], uuid.uuid4().hex), events_in).run, name="events"
            )
            actors.start_soon(DecisionsActor(DecisionRecord(limits["decisions"]), decisions_in).run, name="decisions")
            actors.start_soon(binding_actor.run, name="binding")
            actors.start_soon(queue_actor.run, name="queue")
            actors.start_soon(scheduling_actor.run, name="scheduling")
            for actor in controller_actors:
                actors.start_soon(actor.run, name=actor.name)
            try:
                yield live
            except BaseException as raised:
                if isinstance(raised, trio.Cancelled | GeneratorExit):
                    raise
                failure = raised  # raised again outside, so that the nursery does not wrap it in a group
            await live.end()
    mark()
    workers_in.close()
    if failure is not None:
        raise failure


def _log_progress() -> Callable[[int, int], None]:
    """Say how far the journal has been read, once a second."""
    said = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal said
        if time.monotonic() - said > 1:
            said = time.monotonic()
            log.info("journal", read=f"{done:,} of {total:,} objects and writes")

    return tell


def without_scheduler(config: Config) -> Config:
    """The configuration of a scheduler that no pod can name: all of them are left to others."""
    return attrs.evolve(config, profiles=(attrs.evolve(config.profiles[0], scheduler_name=_NOBODYS_SCHEDULER),))


def _log_plugin_fault(fault: PluginError) -> None:
    log.warning("plugin_fault", plugin=fault.plugin, method=fault.method, why=fault.why)


def _open_store(
    file: Path | None,
    clock: Clock,
    seed: int,
    drop_damaged: bool,
    admission: Admission | None,
    leave_out: Collection[ObjectRef],
    begin: Callable[[Store], None] | None,
    rules: Rules,
    disk: Disk,
) -> tuple[Journal | None, Store]:
    """The journal, and the store restored from it, or a new store. Raises JournalError."""
    if file is None:
        store = Store(now=clock.now, seed=seed, admission=admission, rules=rules)
        if begin is not None:
            begin(store)
        return None, store
    opened = open_journal(
        file,
        now=clock.now,
        seed=seed,
        admission=admission,
        drop_damaged=drop_damaged,
        leave_out=leave_out,
        disk=disk,
        progress=_log_progress(),
    )
    for what in opened.lost:
        log.warning("journal_damaged", what=what)
    aside = () if opened.store is None else opened.store.set_aside
    for each in aside:
        log.error("object_set_aside", object=str(each.ref), why=each.why, copy=str(each.file))
    for ref in sorted(frozenset(leave_out) - {each.ref for each in aside}, key=str):
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


@attrs.frozen
class DaemonOptions:
    """The daemon's options. None means the option's default."""

    socket: Path | None = None
    config_file: Path | None = None
    plugin_files: tuple[Path, ...] = ()
    state_dir: Path | None = None  # None: no persistence
    seed: int | None = None  # None: random
    log_level: str = "info"
    verbosity: int = 0  # kube-scheduler's; of what is logged at level debug, which parts
    controller_options: ControllerOptions = attrs.field(factory=ControllerOptions)
    without: frozenset[Part] = frozenset()  # parts of the cluster that others play
    audit: AuditFile | None = None  # log of writes
    otlp_endpoint: str = ""  # where traces and metrics are pushed to; "" nowhere
    limits: DaemonLimits = attrs.field(factory=DaemonLimits)
    listen: ListenSettings | None = None  # the socket on TCP as well
    http: ListenSettings | None = None  # Kubernetes' REST API as well
    enable_admission: tuple[str, ...] = ()  # admission plugins
    disable_admission: tuple[str, ...] = ()
    plugin_limit_s: float = PLUGIN_LIMIT_S
    plugin_start_limit_s: float = START_LIMIT_S  # for importing a plugin, and for constructing it
    leave_out: tuple[ObjectRef, ...] = ()  # do not restore these objects
    max_request_body_bytes: int = MAX_REQUEST_BYTES
    max_object_bytes: int = MAX_OBJECT_BYTES
    service_range: str = SERVICE_RANGE
    version: KubernetesVersion = DEFAULT  # whose decisions are made
    feature_gates: Mapping[str, bool] = attrs.field(factory=dict)
    unschedulable_flush_s: int | None = None
    origin: tuple[str, ...] = ()  # a dump that a new cluster starts as
    keep_secrets: bool = False  # the data of Secrets and ConfigMaps of the dump
    schedulers: Mapping[str, str] = {}  # of pods' schedulerName: the profile as by which they are scheduled
    speed: float = REAL  # seconds of the cluster in a real one; 0: virtual
    start_s: float | None = None  # the time at the first start; None: EPOCH where time is virtual, else the machine's
    record_file: Path | None = None  # a new file, into which the run is recorded
    drop_damaged: bool = False  # move a damaged journal aside and start with its intact part


@attrs.define(eq=False)
class UnreadableFile(KscheddError):
    """A file named in the options that cannot be read."""

    file: str
    why: str

    def __str__(self) -> str:
        return f"{self.file}: cannot be read: {self.why}"


SWITCH_S = 0.001  # thread switch interval; Python's default of 5 ms delays the event loop by up to 20 ms in one request
EPOCH = 1_735_689_600.0  # 2025-01-01T00:00:00Z: the start of virtual time, as in simulations
BUG = 70  # exit status: internal software error, EX_SOFTWARE in sysexits.h


async def run_daemon(options: DaemonOptions, *, task_status: trio.TaskStatus[Path] = trio.TASK_STATUS_IGNORED) -> int:
    """Run until SIGTERM, SIGINT or `daemon.stop`; returns the exit status. Reports the socket's path once it serves.

    Raises KscheddError for faults in options, configuration, plugins, state or socket.
    """
    configure_log(options.log_level)
    tune_gc()
    sys.setswitchinterval(SWITCH_S)
    config, registry = read_options(options)
    admission = admission_of(options, registry)
    with lock_state_dir(options.state_dir) as state:
        try:
            await _serve(options, config, registry, admission, state, task_status)
        except Exception as raised:  # the one place where a bug is logged
            error = _only(raised)
            if isinstance(error, KscheddError):
                raise error from None
            log.critical("bug", what="the daemon has stopped because of a fault of its own", exc_info=raised)
            return BUG
        finally:
            lift_deadline()
    log.info("stopped")
    return 0


async def _serve(
    options: DaemonOptions,
    config: Config,
    registry: Registry,
    admission: Admission,
    state: Path | None,
    task_status: trio.TaskStatus[Path],
) -> None:
    path, limits = (options.socket or default_socket_path()).absolute(), options.limits
    seed = random.SystemRandom().getrandbits(32) if options.seed is None else options.seed
    signals: list[signal.Signals] = []
    daemon: DaemonState | None = None
    serving: trio.Nursery | None = None
    reload = trio.Event()
    manager = ServiceManager.of(os.environ, os.getpid())

    def told(number: signal.Signals, count: int) -> None:
        log.info("signal", name=number.name)
        signals.append(number)
        if daemon is not None:
            daemon.stop.set()
        if count > 1 and serving is not None:
            serving.cancel_scope.cancel()  # a second signal disconnects the clients

    async with AsyncExitStack() as opened:
        opened.enter_context(
            heeded(told, lambda: reload.set())
        )  # first, so that signals are handled until the journal is closed
        # Refused before anything else is begun.
        http = None if options.http is None else options.http.load()
        remote = None if options.listen is None else await _remote_door(options.listen.load(), limits, opened)
        raise_file_limit()
        listener = await opened.enter_async_context(unix_listener(path))
        telemetry = None
        if options.otlp_endpoint:
            telemetry = opened.enter_context(exporting(options.otlp_endpoint, version()))
        taking = LoadOptions(options.keep_secrets, profiles=config.scheduler_names)
        mark = None if state is None else opened.enter_context(closing(ClockMark(state)))
        cluster = await opened.enter_async_context(
            cluster_actors(
                config,
                controllers=without_parts(embedded_controllers(options=options.controller_options), options.without),
                journal=None if state is None else state / "journal.db",
                registry=registry,
                seed=seed,
                plugin_limit_s=options.plugin_limit_s,
                drop_damaged=options.drop_damaged,
                admission=admission,
                leave_out=options.leave_out,
                max_object_bytes=options.max_object_bytes,
                service_range=options.service_range,
                begin=partial(_load, taking, options.origin) if options.origin else None,
                clock=started_clock(options, mark),
                mark_time=_nowhere if mark is None else mark.write,
                verbosity=options.verbosity,
                record=RecordOptions(options.record_file, options.controller_options, options.without, version()),
                limits=limits,
                telemetry=telemetry,
            )
        )
        audit = None if options.audit is None else await opened.enter_async_context(_audit_log(options.audit, limits))
        face = None
        if http is not None:
            limit = options.max_request_body_bytes
            served = ServedVersion.of(config)
            face = await opened.enter_async_context(
                http_face(
                    http,
                    cluster,
                    version(),
                    limit,
                    options.service_range,
                    options.without,
                    served,
                    audit,
                    limits["http-connections"],
                )
            )
        daemon = DaemonState(version(), str(path), cluster.clock.now(), options.max_request_body_bytes)
        identity = {
            "server": "kschedd",
            "version": daemon.version,
            "pid": os.getpid(),
            "epoch": cluster.epoch,
            "max_request_body_bytes": options.max_request_body_bytes,
            **({} if face is None else {"http": face.url}),
        }
        daemon.limits = limits
        terms = SessionLimits(
            limits["requests"],
            limits["streams"],
            limits["unread"],
            limits["unread-time"],
            Limits.of_requests(options.max_request_body_bytes),
        )
        places = Places(
            limits["clients"],
            limits["clients-in-reserve"],
            limits["clients-of-one-process"],
            remote=limits["clients-on-tcp"],
        )
        shared = Shared(
            audit=audit,
            total=Total(limits["unread-of-all"]),
            unfinished=Unfinished(limits["unfinished-of-all"]),
            courtesy=cluster.courtesy,
        )
        methods = method_table(daemon_methods(cluster, daemon))
        server = Server(methods, identity=identity, terms=terms, places=places, shared=shared)
        daemon.clients = server.describe_clients
        daemon.usage |= server.usage()
        parts = {"unauthenticated": remote, "http-connections": face, "audited": audit}
        daemon.usage |= {name: part.used for name, part in parts.items() if part is not None}
        reloading = Reloading(
            cluster,
            options.plugin_files,
            None if options.config_file is None else partial(read_config, options),
            [door for door in (http, None if remote is None else remote.credentials) if door is not None],
            log,
        )

        async def reloads() -> None:
            nonlocal reload
            while True:
                await reload.wait()
                reload = trio.Event()
                manager.tell_reloading()
                whole = await reloading.run()
                manager.tell(READY, f"STATUS={'read again' if whole else 'some files could not be used: see the log'}")

        async with trio.open_nursery() as nursery:
            serving = nursery
            if signals:
                daemon.stop.set()  # signals that arrived during start-up
            await nursery.start(server.serve, [listener], remote)
            if remote is not None:
                _tell_of(remote)
            if face is not None:
                await nursery.start(face.run)
                log.info("http", url=face.url)
            log.info("started", socket=str(path), seed=seed, journal=str(cluster.journal) if state else None)
            freeze_gc()
            nursery.start_soon(manager.watchdog, partial(_alive, cluster))
            manager.tell(READY, f"STATUS=at {path}")
            task_status.started(path)
            nursery.start_soon(reloads)
            if telemetry is not None:
                nursery.start_soon(push_metrics, cluster, telemetry)
            await daemon.stop.wait()
            log.info("stopping", grace_s=daemon.grace_s)
            manager.tell(STOPPING)
            end_within(daemon.grace_s + ORDERLY_S)
            server.shut_down(daemon.grace_s)
            if face is not None:
                face.shut_down(daemon.grace_s)
            while server.clients:  # noqa: ASYNC110 - sessions end by themselves, within the grace period
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel()


async def _alive(cluster: LiveCluster) -> None:
    """Returns once those have answered on whom all else depends."""
    await cluster.store.do(lambda store: store.version)
    await cluster.scheduler.query(lambda owner: owner.working)


async def _remote_door(credentials: Credentials, limits: DaemonLimits, opened: AsyncExitStack) -> RemoteDoor:
    """Raises AccessError where the address cannot be used."""
    listeners = await open_listeners(credentials.settings)
    for listener in listeners:
        await opened.enter_async_context(listener)
    waiting = AdmissionLimits(limits["unauthenticated"], limits["unauthenticated-time"])
    return RemoteDoor(listeners, credentials, waiting)


@asynccontextmanager
async def _audit_log(file: AuditFile, limits: DaemonLimits) -> AsyncIterator[AuditLog]:
    """Written while the context is open, and then to its end. Raises AccessError."""
    audit = AuditLog(file, most_waiting=limits["audited"])
    async with trio.open_nursery() as nursery:
        await nursery.start(audit.run)
        try:
            yield audit
        finally:
            audit.close()


def _tell_of(remote: RemoteDoor) -> None:
    users = remote.credentials.tokens.users
    log.info(
        "listening",
        address=remote.url,
        tls=remote.credentials.tls is not None,
        tokens=len(users),
        read_only=sum(user.read_only for user in users),
    )
    if remote.credentials.tls is None:
        log.warning("listening", what=f"{remote.url} has no TLS: it is for this machine only, and for tunnels to it")


def _load(options: LoadOptions, origin: Collection[str], store: Store) -> None:
    """Fill a new store with a dump; what was assumed is logged."""
    cursor = store.watch(None, 0)  # nothing of the log is dropped before the journal has it
    log.info("dump", reading=", ".join(origin))
    with collection_paused():
        prepared = read_dump(origin, options, stdin=sys.stdin.buffer, now=store.now)
        log.info("dump", read=f"{prepared.count:,} objects, which are taken in now")
        taken = run_steps(take_dump(store, prepared))
    for error in taken.errors:
        log.error("dump", what=error)
    for text in prepared.assumptions.texts():
        log.warning("dump", assumed=text)
    if prepared.count:
        log.info("dump", loaded=told(prepared.objects) or "nothing", applied=taken.applied)
    else:
        log.warning("dump", what="there is no object of Kubernetes in what was given: the cluster is empty")
    cursor.close()


def started_clock(options: DaemonOptions, mark: ClockMark | None) -> Clock:
    """The clock that the options ask for; one that is not the machine's goes on from its mark."""
    if options.speed == REAL and options.start_s is None:
        return Clock.started()
    kept = None if mark is None else mark.read()
    first = EPOCH if options.start_s is None and options.speed == VIRTUAL else options.start_s
    clock = Clock.started(first if kept is None else kept, options.speed)
    if mark is not None:
        mark.write(clock.now())
    return clock


def _nowhere(now_s: float) -> None:
    """Without a state directory there is nothing to go on from."""


def read_options(options: DaemonOptions) -> tuple[Config, Registry]:
    """Load the configuration and plugins of the options. Raises ConfigErrors, PluginLoadError, UnreadableFile."""
    registry = Registry(start_limit_s=options.plugin_start_limit_s)
    registry.add_entry_points()
    for file in options.plugin_files:
        registry.add_file(file)
    return read_config(options, {**IN_TREE, **registry.catalogue()}), registry


def read_config(options: DaemonOptions, catalogue: Catalogue) -> Config:
    """The configuration by file and flags. Raises ConfigErrors, UnreadableFile."""
    version, gates = options.version, options.feature_gates
    if options.config_file is None:
        config = default_config(catalogue=catalogue, version=version, feature_gates=gates)
    else:
        try:
            text = options.config_file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as wrong:
            raise UnreadableFile(str(options.config_file), getattr(wrong, "strerror", None) or str(wrong)) from wrong
        config = load_config(text, str(options.config_file), catalogue=catalogue, version=version, feature_gates=gates)
    for warning in config.warnings:
        log.warning("config", what=str(warning))
    for gate in without_effect(gates, version.gates):
        log.warning("config", what=f"--feature-gates: {gate} has no effect here: nothing depends on it")
    config = with_flags(config, gates, options.unschedulable_flush_s)
    config = with_schedulers(config, options.schedulers)
    return without_scheduler(config) if "scheduler" in options.without else config


def version() -> str:
    try:
        return installed_version("kschedd")
    except PackageNotFoundError:
        return "not installed"


class _Stderr:
    """The current `sys.stderr` at each write. Write errors are ignored: the daemon continues without a log reader."""

    def write(self, text: str) -> None:
        try:
            sys.stderr.write(safe(text, colour=sys.stderr.isatty()))
        except OSError:
            self._give_up()

    def flush(self) -> None:
        try:
            sys.stderr.flush()
        except OSError:
            self._give_up()

    def _give_up(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stderr.fileno())
        os.close(nowhere)


LEVELS = ("debug", "info", "warning", "error")


def configure_log(level: str) -> None:
    """Log structured lines of this level and above to standard error."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            # Not with the local variables of every frame, which takes seconds and thousands of lines.
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            ),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(_Stderr()),  # type: ignore[arg-type]
        cache_logger_on_first_use=False,
    )


def _only(error: BaseException) -> BaseException:
    """The exception inside nested groups of one exception."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def admission_of(options: DaemonOptions, registry: Registry) -> Admission:
    """The admission chain of the options. Raises UnknownAdmissionPlugin, PluginLoadError."""
    configured = configured_plugins(options.enable_admission, options.disable_admission, registry.validating)
    others = registry.validating_plugins()
    return Admission({**admission_without(options.without), **configured}, others)
