"""The daemon: which actors there are, which channels join them, how they start and how they end.

`cluster_actors` is the wiring diagram, top to bottom: a whole cluster in this process, without a socket. `run_daemon` puts
the socket before it and runs until it is told to stop.

Starting: the store first, since all others watch it. Ending: the store closes the watches; the scheduling actor carries out
what it has decided and closes its channels; so do the others as their senders close; when the last one that writes has
ended, the store does, and then the journal. An actor's exception is a bug: it cancels all the others, is logged with its
traceback, and leaves the journal as of the last answered write.
"""

import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import structlog
import trio

from kschedd.actors.binding import Answered, BindingActor, Errands
from kschedd.actors.clock import Clock
from kschedd.actors.cluster import LiveCluster
from kschedd.actors.controllers import ControllerActor
from kschedd.actors.decisions import DecisionRecord, DecisionsActor
from kschedd.actors.decisions import Message as DecisionsMessage
from kschedd.actors.events import EventRecord, EventsActor
from kschedd.actors.events import Message as EventsMessage
from kschedd.actors.filter_workers import FilterWorker, FilterWorkers, Job
from kschedd.actors.journal import Commit, JournalActor
from kschedd.actors.mailbox import Asking, Doorbell, Question
from kschedd.actors.permit import Expired
from kschedd.actors.progress import Progress
from kschedd.actors.queue import Popped, QueueActor, Report
from kschedd.actors.scheduling import Inboxes, Outboxes, SchedulingActor
from kschedd.actors.store import Message as StoreMessage
from kschedd.actors.store import StoreActor, StoreClient
from kschedd.actors.strangers import LeashedRegistry
from kschedd.config.load import default_config
from kschedd.config.model import Config
from kschedd.controllers.controller import Controller
from kschedd.framework.registry import Registry
from kschedd.queue.scheduling_queue import SchedulingQueue

# M from kschedd.rpc.methods import daemon_methods
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.scheduler import Choose
from kschedd.store.admission import Admission
from kschedd.store.journal import Journal
from kschedd.store.store import Store

log = structlog.get_logger("kschedd")

PLUGIN_LIMIT_S = 5.0  # how long a call of a plugin from elsewhere may take
WAITING_BINDINGS = 1000  # binding cycles that wait for others at a time


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
) -> AsyncIterator[LiveCluster]:
    """A cluster at work while the context is open. With a journal (a file) it starts from what that holds.

    Raises JournalError (for a damaged one unless `drop_damaged`), PluginLoadError.
    """
    config = config or default_config()
    clock = clock or Clock.started()
    registry = LeashedRegistry({} if registry is None else registry.added, plugin_limit_s)
    kept = None if journal is None else Journal(journal)
    store = _open_store(kept, clock, seed, drop_damaged, admission)
    machine = SchedulingMachine(config, registry=registry, seed=seed, choose=choose)
    progress = Progress(machine)

    # To the journal: one batch waits while one is written; then the store, and all who write, feel the disk.
    to_journal, journal_in = trio.open_memory_channel[Commit](1)
    # To the store: as many requests as it serves in a batch.
    to_store, store_in = trio.open_memory_channel[StoreMessage](256)
    # To the scheduling actor. Its bell has one token; of all else it must never keep the senders waiting for each other:
    bell = Doorbell()
    # one answer for the one request for pods there may be;
    to_popped, popped_in = trio.open_memory_channel[Popped](1)
    # an answer for each batch of errands under way (8 wait, one is carried out, one is being sent) and some waiting cycles;
    to_answered, answered_in = trio.open_memory_channel[Answered](64)
    # permit waiters and those who ask may wait.
    to_expired, expired_in = trio.open_memory_channel[Expired](64)
    to_progress, progress_in = trio.open_memory_channel[Question[Progress, Any]](16)
    # To the queue: a few slices of reports, and questions.
    to_queue, queue_in = trio.open_memory_channel[Report | Question[QueueActor, Any]](8)
    # To the binding actor: a few slices of decisions; when the store is slower than that, decisions wait.
    to_binding, binding_in = trio.open_memory_channel[Errands](8)
    # To the filter workers: they take a shard each, none waits here.
    to_workers, workers_in = trio.open_memory_channel[Job](0)
    # To the records: they only note things down.
    to_events, events_in = trio.open_memory_channel[EventsMessage](16)
    to_decisions, decisions_in = trio.open_memory_channel[DecisionsMessage](16)

    store_client = StoreClient.of(to_store)
    store_actor = StoreActor(store, store_in, None if kept is None else to_journal)
    scheduling_actor = SchedulingActor(
        progress,
        store_client.clone(),
        bell,
        Inboxes(popped_in, answered_in, expired_in, to_expired, progress_in),
        Outboxes(to_queue, to_binding, to_events.clone(), to_decisions.clone(), FilterWorkers(to_workers)),
        clock,
    )
    run_by = progress.queue_configuration()
    queue_actor = QueueActor(
        SchedulingQueue(run_by.settings, sort_key=run_by.sort_key, pre_enqueue=run_by.pre_enqueue, hints=run_by.hints),
        queue_in,
        to_popped,
        bell,
        clock,
        run_by.scheduler_names,
        run_by.strangers,
    )
    binding_actor = BindingActor(
        binding_in, store_client.clone(), to_answered, bell, trio.CapacityLimiter(WAITING_BINDINGS)
    )
    # Workers wait for threads, so their number is what bounds these; a thread that hangs must not count.
    threads = trio.CapacityLimiter(math.inf)
    filter_workers = [FilterWorker(workers_in.clone(), plugin_limit_s, threads) for _ in range(config.parallelism)]
    workers_in.close()

    live = LiveCluster(
        store_client,
        Asking("scheduler", to_progress, bell),
        Asking("queue", to_queue.clone()),
        Asking("events", to_events),
        Asking("decisions", to_decisions),
        clock,
        seed,
        journal,
    )
    failure: BaseException | None = None
    async with trio.open_nursery() as actors:
        if kept is not None:
            actors.start_soon(JournalActor(kept, journal_in).run, name="journal")
            if kept.version < store.version:
                await to_journal.send(Commit(store.watch(None, kept.version).take(), ()))
        actors.start_soon(store_actor.run, name="store")
        actors.start_soon(EventsActor(EventRecord(), events_in).run, name="events")
        actors.start_soon(DecisionsActor(DecisionRecord(), decisions_in).run, name="decisions")
        for number, worker in enumerate(filter_workers):
            actors.start_soon(worker.run, name=f"filter worker {number}")
        actors.start_soon(binding_actor.run, name="binding")
        actors.start_soon(queue_actor.run, name="queue")
        actors.start_soon(scheduling_actor.run, name="scheduling")
        for controller in controllers:
            actor = ControllerActor(controller, store_client.clone(), clock)
            actors.start_soon(actor.run, name=controller.name)
        try:
            yield live
        except BaseException as raised:
            if isinstance(raised, trio.Cancelled):
                raise
            failure = raised  # raised again outside, so that the nursery does not wrap it in a group
        await live.end()
    if failure is not None:
        raise failure


def _open_store(
    journal: Journal | None, clock: Clock, seed: int, drop_damaged: bool, admission: Admission | None
) -> Store:
    """The store as the journal has it, or a new one. Raises JournalError."""
    if journal is not None:
        try:
            found = journal.load(now=clock.now, seed=seed, admission=admission, drop_damaged=drop_damaged)
        except BaseException:
            journal.close()
            raise
        if found is not None:
            return found
    return Store(now=clock.now, seed=seed, admission=admission)
