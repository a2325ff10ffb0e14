"""The cluster interface that the methods of the socket use.

The daemon's actors implement this interface (`actors.cluster.LiveCluster`: each query is sent to the actor that has the
data). A cluster in virtual time also implements ClusterBackend (`clusters.virtual.VirtualCluster`, which contains all
data itself).
"""

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from kschedd.actors.bulletin import Bulletin
from kschedd.actors.time_control import Moved
from kschedd.api.objects import Object
from kschedd.controllers.running.controller import Controller
from kschedd.errors import KscheddError
from kschedd.log.log import Log
from kschedd.metrics.instruments import MetricFamily
from kschedd.object_faults import ObjectFault
from kschedd.queue.operations import QueueOperations
from kschedd.queue.scheduling_queue import SchedulingQueue
from kschedd.recording.recorder import RecordingState
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.snapshots.cluster import ClusterSnapshot
from kschedd.simulation.engine import Engine
from kschedd.store.cluster_api import Bell, ClusterReader, ClusterWatch, ClusterWriter

T = TypeVar("T")
S_co = TypeVar("S_co", covariant=True)


class OwnerRef(Protocol[S_co]):
    """A reference to an actor's state; it runs a function on the state between two steps of the actor."""

    async def query(self, question: Callable[[S_co], T], *, long: bool = False) -> T: ...


class Queue(Protocol):
    """The scheduling queue and its metrics."""

    @property
    def queue(self) -> SchedulingQueue: ...

    @property
    def operations(self) -> QueueOperations: ...

    def metrics(self) -> list[MetricFamily]: ...


class Objects(Protocol):
    """The part of `ClusterApi` that the methods use."""

    async def do(self, request: Callable[[ClusterWriter], T]) -> T: ...

    async def do_in_steps(self, work: Callable[[ClusterWriter], Generator[None, None, T]]) -> T: ...

    async def condition(self) -> KscheddError | None:
        """Return the reason why writes are currently rejected; None if they are accepted."""

    async def create(self, raw: Mapping[str, Any]) -> Object: ...

    async def watch(
        self, kinds: Iterable[str] | None = None, since_version: int | None = None, *, bell: Bell | None = None
    ) -> ClusterWatch: ...


class ClusterClock(Protocol):
    def now(self) -> float:
        """Return the cluster's time in seconds since the epoch."""

    def now_ns(self) -> int: ...

    @property
    def speed(self) -> float:
        """Seconds of cluster time per real second; 0: virtual time."""

    @property
    def is_virtual(self) -> bool: ...

    @property
    def ahead_s(self) -> int:
        """Seconds by which real time is ahead of the machine's clock."""

    def next_deadline(self) -> float | None:
        """Return the earliest time for which a task waits; None if there is none."""


class ClusterTime(Protocol):
    async def set_speed(self, speed: float) -> None: ...

    def move_to(self, at_s: float) -> bool:
        """Move the time forward to `at_s` in one step, before a dump is loaded; return whether the time was moved."""

    async def advance(self, until_s: float | None, on_moved: Callable[[], Awaitable[None]]) -> Moved:
        """Advance the time, as `kschedd.actors.time_control` does."""

    async def until_idle(self) -> None:
        """Wait until no task has work at the present time."""


class ClusterBackend(Protocol):
    """A cluster, as the methods use it.

    `journal` is the path of the journal file, if any; `epoch` identifies the history of the store.
    """

    @property
    def store(self) -> Objects: ...

    @property
    def scheduler(self) -> OwnerRef[SchedulingDriver]: ...

    @property
    def queue(self) -> OwnerRef[Queue]: ...

    @property
    def log(self) -> OwnerRef[Log]:
        """The log of attempts, moves in the queue, bindings and preemptions."""

    @property
    def clock(self) -> ClusterClock: ...

    @property
    def time(self) -> ClusterTime: ...

    @property
    def stops(self) -> Bulletin:
        """The sequence numbers of changes of the debugger's state."""

    @property
    def seed(self) -> int: ...

    @property
    def journal(self) -> Path | None: ...

    @property
    def epoch(self) -> str: ...

    def recording(self) -> RecordingState | None:
        """Return the state of this run's recording; None if the run is not recorded."""

    def api_call_metrics(self, gates: Mapping[str, bool]) -> list[MetricFamily]:
        """Return the metrics of the scheduler's writes that are exposed under these feature gates."""

    async def start_recording(self, file: Path, wait_s: float) -> RecordingState:
        """Start recording this run into a new file. Raises RecordingError."""

    async def end_recording(self) -> RecordingState:
        """End the recording of this run. Raises RecordingError."""

    @property
    def engine(self) -> Engine | None:
        """The cluster in virtual time, which methods may read directly; None for a daemon's cluster."""

    async def snapshot(self, *, reading: bool = False) -> ClusterSnapshot:
        """Return the state from which a fork of the cluster continues."""

    async def faults(self) -> list[ObjectFault]:
        """Return the objects that cannot be processed at present."""

    async def ask_controllers(self, question: Callable[[Sequence[Controller], ClusterReader], T]) -> T:
        """Run a function on the controllers and the objects, between two turns of the controllers."""

    async def run_controllers(self) -> None:
        """Wait until the controllers have handled all writes, including the writes that result from them."""

    async def query_in_turn(
        self,
        of_queue: Callable[[Queue], Any],
        of_scheduler: Callable[[SchedulingDriver], Any],
        of_log: Callable[[Log], Any],
    ) -> tuple[Any, Any, Any]:
        """Query three actors one after the other, so that each answer is at least as recent as the previous one."""
