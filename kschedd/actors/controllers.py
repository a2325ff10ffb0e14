"""ControllerActor: runs one controller of the embedded cluster. Each controller has its own actor.

Receives: notifications from its watch, and its own timer. Sends: one request to the store for each turn. In a turn, the
controller reads the objects and its writes are executed, without other writes in between. A controller therefore never
acts on outdated state. The events of a controller's own writes arrive in its next turn. Between two writes or two steps
of reading, other tasks run on the event loop. If a turn takes long, a pause follows. After the pause, the next turn
finds more changes and processes them together. In virtual time there is no pause, because virtual time does not advance
during a pause.

Owns: its Controller. Ends: when the store closes the watch. Fails: the controller handles rejected writes. Any other
exception is a fault of an object: the exception is recorded, and the object is retried later. If the journal cannot
persist a controller's writes, the controller's state is discarded, because it includes these writes. When the store
accepts writes again, a new controller starts from the stored objects.
"""

import copy
import time
from collections.abc import Generator, Sequence
from functools import partial

import attrs
import trio

from kschedd.actors.clock import REAL, Clock
from kschedd.actors.mailbox import Doorbell
from kschedd.actors.threads import in_actor_thread
from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.schemas.weight import is_large
from kschedd.controllers.copies import copy_of, copying
from kschedd.controllers.parts import field_manager
from kschedd.controllers.runner import ControllerState
from kschedd.controllers.running.controller import Controller
from kschedd.controllers.running.turns import concerning, is_concerned, next_deadline, take_turn, turn_in_steps
from kschedd.object_faults import ObjectFault
from kschedd.store.awaited import WebhooksNeeded
from kschedd.store.cluster_api import ClusterApi, ClusterWatch, ClusterWriter, listed
from kschedd.store.journal.format import JournalError
from kschedd.store.objects.log import WatchEvent
from kschedd.store.trial import Changes

_LARGE = 1_000  # minimum number of items of a large list or map
_ADDRESSES = ("addresses", "notReadyAddresses")
_COLLECTIONS = ("labels", "annotations", "finalizers", "ownerReferences")
_TRIES = 5
_MOST = 500  # maximum number of events in a turn, which blocks the store
_LONG_S = 0.02  # minimum duration of a turn's reading, in seconds, after which the controller pauses
_REST = 3  # length of the pause, as a multiple of the reading time
_LONGEST_REST_S = 1.0


