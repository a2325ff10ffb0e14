"""The daemon's wiring: its actors, the channels between them, their start-up and shutdown.

`cluster_actors` wires the actors, top to bottom: a whole cluster in this process, without a socket, which
`kschedd.serving` adds.

Start-up: the store first, since all other actors watch it. Shutdown: the store closes the watches; the scheduling actor
finishes the placements it has decided and closes its channels; each other actor ends when its senders have closed; when
the last writer has ended, the store ends, then the journal. An exception in an actor is a bug: it cancels all other
actors, is logged with its traceback, and leaves the journal as of the last acknowledged write.
"""

import math
import time
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import structlog
import trio

from kschedd.actors.binding import Answered, BindingActor, BindingBatch
from kschedd.actors.bulletin import Bulletin
from kschedd.actors.clock import Clock
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
from kschedd.config.load import default_config
from kschedd.config.model import Config
from kschedd.controllers.controller import Controller
from kschedd.framework.exclusion import SchedulerLock
from kschedd.framework.faults import PluginError
from kschedd.framework.guard import PLUGIN_LIMIT_S
from kschedd.framework.processes import WorkerProcesses
from kschedd.framework.registry import Registry
from kschedd.limits import DaemonLimits
from kschedd.object_faults import ObjectRef
from kschedd.recording.driver import RecordedDriver
from kschedd.recording.plugins import RecordedRegistry
from kschedd.recording.recorder import RunRecorder
from kschedd.recording.wiring import RecordOptions, as_driver, header_of
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.metrics import SchedulingMetrics
from kschedd.scheduling.scheduler import Choose
from kschedd.startup.state import open_store
from kschedd.store.admission import Admission
from kschedd.store.disk import REAL_DISK, Disk
from kschedd.store.service_addresses import SERVICE_RANGE
from kschedd.store.store import MAX_OBJECT_BYTES, Store
from kschedd.telemetry.exporter import TelemetryExporter

log = structlog.get_logger("kschedd")

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
        kept, store = open_store(journal, clock, seed, drop_damaged, admission, leave_out, begin, config.rules, disk)
        store.max_object_bytes = max_object_bytes
        store.service_range = service_range

    if limits.changed:
        store.keep_history(limits["watch-history"])
        store.keep_admitted(limits["admitted-pods"])
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


def _log_plugin_fault(fault: PluginError) -> None:
    log.warning("plugin_fault", plugin=fault.plugin, method=fault.method, why=fault.why)
