"""The setup of the daemon: its actors, the channels between them, their startup and shutdown.

`cluster_actors` runs a whole cluster in this process, without a socket; `kschedd.serving` adds the socket. `_wire`
opens the channels and starts the actors, top to bottom.

Startup: the store starts first, because all other actors watch it. Shutdown: the store closes the watches; the
scheduling actor finishes the placements it has decided and closes its channels; each other actor ends when its senders
have closed; when the last writer has ended, the store ends, then the journal. An exception in an actor is a bug: it
cancels all other actors, is logged with its traceback, and leaves the journal as of the last acknowledged write.
"""

import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from typing import Any

import attrs
import structlog
import trio

from kschedd.actors.bulletin import Bulletin
from kschedd.actors.clock import Clock
from kschedd.actors.cluster import LiveCluster
from kschedd.actors.controllers import ControllerActor
from kschedd.actors.courtesy import Courtesy
from kschedd.actors.log import LogActor
from kschedd.actors.log import Message as LogMessage
from kschedd.actors.mailbox import ActorRef, Doorbell, OwnerQuery, rung_from_threads
from kschedd.actors.objects.durable_log import JournalProcess, JournalThread
from kschedd.actors.objects.journal import MOST_COMMITS, Commit, JournalActor, Outcome
from kschedd.actors.objects.store import Message as StoreMessage
from kschedd.actors.objects.store import StoreActor, StoreClient
from kschedd.actors.queue import ANSWERS, Popped, QueueActor, QueueUpdate
from kschedd.actors.recording import RecordedActors, RunRecording
from kschedd.actors.scheduler.binding import Answered, BindingActor, BindingBatch
from kschedd.actors.scheduler.extenders import ExtenderClients
from kschedd.actors.scheduler.filter_workers import FilterWorkers
from kschedd.actors.scheduler.permit import Expired
from kschedd.actors.scheduler.plugin_calls import Called, PluginThreads, run_async
from kschedd.actors.scheduler.scheduling import Inboxes, Outboxes, SchedulingActor
from kschedd.actors.time_control import TimeControl
from kschedd.config.loading.load import default_config
from kschedd.config.model import Config
from kschedd.controllers.running.controller import Controller
from kschedd.framework.exclusion import SchedulerLock
from kschedd.framework.faults import PluginError
from kschedd.framework.guard import PLUGIN_LIMIT_S
from kschedd.framework.guarding.processes import WorkerProcesses
from kschedd.framework.registry import Registry
from kschedd.limits import DaemonLimits
from kschedd.live.binding import RemoteBindingActor
from kschedd.live.remote import MirroredCluster
from kschedd.log.events import SchedulerEvent
from kschedd.log.log import Log
from kschedd.recording.inputs import DriverNotes, QueueNotes
from kschedd.recording.plugins import RecordedRegistry
from kschedd.recording.recorder import RunRecorder
from kschedd.recording.wiring import RecordOptions, as_driver, header_of
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.profiles.metrics import SchedulingMetrics
from kschedd.startup.state import StateOptions, open_store
from kschedd.store.journal.journal import Journal
from kschedd.store.store import Store
from kschedd.telemetry.exporter import TelemetryExporter

log = structlog.get_logger("kschedd")

MOVES_LOGGED, SCORES_LOGGED = 5, 10  # minimum verbosities at which queue moves and scores are logged
WAITING_BINDINGS = 1000  # maximum number of binding cycles that wait for other objects at the same time
PLUGIN_CALLS = 64  # maximum number of binding cycles whose out-of-tree plugins run at the same time, each in a thread


@attrs.frozen(kw_only=True)
class _Parts:
    """The objects that the actors contain or share, before any actor runs.

    `kept`: the journal; None without one.
    """

    config: Config
    clock: Clock
    seed: int
    store: Store
    kept: Journal | None
    state: StateOptions
    driver: SchedulingDriver
    registry: RecordedRegistry
    recorder: RunRecorder | None
    recording: RunRecording
    controllers: Sequence[Controller]
    plugin_limit_s: float
    verbosity: int
    limits: DaemonLimits
    telemetry: TelemetryExporter | None
    remote: MirroredCluster | None
    started_s: float

    def mark_time(self) -> None:
        self.state.mark_time(self.clock.now())


