"""What the methods work over: a cluster, seen from outside.

The daemon's actors are one (`actors.cluster.LiveCluster`: every question goes to the actor that owns what it is about),
a cluster in virtual time another (`clusters.virtual.VirtualCluster`: everything is at hand). The methods know neither.
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
from kschedd.store.cluster_api import ClusterReader, ClusterWatch, ClusterWriter

T = TypeVar("T")
S_co = TypeVar("S_co", covariant=True)


class OwnerRef(Protocol[S_co]):
    """A way to ask the owner of something a question: a function that is run over it, between two of its own steps."""

    async def query(self, question: Callable[[S_co], T], *, long: bool = False) -> T: ...


class Queue(Protocol):
    """The scheduling queue and its metrics."""

    @property
    def queue(self) -> SchedulingQueue: ...

    @property
    def operations(self) -> QueueOperations: ...

    def metrics(self) -> list[MetricFamily]: ...


class Objects(Protocol):
    """What the methods use of `ClusterApi`."""

    async def do(self, request: Callable[[ClusterWriter], T]) -> T: ...

    async def do_in_steps(self, work: Callable[[ClusterWriter], Generator[None, None, T]]) -> T: ...

    async def condition(self) -> KscheddError | None:
        """Why nothing can be written now; None where it can."""

    async def create(self, raw: Mapping[str, Any]) -> Object: ...

    async def watch(self, kinds: Iterable[str] | None = None, since_version: int | None = None) -> ClusterWatch: ...


class ClusterClock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""

    def now_ns(self) -> int: ...

    @property
    def speed(self) -> float:
        """Seconds of the cluster in one real second; 0: virtual."""

    @property
    def is_virtual(self) -> bool: ...

    def next_deadline(self) -> float | None:
        """The next time that something waits for."""


class ClusterTime(Protocol):
    async def set_speed(self, speed: float) -> None: ...

    async def advance(self, until_s: float | None, told: Callable[[], Awaitable[None]]) -> Moved:
        """See `kschedd.actors.time_control`."""

    async def until_idle(self) -> None:
        """Wait until nobody has anything left to do at this time."""


class ClusterBackend(Protocol):
    """See the module. `journal` is the journal's file, if there is one; `epoch` names the history of the store."""

    @property
    def store(self) -> Objects: ...

    @property
    def scheduler(self) -> OwnerRef[SchedulingDriver]: ...

    @property
    def queue(self) -> OwnerRef[Queue]: ...

    @property
    def log(self) -> OwnerRef[Log]:
        """What happened: attempts, moves in the queue, bindings and preemptions."""

    @property
    def clock(self) -> ClusterClock: ...

    @property
    def time(self) -> ClusterTime: ...

    @property
    def stops(self) -> Bulletin:
        """Numbers of the debugger's changes."""

    @property
    def seed(self) -> int: ...

    @property
    def journal(self) -> Path | None: ...

    @property
    def epoch(self) -> str: ...

    def recording(self) -> RecordingState | None:
        """How the recording of this run is doing; None if it is not recorded."""

    def api_call_metrics(self, gates: Mapping[str, bool]) -> list[MetricFamily]:
        """What was counted of the scheduler's writes, as far as it is shown with these feature gates."""

    async def start_recording(self, file: Path, wait_s: float) -> RecordingState:
        """Record this run into a new file from now on. Raises RecordingError."""

    async def end_recording(self) -> RecordingState:
        """Raises RecordingError."""

    async def snapshot(self) -> ClusterSnapshot:
        """What a fork of the cluster goes on from."""

    async def faults(self) -> list[ObjectFault]:
        """The objects that cannot be handled now."""

    async def ask_controllers(self, question: Callable[[Sequence[Controller], ClusterReader], T]) -> T:
        """Run a function over the controllers and the objects, between two turns of any controller."""

    async def run_controllers(self) -> None:
        """Wait until the controllers have handled what was written up to now, and what they wrote about it."""

    async def ask_in_turn(
        self,
        of_queue: Callable[[Queue], Any],
        of_scheduler: Callable[[SchedulingDriver], Any],
        of_log: Callable[[Log], Any],
    ) -> tuple[Any, Any, Any]:
        """Three questions, each asked after the one before is answered: no answer is older than the one before it."""
