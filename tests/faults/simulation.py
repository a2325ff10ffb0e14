"""The whole daemon from one seed, in virtual time: store, journal, actors, server and clients, and what befalls them.

A simulation is a few lives of a daemon on one disk. In each of them clients are at work while the disk has faults;
each but the last ends by a kill, within any operation of the disk or between two, with or without a loss of power. In
the last one the disk is well again: the daemon must take writes, place all pods, and stop in order. What clients saw
is then held against the rules (`checker`). The same seed comes to the same history, to the letter.
"""

import errno
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import apsw
import attrs
import structlog
import trio

from kschedd.actors.clock import Clock
from kschedd.actors.cluster import LiveCluster
from kschedd.apiserver.access import Access
from kschedd.apiserver.face import ApiFace
from kschedd.apiserver.services import FaceServices
from kschedd.config.loading.load import default_config
from kschedd.controllers.embedded import embedded_controllers
from kschedd.daemon import cluster_actors
from kschedd.errors import KscheddError
from kschedd.http.server import HttpServer
from kschedd.methods import daemon_methods
from kschedd.rpc.errors import ConnectionLostError
from kschedd.rpc.sessions.built_in import method_table
from kschedd.rpc.sessions.server import Server
from kschedd.rpc.sessions.session import SessionLimits
from kschedd.service.daemon.process import DaemonState
from kschedd.service.errors import RpcError
from kschedd.startup.state import StateOptions
from kschedd.store.cluster_api import ClusterReader
from kschedd.store.creating.service_addresses import SERVICE_RANGE
from kschedd.store.journal.format import JournalDamaged, JournalError
from kschedd.store.journal.journal import Journal
from kschedd.threads import use_threads
from tests.faults.checker import violations
from tests.faults.clients import KINDS, Watcher, World, Writer, be_rude, seen_in
from tests.faults.fake_disk import FakeDisk
from tests.faults.fake_network import Network
from tests.faults.history import RESUMED, REWOUND, SALVAGED, Era, History, Key, Seen
from tests.faults.operators import operate
from tests.faults.virtual import VirtualThreads, run_from_seed
from tests.store.manifests import node

JOURNAL = Path("/state/journal.db")
_CONFIG = default_config()
_ANYBODY = Access()
_EPOCH_S = 1_700_000_000.0
_PATIENCE_S = 900.0  # virtual; for what must come in the end


@attrs.frozen
class Plan:
    """Faults that befall the daemon, drawn from the seed, without their times."""

    lives: int
    with_controllers: bool
    compact_after: int
    lies: bool  # the disk says that it has flushed what it has not
    flips: bool  # bits of files change
    http: bool  # Kubernetes' REST API is served too, and used
    operated: bool  # somebody changes the configuration, cordons nodes, moves pods, copies all
    unread: int  # bytes that may wait for a client to read them

    @classmethod
    def drawn(cls, seed: int, chance: random.Random) -> "Plan":
        return cls(
            lives=chance.choice((1, 2, 2, 3, 4)),
            with_controllers=chance.random() < 0.15,
            compact_after=chance.choice((15, 60, 100_000)),
            lies=chance.random() < 0.1,
            flips=chance.random() < 0.15,
            http=random.Random(f"http {seed}").random() < 0.4,
            operated=random.Random(f"operated {seed}").random() < 0.3,
            unread=2000 if random.Random(f"unread {seed}").random() < 0.3 else SessionLimits().held,
        )


@attrs.frozen
class Outcome:
    seed: int
    history: History
    violations: Sequence[str]

    @property
    def text(self) -> str:
        return "\n".join([self.history.text(), "", *self.violations])


class Stuck(Exception):
    """Something that must come in the end has not come."""


def simulate(seed: int, broken: "Callable[[], Any] | None" = None) -> Outcome:
    """`broken` is a context in which part of the daemon is broken on purpose, so that the checker has to find it."""
    history = History()
    with _log_read_by(history), broken() if broken is not None else _nothing():
        simulation = Simulation(seed, history)
        try:
            found = run_from_seed(simulation.run, seed)
        finally:
            simulation.disk.close_all()
    return Outcome(seed, history, [*found, *violations(history)])


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _log_read_by(history: History) -> Iterator[None]:
    """Suppress the log, but record reports of journal damage in the history.

    Also ignore a second error that SQLite meets while it cleans up after a first one, since it continues after that.
    """
    before, hook = structlog.get_config(), sys.unraisablehook

    def read(_logger: object, _method: str, event: Any) -> Any:
        if event["event"] == "journal_damaged":
            history.lost.append(event["what"])
        return event

    def heard(unraisable: "sys.UnraisableHookArgs") -> None:
        if not isinstance(unraisable.exc_value, apsw.Error):
            hook(unraisable)

    factory = structlog.ReturnLoggerFactory()
    structlog.configure(processors=[read], logger_factory=factory, cache_logger_on_first_use=False)
    with mock.patch.object(sys, "unraisablehook", heard):
        try:
            yield
        finally:
            structlog.configure(**before)


