"""A cluster in virtual time that serves the daemon's methods.

`VirtualCluster` is the cluster on which the methods work: the store, driver, queue and records of a simulation, called
directly instead of through actors. `VirtualDaemon` is the client that verbs call. A VirtualDaemon finds the method in
the table of the socket's methods, checks the parameters as the socket does, and processes all pending work before it
returns.

The cluster owns the engine and the records. Time advances only through `engine.advance` and `engine.run_to_rest`.
"""

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Never, TypeVar

import attrs

from kschedd.access.users import Caller
from kschedd.actors.bulletin import Bulletin
from kschedd.api.objects import Object
from kschedd.config.model import Config
from kschedd.controllers.embedded import embedded_controllers
from kschedd.controllers.options import ControllerOptions
from kschedd.controllers.running.controller import Controller
from kschedd.errors import KscheddError
from kschedd.framework.registry import Registry
from kschedd.garbage_collection import collection_postponed
from kschedd.log.log import Log
from kschedd.metrics.instruments import MetricFamily
from kschedd.object_faults import ObjectFault
from kschedd.queue.entry import SECOND, QueuedPod
from kschedd.queue.metrics import queue_metrics
from kschedd.queue.operations import QueueOperations
from kschedd.queue.scheduling_queue import SchedulingQueue
from kschedd.recording.recorder import RecordingState
from kschedd.rpc.client_common import request_bytes, wire_params
from kschedd.rpc.encoding import encode_response
from kschedd.rpc.message_checks import FROM_DAEMON
from kschedd.rpc.protocol import Connection, RpcResponse
from kschedd.rpc.sessions.built_in import method_table
from kschedd.rpc.sessions.large_results import encode_large
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.snapshots.cluster import ClusterSnapshot
from kschedd.scheduling.trial_cluster import TrialCluster
from kschedd.service.cluster import ClusterBackend, Queue
from kschedd.service.daemon.process import DaemonState
from kschedd.service.errors import RpcError
from kschedd.service.params import bind
from kschedd.service.table import Call, Large, Method, StreamProducer, find_method
from kschedd.service.turns import Uninterrupted
from kschedd.service.wire_errors import wire_error
from kschedd.service.workers import AtOnce
from kschedd.simulation.engine import EPOCH, Engine, LoggedAttempt
from kschedd.store.cluster_api import Bell, ClusterReader, ClusterWriter
from kschedd.values import run_steps

S = TypeVar("S")
T = TypeVar("T")


MethodsOf = Callable[[ClusterBackend, DaemonState], Iterable[Method]]
"""A function that returns the methods of a cluster, such as `kschedd.methods.daemon_methods`."""

TableOf = Callable[[ClusterBackend, DaemonState], Mapping[str, Method]]
"""A function that returns the table of the methods of a cluster."""


@attrs.frozen(eq=False)
class AtHand(Generic[S]):
    """A wrapper that reads state with a direct call, in place of a reference to an actor."""

    owned: S

    async def query(self, question: Callable[[S], T], *, long: bool = False) -> T:
        return question(self.owned)


@attrs.frozen(eq=False)
class QueueAtHand:
    operations: QueueOperations

    @property
    def queue(self) -> SchedulingQueue:
        return self.operations.queue

    def metrics(self) -> list[MetricFamily]:
        return queue_metrics(self.queue)


@attrs.frozen(eq=False)
class StoreAtHand:
    _store: ClusterWriter

    async def do(self, request: Callable[[ClusterWriter], T]) -> T:
        return request(self._store)

    async def do_in_steps(self, work: Callable[[ClusterWriter], Generator[None, None, T]]) -> T:
        return run_steps(work(self._store))

    async def create(self, raw: Mapping[str, Any]) -> Object:
        return self._store.create(raw)

    async def condition(self) -> KscheddError | None:
        return None

    async def watch(
        self, kinds: Iterable[str] | None = None, since_version: int | None = None, *, bell: Bell | None = None
    ) -> Never:
        raise _no_streams()