@asynccontextmanager
async def cluster_actors(
    config: Config | None = None,
    *,
    controllers: Sequence[Controller] = (),
    state: StateOptions | None = None,
    registry: Registry | None = None,
    seed: int = 0,
    clock: Clock | None = None,
    plugin_limit_s: float = PLUGIN_LIMIT_S,
    store: Store | None = None,
    driver: SchedulingDriver | None = None,
    verbosity: int = 0,
    record: RecordOptions | None = None,
    limits: DaemonLimits | None = None,
    telemetry: TelemetryExporter | None = None,
    remote: MirroredCluster | None = None,
) -> AsyncIterator[LiveCluster]:
    """Run a cluster while the context is open. With a journal, the cluster starts from the journal's state.

    `store` and `driver` are used if given; otherwise they are created from the other parameters. If there is a `remote`
    cluster, the scheduler's writes are sent to it; this cluster must then be a mirror of the remote cluster.
    `verbosity` has the meaning of kube-scheduler's flag -v: queue moves are logged from MOVES_LOGGED, scores from
    SCORES_LOGGED. Raises JournalError (for a damaged journal only unless `state.drop_damaged`), PluginLoadError,
    RecordingError.
    """
    config, limits = config or default_config(), limits or DaemonLimits()
    clock, state = clock or Clock.started(), state or StateOptions()
    started_s = clock.now()
    registry = registry or Registry()
    processes = WorkerProcesses(start_limit_s=registry.start_limit_s)
    guarded = _guarded(registry, plugin_limit_s, processes)
    record = record or RecordOptions()
    recorder = None if record.file is None else RunRecorder(record.file)
    driver = driver or _driver(config, guarded, seed, record, recorder, started_s)
    kept = None
    if store is None:
        kept, store = open_store(state, clock, seed, config.rules)
    _bound(store, driver, limits)
    parts = _Parts(
        config=config,
        clock=clock,
        seed=seed,
        store=store,
        kept=kept,
        state=state,
        driver=driver,
        registry=guarded,
        recorder=recorder,
        recording=RunRecording(record, recorder),
        controllers=controllers,
        plugin_limit_s=plugin_limit_s,
        verbosity=verbosity,
        limits=limits,
        telemetry=telemetry,
        remote=remote,
        started_s=started_s,
    )
    failure: BaseException | None = None
    with closing(processes), closing(parts.recording):
        async with trio.open_nursery() as actors:
            live = _wire(parts, actors)
            try:
                yield live
            except BaseException as raised:
                if isinstance(raised, trio.Cancelled | GeneratorExit) or (
                    isinstance(raised, BaseExceptionGroup) and raised.subgroup(trio.Cancelled) is not None
                ):
                    raise  # an actor has failed; the nursery raises its exception
                failure = raised  # raised again outside, so that the nursery does not wrap it in a group
            await live.end()
    parts.mark_time()
    if failure is not None:
        raise failure