def _only(raised: BaseExceptionGroup[Any]) -> Any:
    error: BaseException = raised
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


@attrs.define(eq=False)
class Simulation:
    seed: int
    history: History
    disk: FakeDisk = attrs.field(init=False)
    _chance: random.Random = attrs.field(init=False)
    _plan: Plan = attrs.field(init=False)
    _world: World = attrs.field(init=False)
    _auditor: Watcher = attrs.field(init=False)
    _found: list[str] = attrs.field(factory=list)
    _power_lost: bool = False  # since the last life that came to serve
    _ever_lost: bool = False
    _log_flipped: bool = (
        False  # a bit of the write-ahead log, while that may hold what the head's file does not know of
    )
    _ended: bool = False  # nothing can be recovered from the disk

    def __attrs_post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._plan = Plan.drawn(self.seed, self._chance)
        self.disk = FakeDisk(random.Random(f"disk {self.seed}"))
        network = Network(random.Random(f"network {self.seed}"))
        http = Network(random.Random(f"http network {self.seed}"))
        self._world = World(network, self.history, random.Random(f"clients {self.seed}"), http)
        self._auditor = Watcher("auditor", self._world, version=0)

    async def run(self) -> list[str]:
        """Violations that do not show in the history."""
        use_threads(VirtualThreads(random.Random(f"threads {self.seed}")))
        self.history.note(str(self._plan))
        world = self._world
        async with trio.open_nursery() as watching:
            watching.start_soon(self._auditor.run)
            watching.start_soon(Watcher("watcher", world, "ConfigMap").run)
            watching.start_soon(Watcher("slow watcher", world, "ConfigMap", slow=True).run)
            watching.start_soon(Watcher("pod watcher", world, "Pod").run)
            if self._plan.http:
                watching.start_soon(Watcher("HTTP watcher", world, "ConfigMap", http=True).run)
                watching.start_soon(Watcher("slow HTTP watcher", world, "Pod", slow=True, http=True).run)
            async with trio.open_nursery() as clients:
                for number in range(3):
                    clients.start_soon(Writer(f"writer {number}", world).run)
                if self._plan.http:
                    clients.start_soon(Writer("HTTP writer", world, http=True).run)
                if self._plan.operated:
                    clients.start_soon(operate, world)
                clients.start_soon(be_rude, world)
                for life in range(self._plan.lives):
                    last = life == self._plan.lives - 1
                    await self._live(last)
                    if self._ended:
                        break
                    if not last:
                        await trio.sleep(1)  # what clients still had of the connection is through
                        self._between_lives()
                clients.cancel_scope.cancel()
            watching.cancel_scope.cancel()
        return self._found

    # --- one life ------------------------------------------------------------------------------------------------

    async def _live(self, last: bool) -> None:
        drop_damaged = False
        while True:
            try:
                await self._process(last, drop_damaged)
                return
            except JournalError as refusal:
                if self.disk.dead:
                    return  # killed while it opened the journal
                self.history.note(f"refused: {refusal}")
                if not self._may_be_damaged:
                    self._found.append(f"refused without a cause: {refusal}")
                if drop_damaged or self._world.ending or not isinstance(refusal, JournalDamaged):
                    self._ended = self.history.broken_off = True
                    self._world.ending = True
                    return
                drop_damaged = True

    @property
    def _may_be_damaged(self) -> bool:
        return self._plan.flips or (self._plan.lies and self._ever_lost)

    async def _process(self, last: bool, drop_damaged: bool) -> None:
        async with trio.open_nursery() as process:

            def killed() -> None:
                self.history.note("killed")
                self._cut()
                process.cancel_scope.cancel()

            self.disk.on_kill = killed
            self.disk.lies = self._plan.lies
            if not last and self._chance.random() < 0.15:
                self.disk.kill_after = self._chance.randrange(1, 30)  # while it starts, perhaps
            failure: Exception | None = None
            try:
                async with cluster_actors(
                    _CONFIG,
                    controllers=embedded_controllers() if self._plan.with_controllers else (),
                    state=StateOptions(
                        journal=JOURNAL,
                        drop_damaged=drop_damaged,
                        compact_after=self._plan.compact_after,
                        disk=self.disk,
                    ),
                    seed=self.seed,
                    clock=Clock.started(_EPOCH_S + self._chance.randrange(-1000, 1000)),  # the machine's was set
                ) as cluster:
                    await self._serve(cluster, last, drop_damaged)
            except* Exception as raised:
                error = _only(raised)
                if not isinstance(error, JournalError | Stuck) and not self.disk.dead:
                    self._found.append(f"a bug has ended the daemon: {error!r}")
                    self._ended = self._world.ending = self.history.broken_off = True
                failure = error
            process.cancel_scope.cancel()
        if self.disk.dead:  # its last step may have opened a port, which goes with the process
            self._cut()
        if self._ended or (self.disk.dead and not isinstance(failure, JournalError)):
            return  # its actors have ended one after the other, as they never do in a process that is killed
        if isinstance(failure, Stuck):
            self._found.append(str(failure))
        elif failure is not None:
            raise failure
        if last and not self._ended:
            self._check_kept()

    def _cut(self) -> None:
        self._world.network.cut()
        self._world.http.cut()

    async def _serve(self, cluster: LiveCluster, last: bool, dropped: bool) -> None:
        await self._begin_era(cluster, dropped)
        daemon = DaemonState("0", "the simulated daemon", cluster.clock.now(), pid=1, machine_s=trio.current_time)
        identity = {"server": "kschedd", "version": "0", "pid": 1, "epoch": cluster.epoch}
        terms = SessionLimits(held=self._plan.unread)
        server = Server(method_table(daemon_methods(cluster, daemon)), identity=identity, terms=terms)
        self.history.note("serves")
        self.history.starts.append(self.history.now())
        async with trio.open_nursery() as serving:
            await serving.start(server.serve, [self._world.network.listen()])
            face = await self._serve_http(cluster, serving) if self._plan.http else None
            async with trio.open_nursery() as beside:
                beside.start_soon(self._be_faulty)
                await trio.sleep(0.05 + 0.25 * self._chance.random())
                beside.cancel_scope.cancel()
            if last:
                await self._come_to_rest(cluster)
            elif self._chance.random() < 0.5:
                self.disk.kill_after = self._chance.randrange(1, 12)
                await trio.sleep(5)
                self.disk.kill()
            elif self._chance.random() < 0.8:
                self.disk.kill()
            server.shut_down(0.1)
            if face is not None:
                face.shut_down(0.1)
            with trio.move_on_after(_PATIENCE_S) as ending:
                while server.clients:  # noqa: ASYNC110 - as the daemon does
                    await trio.sleep(0.01)
            if ending.cancelled_caught:
                raise Stuck("it is to stop, and clients are there still")
            serving.cancel_scope.cancel()

    async def _serve_http(self, cluster: LiveCluster, serving: trio.Nursery) -> HttpServer:
        face = ApiFace(FaceServices(cluster), _ANYBODY, "0", SERVICE_RANGE)
        server = HttpServer(face, explain=face.explain)
        await face.register()
        await serving.start(face.follow)
        await serving.start(server.serve, [self._world.http.listen()])
        return server

    async def _be_faulty(self) -> None:
        disk, chance = self.disk, self._chance
        while True:
            await trio.sleep(0.1 * chance.random())
            fault = chance.choice(("error", "full", "short", "flip"))
            if fault == "flip" and not self._plan.flips:
                continue
            self.history.note(f"disk: {fault}")
            try:
                if fault == "error":
                    disk.error = errno.EIO
                elif fault == "full":
                    disk.capacity = disk.used + chance.randrange(20_000)
                elif fault == "short":
                    disk.short_writes = 0.5
                elif fault == "flip":
                    self._flip("disk: flipped")
                await trio.sleep(0.2 * chance.random())
            finally:
                disk.error, disk.capacity, disk.short_writes = 0, None, 0.0

    def _between_lives(self) -> None:
        lost = self._chance.random() < 0.5
        self._power_lost = self._power_lost or lost
        self._ever_lost = self._ever_lost or lost
        self.history.note(f"the next one; power lost: {lost}")
        self.disk.restart(power_lost=lost)
        if self._plan.flips and self._chance.random() < 0.5:
            self._flip("flipped")

    def _flip(self, reported: str) -> None:
        where = self.disk.flip_bit()
        self._log_flipped = self._log_flipped or "-wal" in where
        self.history.note(f"{reported}: {where}")

    async def _begin_era(self, cluster: LiveCluster, dropped: bool) -> None:
        """Look at what the store begins with: of versions that nobody has seen the checker has to know."""

        def look(store: ClusterReader) -> tuple[int, dict[Key, Seen]]:
            seen = [seen_in(obj.raw) for kind in store.kinds() for obj in store.list(kind)]
            return store.version, {each.key: each for each in seen}

        version, state = await cluster.store.do(look)
        known = self._auditor.version or 0
        kind = ""
        if dropped or self.history.lost:  # perhaps by one that was killed before it served
            kind = SALVAGED
        elif self._power_lost and (self._plan.lies or self._log_flipped):
            # The loss of power may have set the head back: a damaged end of the log looks like a write cut off.
            kind = REWOUND
        elif version < known:
            kind = RESUMED
        else:
            watch = None
            try:
                watch = await cluster.store.watch(None, known)
            except KscheddError:
                kind = RESUMED
            else:
                watch.close()
        lost = tuple(self.history.lost)
        if kind:
            self.history.eras.append(Era(kind, version, state, lost, end_is_told=not self._power_lost))
            self.history.note(f"{kind} at version {version}" + "".join(f"\n  {what}" for what in lost))
        self._power_lost = self._log_flipped = False
        self.history.lost.clear()

    # --- the end -------------------------------------------------------------------------------------------------

    async def _come_to_rest(self, cluster: LiveCluster) -> None:
        """Wait until writes succeed on the healthy disk, all pods are scheduled, and clients have seen all changes."""
        with trio.move_on_after(_PATIENCE_S) as writing:
            await self._until(self._makes_nodes)
        if writing.cancelled_caught:
            why = await cluster.store.condition()
            if not isinstance(why, JournalDamaged) or not self._may_be_damaged:
                raise Stuck(f"the disk is well, and nothing can be written: {why}")
            # What it reads it serves; what would be written where the file is damaged it refuses, in words.
            self.history.note(f"read-only for good: {why}")
            self._ended = self._world.ending = self.history.broken_off = True
            return
        self._world.ending = True
        with trio.move_on_after(_PATIENCE_S) as placing:
            while self._world.working:  # noqa: ASYNC110 - time is virtual
                await trio.sleep(0.1)
            await self._until(self._all_placed)
        if placing.cancelled_caught:
            raise Stuck("there is room, and pods are not placed")
        with trio.move_on_after(_PATIENCE_S) as seeing:
            await self._until(self._all_seen)
        if seeing.cancelled_caught:
            raise Stuck(f"the auditor has come to version {self._auditor.version} only")

    async def _until(self, done: "Callable[[Writer], Any]") -> None:
        operator = Writer("operator", self._world)
        while True:
            try:
                if await done(operator):
                    return
            except* (ConnectionLostError, RpcError):
                pass
            await trio.sleep(0.5)

    async def _makes_nodes(self, operator: Writer) -> bool:
        refused = set()
        async with self._world.connection() as client:
            for number in (0, 1):
                key = ("Node", "", f"n{number}")
                made = await operator.call(client, "create", "objects.create", key, manifest=node(f"n{number}"))
                refused.add(made.refused)
            key = ("ConfigMap", "default", "end")
            value = self._world.value()
            manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "end"}, "data": {"number": value}}
            last = await operator.call(
                client, "apply", "objects.apply", key, value, manifests=[manifest], with_objects=True
            )
        return refused <= {"", "already_exists"} and not last.refused

    async def _all_placed(self, operator: Writer) -> bool:
        async with self._world.connection() as client:
            if self._plan.operated:
                for number in (0, 1):
                    await client.call("nodes.uncordon", name=f"n{number}")
            pods = await operator.call(client, "list", "objects.list", ("Pod", "", ""), kind="Pod")
        return not pods.refused and all(pod.node for pod in pods.seen)

    async def _all_seen(self, operator: Writer) -> bool:
        newest = 0
        async with self._world.connection() as client:
            for kind in KINDS:
                listed = await operator.call(client, "list", "objects.list", (kind, "", ""), kind=kind)
                newest = max(newest, listed.version or 0)
        return (self._auditor.version or 0) >= newest > 0

    def _check_kept(self) -> None:
        """After an orderly end: what the next one would find."""
        journal = Journal(JOURNAL, disk=self.disk)
        try:
            store = journal.load(now=lambda: _EPOCH_S)
        finally:
            journal.close()
        if store is None or store.version < (self._auditor.version or 0):
            self._found.append(f"after its end there is version {store and store.version} only")