@attrs.frozen(eq=False)
class ClockAtHand:
    """Virtual time, provided by the owner of the time: the current time in seconds, and the next deadline."""

    now: Callable[[], float]
    next_deadline: Callable[[], float | None]
    speed: float = 0.0
    is_virtual: bool = True
    ahead_s: int = 0

    def now_ns(self) -> int:
        return round(self.now() * SECOND)


@attrs.frozen(eq=False)
class TimeAtHand:
    _engine: Engine

    async def set_speed(self, speed: float) -> None:
        if speed:
            raise RpcError("invalid", "this cluster has virtual time, which does not run by itself")

    def move_to(self, at_s: float) -> bool:
        """Move the time forward to `at_s` in one step; return whether the time was earlier than `at_s`."""
        if self._engine.now >= at_s:
            return False
        self._engine.move_to(at_s)
        return True

    async def advance(self, until_s: float | None, on_moved: Callable[[], Awaitable[None]]) -> Never:
        raise _no_streams()

    async def until_idle(self) -> None:
        """Return immediately, because the cluster is idle after every call."""


class StopsAtHand(Bulletin):
    """The debugger's bulletin of a cluster that is idle between any two calls, so that no call waits."""

    async def wait_stopped_or_idle(self, after: int, until_idle: Callable[[], Awaitable[None]], limit_s: float) -> None:
        """Return immediately, because the cluster is idle between two calls."""


class OwnersAtHand:
    """A cluster without actors, whose state can be read directly at any time."""

    queue: AtHand[QueueAtHand]
    scheduler: AtHand[SchedulingDriver]
    log: AtHand[Log]

    async def query_in_turn(
        self,
        of_queue: Callable[[Queue], Any],
        of_scheduler: Callable[[SchedulingDriver], Any],
        of_log: Callable[[Log], Any],
    ) -> tuple[Any, Any, Any]:
        return await self.queue.query(of_queue), await self.scheduler.query(of_scheduler), await self.log.query(of_log)


