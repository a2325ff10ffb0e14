"""The interface of a running cluster for callers that are not actors: sockets, benchmarks, tests.

Every call queries an actor and awaits the reply. This class stores no state.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs
import trio

from kschedd.actors.bulletin import Bulletin
from kschedd.actors.clock import Clock
from kschedd.actors.controllers import ControllerActor
from kschedd.actors.courtesy import Courtesy
from kschedd.actors.in_turn import query_in_turn
from kschedd.actors.mailbox import ActorRef
from kschedd.actors.queue import QueueActor
from kschedd.actors.recording import RunRecording
from kschedd.actors.scheduler.api_call_metrics import ApiCallMetrics
from kschedd.actors.time_control import TimeControl
from kschedd.controllers.running.controller import Controller
from kschedd.garbage_collection import collection_postponed
from kschedd.log.log import Log
from kschedd.metrics.instruments import MetricFamily
from kschedd.object_faults import ObjectFault
from kschedd.recording.recorder import RecordingState
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.snapshots.cluster import ClusterSnapshot, earliest
from kschedd.scheduling.snapshots.fork import DriverSnapshot
from kschedd.store.cluster_api import ClusterApi, ClusterReader
from kschedd.store.set_aside import SetAside

T = TypeVar("T")

# number of rounds, enough for changes of a claim: the claim, its volume, the binding of both, its completion
_ROUNDS: Final = 5
_REST_S: Final = 5.0  # maximum time in seconds to wait for work in progress in virtual time


@attrs.frozen(eq=False)
class LiveCluster:
    """References to the actors of a running cluster.

    `journal` is the path of the journal's file; None if there is no journal. `epoch` identifies the history to which
    resourceVersions belong.
    """

    store: ClusterApi
    scheduler: ActorRef[SchedulingDriver]
    queue: ActorRef[QueueActor]
    log: ActorRef[Log]
    clock: Clock
    seed: int
    journal: Path | None
    epoch: str
    started_s: float
    time: TimeControl
    stops: Bulletin  # numbers of the debugger's changes
    run_recording: RunRecording
    _controllers: Sequence[ControllerActor] = ()  # actors of the controllers, which may be read only between two turns
    _set_aside: Sequence[SetAside] = ()  # objects from the journal that were not restored
    _api_calls: ApiCallMetrics = attrs.field(factory=ApiCallMetrics)
    courtesy: Courtesy = attrs.field(factory=Courtesy)  # lets small requests run before the actors' work
    _of_forks: list[Callable[[], Sequence[Controller]]] = attrs.field(factory=list)

    def recording(self) -> RecordingState | None:
        return self.run_recording.state()

    async def start_recording(self, file: Path, wait_s: float) -> RecordingState:
        return await self.run_recording.start(file, wait_s)

    async def end_recording(self) -> RecordingState:
        return await self.run_recording.end()

    def api_call_metrics(self, gates: Mapping[str, bool]) -> list[MetricFamily]:
        return self._api_calls.families(gates)

    async def faults(self) -> list[ObjectFault]:
        """Return the objects that components of the cluster currently fail to process."""
        controllers = self._controllers
        found = [_fault_of(each, self.started_s) for each in self._set_aside]
        found += await self.store.do(lambda store: [f for each in controllers for f in each.faults])
        found += await self.scheduler.query(lambda driver: driver.machine.faults.faults())
        found += await self.queue.query(lambda actor: actor.faults.faults())
        return found

    async def ask_controllers(self, question: Callable[[Sequence[Controller], ClusterReader], T]) -> T:
        """Run a function on the controllers and the objects, between two turns of the controllers."""
        actors = self._controllers
        return await self.store.do(lambda store: question([each.controller for each in actors], store))

    async def run_controllers(self) -> None:
        """Wait until the controllers have handled all writes so far, and the writes that result from them.

        Other clients may also write, so the call ends after a few rounds.
        """
        version = -1
        for _ in range(_ROUNDS):
            before, version = version, await self.store.do(lambda store: store.version)
            if version == before:
                break
            for actor in self._controllers:
                await actor.until_handled(version)

    async def query_in_turn(
        self,
        of_queue: Callable[[QueueActor], Any],
        of_scheduler: Callable[[SchedulingDriver], Any],
        of_log: Callable[[Log], Any],
    ) -> tuple[Any, Any, Any]:
        """Query queue, scheduler and log one after the other; each answer is as recent as the previous one or newer."""
        queries = ((self.queue, of_queue), (self.scheduler, of_scheduler), (self.log, of_log))
        queue, scheduler, log = await query_in_turn(*queries)
        return queue, scheduler, log

    @property
    def engine(self) -> None:
        """None, because actors have the state."""

    async def snapshot(self, *, reading: bool = False) -> ClusterSnapshot:
        """Return the state from which a fork continues. Each actor's part blocks the event loop for a few milliseconds.

        `reading` is true if the fork will not schedule. In virtual time, work in progress is completed first, so that
        the fork and the cluster continue from the same state. The wait is limited.
        """
        if self.clock.is_virtual:
            with trio.move_on_after(_REST_S):
                await self.time.until_idle()
        with collection_postponed():
            driver = await self.scheduler.query(DriverSnapshot.of)
            queue, next_leftover_s = await self.queue.query(
                lambda owner: (owner.queue.snapshot(), owner.next_leftover_s)
            )
            actors = () if reading else self._controllers
            controllers = [await self.store.do_in_steps(actor.state) for actor in actors]
            since = earliest(driver, controllers)
            store = await self.store.do_in_steps(lambda store: store.forking(since))
            now = self.clock.now()
            fresh = [] if reading else [controller for made in self._of_forks for controller in made()]
            return ClusterSnapshot(driver, queue, controllers, store, now, now, next_leftover_s, fresh, reading)

    def fork_with(self, controllers: Callable[[], Sequence[Controller]]) -> None:
        """Create new controllers for a fork, because actors use the controllers of this cluster."""
        self._of_forks.append(controllers)

    async def end(self) -> None:
        """Shut the actors down in order, each after it has finished its accepted work."""
        await self.store.end_watches()
        ways: tuple[Any, ...] = (self.scheduler, self.queue, self.log, self.store)
        for way in ways:
            way.close()


def _fault_of(aside: SetAside, at_s: float) -> ObjectFault:
    where = "" if aside.file is None else f"; a copy is in {aside.file}"
    return ObjectFault(aside.ref, "journal", f"set aside: {aside.why}{where}", at_s, at_s)