def _wire(parts: _Parts, actors: trio.Nursery) -> LiveCluster:
    """Open the channels, and start the actors that communicate over them."""
    store, kept, driver, clock = parts.store, parts.kept, parts.driver, parts.clock
    recording, limits = parts.recording, parts.limits
    # To the journal: the capacity is one batch, which is collected while the previous batch is written. A slow journal
    # slows down the store and its writers.
    to_journal, journal_in = trio.open_memory_channel[Commit](MOST_COMMITS)
    # From the journal to the store. The capacity is 0, because the store always receives immediately.
    to_kept, kept_in = trio.open_memory_channel[Outcome](0)
    # To the store: the capacity is the number of requests that the store executes in one batch.
    to_store, store_in = trio.open_memory_channel[StoreMessage](256)
    # To the scheduling actor: four channels and one doorbell. The capacities are chosen so that actors which also
    # receive from the scheduling actor never block on these channels:
    bell = Doorbell()
    # popped pods: the response to the single pending request, and unrequested pods of higher priority;
    to_popped, popped_in = trio.open_memory_channel[Popped](ANSWERS)
    # binding results: one for each batch that can exist (8 queued, one executing, one being sent), and some in reserve;
    to_answered, answered_in = trio.open_memory_channel[Answered](64)
    # permit timeouts; calls of plugins and senders of queries may block.
    to_expired, expired_in = trio.open_memory_channel[Expired](64)
    to_called, called_in = trio.open_memory_channel[Called](64)
    to_driver, driver_in = trio.open_memory_channel[OwnerQuery[SchedulingDriver, Any]](16)
    # To the queue: the capacity is a few slices of updates, and queries.
    to_queue, queue_in = trio.open_memory_channel[QueueUpdate | OwnerQuery[QueueActor, Any]](8)
    # To the binding actor: the capacity is a few slices of placements; if the store is slow, scheduling waits.
    to_binding, binding_in = trio.open_memory_channel[BindingBatch](8)
    # To the log: the capacity is small, because the log only appends entries.
    to_log, log_in = trio.open_memory_channel[LogMessage](16)

    stops, courtesy = Bulletin(), Courtesy()
    # Acquired only for calls of out-of-tree plugins.
    lock = SchedulerLock()

    workers = FilterWorkers(parts.config.parallelism, parts.plugin_limit_s, lock, actors)
    store_client = StoreClient.of(to_store)
    on_write = recording.own  # records the writes of the cluster's own controllers and of the scheduler
    store_actor = StoreActor(store, store_in) if kept is None else StoreActor(store, store_in, to_journal, kept_in)
    waiting, remote = trio.CapacityLimiter(WAITING_BINDINGS), parts.remote
    binding_actor: BindingActor | RemoteBindingActor
    has_room = None
    if remote is None:
        binding_actor = BindingActor(binding_in, store_client.clone(on_write), to_answered, bell, waiting)
    else:
        there = remote.binding_actor(binding_in, store_client.clone(), to_answered, bell, waiting, parts.config.rules)
        binding_actor, has_room = there, lambda: there.has_room
    scheduling_actor = SchedulingActor(
        driver,
        store_client.clone(),
        bell,
        Inboxes(popped_in, answered_in, expired_in, to_expired, called_in, to_called, driver_in),
        Outboxes(
            to_queue,
            to_binding,
            to_log.clone(),
            workers,
            ExtenderClients(driver.machine.registry.costs),
        ),
        clock,
        PluginThreads(trio.CapacityLimiter(PLUGIN_CALLS), lock),
        stops,
        log_scores=parts.verbosity >= SCORES_LOGGED,
        must_wait=lambda: recording.behind,
        has_room=has_room,
        telemetry=parts.telemetry,
        courtesy=courtesy,
    )
    queue_actor = QueueActor(
        driver.config_changes.for_queue(),
        queue_in,
        to_popped,
        to_log.clone(),
        bell,
        clock,
        lock,
        log_moves=parts.verbosity >= MOVES_LOGGED,
        courtesy=courtesy,
    )
    if parts.recorder is not None:
        queue_actor.operations.listener = QueueNotes(parts.recorder)
    handle = driver.machine.handle
    handle.evicting = queue_actor.operations.evicting  # a plugin calls this function while the queue calls that plugin
    handle.leaving = queue_actor.operations.leaving
    handle.lock, handle.changed = lock, rung_from_threads(bell)
    controller_actors = [
        ControllerActor(controller, store_client.clone(on_write), clock) for controller in parts.controllers
    ]

    scheduler: ActorRef[SchedulingDriver] = ActorRef("scheduler", to_driver, bell)
    live = LiveCluster(
        store_client,
        scheduler,
        ActorRef("queue", to_queue.clone()),
        ActorRef("log", to_log),
        clock,
        parts.seed,
        parts.state.journal,
        uuid.uuid4().hex if kept is None else kept.epoch,
        parts.started_s,
        TimeControl(
            clock,
            lambda: scheduler.query(lambda owner: owner.working),
            lambda: scheduler.query(lambda owner: owner.debugger.stops),
            parts.mark_time,
        ),
        stops,
        recording,
        controller_actors,
        () if kept is None else tuple(store.set_aside),
        binding_actor.metrics,
        courtesy,
    )
    recording.actors = RecordedActors(live.scheduler, live.queue, store_client, parts.registry, parts.seed, clock.now)
    if kept is not None:
        durable = JournalProcess(kept, parts.state.lock) if parts.state.apart else JournalThread(kept)
        journal_actor = JournalActor(durable, journal_in, to_kept, parts.state.compact_after, parts.mark_time)
        actors.start_soon(journal_actor.run, name="journal")
    actors.start_soon(store_actor.run, name="store")
    to_remote = None
    if remote is not None:
        # To the actor that writes events to a real cluster; it stores the events in a list of its own and always
        # receives immediately.
        to_remote, remote_in = trio.open_memory_channel[Sequence[SchedulerEvent]](0)
        actors.start_soon(remote.events_actor(remote_in, clock).run, name="remote events")
    actors.start_soon(LogActor(Log(limits["log"], uuid.uuid4().hex), log_in, to_remote).run, name="log")
    actors.start_soon(binding_actor.run, name="binding")
    actors.start_soon(queue_actor.run, name="queue")
    actors.start_soon(scheduling_actor.run, name="scheduling")
    for actor in controller_actors:
        actors.start_soon(actor.run, name=actor.name)
    return live


