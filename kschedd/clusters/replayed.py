"""A replay as a cluster that serves the daemon's methods: clients can read, stop, step and fork it, but not change it.

`ReplayCluster` is the cluster on which the methods work. The recording is played only by these calls: `advance`,
`until`, `step`, `next` and `wait` play the recording up to a time, or to a stop of the debugger. All other methods read
the state between two notes of the recording. A method that would change the past is rejected. A fork can continue from
any point of the recording.

Owns: the player, and the records of its attempts.
"""

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Final, Never, TypeVar

import attrs
import trio

from kschedd.actors.bulletin import Bulletin
from kschedd.actors.time_control import Moved
from kschedd.api.objects import Object
from kschedd.clusters.virtual import AtHand, ClockAtHand, OwnersAtHand, QueueAtHand
from kschedd.controllers.embedded import embedded_controllers
from kschedd.controllers.running.controller import Controller
from kschedd.errors import KscheddError
from kschedd.log.log import Log
from kschedd.metrics.instruments import MetricFamily
from kschedd.object_faults import ObjectFault
from kschedd.recording.reading import RecordingFile
from kschedd.recording.recorder import RecordingState
from kschedd.recording.wiring import controllers_of
from kschedd.scheduling.snapshots.cluster import ClusterSnapshot
from kschedd.scheduling.trial_cluster import TrialCluster
from kschedd.service.errors import RpcError
from kschedd.service.table import Call, Method
from kschedd.simulation.replay.objects import ReplayedObjects
from kschedd.simulation.replay.player import Player
from kschedd.store.cluster_api import Bell, ClusterReader, ClusterWriter
from kschedd.values import run_steps

T = TypeVar("T")

_SLICE_S: Final = 0.005  # seconds of playing before other tasks run
_MOVING: Final = ("debug.", "time.", "fork.", "daemon.", "rpc.")  # prefixes of methods that do not change the past
_CHANGING: Final = frozenset(("debug.force", "debug.veto", "debug.score", "debug.drop", "time.set_speed"))


@attrs.define(eq=False)
class PastError(KscheddError, rpc_code="conflict"):
    """The error for a request that would change the past."""

    what: str

    def __str__(self) -> str:
        return f"{self.what}: this is a replay, and the past cannot be changed; `fork create NAME` continues from here"


def readable(methods: Iterable[Method]) -> list[Method]:
    """Return the methods that a replay serves."""
    return [
        method
        if method.name not in _CHANGING and (method.reads or method.name.startswith(_MOVING))
        else attrs.evolve(method, handler=_refuse)
        for method in methods
    ]


async def _refuse(call: Call) -> Never:
    raise PastError(call.method)


@attrs.frozen(eq=False)
class _ReplayStore:
    _objects: ReplayedObjects

    async def do(self, request: Callable[[ClusterWriter], T]) -> T:
        store = self._objects.store()
        before = store.version
        try:
            return request(store)
        finally:
            if store.version != before:
                store.roll_back(before)

    async def do_in_steps(self, work: Callable[[ClusterWriter], Generator[None, None, T]]) -> T:
        return await self.do(lambda store: run_steps(work(store)))

    async def create(self, raw: Mapping[str, Any]) -> Object:
        raise PastError("create")

    async def condition(self) -> KscheddError | None:
        return PastError("write")

    async def watch(
        self, kinds: Iterable[str] | None = None, since_version: int | None = None, *, bell: Bell | None = None
    ) -> Never:
        raise RpcError("invalid", "a replay has no watches: read again after `advance`, `debug until` or `debug step`")


@attrs.frozen(eq=False)
class _ReplayTime:
    """The time of a replay. The time advances only by playing the recording, one call at a time."""

    _player: Player
    _stops: Bulletin
    _turn: trio.Lock = attrs.field(factory=trio.Lock)

    async def set_speed(self, speed: float) -> None:
        if speed:
            raise PastError("speed")

    def move_to(self, at_s: float) -> bool:
        raise PastError("time")

    async def advance(self, until_s: float | None, on_moved: Callable[[], Awaitable[None]]) -> Moved:
        moved = await self._play(until_s)
        await on_moved()
        return moved

    async def until_idle(self) -> None:
        await self._play(None)

    async def _play(self, until_s: float | None) -> Moved:
        player, debugger = self._player, self._player.driver.debugger
        async with self._turn:
            while True:
                pause = perf_counter() + _SLICE_S
                while perf_counter() < pause:
                    at = player.next_s()
                    if until_s is not None and at is not None and at > until_s:
                        player.now_s = max(player.now_s, until_s)
                        return Moved.REACHED
                    if not player.step():
                        self._stops.publish(debugger.changes, debugger.stop is not None)
                        return Moved.STOPPED if debugger.stop is not None else Moved.NOTHING_DUE
                self._stops.publish(debugger.changes, debugger.stop is not None)
                await trio.lowlevel.checkpoint()


class ReplayCluster(OwnersAtHand):
    """A replay, as the cluster of the daemon's methods. The replay is stopped before the first attempt."""

    def __init__(self, recording: RecordingFile) -> None:
        log = Log()
        self.player = player = Player(recording, move_recorder=log.append)
        header = recording.header
        self._objects = ReplayedObjects(player)
        self._options = controllers_of(header, recording.path)
        player.on_happened(lambda entry: log.extend((entry,)))
        self.store = _ReplayStore(self._objects)
        self.scheduler = AtHand(player.driver)
        self.queue = AtHand(QueueAtHand(player.operations))
        self.log = AtHand(log)
        self.clock = ClockAtHand(lambda: player.now_s, player.next_s)
        self.stops = Bulletin()
        self.time = _ReplayTime(player, self.stops)
        self.seed = header.seed
        self.journal: Path | None = None
        self.epoch = "replay"

    def api_call_metrics(self, gates: Mapping[str, bool]) -> list[MetricFamily]:
        return []  # no actor makes writes here

    def recording(self) -> RecordingState | None:
        return None

    async def start_recording(self, file: Path, wait_s: float) -> Never:
        raise PastError("record start")

    async def end_recording(self) -> Never:
        raise PastError("record stop")

    @property
    def engine(self) -> None:
        """None, because the player owns the state."""

    async def snapshot(self, *, reading: bool = False) -> ClusterSnapshot:
        found = self._objects.snapshot(
            () if reading else embedded_controllers(options=self._options, trials=TrialCluster.in_steps)
        )
        return attrs.evolve(found, reading=reading)

    async def faults(self) -> list[ObjectFault]:
        return list(self.player.driver.machine.faults.faults())

    async def ask_controllers(self, question: Callable[[Sequence[Controller], ClusterReader], T]) -> T:
        return question((), self._objects.store())

    async def run_controllers(self) -> None:
        """Do nothing: the writes of the controllers are in the recording."""