class VirtualCluster(OwnersAtHand):
    """A cluster in virtual time.

    `on_decision` is called with every attempt. `on_result` is called with the attempt's result before the result is
    applied. The cluster begins at `start_s` (seconds since the epoch). A cluster without `controlled` has no
    controllers. With `served`, the cluster has the controllers of a cluster that clients use (`embedded_controllers`).
    With `resumed`, the cluster continues from this snapshot, and the other parameters must be absent.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        seed: int = 0,
        registry: Registry | None = None,
        options: ControllerOptions | None = None,
        on_decision: Callable[[LoggedAttempt], None] | None = None,
        on_result: Callable[[QueuedPod, ScheduleResult | FitError], None] | None = None,
        resumed: ClusterSnapshot | None = None,
        start_s: float | None = None,
        controlled: bool = True,
        served: bool = False,
    ) -> None:
        log = Log()
        self._controllers: Sequence[Controller]
        if resumed is None:
            made = (
                embedded_controllers(options=options, served=served, trials=TrialCluster.in_steps, seed=seed)
                if controlled
                else ()
            )
            self._controllers = made
            self.seed = seed
        else:
            self._controllers = [*(state.controller for state in resumed.controllers), *resumed.fresh]
            self.seed = resumed.driver.seed
        self.engine = Engine(
            config,
            seed=seed,
            registry=registry,
            controllers=self._controllers,
            on_decision=on_decision,
            on_happened=log.extend,
            on_result=on_result,
            recorder=log.append,
            resumed=resumed,
            start_s=EPOCH if start_s is None else start_s,
        )
        if options is not None and resumed is None:
            self.engine.store.simulate_pods(options.pod_behavior)
        self.store = StoreAtHand(self.engine.store)
        self.scheduler = AtHand(self.engine.driver)
        self.queue = AtHand(QueueAtHand(self.engine.loop.operations))
        self.log = AtHand(log)
        engine = self.engine  # refer to the engine and not to the cluster, because the cluster refers to the clock
        self.clock = ClockAtHand(lambda: engine.now, engine.next_moment)
        self.time, self.stops = TimeAtHand(self.engine), StopsAtHand()
        self.journal: Path | None = None
        self.epoch = "virtual"
        if resumed is None:
            self.engine.run_until_idle()

    async def snapshot(self, *, reading: bool = False) -> ClusterSnapshot:
        return self.engine.snapshot()

    def api_call_metrics(self, gates: Mapping[str, bool]) -> list[MetricFamily]:
        return []  # a cluster in virtual time has no actors, so no actor writes

    def recording(self) -> RecordingState | None:
        return None

    async def start_recording(self, file: Path, wait_s: float) -> Never:
        raise RpcError(
            "invalid",
            "only a daemon's run can be recorded; a cluster in virtual time always has the same results anyway",
        )

    async def end_recording(self) -> Never:
        raise RpcError("invalid", "a cluster in virtual time is never recorded")

    async def faults(self) -> list[ObjectFault]:
        return list(self.engine.machine.faults.faults())

    async def ask_controllers(self, question: Callable[[Sequence[Controller], ClusterReader], T]) -> T:
        return question(self._controllers, self.engine.store)

    async def run_controllers(self) -> None:
        self.engine.run_controllers()


class VirtualDaemon:
    """A daemon for one client, without a socket.

    The daemon implements `ClientServices` for this client.
    """

    def __init__(self, cluster: VirtualCluster, methods: MethodsOf | TableOf) -> None:
        self._cluster = cluster
        own = DaemonState("in virtual time", "(none)", cluster.engine.start_s, pid=0, machine_s=cluster.clock.now)
        served = methods(cluster, own)
        self.methods: Mapping[str, Method] = served if isinstance(served, Mapping) else method_table(served)
        self.identity: Mapping[str, Any] = {"server": "kschedd"}
        self.caller = Caller()
        self.turns, self.workers = Uninterrupted(), AtOnce()
        self.written: list[tuple[int, int]] = []  # versions before and after each write that a call itself made

    def call(self, method: str, /, *args: Any, **named: Any) -> Any:
        """Return the method's result, after all work that the call causes at the current virtual time is done.

        Raises RpcError.
        """
        request_bytes(1, method, wire_params(args, named))  # encoding also rejects parameters that cannot be sent
        return _as_sent(self.perform(method, *args, **named))

    @collection_postponed()
    def perform(self, method: str, /, *args: Any, **named: Any) -> Any:
        """Return the method's result as its handler returns it, after the work that the call causes."""
        declared = find_method(self.methods, method)
        given = bind(method, declared.params, [named] if named else list(args))
        call = Call(method, given, "scenario", self, _refuse_stream)
        engine = self._cluster.engine
        before = engine.store.version
        try:
            answer = _run(declared.handler(call))
        except KscheddError as failure:
            raise RpcError(*wire_error(failure)) from failure
        finally:
            if engine.store.version > before:
                self.written.append((before, engine.store.version))
        engine.loop.apply_effects()
        engine.run_until_idle()
        return answer

    def subscribe(self, method: str, /, **named: Any) -> Never:
        raise _no_streams()

    def cancel_stream(self, stream_id: int) -> bool:
        return False

    def at_end(self, name: str, do: Callable[[], Awaitable[None]]) -> None:
        """Ignore the callback: the only client exists as long as the cluster does."""


def _run(answer: Awaitable[Any]) -> Any:
    """Run a handler's coroutine to its end without an event loop: in virtual time no handler has to wait.

    Raises RpcError for a handler that waits, for example a handler of a stream.
    """
    running = answer.__await__()
    try:
        next(running)
    except StopIteration as end:
        return end.value
    raise _no_streams()


def _as_sent(answer: Any) -> Any:
    """Return the result after encoding and decoding, as a socket client receives it, as a copy of plain values."""
    encoded = b"".join(encode_large(1, answer)) if isinstance(answer, Large) else encode_response(1, answer)
    (response,) = Connection(FROM_DAEMON).receive(encoded)
    assert isinstance(response, RpcResponse)
    return response.result


def _no_streams() -> RpcError:
    return RpcError("invalid", "nothing changes here while a command runs: look again after `advance` or `rest`")


def _refuse_stream(feed: StreamProducer) -> int:
    raise _no_streams()