def _guarded(plain: Registry, limit_s: float, processes: WorkerProcesses) -> RecordedRegistry:
    """Return a registry whose plugins can be recorded and whose errors do not affect other components."""
    return RecordedRegistry(
        plain.added,
        limit_s=limit_s,
        start_limit_s=plain.start_limit_s,
        sources=plain.sources,
        on_fault=_log_plugin_fault,
        run_async=run_async,
        processes=processes,
    )


def _driver(
    config: Config,
    registry: RecordedRegistry,
    seed: int,
    record: RecordOptions,
    recorder: RunRecorder | None,
    started_s: float,
) -> SchedulingDriver:
    """Return the driver; if there is a recorder, the driver records its calls.

    Raises PluginLoadError, RecordingError.
    """
    metrics = SchedulingMetrics(time.perf_counter, seed)
    if recorder is None:
        return SchedulingDriver(SchedulingMachine(config, registry=registry, seed=seed, metrics=metrics))
    registry.recorder = recorder
    with as_driver():
        machine = SchedulingMachine(config, registry=registry, seed=seed, metrics=metrics)
    driver = SchedulingDriver(machine)
    driver.listener = DriverNotes(driver, recorder)
    recorder.begin(header_of(record, config, registry, seed, started_s))
    return driver


def _bound(store: Store, driver: SchedulingDriver, limits: DaemonLimits) -> None:
    """Set the limits of the components without I/O to the limits of the daemon."""
    if limits.changed:
        store.log.keep(limits["watch-history"], limits["watch-history-bytes"])
        store.keep_admitted(limits["admitted-pods"], limits["admitted-node-affinities"])
    driver.debugger.most_breakpoints = limits["breakpoints"]
    table = driver.machine.cluster.table
    table.most_labels, table.most_resources = limits["label-columns"], limits["resource-columns"]
    table.most_evaluation_bytes, table.most_preemption_bytes = limits["evaluation-cache"], limits["preemption-cache"]
    table.most_counters = limits["pod-counters"]


def _log_plugin_fault(fault: PluginError) -> None:
    log.warning("plugin_fault", plugin=fault.plugin, method=fault.method, why=fault.why)