@attrs.define(eq=False)
class ControllerActor:
    _controller: Controller
    _store: ClusterApi
    _clock: Clock
    _watch: ClusterWatch | None = attrs.field(default=None, init=False)
    _given: Sequence[WatchEvent] = attrs.field(default=(), init=False)  # events of the unfinished turn
    # seconds of reading in the latest turn, before its first pause
    _looked_s: float = attrs.field(default=0.0, init=False)
    _bell: Doorbell = attrs.field(factory=Doorbell, init=False)
    _begun: trio.Event = attrs.field(factory=trio.Event, init=False)  # set when the watch has begun, or has ended
    _at_work: bool = attrs.field(default=False, init=False)
    _handled: int = attrs.field(default=-1, init=False)  # version up to which all events have been handled
    # tasks that wait for the next turn
    _turns: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False)

    @property
    def name(self) -> str:
        return self._controller.name

    @property
    def controller(self) -> Controller:
        """The controller; other code may access the controller only between two of its steps."""
        return self._controller

    @property
    def faults(self) -> Sequence[ObjectFault]:
        """The objects that the controller currently cannot handle."""
        return self._controller.faults.faults()

    async def until_handled(self, version: int) -> None:
        """Wait until the controller has handled all events up to this version, or until it has ended."""
        await self._begun.wait()
        while (watch := self._watch) is not None and self._handled < version and (self._at_work or watch.behind):
            self._bell.ring()  # also for events that do not concern the controller, so that `until_handled` returns
            await self._turns.park()

    def state(self, store: ClusterWriter) -> Generator[None, None, ControllerState]:
        """Return a copy of the controller and its progress, created in steps without writes in between."""
        watch = self._watch
        if watch is None:
            first, version = listed(store, self._controller.kinds), store.version
        else:
            first, version = [*self._given, *watch.first], watch.version
        controller = yield from copying(self._controller)
        return ControllerState(controller, version, first)

    async def run(self) -> None:
        at_first = copy.deepcopy(self._controller)
        try:
            while not await self._work():
                await self._store.until_writable()
                self._controller = copy.deepcopy(at_first)
        finally:
            self._begun.set()
            self._store.close()

    async def _work(self) -> bool:
        """Run turns. Returns True when the store is shutting down, and False if writes could not be persisted."""
        try:
            kinds = self._controller.kinds
            bell = self._bell = Doorbell()
            watch = self._watch = await self._store.watch(kinds, with_present=True, bell=bell, concerns=self._concerned)
            self._begun.set()
            try:
                while await self._woken(watch):
                    self._at_work = True
                    events = self._given = concerning(self._controller, watch.take(_MOST))
                    taken, rest_s = -1 if watch.first else watch.version, 0.0
                    if any(map(_of_large_object, events)) and await self._turn_aside(events):
                        self._given = ()
                    elif events or self._due():
                        await self._store.do_in_steps(self._turn)
                        rest_s = min(_REST * self._looked_s, _LONGEST_REST_S) if self._looked_s > _LONG_S else 0.0
                    self._at_work, self._handled = False, taken
                    self._turns.unpark_all()
                    if rest_s and self._clock.speed == REAL:
                        await trio.sleep(rest_s)
            finally:
                self._watch, self._given, self._at_work = None, (), False
                self._turns.unpark_all()
                watch.close()
        except JournalError:
            return False
        return True

    def _concerned(self, event: WatchEvent) -> bool:
        return is_concerned(self._controller, event)

    def _turn(self, store: ClusterWriter) -> Generator[WebhooksNeeded | None, None, None]:
        events, self._given = self._given, ()
        steps, began = (
            turn_in_steps(self._controller, events, store, field_manager(self._controller)),
            time.perf_counter(),
        )
        next(steps, None)
        self._looked_s = time.perf_counter() - began
        yield from steps

    async def _turn_aside(self, events: Sequence[WatchEvent]) -> bool:
        """Run a turn in a thread on a fork of the store, for writes whose validation takes long.

        Returns False if other clients wrote first in each attempt, or if objects had faults, because only the store can
        retry faulty objects.
        """
        for _ in range(_TRIES):
            if self.faults:
                return False
            fork = await self._store.do_in_steps(lambda store: store.forking())
            since = fork.version

            def try_it(fork: ClusterWriter = fork, since: int = since) -> tuple[Controller, Changes]:
                controller = copy_of(self._controller)
                take_turn(controller, events, fork, field_manager(controller))
                return controller, fork.changes_since(since)

            controller, changes = await in_actor_thread(try_it, abandon_on_cancel=True)
            if controller.faults.faults():
                return False
            if await self._store.do_in_steps(partial(_adopting, changes)) is not None:
                self._controller = controller
                return True
        return False

    async def _woken(self, watch: ClusterWatch) -> bool:
        """Wait for work; return False if the store is shutting down."""
        if watch.behind:
            await trio.lowlevel.checkpoint()
            return not watch.ended
        with self._clock.move_on_at(next_deadline(self._controller)):
            return await watch.wait()
        return True

    def _due(self) -> bool:
        at = next_deadline(self._controller)
        return at is not None and at <= self._clock.now()


def _of_large_object(event: WatchEvent) -> bool:
    """Return whether a turn with this event may take tens of milliseconds to read and validate.

    A workload's pods have the workload's labels, so if its object is large, the resulting writes are large as well.
    Pods, nodes and endpoints are numerous, so only the sizes of their lists and maps are checked. The endpoints of 1000
    pods are not large, because no controller derives other objects from them.
    """
    obj = event.new
    meta = obj.metadata
    sizes = [len(meta.get(field) or ()) for field in _COLLECTIONS]
    if isinstance(obj, Node):
        sizes += (len(obj.taints), len(obj.allocatable))
    elif obj.kind == "EndpointSlice":
        sizes += (len(obj.raw.get(field) or ()) for field in ("endpoints", "ports"))
    elif obj.kind == "Endpoints":
        subsets = obj.raw.get("subsets") or ()
        sizes.append(sum(len(each.get(field) or ()) for each in subsets for field in _ADDRESSES))
        sizes.append(sum(len(each.get("ports") or ()) for each in subsets))
    elif not isinstance(obj, Pod):
        return is_large(obj.raw)
    return max(sizes) > _LARGE


def _adopting(changes: Changes, store: ClusterWriter) -> Generator[None, None, object]:
    return store.adopt(changes)
